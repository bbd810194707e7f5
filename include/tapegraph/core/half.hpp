#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/core/dtype.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

/// 16-bit floating-point types. They are storage types: arithmetic on them is done in float.
///
/// Conversions are integer arithmetic on the patterns, without branches, so that loops over them vectorise and every
/// instruction set, the scalar code and the compiler's constant evaluation give the same bits.

namespace tapegraph {

namespace detail {

// `a` where the mask is all ones, `b` where it is zero.
template <class Bits>
TG_HD constexpr Bits blend(Bits mask, Bits a, Bits b) {
    return (a & mask) | (b & ~mask);
}
template <class Bits>
TG_HD constexpr Bits mask_of(bool condition) {
    return Bits(0) - static_cast<Bits>(condition);
}

// Orders magnitudes, which have no sign bit, by signed comparison, because every instruction set
// has that for vectors.
TG_HD constexpr std::uint32_t above(std::uint32_t magnitude, std::uint32_t bound) {
    return mask_of<std::uint32_t>(static_cast<std::int32_t>(magnitude) > static_cast<std::int32_t>(bound));
}

// Rounds to nearest, ties to even. NaN keeps its upper payload and becomes quiet, as in the
// processors' conversions.
TG_HD constexpr std::uint16_t bfloat16_bits(float x) {
    const auto u = __builtin_bit_cast(std::uint32_t, x);
    const std::uint32_t rounded = (u + 0x7FFFu + (u >> 16 & 1u)) >> 16;
    const std::uint32_t nan = above(u & 0x7FFFFFFFu, 0x7F800000u);
    return static_cast<std::uint16_t>(blend(nan, u >> 16 | 0x40u, rounded));
}
TG_HD constexpr float float_of_bfloat16(std::uint16_t bits) {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
}

TG_HD constexpr std::uint16_t half_bits(float x) {
    const auto u = __builtin_bit_cast(std::uint32_t, x);
    const std::uint32_t magnitude = u & 0x7FFFFFFFu;
    // Normal: the exponent's bias changes from 127 to 15, 13 bits of the fraction are rounded away.
    const std::uint32_t normal = (magnitude - (112u << 23) + 0xFFFu + (magnitude >> 13 & 1u)) >> 13;
    // Denormal, below 2^-14: the adder rounds at 2^-24, the last bit of 0.5, and leaves the pattern
    // in the low bits.
    const std::uint32_t small = ~above(magnitude, 0x387FFFFFu);
    const float shifted = __builtin_bit_cast(float, magnitude & small) + 0.5f;
    const std::uint32_t denormal = __builtin_bit_cast(std::uint32_t, shifted) - 0x3F000000u;
    const std::uint32_t infinite = above(magnitude, 0x477FEFFFu); // 65520, halfway to 2^16
    const std::uint32_t nan = above(magnitude, 0x7F800000u);
    std::uint32_t result = blend(small, denormal, normal);
    result = blend(infinite, 0x7C00u | (nan & (0x200u | (magnitude >> 13 & 0x3FFu))), result);
    return static_cast<std::uint16_t>((u >> 16 & 0x8000u) | result);
}
TG_HD constexpr float float_of_half(std::uint16_t bits) {
    const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7FFFu) << 13;
    const std::uint32_t wide = above(magnitude, 0x0F7FFFFFu); // infinity and NaN
    const std::uint32_t normal = magnitude + (112u << 23) + (wide & (112u << 23));
    // Denormal: the pattern, placed in the low bits of 2^-14, is a fraction of it.
    const std::uint32_t small = ~above(magnitude, 0x007FFFFFu);
    const float shifted = __builtin_bit_cast(float, (magnitude & small) + (113u << 23));
    const auto denormal = __builtin_bit_cast(std::uint32_t, shifted - 0x1p-14f);
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    return __builtin_bit_cast(float, sign | blend(small, denormal, normal));
}

// The value of the 16-bit number nearest to x: float_of_*(*_bits(x)) in fewer steps, for values
// that stay in registers.
TG_HD constexpr float rounded_to_bfloat16(float x) {
    const auto u = __builtin_bit_cast(std::uint32_t, x);
    const std::uint32_t nan = above(u & 0x7FFFFFFFu, 0x7F800000u);
    return __builtin_bit_cast(float, blend(nan, u | 0x400000u, u + 0x7FFFu + (u >> 16 & 1u)) & 0xFFFF0000u);
}
TG_HD constexpr float rounded_to_half(float x) {
    const auto u = __builtin_bit_cast(std::uint32_t, x);
    const std::uint32_t magnitude = u & 0x7FFFFFFFu, sign = u & 0x80000000u;
    const std::uint32_t normal = (magnitude + 0xFFFu + (magnitude >> 13 & 1u)) & 0xFFFFE000u;
    const std::uint32_t small = ~above(magnitude, 0x387FFFFFu);
    const float shifted = __builtin_bit_cast(float, magnitude & small) + 0.5f;
    const auto denormal = __builtin_bit_cast(std::uint32_t, shifted - 0.5f);
    const std::uint32_t infinite = above(magnitude, 0x477FEFFFu), nan = above(magnitude, 0x7F800000u);
    const std::uint32_t special = 0x7F800000u | (nan & (0x400000u | (magnitude & 0x7FE000u)));
    return __builtin_bit_cast(float, sign | blend(infinite, special, blend(small, denormal, normal)));
}

// Rounds x to odd: x itself if it is a float, else the neighbouring float whose last bit is odd.
// Rounding the result to 16 bits gives the same as rounding x, because an odd float never lies
// halfway between two 16-bit numbers. Magnitudes beyond every 16-bit type stop at the largest
// float.
TG_HD constexpr float rounded_to_odd(double x) {
    constexpr double largest = std::numeric_limits<float>::max();
    const auto u = __builtin_bit_cast(std::uint64_t, x);
    const std::uint64_t magnitude = u & ~(std::uint64_t{1} << 63);
    const std::uint64_t nan = mask_of<std::uint64_t>(magnitude > 0x7FF0000000000000u);
    const std::uint64_t over = mask_of<std::uint64_t>(magnitude > __builtin_bit_cast(std::uint64_t, largest)) & ~nan;
    const auto exact = __builtin_bit_cast(double, blend(over, __builtin_bit_cast(std::uint64_t, largest), magnitude & ~nan));
    const auto nearest = static_cast<float>(exact);
    const auto bits = __builtin_bit_cast(std::uint32_t, nearest);
    const auto back = static_cast<double>(nearest);
    const auto even = static_cast<std::uint32_t>(~bits & 1u);
    const std::uint32_t odd = bits + (even & static_cast<std::uint32_t>(back < exact)) -
                              (even & static_cast<std::uint32_t>(back > exact));
    const std::uint32_t quiet = 0x7FC00000u | static_cast<std::uint32_t>(magnitude >> 29 & 0x3FFFFFu);
    const std::uint32_t sign = static_cast<std::uint32_t>(u >> 63) << 31;
    return __builtin_bit_cast(float, sign | blend(static_cast<std::uint32_t>(nan), quiet, odd));
}

// A float that rounds to the same 16-bit number as the argument does.
template <class Number>
TG_HD constexpr float before_rounding(Number x) {
    if constexpr (std::is_same_v<Number, float>) {
        return x;
    } else if constexpr (std::is_integral_v<Number> && sizeof(Number) <= 2) {
        return static_cast<float>(x);
    } else if constexpr (std::is_integral_v<Number> && sizeof(Number) == 8) {
        // From 2^53 on the last 11 bits only say that there is a remainder.
        const bool negative = x < Number(0);
        const auto u = static_cast<std::uint64_t>(x), magnitude = negative ? 0 - u : u;
        const std::uint64_t rest = static_cast<std::uint64_t>((magnitude & 0x7FFu) != 0) << 11;
        const std::uint64_t kept = magnitude >> 53 != 0 ? (magnitude & ~std::uint64_t{0x7FF}) | rest : magnitude;
        const auto value = static_cast<double>(kept);
        return rounded_to_odd(negative ? -value : value);
    } else {
        return rounded_to_odd(static_cast<double>(x));
    }
}

} // namespace detail

