#pragma once

#include <tapegraph/core/math/rounding.hpp>

/// exp and its relatives: x = k ln 2 + r with |r| <= ln 2 / 2, e^x = 2^k (1 + p), p = e^r - 1 by a polynomial.
/// Coefficients: tools/fit_polynomial.py (Remez, relative error of e^r - 1: 2^-26 float, 2^-61 double).

namespace tapegraph::math {

namespace detail {

/// e^r - 1 = high + (r^2 q(r) - low) for r = high - low, |r| <= 0.35; returns the second, small term. Where it is added to
/// something else, the rounding of r does not count.
template <class T>
TG_HD constexpr T expm1_rest(T high, T low) {
    const T r = high - low;
    T q;
    if constexpr (sizeof(T) == sizeof(float)) {
        q = polynomial(r, 0.49999997f, 0.16666539f, 0.041667223f, 0.00836718082f, 0.00138823956f);
    } else {
        q = polynomial(r, 0.5, 0.16666666666666677, 0.04166666666666649, 0.008333333333320739, 0.0013888888888968377,
                       0.00019841269888681788, 2.4801587164696366e-05, 2.7557241370628163e-06, 2.755740599653311e-07,
                       2.5110109365775597e-08, 2.087529800591468e-09);
    }
    return mul_add(product(r, r), q, -low);
}

/// e^(high - low); what the sum 1 + high loses is added back.
template <class T>
TG_HD constexpr T exp_reduced(T high, T low) {
    const T w = T(1) + high;
    return w + (((T(1) - w) + high) + expm1_rest(high, low));
}

/// 2^k as two factors, since k may leave the range of exponents: 2^k = first * second.
template <class T>
struct power_of_two {
    bits_t<T> first_field, second_field;
    TG_HD constexpr T first() const { return from_exponent<T>(first_field); }
    TG_HD constexpr T second() const { return from_exponent<T>(second_field); }
    TG_HD constexpr T inverse_of_second() const { return from_exponent<T>(2 * traits<T>::bias - second_field); }
};

/// Rounds x / ln 2 to k, returned as t = k + round_magic.
template <class T>
TG_HD constexpr T exponent_of(T x) {
    return mul_add(x, traits<T>::log2_e, traits<T>::round_magic);
}

/// 2^(k + Shift), where t = k + round_magic.
template <class T, int Shift = 0>
TG_HD constexpr power_of_two<T> split_exponent(T t) {
    using bits = bits_t<T>;
    // k + 2 (bias + 1) is positive, so a logical shift halves it; both halves come out biased by one too much.
    constexpr bits offset = 2 * (traits<T>::bias + 1) - to_bits(traits<T>::round_magic) + static_cast<bits>(Shift);
    const bits sum = to_bits(t) + offset;
    const bits half = sum >> 1;
    return {half - 1, sum - half - 1};
}

/// x - k ln 2 = high - low, high exact.
template <class T>
TG_HD constexpr T remainder_high(T x, T t) {
    return x - product(t - traits<T>::round_magic, traits<T>::ln2_high);
}
template <class T>
TG_HD constexpr T remainder_low(T t) {
    return product(t - traits<T>::round_magic, traits<T>::ln2_low);
}

/// Beyond these e^x 2^Shift is 0 or infinity for every Shift used here (-1, 0).
template <class T>
inline constexpr T exp_lowest = sizeof(T) == sizeof(float) ? T(-104) : T(-746);
template <class T>
inline constexpr T exp_highest = sizeof(T) == sizeof(float) ? T(90) : T(711);

/// e^x 2^Shift without intermediate overflow.
template <class T, int Shift>
TG_HD constexpr T exp_shifted(T x) {
    const T c = within(x, -exp_lowest<T>);
    const T t = exponent_of(c);
    const T high = remainder_high(c, t);
    const T y = T(1) + (expm1_rest(high, remainder_low(t)) + high);
    const auto scale = split_exponent<T, Shift>(t);
    return product(product(y, scale.first()), scale.second());
}

/// e^x for x <= 0, to the bit as `exp` gives it, but faster: exponents on one side of 0 are not split into halves.
template <class T>
TG_HD constexpr T falling_exp(T x) {
    constexpr bits_t<T> shift = sizeof(T) == sizeof(float) ? 64 : 512; // y 2^(k + shift) is a normal number
    const T c = select(x < exp_lowest<T>, exp_lowest<T>, x);
    const T t = exponent_of(c);
    const T high = remainder_high(c, t);
    const T y = T(1) + (expm1_rest(high, remainder_low(t)) + high);
    const T scale = from_exponent<T>(to_bits(t) - to_bits(traits<T>::round_magic) + (traits<T>::bias + shift));
    return product(product(y, scale), from_exponent<T>(traits<T>::bias - shift));
}

/// From here on `rising_exp` is infinite, a little before e^x is.
template <class T>
inline constexpr T rising_exp_most = sizeof(T) == sizeof(float) ? T(88.5) : T(709.5);

/// e^x for 0 <= x <= rising_exp_most, and NaN, to the bit as `exp` gives it as long as that is below 2^127.5 or 2^1023.5.
template <class T>
TG_HD constexpr T rising_exp(T x) {
    const T t = exponent_of(x);
    const T high = remainder_high(x, t);
    const T y = T(1) + (expm1_rest(high, remainder_low(t)) + high);
    return product(y, from_exponent<T>(to_bits(t) - to_bits(traits<T>::round_magic) + traits<T>::bias));
}

/// e^x as value (1 + lost), for functions in which the rounding of e^x is one error among several.
template <class T>
struct extended_exp {
    T value, lost;
};
template <class T>
TG_HD constexpr extended_exp<T> exp_extended(T x) {
    const T c = within(x, -exp_lowest<T>);
    const T t = exponent_of(c);
    const T high = remainder_high(c, t), w = T(1) + high;
    const T rest = ((T(1) - w) + high) + expm1_rest(high, remainder_low(t));
    const T m = w + rest;
    const auto scale = split_exponent(t);
    // 2 - m is near enough to 1 / m.
    return {product(product(m, scale.first()), scale.second()), product(rest - (m - w), T(2) - m)};
}

} // namespace detail

/// e^x.
template <class T>
TG_HD constexpr T exp(T x) {
    return detail::exp_shifted<T, 0>(x);
}

/// 2^x; exact for integers.
template <class T>
TG_HD constexpr T exp2(T x) {
    constexpr bool single = sizeof(T) == sizeof(float);
    const T c = detail::clamp(x, T(single ? -151 : -1076), T(single ? 129 : 1025));
    const T t = c + detail::traits<T>::round_magic;
    const T r = c - (t - detail::traits<T>::round_magic); // exact
    const T y = detail::exp_reduced(detail::product(r, T(0.6931471805599453)), T(0));
    const auto scale = detail::split_exponent(t);
    return detail::product(detail::product(y, scale.first()), scale.second());
}

/// e^x - 1, accurate near zero.
template <class T>
TG_HD constexpr T expm1(T x) {
    // Below the first bound the result is -1.
    const T c = detail::clamp(x, sizeof(T) == sizeof(float) ? T(-18) : T(-38), detail::exp_highest<T>);
    const T t = detail::exponent_of(c);
    const T high = detail::remainder_high(c, t);
    const T p = detail::expm1_rest(high, detail::remainder_low(t)) + high;
    const auto scale = detail::split_exponent(t);
    const T y = detail::product(p, scale.first()) + (scale.first() - scale.inverse_of_second());
    return detail::select(x == 0, x, detail::product(y, scale.second()));
}

/// A polynomial up to 0.55 (relative error 2^-29 float, 2^-62 double), above 1 - 2 / (e^2|x| + 1), where nothing cancels.
template <class T>
TG_HD constexpr T tanh(T x) {
    const T a = abs(x), z = detail::product(a, a);
    T q;
    if constexpr (sizeof(T) == sizeof(float)) {
        q = detail::polynomial(z, -0.333333135f, 0.133324847f, -0.0538407676f, 0.0210207645f, -0.00619804021f);
    } else {
        q = detail::polynomial(z, -0.3333333333333333, 0.13333333333332945, -0.053968253967957174, 0.021869488524811045,
                               -0.008863235275437724, 0.003592124394570226, -0.0014557995121487531,
                               0.0005897983843172588, -0.00023808944739985637, 9.36839099544834e-05,
                               -3.2597189852629236e-05, 7.2394228356751645e-06);
    }
    const T small = detail::mul_add(detail::product(a, z), q, a);
    const T c = detail::select(a > T(20), T(20), a) * 2; // tanh(20) rounds to 1 in both types
    const T t = detail::exponent_of(c);
    const T high = detail::remainder_high(c, t);
    const T p = detail::expm1_rest(high, detail::remainder_low(t)) + high;
    const T scale = detail::from_exponent<T>(detail::to_bits(t) - detail::to_bits(detail::traits<T>::round_magic) +
                                             detail::traits<T>::bias);
    const T large = T(1) - T(2) / (detail::product(p, scale) + (scale + T(1)));
    return copysign(detail::select(a < T(0.55), small, large), x);
}

/// 1 / (1 + e^-x), as e^x / (1 + e^x) below zero.
template <class T>
TG_HD constexpr T sigmoid(T x) {
    const auto e = detail::exp_extended(-abs(x));
    const T d = T(1) + e.value, y = detail::select(x < 0, e.value, T(1)) / d;
    // What e and d lost, relative to y: e by (1 - y) and its sign; 0.75 is near enough to 1 / d.
    const T of_e = detail::product(e.lost, T(1) - y);
    const T of_d = detail::product(e.value - (d - T(1)), T(0.75));
    return detail::mul_add(y, detail::select(x < 0, of_e, -of_e) - of_d, y);
}

/// A polynomial up to 1 (relative error 2^-34 float, 2^-73 double), then e^a / 2 - e^-a / 2.
template <class T>
TG_HD constexpr T sinh(T x) {
    const T a = abs(x), z = detail::product(a, a);
    T q;
    if constexpr (sizeof(T) == sizeof(float)) {
        q = detail::polynomial(z, 0.166666672f, 0.00833335053f, 0.000198360663f, 2.81743883e-06f);
    } else {
        q = detail::polynomial(z, 0.16666666666666666, 0.008333333333333333, 0.0001984126984126959,
                               2.755731922412024e-06, 2.5052108345641482e-08, 1.6059050705866846e-10,
                               7.646476361317521e-13, 2.8483982842879613e-15);
    }
    const T small = detail::mul_add(detail::product(a, z), q, a);
    const T w = detail::exp_shifted<T, -1>(a);
    return copysign(detail::select(a < T(1), small, w - T(0.25) / w), x);
}

/// The hyperbolic cosine, as e^|x| / 2 + 1 / (2 e^|x|).
template <class T>
TG_HD constexpr T cosh(T x) {
    const T w = detail::exp_shifted<T, -1>(abs(x));
    return w + T(0.25) / w;
}

} // namespace tapegraph::math
