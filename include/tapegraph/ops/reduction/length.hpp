#pragma once

#include <tapegraph/core/math.hpp>
#include <tapegraph/core/math/bits.hpp>
#include <tapegraph/expr/operation.hpp>
#include <tapegraph/ops/reduction/scaled.hpp>

#include <type_traits>

/// The Euclidean length of floats or doubles: the root of the sum of squares where that is in range, as it nearly always is. A vector
/// whose sum is not is gone over again by itself: floats in double, which has range enough for their squares, doubles scaled.

namespace tapegraph::detail {

/// Maps x and the sums of its squares, whose reduced axes have extent 1, to the lengths. The shapes say
/// which axes are reduced. It is never differentiated: a length's derivative is x / length.
struct length_op {
    static constexpr std::string_view name = "length";
    static constexpr batching batched = batching::rows;
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_nothing;
    static constexpr int arity = 2;
    struct attributes {};
    static constexpr void infer(const attributes&, inference& io) {
        io.type = io.in[1].type;
        io.result = io.in[1].dims;
    }
    static double flops(const kernel_call& c) { return static_cast<double>(c.out[0].elements()); }
};

/// Whether a sum of squares says what the length is. What of it underflows is at most half of the smallest number, 2^-1074 or 2^-149, for
/// each square: of 2^36 floats less than 2^-24 of the sum. All partial sums are below it.
TG_HD constexpr bool is_good_sum(double squares) { return squares >= 0x1p-900 && squares < 0x1p960; }
TG_HD constexpr bool is_good_sum(float squares) { return squares >= 0x1p-90f && squares < 0x1p127f; }

/// The length of x(0), ..., x(n - 1) from their sum of squares.
template <class T, class Number>
TG_HD T length_of(T squares, std::int64_t n, const Number& x) {
    if (is_good_sum(squares) || squares != squares) return math::sqrt(squares);
    T largest = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        const T size = math::abs(x(i));
        largest = size > largest ? size : largest;
    }
    if (largest == 0 || largest == math::detail::traits<T>::infinity) return largest;
    double scale = 1;
    if constexpr (std::is_same_v<T, double>) scale = inverse_scale_op::value(largest);
    double sum = 0, rest = 0; // Kahan's sum: one after another, many would lose digits
    for (std::int64_t i = 0; i < n; ++i) {
        const double scaled = static_cast<double>(x(i)) * scale, next = math::detail::product(scaled, scaled) - rest,
                     total = sum + next;
        rest = (total - sum) - next;
        sum = total;
    }
    return static_cast<T>(math::sqrt(sum) / scale);
}

} // namespace tapegraph::detail
