#pragma once

#include <tapegraph/ops/gather/gather.hpp>
#include <tapegraph/ops/movement/concat.hpp>
#include <tapegraph/ops/movement/view.hpp>

/// Updates only those rows of a table that a step has used, at a cost proportional to these rows:
/// sum_of_equal_rows and assign_rows. Their kernels are in ops/gather/rows_kernel.hpp, which other
/// programs do not compile. Neither has a derivative.

namespace tapegraph {

/// Maps (rows [picks..., rest...], indices [picks...]) to each row's sum over all rows of the same
/// index.
struct sum_of_equal_rows_op {
    static constexpr std::string_view name = "sum_of_equal_rows";
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr int arity = 2;
    using attributes = no_attributes;
    static constexpr void infer(const attributes&, inference& io) {
        const shape &rows = io.in[0].dims, &picks = io.in[1].dims;
        io.type = io.in[0].type;
        io.result = rows;
        if (!io.require(detail::index_type(io.in[1].type), "sum_of_equal_rows: indices must be i32 or i64")) return;
        bool valid = picks.rank() <= rows.rank();
        for (int i = 0; valid && i < picks.rank(); ++i) valid = equal_or_required(rows[i], picks[i]);
        io.require(valid, "sum_of_equal_rows: the rows' first axes are not those of the indices");
    }
};

/// Maps (table [n, rest...], indices [picks...], rows [picks..., rest...]) to the table with the
/// indexed rows replaced.
struct assign_rows_op {
    static constexpr std::string_view name = "assign_rows";
    static constexpr bool takes_storage_types = true; // it only moves elements
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr int arity = 3;
    /// Where nothing else needs the table, the result takes over its memory and only rows are
    /// written.
    static constexpr bool in_place = true;
    using attributes = no_attributes;
    static constexpr void infer(const attributes&, inference& io) {
        io.type = io.in[0].type;
        io.result = io.in[0].dims;
        shape expected;
        if (!gather_op::gathered({}, io.in[0].dims, io.in[1], io, expected)) return;
        io.culprit = 2;
        io.require(io.in[2].type == io.type && detail::same_shape_or_required(io.in[2].dims, expected),
                   "assign_rows: the rows must have the type and shape that gather would give");
    }
    /// In place, only the rows are read and written.
    static double bytes(const kernel_call& c) {
        const std::size_t rows = c.in[1].bytes() + 2 * c.in[2].bytes();
        return static_cast<double>(
            c.in[0].data == c.out[0].data ? rows : rows - c.in[2].bytes() + c.in[0].bytes() + c.out[0].bytes());
    }
};

/// rows[i] + rows[j] + ... over all positions with the same index as i, in their order, starting
/// from zero; the shape is that of `rows`. The cost depends only on the rows, whatever the indices
/// are, because they are only compared.
template <tensor_like A, tensor_like B>
constexpr auto sum_of_equal_rows(const A& rows, const B& indices,
                                 std::source_location where = std::source_location::current()) {
    return invoke<sum_of_equal_rows_op>({}, nullptr, where, rows, indices);
}
/// The table with row indices[i] replaced by rows[i]. Rows given for one index must be equal. An
/// index outside the table throws a range_error.
template <tensor_like A, tensor_like B, tensor_like C>
constexpr auto assign_rows(const A& table, const B& indices, const C& rows,
                           std::source_location where = std::source_location::current()) {
    return invoke<assign_rows_op>({}, nullptr, where, table, indices, rows);
}

namespace detail {
/// Joins rows from several places: each [picks..., rest...], with the same `rest`, to [all picks,
/// rest...]. `rest_axes` is the number of axes of the rest.
template <handle H>
constexpr H rows_together(const H* parts, int count, int rest_axes) {
    const auto here = std::source_location::current();
    if (count == 1) return parts[0];
    list<H> flat;
    for (int k = 0; k < count; ++k) {
        const shape from = shape_of(parts[k]);
        shape target = no_axes(from);
        target.push_back(from.size(0, from.rank() - rest_axes));
        for (int i = from.rank() - rest_axes; i < from.rank(); ++i) target.push_back(from[i]);
        flat.push_back(invoke<reshape_op>({}, &target, here, parts[k]));
    }
    return invoke_list<concat_op>({0}, here, flat.begin(), count);
}
} // namespace detail

} // namespace tapegraph