/// The upper half of a float: its range with 8 significant bits. Conversions round once, to nearest even.
struct bfloat16 {
    std::uint16_t bits; // no initialiser, so that arrays of them are trivial

    bfloat16() = default;
    template <class Number>
        requires std::is_arithmetic_v<Number>
    TG_HD constexpr explicit bfloat16(Number x) : bits(detail::bfloat16_bits(detail::before_rounding(x))) {}
    template <class Number>
        requires std::is_arithmetic_v<Number>
    TG_HD constexpr explicit operator Number() const {
        return static_cast<Number>(detail::float_of_bfloat16(bits));
    }
    /// The number of that pattern: sign, 8 bits of exponent, 7 of fraction.
    static constexpr bfloat16 from_bits(std::uint16_t pattern) {
        bfloat16 x{};
        x.bits = pattern;
        return x;
    }
    friend constexpr bool operator==(bfloat16 a, bfloat16 b) { return float(a) == float(b); }
};

/// IEEE 754 binary16: 11 significant bits, up to 65504. Conversions round once, to nearest even.
struct half {
    std::uint16_t bits;

    half() = default;
    template <class Number>
        requires std::is_arithmetic_v<Number>
    TG_HD constexpr explicit half(Number x) : bits(detail::half_bits(detail::before_rounding(x))) {}
    template <class Number>
        requires std::is_arithmetic_v<Number>
    TG_HD constexpr explicit operator Number() const {
        return static_cast<Number>(detail::float_of_half(bits));
    }
    /// The number of that pattern: sign, 5 bits of exponent, 10 of fraction (IEEE binary16).
    static constexpr half from_bits(std::uint16_t pattern) {
        half x{};
        x.bits = pattern;
        return x;
    }
    friend constexpr bool operator==(half a, half b) { return float(a) == float(b); }
};

