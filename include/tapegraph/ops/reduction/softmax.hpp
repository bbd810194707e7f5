#pragma once

#include <tapegraph/ops/elementwise/exponential.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>

#include <limits>

/// logsumexp, softmax, log_softmax.

namespace tapegraph {

/// log(sum(exp(x))), shifted by the maximum so that nothing overflows. An infinite maximum is not
/// subtracted, so that only infinities give infinity and not NaN. -infinity for no elements, whose
/// sum is 0 (NumPy, TensorFlow, PyTorch).
template <tensor_like A>
constexpr auto logsumexp(const A& x, axes over = {}, reduce_options options = {},
                         std::source_location where = std::source_location::current()) {
    return detail::in_float(x, where, [&](const auto& operand) {
        const auto value = eval(operand, where);
        const std::int64_t mask = over.bits(shape_of(value).rank());
        const auto largest = invoke<max_op>({mask, 1 | reduce_op::empty_allowed}, nullptr, where, value);
        const auto infinite = abs(largest) == std::numeric_limits<double>::infinity();
        const auto shift = eval(stop_gradient(tapegraph::where(infinite, 0, largest)), where);
        const auto total = eval(log(sum(exp(value - shift), over, {.keepdims = true}, where)) + shift, where);
        return detail::without_kept_axes(total, mask, options.keepdims, where);
    });
}
no_such_option_in<reduce_options> logsumexp(any_argument, const axes&, ...) TG_MISTAKE;

/// exp(x) / sum(exp(x)) along an axis; a row that fits into the caches is read once.
struct softmax_op {
    static constexpr std::string_view name = "softmax";
    static constexpr std::string_view layer_name = "softmax*";
    static constexpr batching batched = batching::axis;
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_value;
    static constexpr int arity = 1;
    struct attributes {
        std::int64_t axis = 0;
    };
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = io.in[0].type;
        io.result = io.in[0].dims;
        io.require(is_floating(io.type), "softmax, log_softmax: the elements are not floating; cast<float>(x) first");
        io.require(a.axis >= 0 && a.axis < io.result.rank(), "softmax, log_softmax: axis outside the rank");
    }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto, auto y);
    static double flops(const kernel_call& c) { return 4 * static_cast<double>(c.out[0].elements()); }
};

struct log_softmax_op : softmax_op {
    static constexpr std::string_view name = "log_softmax";
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto, auto y);
};

/// y (dy - sum(dy y)), y the softmax.
struct softmax_gradient_op : softmax_op {
    static constexpr std::string_view name = "softmax_gradient";
    static constexpr std::string_view layer_name = "";
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr int arity = 2;
    static constexpr void infer(const attributes& a, inference& io) {
        softmax_op::infer(a, io);
        io.require(io.in[0].dims == io.in[1].dims, "softmax_gradient: shapes differ");
    }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto u, auto dy, auto y, auto) {
        const auto here = std::source_location::current();
        if constexpr (I == 0) {
            return invoke<softmax_gradient_op>(a, nullptr, here, u, y);
        } else {
            const auto total = [&](const auto& of) {
                return detail::reduce_over<sum_op>(of, std::int64_t{1} << a.axis, true, here);
            };
            // Named, because what seals must come in one order, in the compiler and when the program runs.
            const auto along = total(dy * y), across = total(u * y);
            return eval(u * (dy - along) - dy * across, here);
        }
    }
};

/// dy - exp(y) sum(dy), y the logarithm of the softmax.
struct log_softmax_gradient_op : softmax_gradient_op {
    static constexpr std::string_view name = "log_softmax_gradient";
    template <int I>
    static constexpr auto vjp(const attributes& a, auto u, auto dy, auto y, auto) {
        const auto here = std::source_location::current();
        const auto total = [&](const auto& of) {
            return detail::reduce_over<sum_op>(of, std::int64_t{1} << a.axis, true, here);
        };
        if constexpr (I == 0)
            return eval(u - total(u * exp(y)), here);
        else
            return eval(-(u * exp(y) * total(dy)), here);
    }
};

template <int I>
constexpr auto softmax_op::vjp(const attributes& a, auto dy, auto, auto y) {
    return invoke<softmax_gradient_op>(a, nullptr, std::source_location::current(), dy, y);
}
template <int I>
constexpr auto log_softmax_op::vjp(const attributes& a, auto dy, auto, auto y) {
    return invoke<log_softmax_gradient_op>(a, nullptr, std::source_location::current(), dy, y);
}

/// log(softmax(x)) along an axis, as (x - max) - log(sum(exp(x - max))). The difference comes
/// first, so that small differences of large elements are not rounded away. NaN where softmax is.
template <tensor_like A>
constexpr auto log_softmax(const A& x, int axis = -1, std::source_location where = std::source_location::current()) {
    return detail::in_float(x, where, [&](const auto& operand) {
        return invoke<log_softmax_op>({normalized_axis(axis, shape_of(operand).rank())}, nullptr, where, operand);
    });
}

/// exp(x) / sum(exp(x)) along an axis; empty if the axis is. NaN where all elements are -infinity
/// or one is +infinity, as in TensorFlow and PyTorch.
template <tensor_like A>
constexpr auto softmax(const A& x, int axis = -1, std::source_location where = std::source_location::current()) {
    return detail::in_float(x, where, [&](const auto& operand) {
        return invoke<softmax_op>({normalized_axis(axis, shape_of(operand).rank())}, nullptr, where, operand);
    });
}

} // namespace tapegraph
