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

namespace detail {
/// The largest element along an axis, kept, by which softmax shifts; -infinity where the axis has no elements.
template <handle A>
constexpr auto largest_along(const A& x, int axis, std::source_location where) {
    const std::int64_t mask = axes(axis).bits(shape_of(x).rank());
    return stop_gradient(invoke<max_op>({mask, 1 | reduce_op::empty_allowed}, nullptr, where, x));
}
} // namespace detail

/// log(softmax(x)) along an axis, as (x - max) - log(sum(exp(x - max))): the difference comes first, so that what the largest
/// elements lose to the others is not rounded away with their size. NaN where softmax is.
template <tensor_like A>
constexpr auto log_softmax(const A& x, int axis = -1, std::source_location where = std::source_location::current()) {
    return detail::in_float(x, where, [&](const auto& operand) {
        const auto value = eval(operand, where);
        // Sealed, though two formulas read it: each would broadcast the maxima again, which costs more than the memory does.
        const auto shifted = eval(value - detail::largest_along(value, axis, where), where);
        const auto total = eval(log(sum(exp(shifted), axis, {.keepdims = true}, where)), where);
        return eval(shifted - total, where);
    });
}

/// exp(x) / sum(exp(x)) along an axis; empty where the axis is. NaN where all elements are -infinity or one is +infinity, as in
/// TensorFlow and PyTorch.
template <tensor_like A>
constexpr auto softmax(const A& x, int axis = -1, std::source_location where = std::source_location::current()) {
    return detail::in_float(x, where, [&](const auto& operand) {
        const auto value = eval(operand, where);
        const auto raised = eval(exp(value - detail::largest_along(value, axis, where)), where);
        return eval(raised / sum(raised, axis, {.keepdims = true}, where), where);
    });
}

} // namespace tapegraph
