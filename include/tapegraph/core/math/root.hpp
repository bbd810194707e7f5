#pragma once

#include <tapegraph/core/math/rounding.hpp>

// g++ assumes that sqrt may set errno and then does not vectorise it; no attribute of the calling function changes that.
// Declaring the C function const does: it becomes the processor's instruction, in vectors too. glibc declares it
// noexcept, and this declaration must agree with the system's, which may follow.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
extern "C" {
#if defined(__GLIBC__) // <cstdint> has defined it
__attribute__((const)) float sqrtf(float) noexcept;
__attribute__((const)) double sqrt(double) noexcept;
#else
__attribute__((const)) float sqrtf(float);
__attribute__((const)) double sqrt(double);
#endif
}
#endif

namespace tapegraph::math {

namespace detail {

/// The correctly rounded root of a positive finite number, one bit at a time; for constant evaluation.
template <class T>
constexpr T sqrt_by_digits(T x) {
    using bits = bits_t<T>;
    constexpr int mantissa = traits<T>::mantissa;
    const bool denormal = x < traits<T>::smallest_normal;
    const bits b = to_bits(denormal ? x * (traits<T>::integer_from * traits<T>::integer_from) : x);
    int exponent = static_cast<int>(b >> mantissa) - static_cast<int>(traits<T>::bias) - (denormal ? 2 * mantissa : 0);
    bits m = (b & ((bits{1} << mantissa) - 1)) | (bits{1} << mantissa);
    if (exponent % 2 != 0) {
        m *= 2;
        exponent -= 1;
    }
    // Root of m 2^(mantissa + 2) with mantissa + 2 digits, so that the last digit and the remainder decide the rounding.
    bits root = 0, remainder = 0;
    for (int digit = mantissa + 1; digit >= 0; --digit) {
        const int shift = 2 * digit - (mantissa + 2); // the next two digits of the radicand
        const bits next = shift >= 0 ? (m >> shift) & 3 : (shift == -1 ? (m << 1) & 3 : 0);
        remainder = remainder * 4 + next;
        const bits trial = root * 4 + 1;
        root *= 2;
        if (remainder >= trial) {
            remainder -= trial;
            root += 1;
        }
    }
    const bits rounded = (root + 1) >> 1; // an exact half cannot occur: the root of a number never ends in one
    const T scale = from_exponent<T>(static_cast<bits>(exponent / 2 - mantissa + static_cast<int>(traits<T>::bias)));
    return static_cast<T>(rounded) * scale;
}

} // namespace detail

/// The correctly rounded square root; NaN below zero.
template <class T>
TG_HD constexpr T sqrt(T x) {
    if (__builtin_is_constant_evaluated()) {
        if (!(x > 0) || x == detail::traits<T>::infinity) return x < 0 ? detail::traits<T>::nan : x;
        return detail::sqrt_by_digits(x);
    }
    // clang lowers the first two to its own square root without errno, which it vectorises; clang 16 has no other than that of
    // x86, which clang 22 has no more.
#if defined(__clang__) && !defined(__CUDACC__) && __has_builtin(__builtin_elementwise_sqrt)
    return __builtin_elementwise_sqrt(x);
#elif defined(__clang__) && defined(__x86_64__) && !defined(__CUDACC__)
    using float4 = float __attribute__((vector_size(16)));
    using double2 = double __attribute__((vector_size(16)));
    if constexpr (sizeof(T) == sizeof(float)) {
        return __builtin_ia32_sqrtss(float4{x, 0, 0, 0})[0];
    } else {
        return __builtin_ia32_sqrtsd(double2{x, 0})[0];
    }
#elif defined(__clang__) || defined(__CUDACC__)
    if constexpr (sizeof(T) == sizeof(float)) {
        return __builtin_sqrtf(x);
    } else {
        return __builtin_sqrt(x);
    }
#else
    if constexpr (sizeof(T) == sizeof(float)) {
        return ::sqrtf(x);
    } else {
        return ::sqrt(x);
    }
#endif
}

/// 1 / sqrt(x).
template <class T>
TG_HD constexpr T rsqrt(T x) {
    return T(1) / sqrt(x);
}

/// sqrt(x^2 + y^2) without intermediate overflow or underflow; infinite if either operand is, even beside NaN.
template <class T>
TG_HD constexpr T hypot(T x, T y) {
    constexpr T infinity = detail::traits<T>::infinity;
    constexpr bool single = sizeof(T) == sizeof(float);
    constexpr T large = single ? T(0x1p60f) : T(0x1p500), small = single ? T(0x1p-40f) : T(0x1p-400);
    const T a = abs(x), b = abs(y), m = detail::select(a > b, a, b);
    const T up = single ? T(0x1p80f) : T(0x1p600), down = single ? T(0x1p-80f) : T(0x1p-600);
    const T scale = detail::select(m > large, down, detail::select(m < small, up, T(1)));
    const T back = detail::select(m > large, up, detail::select(m < small, down, T(1)));
    const T p = detail::product(a, scale), q = detail::product(b, scale);
    const T r = detail::product(sqrt(detail::mul_add(p, p, detail::product(q, q))), back);
    return detail::select((a == infinity) | (b == infinity), infinity, r);
}

} // namespace tapegraph::math
