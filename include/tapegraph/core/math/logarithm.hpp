#pragma once

#include <tapegraph/core/math/exponential.hpp>

/// log and its relatives: x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), log x = k ln 2 + log(1 + f).
/// Coefficients: tools/fit_polynomial.py (Remez, relative error 2^-27 float, 2^-59 double).

namespace tapegraph::math {

namespace detail {

template <class T>
struct binary_split {
    T f;             // 1 + f is the significand
    T k;             // the exponent
    bits_t<T> field; // k + bias
};

/// Splits a positive normal number.
template <class T>
TG_HD constexpr binary_split<T> split_binary(T x) {
    using bits = bits_t<T>;
    constexpr int mantissa = traits<T>::mantissa;
    constexpr bits root_half = to_bits(sizeof(T) == sizeof(float) ? T(0.70710678f) : T(0.70710678118654757));
    const bits shifted = to_bits(x) + (to_bits(T(1)) - root_half);
    const bits field = shifted >> mantissa;
    const T m = from_bits<T>((shifted & ((bits{1} << mantissa) - 1)) + root_half);
    // An integer below 2^mantissa becomes a floating-point number by way of the bits of 2^mantissa + integer.
    const T k = from_bits<T>(field | to_bits(traits<T>::integer_from)) - (traits<T>::integer_from + T(traits<T>::bias));
    return {m - T(1), k, field};
}

/// Splits any positive finite number.
template <class T>
TG_HD constexpr binary_split<T> split_binary_denormal(T x) {
    constexpr T lift = traits<T>::integer_from * 4;
    const bool denormal = x < traits<T>::smallest_normal;
    auto s = split_binary(product(x, select(denormal, lift, T(1))));
    s.k = s.k - select(denormal, T(traits<T>::mantissa + 2), T(0));
    return s;
}

/// k ln 2 + log(1 + f) + c for a small correction c.
template <class T>
TG_HD constexpr T log_of_split(T f, T k, T c) {
    const T z = product(f, f), half_square = product(T(0.5), z);
    T rest; // log(1 + f) = f - f^2 / 2 + rest
    if constexpr (sizeof(T) == sizeof(float)) {
        rest = product(product(f, z), polynomial(f, 0.333333313f, -0.250008196f, 0.200012296f, -0.166233644f,
                                                 0.142017081f, -0.131600693f, 0.127618656f, -0.0763513297f));
    } else {
        // With s = f / (2 + f): log(1 + f) = 2 atanh(s), and 2 s = f - s f.
        const T s = f / (T(2) + f), y = product(s, s);
        const T r =
            product(y, polynomial(y, 0.6666666666666735, 0.3999999999941308, 0.2857142874277436, 0.22222198530513296,
                                  0.18183566692237796, 0.15313986369804222, 0.14796627030535214));
        rest = product(s, half_square + r);
    }
    const T low = rest + mul_add(k, traits<T>::ln2_low, c);
    return product(k, traits<T>::ln2_high) - ((half_square - low) - f);
}

} // namespace detail

/// The natural logarithm: -infinity at zero, NaN below.
template <class T>
TG_HD constexpr T log(T x) {
    constexpr T infinity = detail::traits<T>::infinity;
    const auto s = detail::split_binary_denormal(x);
    const T y = detail::log_of_split(s.f, s.k, T(0));
    const T special = detail::select(x == 0, -infinity, detail::traits<T>::nan);
    return detail::select(x > 0, detail::select(x < infinity, y, x), detail::select(x <= 0, special, x));
}

/// log(1 + x), accurate near zero: what rounding 1 + x lost is added back through the derivative.
template <class T>
TG_HD constexpr T log1p(T x) {
    constexpr T infinity = detail::traits<T>::infinity;
    T u = 0, lost = 0;
    detail::exact_sum(T(1), x, u, lost);
    const auto s = detail::split_binary(u);
    // lost / (2^k (1 + f)); 2^(1 - k) of the largest k is no longer a number but zero, and so is the correction.
    const T scale = detail::from_exponent<T>(2 * detail::traits<T>::bias + 1 - s.field);
    const T c = detail::product(detail::product(lost, T(0.5)), scale);
    const T inverse = detail::mul_add(s.f, s.f - T(1), T(1));
    const T y = detail::log_of_split(s.f, s.k, detail::product(c, inverse));
    const T special = detail::select(x == T(-1), -infinity, detail::traits<T>::nan);
    const T ordinary = detail::select(abs(x) < detail::traits<T>::epsilon, x, y);
    return detail::select(x > T(-1), detail::select(x < infinity, ordinary, x), detail::select(x <= T(-1), special, x));
}

/// The logarithm to base 2; exact for powers of two.
template <class T>
TG_HD constexpr T log2(T x) {
    constexpr T infinity = detail::traits<T>::infinity;
    constexpr bool single = sizeof(T) == sizeof(float);
    // log2(e) in two parts: a rounded factor alone would cost a quarter of an ulp.
    constexpr T high = single ? T(1.4426950408889634f) : T(1.4426950408889634);
    constexpr T low = single ? T(1.9259630335e-08f) : T(2.0355273740931033e-17);
    const auto s = detail::split_binary_denormal(x);
    const T y = detail::log_of_split(s.f, T(0), T(0));
    const T ordinary = s.k + detail::mul_add(y, high, detail::product(y, low));
    const T special = detail::select(x == 0, -infinity, detail::traits<T>::nan);
    return detail::select(x > 0, detail::select(x < infinity, ordinary, x), detail::select(x <= 0, special, x));
}

/// The logarithm to base 10.
template <class T>
TG_HD constexpr T log10(T x) {
    constexpr T infinity = detail::traits<T>::infinity;
    constexpr bool single = sizeof(T) == sizeof(float);
    constexpr T high = single ? T(0.43429448190325182f) : T(0.43429448190325182);
    constexpr T low = single ? T(-1.0103049952e-08f) : T(1.0983196502167651e-17);
    // log10(2) in two parts; the first has 15 (32) bits, so its product with an exponent is exact.
    constexpr T two_high = single ? T(0x1.344p-2f) : T(0x1.34413508p-2);
    constexpr T two_low = single ? T(0x1.3509f8p-18f) : T(0x1.f79fef311f12bp-34);
    const auto s = detail::split_binary_denormal(x);
    const T y = detail::log_of_split(s.f, T(0), T(0));
    const T rest = detail::mul_add(y, low, detail::product(s.k, two_low));
    const T ordinary = detail::product(s.k, two_high) + detail::mul_add(y, high, rest);
    const T special = detail::select(x == 0, -infinity, detail::traits<T>::nan);
    return detail::select(x > 0, detail::select(x < infinity, ordinary, x), detail::select(x <= 0, special, x));
}

/// log(1 + e^x) = max(x, 0) + log(1 + e), e = e^-|x|. With s = e / (2 + e): log(1 + e) = 2 atanh(s), and 2 s = e - s e;
/// since e <= 1, there is no exponent to split off.
template <class T>
TG_HD constexpr T softplus(T x) {
    const auto extended = detail::exp_extended(-abs(x));
    const T e = extended.value, s = e / (T(2) + e), z = detail::product(s, s);
    // What e lost, times e / (1 + e) = 2 s / (1 + s); 1.7 s is near enough.
    const T lost = detail::product(extended.lost, detail::product(T(1.7), s));
    T q;
    if constexpr (sizeof(T) == sizeof(float)) {
        q = detail::polynomial(z, 0.666666746f, 0.39998877f, 0.286168844f, 0.214276657f, 0.243009031f);
    } else {
        q = detail::polynomial(z, 0.6666666666666667, 0.3999999999999398, 0.2857142857250999, 0.22222222125473584,
                               0.181818232027967, 0.15384451935274066, 0.13336805769671287, 0.11715951165940157,
                               0.1097256367734593, 0.06994258380017654, 0.16467616543715816);
    }
    return detail::select(x > 0, x, T(0)) + (e - (detail::product(s, e - detail::product(z, q)) - lost));
}

} // namespace tapegraph::math
