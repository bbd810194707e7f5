#pragma once

#include <tapegraph/ops/recurrent/cpu_functions.hpp>

/// What a cell is to the recurrent kernels, the CPU's and the device's: the formulas of one unit in one step, on scalars that may
/// carry a tangent.
///
/// A cell has `gates` columns of units in x W + b and in R. Its `columns` are the arguments that its formulas are
/// differentiated by: those of the gates, and what else is made of a product with R (`product_column` says which of them a
/// column of R contributes to). Of its `values`, the gates after their functions and what derivatives need beside them, a
/// forward pass keeps `kept`; without any the value is the state itself. `numbers` and `gradient` are the types below, of its
/// values and columns. `states` is 2 for a cell that remembers another number than it shows, c beside h; its memory is c, that
/// of others h.
///
///   values_of(f, bias, x..., p...)         from a row of x W + b and of products with R
///   step(f, values, before)                memory and h, from the memory before
///   along(f, values, d)                    values that carry the tangents d of the columns
///   backward(f, values, before, now, dh, dc)  derivatives by the columns, and by the memory before, past the products
///
/// A cell without `reset_before` also says how its values come about where each column of a unit is another thread's:
///
///   column_value(f, column, z)             what one column gives, of z = x + p, or the bias + p
///   joined(f, columns)                     the values, of what the columns gave
///
/// `biased`: the candidate's product has a bias of its own. In a cell with `reset_before` the last column of R is not
/// multiplied with h but with what `reset` makes of it, so that a step has two products, one after the other.

namespace tapegraph::cpu::detail {

template <class V, int N>
struct cell_numbers {
    V v[N];
};

template <class V>
struct cell_state {
    V memory, h;
};

/// `passed`: the derivative by the memory before.
template <class V, int N>
struct cell_gradient {
    V v[N];
    V passed;
};

} // namespace tapegraph::cpu::detail
