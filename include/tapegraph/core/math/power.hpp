#pragma once

#include <tapegraph/core/math/logarithm.hpp>

namespace tapegraph::math {

namespace detail {

/// log(a) = high + low to about 2^-64, for 0 < a < infinity: k ln 2 + 2 atanh(s) with s = f / (2 + f), the first two
/// terms of the series in twice the precision.
TG_HD constexpr void log_extended(double a, double& high, double& low) {
    const auto split = split_binary_denormal(a);
    const double f = split.f, k = split.k;
    const double d = 2.0 + f, d_low = f - (d - 2.0);
    const double s = f / d;
    double p = 0, p_low = 0, z = 0, z_low = 0, third = 0, third_low = 0, c = 0, c_low = 0;
    exact_product(s, d, p, p_low);
    const double s_low = (((f - p) - p_low) - product(s, d_low)) / d;
    exact_product(s, s, z, z_low);
    z_low = mul_add(2.0 * s, s_low, z_low);
    // w = z / 3 + z^2 / 5 + ...; atanh(s) = s + s w. Fit of the tail: 2^-80 of the result.
    exact_product(z, 0x1.5555555555555p-2, third, third_low);
    third_low = mul_add(z_low, 0x1.5555555555555p-2, mul_add(z, 0x1.5555555555555p-56, third_low));
    const double tail =
        product(product(z, z),
                polynomial(z, 0.2, 0.14285714285714188, 0.11111111111145391, 0.09090909084610338, 0.07692308378069025,
                           0.06666620138447074, 0.0588433945538458, 0.05211407163067404, 0.05506987206674839));
    const double w = third + tail, w_low = ((third - w) + tail) + third_low;
    exact_product(s, w, c, c_low);
    c_low = mul_add(s, w_low, mul_add(s_low, w, c_low));
    const double half = s + c, half_low = ((s - half) + c) + (c_low + s_low);
    // k ln 2 exceeds the logarithm of the significand unless k is zero, so the sum needs no full two-sum.
    const double base = product(k, traits<double>::ln2_high);
    const double m = 2.0 * half;
    const double sum = base + m;
    const double rest = ((base - sum) + m) + mul_add(2.0, half_low, product(k, traits<double>::ln2_low));
    high = sum + rest;
    low = (sum - high) + rest;
}

/// a^y for 0 < a < infinity and y not NaN.
TG_HD constexpr double power_of_positive(double a, double y) {
    // Beyond this every a != 1 gives 0 or infinity, and nothing overflows on the way.
    const double exponent = clamp(y, -0x1p64, 0x1p64);
    double high = 0, low = 0, z = 0, z_low = 0;
    log_extended(a, high, low);
    exact_product(exponent, high, z, z_low);
    const double c = clamp(z, exp_lowest<double>, exp_highest<double>);
    const double correction = select(c == z, mul_add(exponent, low, z_low), 0.0);
    const double t = exponent_of(c);
    const double k = t - traits<double>::round_magic;
    const double r = c - product(k, traits<double>::ln2_high);
    const double rest = correction - product(k, traits<double>::ln2_low);
    const double e = exp_reduced(r, -rest);
    const auto scale = split_exponent(t);
    return product(product(e, scale.first()), scale.second());
}

/// For float the ordinary functions of double are precise enough.
TG_HD constexpr float power_of_positive(float a, float y) {
    const auto s = split_binary(static_cast<double>(a));
    const double exponent = clamp(static_cast<double>(y), -0x1p64, 0x1p64); // infinity times log(1) would be NaN
    return static_cast<float>(exp(product(exponent, log_of_split(s.f, s.k, 0.0))));
}

} // namespace detail

/// x^y with the special values of IEEE 754: pow(x, 0) = pow(1, y) = 1 even for NaN, a negative base needs an integer
/// exponent (otherwise NaN) and keeps its sign if that is odd.
template <class T>
TG_HD constexpr T pow(T x, T y) {
    constexpr T infinity = detail::traits<T>::infinity;
    const T a = abs(x);
    const bool ordinary = (a > 0) & (a < infinity);
    T r = detail::power_of_positive(detail::select(ordinary, a, T(1)), y);
    // Zero and infinity: which of them the result is depends on the sign of y only.
    r = detail::select(ordinary, r, detail::select((a == 0) == (y < 0), infinity, T(0)));
    const T half = detail::product(y, T(0.5));
    const bool integer = trunc(y) == y, odd = integer & (trunc(half) != half);
    const T negative = detail::select(odd, -r, r);
    const bool minus = detail::to_bits(x) >> (8 * sizeof(T) - 1) != 0;
    r = detail::select(minus, negative, r);
    r = detail::select((x < 0) & (a < infinity) & !integer, detail::traits<T>::nan, r);
    r = detail::select((x != x) | (y != y), x + y, r);
    return detail::select((y == 0) | (x == T(1)), T(1), r);
}

/// The cube root, negative for negative numbers: e^(log(a) / 3) in double, for double corrected by a step of Newton's
/// method whose residual is exact.
template <class T>
TG_HD constexpr T cbrt(T x) {
    const T a = abs(x);
    const bool ordinary = (a > 0) & (a < detail::traits<T>::infinity);
    const T safe = detail::select(ordinary, a, T(1));
    if constexpr (sizeof(T) == sizeof(float)) {
        const auto s = detail::split_binary(static_cast<double>(safe));
        const double log = detail::log_of_split(s.f, s.k, 0.0);
        const T y = static_cast<T>(exp(detail::product(log, 0.33333333333333331)));
        return copysign(detail::select(ordinary, y, a), x);
    } else {
        // Scaled by a cube, so that nothing underflows: a < 2^-600 times 2^699.
        const bool tiny = safe < T(0x1p-600);
        const T b = detail::product(safe, detail::select(tiny, T(0x1p699), T(1)));
        const auto s = detail::split_binary(b);
        const T y = exp(detail::product(detail::log_of_split(s.f, s.k, T(0)), T(0.33333333333333331)));
        T square = 0, square_low = 0, cube = 0, cube_low = 0;
        detail::exact_product(y, y, square, square_low);
        detail::exact_product(square, y, cube, cube_low);
        const T residual = (b - cube) - detail::mul_add(square_low, y, cube_low);
        const T better = y + residual / detail::product(T(3), square);
        const T r = detail::product(better, detail::select(tiny, T(0x1p-233), T(1)));
        return copysign(detail::select(ordinary, r, a), x);
    }
}

} // namespace tapegraph::math
