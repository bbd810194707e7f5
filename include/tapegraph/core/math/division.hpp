#pragma once

#include <tapegraph/core/math/rounding.hpp>

namespace tapegraph::math {

namespace detail {

/// a - n b for the integer n = trunc(a / b), exactly; a >= 0, b > 0, both finite. For constant evaluation.
template <class T>
constexpr T remainder_by_subtraction(T a, T b) {
    T multiple = b;
    while (multiple <= a * T(0.5)) multiple *= T(2);
    for (; multiple >= b; multiple *= T(0.5))
        if (a >= multiple) a -= multiple;
    return a;
}

/// The remainder of the quotient rounded toward zero, with the sign of x. It is exact, so every correct implementation
/// gives the same bits; no formula without a loop does, hence the C library's.
template <class T>
TG_HD constexpr T truncated_remainder(T x, T y) {
    if (__builtin_is_constant_evaluated()) {
        if (x != x || y != y || abs(x) == traits<T>::infinity || y == 0) return traits<T>::nan;
        if (abs(y) == traits<T>::infinity) return x;
        return copysign(remainder_by_subtraction(abs(x), abs(y)), x);
    }
    if constexpr (sizeof(T) == sizeof(float)) {
        return __builtin_fmodf(x, y);
    } else {
        return __builtin_fmod(x, y);
    }
}

} // namespace detail

/// x - floor(x / y) y, exact but for at most one rounding; it has the sign of y, as NumPy's remainder and Python's %.
/// NaN for y = 0.
template <class T>
TG_HD constexpr T remainder(T x, T y) {
    const T r = detail::truncated_remainder(x, y);
    const T shifted = detail::select((r < 0) != (y < 0), r + y, r);
    return detail::select(r == 0, copysign(T(0), y), shifted);
}

/// floor(x / y), such that floor_divide(x, y) y + remainder(x, y) is x but for rounding; x / y for y = 0.
template <class T>
TG_HD constexpr T floor_divide(T x, T y) {
    if (__builtin_is_constant_evaluated() && y == 0) return x == 0 ? detail::traits<T>::nan : copysign(detail::traits<T>::infinity, x);
    const T r = detail::truncated_remainder(x, y);
    const T quotient = round((x - r) / y); // the quotient is an integer but for rounding
    const T lowered = quotient - detail::select((r != 0) & ((r < 0) != (y < 0)), T(1), T(0));
    const T zero = copysign(T(0), detail::from_bits<T>(detail::to_bits(x) ^ detail::to_bits(y)));
    return detail::select(y == 0, x / detail::select(y == 0, y, T(1)), detail::select(lowered == 0, zero, lowered));
}

} // namespace tapegraph::math
