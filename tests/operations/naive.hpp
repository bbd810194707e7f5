#pragma once

#include <support/reference.hpp>

#include <tapegraph/ops/ops.hpp>

#include <cmath>

/// Elementary functions of plain numbers, for the references of formulas. NaN, infinities and the sign of zero are as they
/// should be, for rows have such operands.

namespace naive {
using tapegraph::testing::real;

inline real tanh(real x) { return std::tanh(x); }
inline real sigmoid(real x) { return 1 / (1 + std::exp(-x)); }
inline real relu(real x) { return std::isnan(x) ? x : x > 0 ? x : 0; }
inline real softplus(real x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
inline real erf(real x) { return std::erf(x); }
inline real exp(real x) { return std::exp(x); }
inline real expm1(real x) { return std::expm1(x); }
inline real log(real x) { return std::log(x); }
inline real log1p(real x) { return std::log1p(x); }
inline real square(real x) { return x * x; }
inline real sqrt(real x) { return std::sqrt(x); }
inline real rsqrt(real x) { return 1 / std::sqrt(x); }
inline real sin(real x) { return std::sin(x); }
inline real cos(real x) { return std::cos(x); }
inline real tan(real x) { return std::tan(x); }
inline real asin(real x) { return std::asin(x); }
inline real acos(real x) { return std::acos(x); }
inline real atan(real x) { return std::atan(x); }
inline real atan2(real y, real x) { return std::atan2(y, x); }
inline real sinh(real x) { return std::sinh(x); }
inline real cosh(real x) { return std::cosh(x); }
inline real asinh(real x) { return std::asinh(x); }
inline real acosh(real x) { return std::acosh(x); }
inline real atanh(real x) { return std::atanh(x); }
inline real exp2(real x) { return std::exp2(x); }
inline real log2(real x) { return std::log2(x); }
inline real log10(real x) { return std::log10(x); }
inline real cbrt(real x) { return std::cbrt(x); }
inline real erfc(real x) { return std::erfc(x); }
inline real reciprocal(real x) { return 1 / x; }
inline real hypot(real x, real y) { return std::hypot(x, y); }
inline real pow(real x, real y) { return std::pow(x, y); }
template <int N>
real pow(real x) {
    return std::pow(x, N);
}

inline real abs(real x) { return std::abs(x); }
inline real sign(real x) { return std::isnan(x) ? x : real((x > 0) - (x < 0)); }
inline real maximum(real x, real y) { return std::isnan(x) || std::isnan(y) ? NAN : x > y ? x : y; }
inline real minimum(real x, real y) { return std::isnan(x) || std::isnan(y) ? NAN : x < y ? x : y; }
inline real clip(real x, real low, real high) { return std::isnan(x) ? x : std::fmin(std::fmax(x, low), high); }
inline real where(real c, real x, real y) { return c != 0 ? x : y; }
inline real stop_gradient(real x) { return x; }
inline real full_like(real, real k) { return k; }

// x times a gate; minus infinity times a gate of 0 counts as 0.
inline real gated(real x, real gate) { return x == -INFINITY ? real(-0.0) : x * gate; }
inline real leaky_relu(real x, real alpha) { return x > 0 ? x : alpha * x; }
inline real elu(real x, real alpha = 1) { return x > 0 ? x : alpha * std::expm1(x); }
inline real selu(real x) { return 1.0507009873554804934L * elu(x, 1.6732632423543772848L); }
inline real gelu(real x) { return gated(x, std::erfc(-x / std::sqrt(real(2))) / 2); }
inline real gelu(real x, tapegraph::approximate_t) {
    return gated(x, (1 + std::tanh(0.79788456080286535588L * (x + 0.044715L * x * x * x))) / 2);
}
inline real swish(real x) { return gated(x, sigmoid(x)); }
inline real mish(real x) { return gated(x, x > 100 ? real(1) : std::tanh(std::log1p(std::exp(x)))); }
inline real softsign(real x) { return std::isinf(x) ? std::copysign(real(1), x) : x / (1 + std::abs(x)); }
inline real log_sigmoid(real x) { return -softplus(-x); }
inline real sigmoid_cross_entropy_with_logits(real x, real z) {
    const auto part = [](real share, real loss) {
        return share == 0 ? real(0) : share * loss;
    }; // 0 of an infinite loss
    return std::isnan(x) ? x : part(z, softplus(-x)) + part(1 - z, softplus(x));
}
inline real relu6(real x) { return clip(x, 0, 6); }
inline real hard_sigmoid(real x) { return relu6(x + 3) / 6; }
inline real hard_swish(real x) { return gated(x, hard_sigmoid(x)) + 0; }

inline real floor(real x) { return std::floor(x); }
inline real ceil(real x) { return std::ceil(x); }
inline real round(real x) { return std::nearbyint(x); } // halves to even
inline real trunc(real x) { return std::trunc(x); }
inline real squared_difference(real x, real y) { return (x - y) * (x - y); }
inline real lerp(real x, real y, real t) { return x + t * (y - x); }
inline real floor_divide(real x, real y) { return y == 0 ? x / y : std::floor(x / y); }
inline real remainder(real x, real y) {
    if (y == 0) return NAN;
    real r = std::fmod(x, y);
    if (r != 0 && (r < 0) != (y < 0)) r += y;
    return r == 0 ? std::copysign(real(0), y) : r;
}

inline real is_nan(real x) { return std::isnan(x); }
inline real is_inf(real x) { return std::isinf(x); }
inline real is_finite(real x) { return std::isfinite(x); }
inline real equal(real x, real y) { return x == y; }
inline real not_equal(real x, real y) { return x != y; }
inline real less(real x, real y) { return x < y; }
inline real less_equal(real x, real y) { return x <= y; }
inline real greater(real x, real y) { return x > y; }
inline real greater_equal(real x, real y) { return x >= y; }
inline real logical_and(real x, real y) { return x != 0 && y != 0; }
inline real logical_or(real x, real y) { return x != 0 || y != 0; }
inline real logical_xor(real x, real y) { return (x != 0) != (y != 0); }
inline real logical_not(real x) { return x == 0; }
template <class T>
real cast(real x) {
    return static_cast<real>(static_cast<T>(static_cast<double>(x)));
}

inline real add(real x, real y) { return x + y; }
inline real subtract(real x, real y) { return x - y; }
inline real multiply(real x, real y) { return x * y; }
inline real divide(real x, real y) { return x / y; }
inline real negate(real x) { return -x; }

} // namespace naive
