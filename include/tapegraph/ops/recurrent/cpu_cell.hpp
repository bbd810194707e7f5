#pragma once

#include <tapegraph/ops/recurrent/cpu_functions.hpp>

/// The interface of a cell to the recurrent kernels, the CPU's and the device's: the formulas of
/// one unit in one step, on scalars that may carry a tangent.
///
/// A cell has `gates` columns of units in x W + b and in R. Its `columns` are the arguments by
/// which its formulas are differentiated: those of the gates, and other results of products with R
/// (`product_column` says to which of them a column of R contributes). `values` are the gates after
/// their functions and other values that derivatives need; a forward pass keeps `kept` of them.
/// Without any, the value is the state itself. `numbers` and `gradient` are the types below, for
/// its values and columns. `states` is 2 for a cell whose memory differs from its output, c in
/// addition to h; its memory is c, that of other cells h.
///
///   values_of(f, bias, x..., p...)         computes the values from a row of x W + b and of products with R
///   step(f, values, before)                computes memory and h from the memory before
///   along(f, values, d)                    the values with the tangents d of the columns
///   backward(f, values, before, now, dh, dc)  derivatives by the columns, and by the memory before, past the products
///
/// A cell without `reset_before` also defines how its values are computed where each column of a
/// unit belongs to another thread:
///
///   column_value(f, column, z)             the result of one column, from z = x + p, or the bias + p
///   joined(f, columns)                     the values, from the results of the columns
///
/// `biased`: the candidate's product has a bias of its own. In a cell with `reset_before` the last
/// column of R is multiplied by the result of `reset` instead of h, so that a step has two
/// products, one after the other.

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
