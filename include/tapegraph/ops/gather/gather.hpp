#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/operation.hpp>

#include <limits>

/// gather, scatter_add, gather_nd, scatter_nd, take_along, put_along, one_hot: select elements by
/// int32 or int64 indices. An index outside its axis (a negative one, too) throws a range_error
/// that names the operation, the index, its position and the extent, before anything is read or
/// written. Contributions to the same index are added in their order.

namespace tapegraph {

namespace detail {
constexpr bool index_type(dtype type) { return type == dtype::i32 || type == dtype::i64; }

constexpr bool same_shape_or_required(const shape& a, const shape& b) {
    bool same = a.rank() == b.rank();
    for (int i = 0; same && i < a.rank(); ++i) same = equal_or_required(a[i], b[i]);
    return same;
}
} // namespace detail

/// Slices of a table along an axis: table [batch..., before..., n, after...], indices [batch...,
/// picks...] to [batch..., before..., picks..., after...].
namespace detail {
/// Bytes read and written by a selection: only the selected part of the table is read.
inline double bytes_of_choice(const kernel_call& c) {
    const std::size_t chosen = c.out[0].bytes(), table = c.in[0].bytes();
    return static_cast<double>((table < chosen ? table : chosen) + c.in[1].bytes() + chosen);
}
} // namespace detail

struct gather_op {
    static constexpr std::string_view name = "gather";
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr bool takes_storage_types = true;
    static constexpr linearity linear = linearity::joint;
    static constexpr int arity = 2;
    struct attributes {
        std::int64_t axis = 0, batch = 0;
    };
    /// Computes the shape of the gathered slices. Returns false when the operands do not fit.
    static constexpr bool gathered(const attributes& a, const shape& table, const operand_info& indices, inference& io,
                                   shape& result) {
        const shape& picks = indices.dims;
        if (!io.require(table.rank() >= 1, "gather, scatter_add: the table needs an axis") ||
            !io.require(detail::index_type(indices.type), "gather, scatter_add: indices must be i32 or i64") ||
            !io.require(a.axis >= 0 && a.axis < table.rank(), "gather, scatter_add: axis outside the rank") ||
            !io.require(a.batch >= 0 && a.batch <= a.axis && a.batch <= picks.rank(),
                        "gather: batch axes must come before the axis, in the table and in the indices"))
            return false;
        const auto axis = static_cast<int>(a.axis), batch = static_cast<int>(a.batch);
        result = shape();
        result.attach(table.table());
        for (int i = 0; i < axis; ++i) result.push_back(table[i]);
        for (int i = 0; i < batch; ++i)
            io.require(equal_or_required(table[i], picks[i]), "gather: extents of batch axes differ");
        for (int i = batch; i < picks.rank(); ++i) result.push_back(picks[i]);
        for (int i = axis + 1; i < table.rank(); ++i) result.push_back(table[i]);
        return io.require(!result.overflow(), "gather: rank above 8");
    }
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = io.in[0].type;
        gathered(a, io.in[0].dims, io.in[1], io, io.result);
    }
    template <int I>
        requires(I == 0)
    static constexpr auto vjp(const attributes& a, auto dy, auto table, auto indices, auto);
    static constexpr cost_function bytes = &detail::bytes_of_choice;
};

/// (slices, indices) to zeros of the target's shape with each slice added where its index points.
struct scatter_add_op : gather_op {
    static constexpr bool takes_storage_types = false; // false, because it adds
    static constexpr std::string_view name = "scatter_add";
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = io.in[0].type;
        io.result = *io.target;
        shape expected;
        if (gathered(a, io.result, io.in[1], io, expected))
            io.require(detail::same_shape_or_required(io.in[0].dims, expected),
                       "scatter_add: the values must have the shape that gather would give");
    }
    template <int I>
        requires(I == 0)
    static constexpr auto vjp(const attributes& a, auto d, auto, auto indices, auto) {
        return invoke<gather_op>(a, nullptr, std::source_location::current(), d, indices);
    }
    static constexpr cost_function bytes = nullptr; // it reads all of its operands
};

template <int I>
    requires(I == 0)
constexpr auto gather_op::vjp(const attributes& a, auto dy, auto table, auto indices, auto) {
    const shape target = shape_of(table);
    return invoke<scatter_add_op>(a, &target, std::source_location::current(), dy, indices);
}

