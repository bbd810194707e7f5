#pragma once

#include <tapegraph/core/math/logarithm.hpp>
#include <tapegraph/core/math/root.hpp>

/// asinh, acosh, atanh. For float the logarithms of double are precise enough; for double they go through log1p, whose
/// argument is formed without cancellation.

namespace tapegraph::math {

namespace detail {
/// log(x) of a positive normal double.
TG_HD constexpr double log_of_normal(double x) {
    const auto s = split_binary(x);
    return log_of_split(s.f, s.k, 0.0);
}
} // namespace detail

/// log(a + sqrt(a^2 + 1)) with a = |x|, and the sign of x.
template <class T>
TG_HD constexpr T asinh(T x) {
    const T a = abs(x);
    if constexpr (sizeof(T) == sizeof(float)) {
        const bool finite = a < detail::traits<T>::infinity;
        const double b = static_cast<double>(detail::select(finite, a, T(1)));
        const T y = static_cast<T>(detail::log_of_normal(b + sqrt(detail::mul_add(b, b, 1.0))));
        // Below 2^-12 the result rounds to x.
        return copysign(detail::select((a > T(0x1p-12)) & finite, y, a), x);
    } else {
        // a + sqrt(a^2 + 1) - 1 = a + a^2 / (1 + sqrt(a^2 + 1)); from 2^30 on 2 a - 1, as (a - 1) and a factor of two.
        const bool big = a > T(0x1p30);
        const T b = detail::select(big, T(1), a), square = detail::product(b, b);
        const T w = b + square / (T(1) + sqrt(T(1) + square));
        const T y = log1p(detail::select(big, a - T(1), w)) + detail::select(big, T(0.6931471805599453), T(0));
        return copysign(y, x);
    }
}

/// log(x + sqrt(x^2 - 1)); NaN below 1.
template <class T>
TG_HD constexpr T acosh(T x) {
    const bool inside = x >= T(1);
    T y = 0;
    if constexpr (sizeof(T) == sizeof(float)) {
        const double b = static_cast<double>(detail::select(inside & (x < detail::traits<T>::infinity), x, T(1)));
        y = static_cast<T>(detail::log_of_normal(b + sqrt(detail::product(b - 1, b + 1))));
        y = detail::select(x == detail::traits<T>::infinity, x, y);
    } else {
        const bool big = x > T(0x1p30);
        const T t = detail::select(inside, x, T(1)) - T(1), u = detail::select(big, T(1), t);
        const T w = u + sqrt(detail::mul_add(u, u, T(2) * u));
        y = log1p(detail::select(big, t, w)) + detail::select(big, T(0.6931471805599453), T(0));
    }
    return detail::select(inside, y, detail::select(x < T(1), detail::traits<T>::nan, x));
}

/// log((1 + x) / (1 - x)) / 2; infinite at -1 and 1, NaN beyond.
template <class T>
TG_HD constexpr T atanh(T x) {
    const T a = abs(x);
    const bool inside = a < T(1);
    const T safe = detail::select(inside, a, T(0));
    T y = 0;
    if constexpr (sizeof(T) == sizeof(float)) {
        const double b = static_cast<double>(safe);
        y = static_cast<T>(0.5 * detail::log_of_normal((1 + b) / (1 - b)));
        y = detail::select(a > T(0x1p-12), y, a);
    } else {
        const T twice = safe + safe;
        y = T(0.5) * log1p(twice + detail::product(twice, safe) / (T(1) - safe));
    }
    const T special = detail::select(a == T(1), detail::traits<T>::infinity, detail::traits<T>::nan);
    return copysign(detail::select(inside, y, detail::select(a != a, a, special)), x);
}

} // namespace tapegraph::math
