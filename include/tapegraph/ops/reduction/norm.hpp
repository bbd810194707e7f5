#pragma once

#include <tapegraph/ops/reduction/moments.hpp>

#include <limits>

namespace tapegraph {

/// The p-norm (sum |x|^p)^(1/p) over axes: p = `order`, 2 unless said otherwise. Order 1 is the sum of magnitudes, infinity
/// the largest, -infinity the smallest, 0 the number of elements that are not zero (its derivative is zero). Over two axes
/// order 2 is the Frobenius norm; the matrix norms proper are others.
///
/// Derivatives: of order 2, x / norm; at zero, where there are many subgradients, 0 (PyTorch's; TensorFlow gives NaN). Ties
/// of the infinite orders share evenly. Zero elements take no part in that of a positive p.
template <tensor_like A>
constexpr auto norm(const A& x, double order = 2, axes over = {}, reduce_options options = {},
                    std::source_location where = std::source_location::current()) {
    return detail::in_float(x, where, [&](const auto& operand) {
        constexpr double infinity = std::numeric_limits<double>::infinity();
        const auto total = [&](const auto& of) { return sum(of, over, options, where); };
        if (order == 2) return detail::root(total(square(operand)), where);
        if (order == 1) return total(abs(operand));
        if (order == infinity) return max(abs(operand), over, options, where);
        if (order == -infinity) return min(abs(operand), over, options, where);
        const auto value = eval(operand, where);
        if (order == 0) return total(1 - apply<detail::indicator_op>(value, 0));
        if (order < 0) return eval(pow(total(pow(abs(value), order)), 1 / order), where);
        const auto power = [&](const auto& base, double exponent) { // 0 with a derivative of 0 for a base of 0
            return tapegraph::where(base == 0, 0, pow(tapegraph::where(base == 0, 1, base), exponent));
        };
        const auto magnitude = eval(abs(value), where);
        return eval(power(total(power(magnitude, order)), 1 / order), where);
    });
}

} // namespace tapegraph