template <>
struct dtype_traits<bfloat16> {
    static constexpr dtype value = dtype::bf16;
};
template <>
struct dtype_traits<half> {
    static constexpr dtype value = dtype::f16;
};

/// Types used for storage only: bfloat16 and half.
template <class T>
concept storage_type = std::is_same_v<T, bfloat16> || std::is_same_v<T, half>;

// For loops over bits: g++ does not vectorise loops that store the structures themselves.
/// The pattern of x rounded to T, to nearest, ties to even.
template <storage_type T>
TG_HD constexpr std::uint16_t storage_bits(float x) {
    if constexpr (std::is_same_v<T, half>)
        return detail::half_bits(x);
    else
        return detail::bfloat16_bits(x);
}
/// x rounded to T, to nearest, ties to even, as a float.
template <storage_type T>
TG_HD constexpr float rounded_to(float x) {
    if constexpr (std::is_same_v<T, half>)
        return detail::rounded_to_half(x);
    else
        return detail::rounded_to_bfloat16(x);
}
/// The float of a pattern of T, exactly.
template <storage_type T>
TG_HD constexpr float float_of(std::uint16_t bits) {
    if constexpr (std::is_same_v<T, half>)
        return detail::float_of_half(bits);
    else
        return detail::float_of_bfloat16(bits);
}

/// Whether the type has 16 bits, computes in float and is for storage alone.
constexpr bool is_storage_type(dtype type) { return type == dtype::bf16 || type == dtype::f16; }

namespace detail {
template <class T>
struct arithmetic_type {
    using type = T;
};
template <storage_type T>
struct arithmetic_type<T> {
    using type = float;
};
} // namespace detail

/// The type that arithmetic on T uses: float for the 16-bit types, T itself otherwise.
template <class T>
using arithmetic_type_t = typename detail::arithmetic_type<T>::type;

/// Whether tensors of T have derivatives.
template <class T>
inline constexpr bool is_floating_type = std::is_floating_point_v<T> || storage_type<T>;

} // namespace tapegraph

template <>
struct std::numeric_limits<tapegraph::bfloat16> : std::numeric_limits<float> {
    static constexpr int digits = 8;
    static constexpr tapegraph::bfloat16 min() { return tapegraph::bfloat16::from_bits(0x0080); }
    static constexpr tapegraph::bfloat16 max() { return tapegraph::bfloat16::from_bits(0x7F7F); }
    static constexpr tapegraph::bfloat16 lowest() { return tapegraph::bfloat16::from_bits(0xFF7F); }
    static constexpr tapegraph::bfloat16 epsilon() { return tapegraph::bfloat16::from_bits(0x3C00); }
    static constexpr tapegraph::bfloat16 infinity() { return tapegraph::bfloat16::from_bits(0x7F80); }
    static constexpr tapegraph::bfloat16 quiet_NaN() { return tapegraph::bfloat16::from_bits(0x7FC0); }
    static constexpr tapegraph::bfloat16 denorm_min() { return tapegraph::bfloat16::from_bits(0x0001); }
};
template <>
struct std::numeric_limits<tapegraph::half> : std::numeric_limits<float> {
    static constexpr int digits = 11;
    static constexpr tapegraph::half min() { return tapegraph::half::from_bits(0x0400); }
    static constexpr tapegraph::half max() { return tapegraph::half::from_bits(0x7BFF); }
    static constexpr tapegraph::half lowest() { return tapegraph::half::from_bits(0xFBFF); }
    static constexpr tapegraph::half epsilon() { return tapegraph::half::from_bits(0x1400); }
    static constexpr tapegraph::half infinity() { return tapegraph::half::from_bits(0x7C00); }
    static constexpr tapegraph::half quiet_NaN() { return tapegraph::half::from_bits(0x7E00); }
    static constexpr tapegraph::half denorm_min() { return tapegraph::half::from_bits(0x0001); }
};
