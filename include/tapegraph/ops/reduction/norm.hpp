#pragma once

#include <tapegraph/expr/transforms.hpp>
#include <tapegraph/ops/movement/fill.hpp>
#include <tapegraph/ops/reduction/length.hpp>
#include <tapegraph/ops/reduction/moments.hpp>
#include <tapegraph/ops/reduction/scaled.hpp>

#include <limits>

/// norm, stddev: lengths that neither overflow nor underflow where the element type can represent
/// them.

namespace tapegraph {

namespace detail {

/// dy times |x|^(p - 1) sign(x) divided by y^(p - 1): quotients of two numbers of similar size, so
/// that no intermediate result leaves the range. 0 where y is 0 and, for p other than 2, for
/// elements that are 0.
struct euclidean_backward {
    constexpr auto operator()(const auto& dy, const auto& y, const auto& x) const {
        return eval(dy * where(y == 0, 0, x / where(y == 0, 1, y)));
    }
};
struct power_norm_backward {
    constexpr auto operator()(const auto& dy, const auto& y, const auto& x, const auto& p) const {
        const auto ratio = eval(where(y == 0, 0, abs(x) / where(y == 0, 1, y)));
        const auto steep = where(ratio == 0, 0, pow(where(ratio == 0, 1, ratio), p - 1));
        return std::tuple{eval(dy * (steep * sign(x))), no_gradient};
    }
};

/// Of float or double; reduced axes stay, with extent 1.
template <handle A>
constexpr auto euclidean_of_numbers(const A& x, std::int64_t mask, std::source_location where) {
    const auto value = [mask, where](const auto& operand) {
        const auto squares = eval(reduce_over<sum_op>(square(operand), mask, true, where), where);
        return invoke<length_op>({}, nullptr, where, operand, squares);
    };
    return mode_transforms<mode_of_t<A>>::custom(value, euclidean_backward{}, where, x);
}
/// (sum of |x|^p)^(1/p) of doubles. Divided by the largest magnitude (for negative p the smallest),
/// every power is at most 1.
template <handle A>
constexpr auto power_norm_of_doubles(const A& x, double p, std::int64_t mask, std::source_location where) {
    const auto value = [p, mask, where](const auto& operand, const auto&) {
        const auto best = p > 0 ? largest_magnitude(operand, mask, where) : smallest_magnitude(operand, mask, where);
        const auto unscaled = [](const auto& m) { // not usable as a divisor
            return logical_or(m <= 0, m == std::numeric_limits<double>::infinity());
        };
        const auto scale = eval(tapegraph::where(unscaled(best), 1, best), where);
        const auto total = reduce_over<sum_op>(pow(abs(operand / scale), p), mask, true, where);
        return eval(pow(total, 1 / p) * scale, where);
    };
    return mode_transforms<mode_of_t<A>>::custom(value, power_norm_backward{}, where, x, fill<double>(x, {}, p, where));
}

/// The Euclidean length along axes. Squares of 16-bit numbers are added in double, which has enough
/// range for them.
template <tensor_like A>
constexpr auto euclidean(const A& x, std::int64_t mask, bool keepdims, std::source_location where) {
    return in_double<widened_types::storage>(x, where, [&](const auto& operand, auto widened) {
        if constexpr (widened) {
            return root(reduce_over<sum_op>(square(operand), mask, keepdims, where), where);
        } else {
            return without_kept_axes(euclidean_of_numbers(eval(operand, where), mask, where), mask, keepdims, where);
        }
    });
}

/// f(v / max(|v|, least)) for a formula v in double, or of doubles. A vector of zeros stays zero,
/// and |v| itself may exceed the type's range.
template <tensor_like A, class F>
constexpr auto in_unit_length(const A& x, std::int64_t mask, double least, std::source_location where, const F& f) {
    return in_double(x, where, [&](const auto& operand, auto widened) {
        const auto length = [&](const auto& v) {
            const auto squares = eval(reduce_over<sum_op>(square(v), mask, true, where), where);
            return tapegraph::where(squares == 0, 0, sqrt(tapegraph::where(squares == 0, 1, squares)));
        };
        const auto divisor = [&](const auto& found, const auto& bound) { // 1 for zeros
            const auto longer = maximum(found, bound);
            return eval(tapegraph::where(longer == 0, 1, longer), where);
        };
        if constexpr (widened) {
            return f(operand / divisor(length(operand), least));
        } else {
            const auto value = eval(operand, where);
            const auto scale = eval(stop_gradient(inverse_scale(value, mask, where)), where);
            const auto scaled = eval(value * scale, where);
            return f(scaled / divisor(length(scaled), scale * least));
        }
    });
}
/// x / max(|x|, least) along axes.
template <tensor_like A>
constexpr auto unit_vectors(const A& x, std::int64_t mask, double least, std::source_location where) {
    return in_unit_length(x, mask, least, where, [where](const auto& unit) { return eval(unit, where); });
}

} // namespace detail

/// The p-norm (sum |x|^p)^(1/p) over axes, with p = `order`, 2 by default. Order 1 is the sum of
/// magnitudes, infinity the largest, -infinity the smallest, 0 the number of nonzero elements (its
/// derivative is zero). Over two axes order 2 is the Frobenius norm, not the spectral norm. Numbers
/// are scaled before they are raised to a power, so a norm and its derivatives overflow or
/// underflow only where the element type cannot represent them.
///
/// Derivatives: for order 2, x / norm; at zero, where there are many subgradients, 0 (as in
/// PyTorch; TensorFlow gives NaN). Ties of the infinite orders share the derivative evenly. Zero
/// elements receive no derivative of the norm of a positive p.
template <tensor_like A>
constexpr auto norm(const A& x, double order = 2, axes over = {}, reduce_options options = {},
                    std::source_location where = std::source_location::current()) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const std::int64_t mask = over.bits(shape_of(x).rank());
    const bool magnitudes = order == 0 || order == 1 || order == infinity || order == -infinity;
    using result = decltype(detail::euclidean(x, mask, options.keepdims, where));
    if (order == 2) return detail::euclidean(x, mask, options.keepdims, where);
    if (!magnitudes)
        return result(detail::in_double(x, where, [&](const auto& operand, auto) {
            const auto of_doubles = detail::power_norm_of_doubles(eval(operand, where), order, mask, where);
            return detail::without_kept_axes(of_doubles, mask, options.keepdims, where);
        }));
    return result(detail::in_float(x, where, [&](const auto& operand) {
        const auto total = [&](const auto& of) { return sum(of, over, options, where); };
        if (order == 1) return total(abs(operand));
        if (order == 0) return total(1 - apply<detail::indicator_op>(eval(operand, where), 0));
        return order > 0 ? max(abs(operand), over, options, where) : min(abs(operand), over, options, where);
    }));
}

/// The square root of the variance, computed as norm(x - mean) / sqrt(n - correction). Its
/// derivative is 0 where all elements are equal, as in PyTorch.
template <tensor_like A>
constexpr auto stddev(const A& x, axes over = {}, variance_options options = {},
                      std::source_location where = std::source_location::current()) {
    return detail::in_float(x, where, [&](const auto& operand) {
        const auto value = eval(operand, where);
        const auto centre = mean(value, over, {.keepdims = true}, where);
        const auto length = norm(value - centre, 2, over, {options.keepdims}, where);
        const extent count = detail::reduced_size(value, over) - extent(options.correction);
        return eval(length / sqrt(zeros_like(length) + extent_number(length, count)), where);
    });
}
no_such_option_in<variance_options> stddev(any_argument, const axes&, ...) TG_MISTAKE;
no_such_option_in<reduce_options> norm(any_argument, double, const axes&, ...) TG_MISTAKE;

} // namespace tapegraph
