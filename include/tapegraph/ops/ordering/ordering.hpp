#pragma once

#include <tapegraph/ops/cumulative/cumulative.hpp>
#include <tapegraph/ops/gather/gather.hpp>
#include <tapegraph/ops/movement/layout.hpp>

/// argsort, sort, top_k, argmax, argmin. A NaN wins in both argmax and argmin (as in NumPy), and
/// comes last in every order.

namespace tapegraph {

/// The order of the last axis as int32 indices; stable, NaN last. Only the first `count` of them,
/// unless that is -1.
struct argsort_op {
    static constexpr std::string_view name = "argsort";
    static constexpr batching batched = batching::rows;
    using result_element = std::int32_t;
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr int arity = 1;
    struct attributes {
        std::int64_t descending = 0;
        std::int64_t count = -1;
    };
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = dtype::i32;
        io.result = io.in[0].dims;
        if (!io.require(io.result.rank() > 0, "sort, argsort, top_k: axis outside the rank") ||
            !io.require(io.in[0].type != dtype::boolean, "sort, argsort, top_k: the elements are bool; cast<...> first") ||
            a.count == -1)
            return;
        const extent length = io.result[io.result.rank() - 1];
        io.require(a.count >= 0 && (!length.known() || a.count <= length.value), "top_k: k is outside [0, extent of the axis]");
        io.result.set(io.result.rank() - 1, a.count);
    }
};

/// Options of `sort` and `argsort`.
struct sort_options {
    bool descending = false;
};

namespace detail {
/// x with `axis` and the last axis exchanged. An axis outside the rank gives a transpose that is
/// refused.
template <tensor_like A>
constexpr auto with_axis_last(const A& x, int axis, std::source_location where) {
    transpose_op::attributes a;
    a.rank = shape_of(x).rank();
    const int last = static_cast<int>(a.rank) - 1, at = normalized_axis(axis, static_cast<int>(a.rank));
    for (int i = 0; i <= last; ++i) a.permutation[i] = i == at ? last : i == last ? at : i;
    return invoke<transpose_op>(a, nullptr, where, x);
}
template <tensor_like A>
constexpr bool is_last_axis(const A& x, int axis) {
    return axis == -1 || axis == shape_of(x).rank() - 1;
}
} // namespace detail

/// The int32 positions that sort an axis; equal elements keep their order.
template <tensor_like A>
constexpr auto argsort(const A& x, int axis = -1, sort_options options = {},
                       std::source_location where = std::source_location::current()) {
    const auto order = [&](const auto& of) { return invoke<argsort_op>({options.descending, -1}, nullptr, where, of); };
    if (detail::is_last_axis(x, axis)) return order(x);
    return detail::with_axis_last(order(detail::with_axis_last(x, axis, where)), axis, where);
}
template <tensor_like A>
constexpr auto argsort(const A& x, sort_options options, std::source_location where = std::source_location::current()) {
    return argsort(x, -1, options, where);
}
no_such_option_in<sort_options> argsort(any_argument, ...) TG_MISTAKE;
no_such_option_in<sort_options> argsort(any_argument, any_argument, ...) TG_MISTAKE;
/// Sorts an axis. Derivatives follow the elements.
template <tensor_like A>
constexpr auto sort(const A& x, int axis = -1, sort_options options = {},
                    std::source_location where = std::source_location::current()) {
    const auto sorted = [&](const auto& of) {
        return take_along(of, invoke<argsort_op>({options.descending, -1}, nullptr, where, of), -1, where);
    };
    if (detail::is_last_axis(x, axis)) return sorted(eval(x, where));
    return detail::with_axis_last(sorted(detail::with_axis_last(x, axis, where)), axis, where);
}
template <tensor_like A>
constexpr auto sort(const A& x, sort_options options, std::source_location where = std::source_location::current()) {
    return sort(x, -1, options, where);
}
no_such_option_in<sort_options> sort(any_argument, ...) TG_MISTAKE;
no_such_option_in<sort_options> sort(any_argument, any_argument, ...) TG_MISTAKE;

/// The result of `top_k`: elements, and their int32 positions along the axis.
template <class Values, class Indices>
struct values_and_indices {
    Values values;
    Indices indices;
};

