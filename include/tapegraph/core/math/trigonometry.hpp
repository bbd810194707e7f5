#pragma once

#include <tapegraph/core/math/rounding.hpp>

/// sin, cos, tan: x = k pi / 2 + r (Cody and Waite), then polynomials in r^2 for |r| <= 1.1 pi / 4.
/// Coefficients: tools/fit_polynomial.py (Remez, relative error below 2^-31 float, 2^-66 double).
///
/// The reduction is exact enough for |x| <= 2^19 (float) and 2^30 (double). Beyond, r loses its meaning gradually; sin
/// and cos still stay within [-1, 1], because r is clamped.

namespace tapegraph::math {

namespace detail {

template <class T>
struct reduced_angle {
    T r, rest;          // the angle is r + rest
    bits_t<T> quadrant; // k modulo 4 in the two lowest bits
};

/// Beyond the range of the reduction r may be anything; the result stays a sine.
template <class T>
TG_HD constexpr T within_eighth(T r) {
    return select(r > T(0.87), T(0.87), select(r < T(-0.87), T(-0.87), r));
}

TG_HD constexpr reduced_angle<float> reduce_angle(float x) {
    const float t = mul_add(x, 0.6366197723675814f, traits<float>::round_magic);
    // In double the product with 29 bits of pi / 2 is exact, whatever the float k is.
    const double k = t - traits<float>::round_magic;
    const double a = static_cast<double>(x) - product(k, 0x1.921fb54p+0);
    const double r = a - product(k, 0x1.10b4611a62633p-30);
    const float near = static_cast<float>(r), rest = static_cast<float>(r - static_cast<double>(near));
    return {within_eighth(near), select(abs(near) < 0.87f, rest, 0.0f), to_bits(t)};
}

TG_HD constexpr reduced_angle<double> reduce_angle(double x) {
    const double t = mul_add(x, 0.6366197723675814, traits<double>::round_magic);
    const double k = t - traits<double>::round_magic;
    // pi / 2 in four parts of 23 bits and one of 53. For |k| < 2^30 the products of the first four and the first two
    // differences are exact.
    const double a = (x - product(k, 0x1.921fb4p+0)) - product(k, 0x1.4442dp-24);
    double b = 0, b_low = 0, c = 0, c_low = 0;
    exact_sum(a, -product(k, 0x1.846988p-48), b, b_low);
    exact_sum(b, -product(k, 0x1.8cc514p-72), c, c_low);
    const double low = (b_low + c_low) - product(k, 0x1.80dc1cd129025p-95);
    const double r = c + low;
    const double rest = (c - r) + low;
    const bool valid = abs(r) < 0.87;
    return {within_eighth(r), select(valid, rest, 0.0), to_bits(t)};
}

template <class T>
struct extended {
    T high, low; // high + low; low is what the last sum lost
};

template <class T>
TG_HD constexpr extended<T> sin_reduced(T r, T rest) {
    const T z = product(r, r);
    T q;
    if constexpr (sizeof(T) == sizeof(float)) {
        q = polynomial(z, -0.166666672f, 0.00833332632f, -0.000198384019f, 2.71023646e-06f);
    } else {
        q = polynomial(z, -0.16666666666666666, 0.008333333333333299, -0.000198412698412307, 2.755731920267561e-06,
                       -2.5052102172100757e-08, 1.6058046989782275e-10, -7.564147218285971e-13);
    }
    // sin(r + rest) = sin r + rest cos r
    const T correction = mul_add(T(-0.5), product(z, rest), rest);
    const T small = mul_add(product(r, z), q, correction), sum = small + r;
    return {sum, small - (sum - r)};
}

template <class T>
TG_HD constexpr extended<T> cos_reduced(T r, T rest) {
    const T z = product(r, r), half = product(T(0.5), z);
    T q;
    if constexpr (sizeof(T) == sizeof(float)) {
        q = polynomial(z, 0.0416666307f, -0.00138865726f, 2.43549075e-05f);
    } else {
        q = polynomial(z, 0.041666666666666664, -0.0013888888888888837, 2.4801587301543283e-05, -2.755731920454108e-07,
                       2.0876752173235655e-09, -1.1470068602050209e-11, 4.7289202276894045e-14);
    }
    // cos(r + rest) = cos r - rest sin r; what 1 - r^2 / 2 loses is added back.
    const T w = T(1) - half;
    const T small = ((T(1) - w) - half) + (product(product(z, z), q) - product(r, rest)), sum = w + small;
    return {sum, small - (sum - w)};
}

/// sin of the angle plus `turn` quarter turns.
template <class T>
TG_HD constexpr T sin_of_angle(const reduced_angle<T>& a, bits_t<T> turn) {
    using bits = bits_t<T>;
    const bits q = a.quadrant + turn;
    const T value = select_mask(bits{0} - (q & 1), cos_reduced(a.r, a.rest).high, sin_reduced(a.r, a.rest).high);
    return from_bits<T>(to_bits(value) ^ ((q & 2) << (8 * sizeof(T) - 2)));
}

} // namespace detail

/// The sine of radians.
template <class T>
TG_HD constexpr T sin(T x) {
    return detail::select(x == 0, x, detail::sin_of_angle(detail::reduce_angle(x), 0));
}

/// The cosine of radians.
template <class T>
TG_HD constexpr T cos(T x) {
    return detail::sin_of_angle(detail::reduce_angle(x), 1);
}

/// sin / cos, or -cos / sin in odd quadrants, with what sine and cosine lost in rounding: n / d + (dn - t dd) / d, where
/// 1 / d = d (1 + t^2), because n^2 + d^2 = 1.
template <class T>
TG_HD constexpr T tan(T x) {
    using bits = detail::bits_t<T>;
    const auto a = detail::reduce_angle(x);
    const auto s = detail::sin_reduced(a.r, a.rest), c = detail::cos_reduced(a.r, a.rest);
    const bits odd = bits{0} - (a.quadrant & 1);
    const T n = detail::select_mask(odd, -c.high, s.high), n_low = detail::select_mask(odd, -c.low, s.low);
    const T d = detail::select_mask(odd, s.high, c.high), d_low = detail::select_mask(odd, s.low, c.low);
    const T t = n / d;
    const T inverse = detail::product(d, detail::mul_add(t, t, T(1)));
    const T correction = detail::product(n_low - detail::product(t, d_low), inverse);
    // At the poles of the reduced angle (beyond the range) t is infinite and the correction not a number.
    return detail::select(x == 0, x, t + detail::select(abs(t) < detail::traits<T>::integer_from, correction, T(0)));
}

} // namespace tapegraph::math
