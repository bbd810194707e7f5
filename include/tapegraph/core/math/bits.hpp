#pragma once

#include <tapegraph/core/config.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

/// Building blocks of the functions of `tapegraph::math`.
///
/// One implementation serves scalars, vector lanes, tails and constant evaluation, on every instruction set, with equal
/// bits. So: no branches (only selects between values that exist already), integers as wide as the floating-point type,
/// no tables, no libm, and no fused multiply-add, because the baseline has none.

namespace tapegraph::math::detail {

template <class T>
struct traits;

template <>
struct traits<float> {
    using bits = std::uint32_t;
    static constexpr int mantissa = 23;
    static constexpr bits bias = 127;
    static constexpr float infinity = std::numeric_limits<float>::infinity();
    static constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    // t = x + round_magic rounds |x| < 2^22 to an integer, which is then also in the low bits of t.
    static constexpr float round_magic = 0x1.8p23f;
    static constexpr float integer_from = 0x1p23f; // every value at least this large is an integer
    static constexpr float epsilon = 0x1p-24f;     // half the distance from 1 to the next value
    static constexpr float smallest_normal = 0x1p-126f;
    static constexpr float log2_e = 1.4426950408889634f;
    // ln 2 in two parts; the first has 15 bits, so its product with an exponent is exact.
    static constexpr float ln2_high = 0x1.62e4p-1f, ln2_low = 1.42860677e-06f;
};

template <>
struct traits<double> {
    using bits = std::uint64_t;
    static constexpr int mantissa = 52;
    static constexpr bits bias = 1023;
    static constexpr double infinity = std::numeric_limits<double>::infinity();
    static constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    static constexpr double round_magic = 0x1.8p52;
    static constexpr double integer_from = 0x1p52;
    static constexpr double epsilon = 0x1p-53;
    static constexpr double smallest_normal = 0x1p-1022;
    static constexpr double log2_e = 1.4426950408889634;
    static constexpr double ln2_high = 0x1.62e42fefp-1, ln2_low = 0x1.473de6af278edp-34; // 32 bits
};

template <class T>
using bits_t = typename traits<T>::bits;

template <class T>
inline constexpr bits_t<T> sign_bit = bits_t<T>{1} << (8 * sizeof(T) - 1);

template <class T>
TG_HD constexpr bits_t<T> to_bits(T x) {
    return __builtin_bit_cast(bits_t<T>, x);
}
template <class T>
TG_HD constexpr T from_bits(bits_t<T> b) {
    return __builtin_bit_cast(T, b);
}

/// `a` where the mask is all ones, `b` where it is zero.
template <class T>
TG_HD constexpr T select_mask(bits_t<T> mask, T a, T b) {
    return from_bits<T>((to_bits(a) & mask) | (to_bits(b) & ~mask));
}

/// `condition ? a : b`, both evaluated. g++ would sink the computation of a and b into the arms of a conditional and then
/// refuse to vectorise, since a floating-point operation might trap; from the masks it makes blends. (With
/// -fno-trapping-math single functions vectorise from conditionals, and faster, but one chain of operations in eight does
/// not: measured on random regions.)
template <class T>
TG_HD constexpr T select(bool condition, T a, T b) {
#if defined(__clang__) || defined(__CUDA_ARCH__)
    return condition ? a : b;
#else
    return select_mask<T>(-static_cast<bits_t<T>>(condition), a, b);
#endif
}

/// a * b that is not contracted with a following addition. clang contracts within one source expression, hence the
/// variable; g++ across expressions (kernels switch it off, the barrier covers scalar code outside of them); nvcc leaves the
/// named multiplication alone whatever its flags are.
template <class T>
TG_HD constexpr T product(T a, T b) {
#if defined(__CUDA_ARCH__)
    if (!__builtin_is_constant_evaluated()) {
        if constexpr (sizeof(T) == sizeof(float)) {
            return __fmul_rn(a, b);
        } else {
            return __dmul_rn(a, b);
        }
    }
    return a * b;
#elif defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
    return __builtin_assoc_barrier(a * b);
#else
    const T p = a * b;
    return p;
#endif
}

/// a * b + c, rounded twice.
template <class T>
TG_HD constexpr T mul_add(T a, T b, T c) {
    return product(a, b) + c;
}

/// Polynomials, lowest coefficient first. Kernels wait for the latency of a chain of products and sums, so Horner's rule
/// runs over groups of coefficients whose own values do not depend on each other: pairs in x^2, or fours in x^4.
template <class T>
TG_HD constexpr T by_pairs(T, T, T c0) {
    return c0;
}
template <class T>
TG_HD constexpr T by_pairs(T x, T, T c0, T c1) {
    return mul_add(x, c1, c0);
}
template <class T, class... Rest>
TG_HD constexpr T by_pairs(T x, T x2, T c0, T c1, T c2, Rest... rest) {
    return mul_add(x2, by_pairs(x, x2, c2, rest...), mul_add(x, c1, c0));
}
template <class T, class... C>
    requires(sizeof...(C) <= 4)
TG_HD constexpr T by_fours(T x, T x2, T, C... c) { return by_pairs(x, x2, c...); }
template <class T, class... Rest>
TG_HD constexpr T by_fours(T x, T x2, T x4, T c0, T c1, T c2, T c3, T c4, Rest... rest) {
    return mul_add(x4, by_fours(x, x2, x4, c4, rest...), by_pairs(x, x2, c0, c1, c2, c3));
}
template <class T, class... C>
TG_HD constexpr T polynomial(T x, C... c) {
    const T x2 = product(x, x);
    if constexpr (sizeof...(C) <= 6) {
        return by_pairs(x, x2, c...);
    } else {
        return by_fours(x, x2, product(x2, x2), c...);
    }
}

/// Clamps x to [-most, most]; NaN stays NaN. Done in integers, which cost less than two
/// conditionals.
template <class T>
TG_HD constexpr T within(T x, T most) {
    using bits = bits_t<T>;
    using whole = std::make_signed_t<bits>;
    const auto b = to_bits(x);
    const auto magnitude = static_cast<whole>(b & ~sign_bit<T>);
    const auto limit = static_cast<whole>(to_bits(most));
    const whole kept = magnitude < limit ? magnitude : limit;
    const whole nan = (static_cast<whole>(to_bits(traits<T>::infinity)) - magnitude) >> (8 * sizeof(T) - 1);
    return from_bits<T>(static_cast<bits>(kept | nan) | (b & sign_bit<T>));
}

/// |x|, or `most` where that is less or x is NaN.
template <class T>
TG_HD constexpr T magnitude_up_to(T x, T most) {
    using whole = std::make_signed_t<bits_t<T>>;
    const auto magnitude = static_cast<whole>(to_bits(x) & ~sign_bit<T>), limit = static_cast<whole>(to_bits(most));
    return from_bits<T>(static_cast<bits_t<T>>(magnitude < limit ? magnitude : limit));
}

/// Clamps x to [low, high]; NaN stays NaN.
template <class T>
TG_HD constexpr T clamp(T x, T low, T high) {
    const T y = select(x < low, low, x);
    return select(y > high, high, y);
}

/// 2^(field - bias), from the biased exponent.
template <class T>
TG_HD constexpr T from_exponent(bits_t<T> field) {
    return from_bits<T>(field << traits<T>::mantissa);
}

/// a * b = high + low (Dekker), without a fused multiply-add. |a b| must stay away from the limits of the range.
TG_HD constexpr void exact_product(double a, double b, double& high, double& low) {
    constexpr std::uint64_t upper = ~((std::uint64_t{1} << 27) - 1);
    const double a1 = from_bits<double>(to_bits(a) & upper), a2 = a - a1;
    const double b1 = from_bits<double>(to_bits(b) & upper), b2 = b - b1;
    high = product(a, b);
    low = mul_add(a2, b2, mul_add(a2, b1, mul_add(a1, b2, product(a1, b1) - high)));
}

/// a + b = high + low exactly (Knuth).
template <class T>
TG_HD constexpr void exact_sum(T a, T b, T& high, T& low) {
    high = a + b;
    const T t = high - a;
    low = (a - (high - t)) + (b - t);
}

} // namespace tapegraph::math::detail