/// Options of `top_k`.
struct top_k_options {
    bool largest = true; ///< false: the k smallest
};

/// The k largest elements along an axis, largest first, and the first among equals first: `const
/// auto [v, i] = top_k(x, 3)`. NaN comes last. Derivatives follow the elements.
template <tensor_like A>
constexpr auto top_k(const A& x, std::int64_t k, int axis = -1, top_k_options options = {},
                     std::source_location where = std::source_location::current()) {
    const std::int64_t count = k < 0 ? -2 : k; // -1 would request all
    const auto first = [&](const auto& of) { return invoke<argsort_op>({options.largest, count}, nullptr, where, of); };
    const auto result = [](const auto& values, const auto& indices) {
        return values_and_indices<std::remove_cvref_t<decltype(values)>, std::remove_cvref_t<decltype(indices)>>{values,
                                                                                                              indices};
    };
    if (detail::is_last_axis(x, axis)) {
        const auto value = eval(x, where);
        const auto indices = first(value);
        return result(take_along(value, indices, -1, where), indices);
    }
    const auto value = detail::with_axis_last(x, axis, where);
    const auto indices = first(value);
    return result(detail::with_axis_last(take_along(value, indices, -1, where), axis, where),
                  detail::with_axis_last(indices, axis, where));
}
no_such_option_in<top_k_options> top_k(any_argument, any_argument, any_argument, ...) TG_MISTAKE;

/// Index of the first largest (smallest) element along an axis, int32.
struct arg_reduce_op {
    static constexpr std::string_view name = "arg_reduce";
    static constexpr batching batched = batching::axis;
    using result_element = std::int32_t;
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr int arity = 1;
    struct attributes {
        std::int64_t axis = 0, maximum = 1, keepdims = 0;
    };
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = dtype::i32;
        const shape& x = io.in[0].dims;
        if (!io.require(a.axis >= 0 && a.axis < x.rank(), "argmax, argmin: axis outside the rank") ||
            !io.require(io.in[0].type != dtype::boolean, "argmax, argmin: the elements are bool; cast<...> first"))
            return;
        for (int i = 0; i < x.rank(); ++i) {
            if (i != a.axis)
                io.result.push_back(x[i]);
            else if (a.keepdims != 0)
                io.result.push_back(1);
        }
    }
};

namespace detail {
template <tensor_like A>
constexpr auto arg_reduce(const A& x, int axis, bool maximum, bool keepdims, std::source_location where) {
    return invoke<arg_reduce_op>({normalized_axis(axis, shape_of(x).rank()), maximum, keepdims}, nullptr, where, x);
}
template <tensor_like A>
constexpr auto arg_reduce_all(const A& x, bool maximum, std::source_location where) {
    return arg_reduce(reshape(x, {-1}, where), 0, maximum, false, where);
}
} // namespace detail

/// Position of the first largest element along an axis, int32; the first NaN, if there is one.
template <tensor_like A>
constexpr auto argmax(const A& x, int axis, reduce_options options = {},
                      std::source_location where = std::source_location::current()) {
    return detail::arg_reduce(x, axis, true, options.keepdims, where);
}
/// Position of the first largest of all elements, in row-major order.
template <tensor_like A>
constexpr auto argmax(const A& x, std::source_location where = std::source_location::current()) {
    return detail::arg_reduce_all(x, true, where);
}
no_such_option_in<reduce_options> argmax(any_argument, any_argument, ...) TG_MISTAKE;
/// Position of the first smallest element along an axis, int32; the first NaN, if there is one.
template <tensor_like A>
constexpr auto argmin(const A& x, int axis, reduce_options options = {},
                      std::source_location where = std::source_location::current()) {
    return detail::arg_reduce(x, axis, false, options.keepdims, where);
}
template <tensor_like A>
constexpr auto argmin(const A& x, std::source_location where = std::source_location::current()) {
    return detail::arg_reduce_all(x, false, where);
}
no_such_option_in<reduce_options> argmin(any_argument, any_argument, ...) TG_MISTAKE;

} // namespace tapegraph
