#pragma once

#include <tapegraph/ops/reduction/reduction.hpp>

/// variance, moments; stddev is in norm.hpp.

namespace tapegraph {

/// Options of variances.
struct variance_options {
    bool keepdims = false;
    /// Subtracted from the number of elements in the divisor: 0 gives the population variance
    /// (NumPy, TensorFlow, batch normalization), 1 the unbiased estimate (PyTorch). There must be
    /// more elements than that.
    std::int64_t correction = 0;
};

/// The result of `moments`.
template <class Handle>
struct mean_and_variance {
    Handle mean, variance;
};

namespace detail {
/// The mean of squared distances from `centre`, which keeps the reduced axes. It takes two passes,
/// because the final subtraction of a single pass would cancel. The error is a few epsilons of the
/// variance and (epsilon |mean|)^2, from the mean's own rounding.
template <handle A>
constexpr auto squared_distance(const A& x, const A& centre, const axes& over, const variance_options& options,
                                std::source_location where) {
    const auto total = reduce_over<sum_op>(square(x - centre), over, {options.keepdims}, where);
    const extent count = reduced_size(x, over) - extent(options.correction);
    return eval(total / extent_number(total, count), where);
}
/// The square root; its derivative at zero is zero.
template <handle A>
constexpr auto root(const A& x, std::source_location where) {
    return eval(tapegraph::where(x == 0, 0, sqrt(tapegraph::where(x == 0, 1, x))), where);
}
} // namespace detail

/// The mean of squared distances from the mean.
template <tensor_like A>
constexpr auto variance(const A& x, axes over = {}, variance_options options = {},
                        std::source_location where = std::source_location::current()) {
    return detail::in_float(x, where, [&](const auto& operand) {
        const auto value = eval(operand, where);
        return detail::squared_distance(value, mean(value, over, {.keepdims = true}, where), over, options, where);
    });
}
no_such_option_in<variance_options> variance(any_argument, const axes&, ...) TG_MISTAKE;

/// Mean and variance; the mean is computed once: `const auto [m, v] = moments(x, {0, 1})`.
template <tensor_like A>
constexpr auto moments(const A& x, axes over = {}, variance_options options = {},
                       std::source_location where = std::source_location::current()) {
    const auto given = eval(x, where);
    // Because squares leave half's range, and the mean would round first.
    const auto value = detail::as_float(given, where);
    const auto centre = mean(value, over, {.keepdims = true}, where);
    const auto spread = detail::squared_distance(value, centre, over, options, where);
    const std::int64_t mask = over.bits(shape_of(value).rank());
    const auto middle = detail::without_kept_axes(centre, mask, options.keepdims, where);
    return mean_and_variance<std::remove_cvref_t<decltype(given)>>{detail::rounded_like(given, middle, where),
                                                                   detail::rounded_like(given, spread, where)};
}
no_such_option_in<variance_options> moments(any_argument, const axes&, ...) TG_MISTAKE;

} // namespace tapegraph
