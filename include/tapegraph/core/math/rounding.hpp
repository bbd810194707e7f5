#pragma once

#include <tapegraph/core/math/bits.hpp>

namespace tapegraph::math {

/// x without its sign, of NaN and zero, too.
template <class T>
TG_HD constexpr T abs(T x) {
    return detail::from_bits<T>(detail::to_bits(x) & ~detail::sign_bit<T>);
}

/// The magnitude of x with the sign of y.
template <class T>
TG_HD constexpr T copysign(T x, T y) {
    constexpr auto sign = detail::sign_bit<T>;
    return detail::from_bits<T>((detail::to_bits(x) & ~sign) | (detail::to_bits(y) & sign));
}

/// Whether x is NaN.
template <class T>
TG_HD constexpr bool is_nan(T x) {
    return x != x;
}

/// Whether x is neither infinite nor NaN.
template <class T>
TG_HD constexpr bool is_finite(T x) {
    return abs(x) < detail::traits<T>::infinity;
}

/// The smaller value; NaN if either is NaN (as NumPy's minimum).
template <class T>
TG_HD constexpr T minimum(T a, T b) {
    return detail::select((a < b) | (a != a), a, b);
}

/// The larger value; NaN if either is NaN (as NumPy's maximum).
template <class T>
TG_HD constexpr T maximum(T a, T b) {
    return detail::select((a > b) | (a != a), a, b);
}

/// To the nearest integer, halves to even (as NumPy's round); keeps the sign of zero.
template <class T>
TG_HD constexpr T round(T x) {
    constexpr T big = detail::traits<T>::integer_from;
    const T a = abs(x);
    const T nearest = (a + big) - big;
    return copysign(detail::select(a < big, nearest, a), x);
}

/// Toward zero.
template <class T>
TG_HD constexpr T trunc(T x) {
    const T a = abs(x), nearest = round(a);
    return copysign(nearest - detail::select(nearest > a, T(1), T(0)), x);
}

/// The largest integer not above x.
template <class T>
TG_HD constexpr T floor(T x) {
    const T nearest = round(x);
    return copysign(nearest - detail::select(nearest > x, T(1), T(0)), x);
}

/// The smallest integer not below x.
template <class T>
TG_HD constexpr T ceil(T x) {
    const T nearest = round(x);
    return copysign(nearest + detail::select(nearest < x, T(1), T(0)), x);
}

} // namespace tapegraph::math