/// Slices of a table by tuples: table [n1, ..., nk, rest...], indices [picks..., k] to [picks..., rest...].
struct gather_nd_op {
    static constexpr std::string_view name = "gather_nd";
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr linearity linear = linearity::joint;
    static constexpr int arity = 2;
    using attributes = no_attributes;
    /// The result's shape for a table and indices; false where they do not fit.
    static constexpr bool gathered(const shape& table, const operand_info& indices, inference& io, shape& result) {
        const shape& picks = indices.dims;
        const extent width = picks.rank() > 0 ? picks[picks.rank() - 1] : extent(0);
        if (!io.require(detail::index_type(indices.type), "gather_nd, scatter_nd: indices must be i32 or i64") ||
            !io.require(
                width.known() && width.value >= 1 && width.value <= table.rank(),
                "gather_nd, scatter_nd: the last extent of the indices must be a number from 1 to the table's rank"))
            return false;
        result = shape();
        result.attach(table.table() != nullptr ? table.table() : picks.table());
        for (int i = 0; i + 1 < picks.rank(); ++i) result.push_back(picks[i]);
        for (int i = static_cast<int>(width.value); i < table.rank(); ++i) result.push_back(table[i]);
        return io.require(!result.overflow(), "gather_nd: rank above 8");
    }
    static constexpr void infer(const attributes&, inference& io) {
        io.type = io.in[0].type;
        gathered(io.in[0].dims, io.in[1], io, io.result);
    }
    template <int I>
        requires(I == 0)
    static constexpr auto vjp(const attributes& a, auto dy, auto table, auto indices, auto);
    static constexpr cost_function bytes = &detail::bytes_of_choice;
};

/// (slices, indices) to zeros of the target's shape with each slice added where its tuple points.
struct scatter_nd_op : gather_nd_op {
    static constexpr std::string_view name = "scatter_nd";
    static constexpr void infer(const attributes&, inference& io) {
        io.type = io.in[0].type;
        io.result = *io.target;
        shape expected;
        if (gathered(io.result, io.in[1], io, expected))
            io.require(detail::same_shape_or_required(io.in[0].dims, expected),
                       "scatter_nd: the values must have the shape that gather_nd would give");
    }
    template <int I>
        requires(I == 0)
    static constexpr auto vjp(const attributes& a, auto d, auto, auto indices, auto) {
        return invoke<gather_nd_op>(a, nullptr, std::source_location::current(), d, indices);
    }
    static constexpr cost_function bytes = nullptr; // it reads all of its operands
};

template <int I>
    requires(I == 0)
constexpr auto gather_nd_op::vjp(const attributes& a, auto dy, auto table, auto indices, auto) {
    const shape target = shape_of(table);
    return invoke<scatter_nd_op>(a, &target, std::source_location::current(), dy, indices);
}

/// Elements along an axis: x [..., n, ...], indices [..., m, ...] to [..., m, ...].
struct take_along_op {
    static constexpr std::string_view name = "take_along";
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr bool takes_storage_types = true;
    static constexpr linearity linear = linearity::joint;
    static constexpr int arity = 2;
    struct attributes {
        std::int64_t axis = 0;
    };
    /// Whether operand and indices fit; what is wrong otherwise goes to `io`.
    static constexpr bool valid(const attributes& a, const shape& x, const operand_info& indices, inference& io) {
        if (!io.require(x.rank() >= 1 && x.rank() == indices.dims.rank(), "take_along, put_along: ranks differ") ||
            !io.require(a.axis >= 0 && a.axis < x.rank(), "take_along, put_along: axis outside the rank") ||
            !io.require(detail::index_type(indices.type), "take_along, put_along: indices must be i32 or i64"))
            return false;
        for (int i = 0; i < x.rank(); ++i)
            if (i != a.axis)
                io.require(equal_or_required(x[i], indices.dims[i]),
                           "take_along, put_along: extents differ off the axis");
        return io.error == nullptr;
    }
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = io.in[0].type;
        io.result = io.in[1].dims;
        valid(a, io.in[0].dims, io.in[1], io);
    }
    template <int I>
        requires(I == 0)
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto indices, auto);
    static constexpr cost_function bytes = &detail::bytes_of_choice;
};

/// The adjoint of take_along: adds each element where its index points; the target is x's shape.
struct put_along_op : take_along_op {
    static constexpr bool takes_storage_types = false; // false, because it adds
    static constexpr std::string_view name = "put_along";
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = io.in[0].type;
        io.result = *io.target;
        if (valid(a, io.result, io.in[1], io))
            io.require(detail::same_shape_or_required(io.in[0].dims, io.in[1].dims),
                       "put_along: values and indices differ in shape");
    }
    template <int I>
        requires(I == 0)
    static constexpr auto vjp(const attributes& a, auto d, auto, auto indices, auto) {
        return invoke<take_along_op>(a, nullptr, std::source_location::current(), d, indices);
    }
    static constexpr cost_function bytes = nullptr; // it reads all of its operands
};

template <int I>
    requires(I == 0)
constexpr auto take_along_op::vjp(const attributes& a, auto dy, auto x, auto indices, auto) {
    const shape target = shape_of(x);
    return invoke<put_along_op>(a, &target, std::source_location::current(), dy, indices);
}

