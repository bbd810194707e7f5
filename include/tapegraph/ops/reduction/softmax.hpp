#pragma once

#include <tapegraph/ops/elementwise/exponential.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>

#include <limits>

/// logsumexp, softmax, log_softmax.

namespace tapegraph {

/// log(sum(exp(x))), shifted by the maximum so that nothing overflows; an infinite maximum is not shifted by, so that
/// only infinities give infinity and not NaN.
template <tensor_like A>
constexpr auto logsumexp(const A& x, axes over = {}, reduce_options options = {},
                         std::source_location where = std::source_location::current()) {
    return detail::in_float(x, where, [&](const auto& operand) {
        const auto value = eval(operand, where);
        const auto largest = max(value, over, {.keepdims = true}, where);
        const auto infinite = abs(largest) == std::numeric_limits<double>::infinity();
        const auto shift = eval(stop_gradient(tapegraph::where(infinite, 0, largest)), where);
        const auto total = eval(log(sum(exp(value - shift), over, {.keepdims = true}, where)) + shift, where);
        return detail::without_kept_axes(total, over.bits(shape_of(value).rank()), options.keepdims, where);
    });
}

/// x - logsumexp(x) along an axis.
template <tensor_like A>
constexpr auto log_softmax(const A& x, int axis = -1, std::source_location where = std::source_location::current()) {
    return detail::in_float(x, where, [&](const auto& operand) {
        const auto value = eval(operand, where);
        return eval(value - logsumexp(value, axis, {.keepdims = true}, where), where);
    });
}

/// exp(x) / sum(exp(x)) along an axis. NaN where all elements are -infinity or one is +infinity, as in TensorFlow and
/// PyTorch.
template <tensor_like A>
constexpr auto softmax(const A& x, int axis = -1, std::source_location where = std::source_location::current()) {
    return detail::in_float(x, where, [&](const auto& operand) {
        const auto value = eval(operand, where);
        const auto raised = eval(exp(value - stop_gradient(max(value, axis, {.keepdims = true}, where))), where);
        return eval(raised / sum(raised, axis, {.keepdims = true}, where), where);
    });
}

} // namespace tapegraph