/// indices [...] to [..., depth, ...]: `on` where the index points, `off` elsewhere.
template <class T>
struct one_hot_op {
    static constexpr std::string_view name = "one_hot";
    static constexpr batching batched = batching::axis;
    using result_element = T;
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr int arity = 1;
    struct attributes {
        std::int64_t depth = 0, axis = 0;
        double on = 1, off = 0;
    };
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = dtype_of<T>;
        const shape& from = io.in[0].dims;
        if (!io.require(detail::index_type(io.in[0].type), "one_hot: indices must be i32 or i64") ||
            !io.require(a.depth > 0, "one_hot: depth must be positive") ||
            !io.require(a.axis >= 0 && a.axis <= from.rank(), "one_hot: axis outside the rank") ||
            !io.require(from.rank() < max_rank, "one_hot: rank above 8"))
            return;
        io.result.attach(from.table());
        for (int i = 0; i <= from.rank(); ++i) {
            if (i == a.axis) io.result.push_back(a.depth);
            if (i < from.rank()) io.result.push_back(from[i]);
        }
    }
};

/// Passed to gather as its axis, selects the first axis after the batch axes.
inline constexpr int after_batch = std::numeric_limits<int>::min();

namespace detail {
constexpr gather_op::attributes gather_attributes(int axis, int batch, int rank) {
    return {axis == after_batch ? batch : normalized_axis(axis, rank), batch};
}
} // namespace detail

/// Slices of `table` along an axis, in the order of the indices (tf.gather). The first `batch_axes`
/// axes of both operands are matched: indices select within their own batch.
template <tensor_like A, tensor_like B>
constexpr auto gather(const A& table, const B& indices, int axis = after_batch, int batch_axes = 0,
                      std::source_location where = std::source_location::current()) {
    return invoke<gather_op>(detail::gather_attributes(axis, batch_axes, shape_of(table).rank()), nullptr, where, table,
                             indices);
}
/// Adds slices to zeros of the target's shape, each where its index points: the adjoint of gather.
template <tensor_like A, tensor_like B>
constexpr auto scatter_add(const A& values, const B& indices, shape target, int axis = after_batch, int batch_axes = 0,
                           std::source_location where = std::source_location::current()) {
    target.attach(shape_of(values).table());
    return invoke<scatter_add_op>(detail::gather_attributes(axis, batch_axes, target.rank()), &target, where, values,
                                  indices);
}
/// table[i1, ..., ik] for every tuple on the last axis of the indices (tf.gather_nd).
template <tensor_like A, tensor_like B>
constexpr auto gather_nd(const A& table, const B& indices,
                         std::source_location where = std::source_location::current()) {
    return invoke<gather_nd_op>({}, nullptr, where, table, indices);
}
/// Zeros of the target's shape with each value added where its tuple points (tf.scatter_nd): the adjoint of gather_nd.
template <tensor_like A, tensor_like B>
constexpr auto scatter_nd(const A& values, const B& indices, shape target,
                          std::source_location where = std::source_location::current()) {
    target.attach(shape_of(values).table());
    return invoke<scatter_nd_op>({}, &target, where, values, indices);
}
/// The elements selected by indices along an axis (numpy.take_along_axis, torch.gather); other
/// extents are equal.
template <tensor_like A, tensor_like B>
constexpr auto take_along(const A& x, const B& indices, int axis = -1,
                          std::source_location where = std::source_location::current()) {
    return invoke<take_along_op>({normalized_axis(axis, shape_of(x).rank())}, nullptr, where, x, indices);
}
/// Zeros of the target's shape with each value added where its index points along an axis (torch.scatter_add on zeros).
template <tensor_like A, tensor_like B>
constexpr auto put_along(const A& values, const B& indices, shape target, int axis = -1,
                         std::source_location where = std::source_location::current()) {
    target.attach(shape_of(values).table());
    return invoke<put_along_op>({normalized_axis(axis, target.rank())}, &target, where, values, indices);
}

/// Options of `one_hot`.
struct one_hot_options {
    double on = 1, off = 0;
    int axis = -1; ///< axis of the result
};
/// T(on) where the index points along a new axis of `depth`, T(off) elsewhere.
template <class T, tensor_like A>
constexpr auto one_hot(const A& indices, std::int64_t depth, one_hot_options options = {},
                       std::source_location where = std::source_location::current()) {
    return invoke<one_hot_op<T>>(
        {depth, normalized_axis(options.axis, shape_of(indices).rank() + 1), options.on, options.off}, nullptr, where,
        indices);
}
no_such_option_in<one_hot_options> one_hot(any_argument, any_argument, ...) TG_MISTAKE;

} // namespace tapegraph
