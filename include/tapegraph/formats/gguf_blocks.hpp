#pragma once

#include <tapegraph/core/half.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

/// The quantised blocks of GGUF files: their layouts, and what they stand for in f32. The layouts
/// are those of ggml (github.com/ggml-org/ggml, ggml-common.h); all numbers are little-endian. The
/// products of scale and level fit the 24 bits of a float, so each value is rounded once, with or
/// without fused multiply-adds.

namespace tapegraph::io::detail {

/// A type of elements in GGUF: `count` elements are a block of `bytes` bytes.
struct gguf_block {
    const char* name;
    std::uint32_t number; ///< in files
    std::size_t count, bytes;
    void (*read)(const std::uint8_t* block, float* to); ///< null: not quantised, or not read
};

inline float gguf_half(const std::uint8_t* at) {
    return static_cast<float>(half::from_bits(static_cast<std::uint16_t>(at[0] | at[1] << 8)));
}
inline int gguf_low(std::uint8_t b) { return b & 15; }
inline int gguf_high(std::uint8_t b) { return b >> 4; }

/// A level times the block's scale, above its minimum or around the middle of all levels.
template <bool WithMinimum, int Middle>
float gguf_value_of(const std::uint8_t* block, int level) {
    if constexpr (WithMinimum) return gguf_half(block) * static_cast<float>(level) + gguf_half(block + 2);
    return gguf_half(block) * static_cast<float>(level - Middle);
}

/// Levels of 4 bits: those of the low halves of 16 bytes, then those of the high ones.
template <bool WithMinimum>
void read_q4(const std::uint8_t* block, float* to) {
    const std::uint8_t* const levels = block + (WithMinimum ? 4 : 2);
    for (int i = 0; i < 16; ++i) {
        to[i] = gguf_value_of<WithMinimum, 8>(block, gguf_low(levels[i]));
        to[i + 16] = gguf_value_of<WithMinimum, 8>(block, gguf_high(levels[i]));
    }
}
/// As read_q4, with the fifth bits of all levels in 32 bits before them.
template <bool WithMinimum>
void read_q5(const std::uint8_t* block, float* to) {
    const std::uint8_t* const fifth = block + (WithMinimum ? 4 : 2);
    const std::uint8_t* const levels = fifth + 4;
    const auto bit = [&](int i) { return (fifth[i / 8] >> (i % 8) & 1) << 4; };
    for (int i = 0; i < 16; ++i) {
        to[i] = gguf_value_of<WithMinimum, 16>(block, gguf_low(levels[i]) | bit(i));
        to[i + 16] = gguf_value_of<WithMinimum, 16>(block, gguf_high(levels[i]) | bit(i + 16));
    }
}
inline void read_q8_0(const std::uint8_t* block, float* to) {
    const float scale = gguf_half(block);
    for (int i = 0; i < 32; ++i) to[i] = scale * static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
}

/// 16 groups of 16 levels of 2 bits; each group has a scale and a minimum of 4 bits.
inline void read_q2_k(const std::uint8_t* block, float* to) {
    const std::uint8_t* const levels = block + 16;
    const float scale = gguf_half(block + 80), minimum = gguf_half(block + 82);
    for (int i = 0; i < 256; ++i) {
        const std::uint8_t group = block[i / 16];
        const int level = levels[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
        to[i] = scale * static_cast<float>(gguf_low(group)) * static_cast<float>(level) -
                minimum * static_cast<float>(gguf_high(group));
    }
}
/// 16 groups of 16 levels of 3 bits, of which the third ones come first, inverted; scales of 6 bits.
inline void read_q3_k(const std::uint8_t* block, float* to) {
    const std::uint8_t *const third = block, *const levels = block + 32, *const scales = block + 96;
    const float scale = gguf_half(block + 108);
    for (int i = 0; i < 256; ++i) {
        const int group = i / 16;
        const int low = group < 8 ? gguf_low(scales[group]) : gguf_high(scales[group - 8]);
        const int high = scales[8 + group % 4] >> (group / 4 * 2) & 3;
        const int level = levels[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
        const int set = third[i % 32] >> (i / 32) & 1;
        to[i] = scale * static_cast<float>((low | high << 4) - 32) * static_cast<float>(level - (set == 0 ? 4 : 0));
    }
}

/// The scale and minimum, of 6 bits each, of group 0 to 7 in the 12 bytes of Q4_K and Q5_K.
inline std::array<float, 2> gguf_scale_and_minimum(const std::uint8_t* packed, int group) {
    if (group < 4) return {static_cast<float>(packed[group] & 63), static_cast<float>(packed[group + 4] & 63)};
    const std::uint8_t both = packed[group + 4];
    return {static_cast<float>(gguf_low(both) | packed[group - 4] >> 6 << 4),
            static_cast<float>(gguf_high(both) | packed[group] >> 6 << 4)};
}
/// 8 groups of 32 levels of 4 bits, or of 5 with the fifth ones in 32 bytes before them.
template <bool Five>
void read_q4_k(const std::uint8_t* block, float* to) {
    const float scale = gguf_half(block), minimum = gguf_half(block + 2);
    const std::uint8_t *const fifth = block + 16, *const levels = Five ? block + 48 : block + 16;
    for (int i = 0; i < 256; ++i) {
        const int group = i / 32;
        const auto [s, m] = gguf_scale_and_minimum(block + 4, group);
        const std::uint8_t pair = levels[group / 2 * 32 + i % 32];
        int level = group % 2 == 0 ? gguf_low(pair) : gguf_high(pair);
        if constexpr (Five) level |= (fifth[i % 32] >> group & 1) << 4;
        to[i] = scale * s * static_cast<float>(level) - minimum * m;
    }
}
/// 16 groups of 16 levels of 6 bits, each with a scale of 8 bits.
inline void read_q6_k(const std::uint8_t* block, float* to) {
    const std::uint8_t *const low = block, *const high = block + 128, *const scales = block + 192;
    const float scale = gguf_half(block + 208);
    for (int i = 0; i < 256; ++i) {
        const int within = i % 128;
        const std::uint8_t pair = low[i / 128 * 64 + within % 64];
        const int top = high[i / 128 * 32 + within % 32] >> (within / 32 * 2) & 3;
        const int level = (within < 64 ? gguf_low(pair) : gguf_high(pair)) | top << 4;
        to[i] = scale * static_cast<float>(static_cast<std::int8_t>(scales[i / 16])) * static_cast<float>(level - 32);
    }
}
/// The intermediate form of products: levels of 8 bits and a scale in f32.
inline void read_q8_k(const std::uint8_t* block, float* to) {
    float scale = 0;
    std::memcpy(&scale, block, sizeof scale);
    for (int i = 0; i < 256; ++i) to[i] = scale * static_cast<float>(static_cast<std::int8_t>(block[4 + i]));
}

/// The levels of IQ4_NL and IQ4_XS, closer together near 0.
inline constexpr std::array<float, 16> gguf_uneven_levels{-127, -104, -83, -65, -49, -35, -22, -10,
                                                          1,    13,   25,  38,  53,  69,  89,  113};
inline void read_iq4_nl(const std::uint8_t* block, float* to) {
    const float scale = gguf_half(block);
    for (int i = 0; i < 16; ++i) {
        to[i] = scale * gguf_uneven_levels[static_cast<std::size_t>(gguf_low(block[2 + i]))];
        to[i + 16] = scale * gguf_uneven_levels[static_cast<std::size_t>(gguf_high(block[2 + i]))];
    }
}
/// 8 groups of 32 such levels; scales of 6 bits, the two high ones in 16 bits of their own.
inline void read_iq4_xs(const std::uint8_t* block, float* to) {
    const float scale = gguf_half(block);
    const int high = block[2] | block[3] << 8;
    for (int i = 0; i < 256; ++i) {
        const int group = i / 32, within = i % 32;
        const std::uint8_t pair = block[4 + group / 2];
        const int low = group % 2 == 0 ? gguf_low(pair) : gguf_high(pair);
        const std::uint8_t levels = block[8 + group * 16 + within % 16];
        const int level = within < 16 ? gguf_low(levels) : gguf_high(levels);
        to[i] = scale * static_cast<float>((low | (high >> (2 * group) & 3) << 4) - 32) *
                gguf_uneven_levels[static_cast<std::size_t>(level)];
    }
}
/// Floats of 4 bits (E2M1) with a power of two as their scale, as OCP's Microscaling Formats have them.
inline void read_mxfp4(const std::uint8_t* block, float* to) {
    constexpr std::array<float, 16> levels{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}; // doubled
    // Half of the scale 2^(e - 127); the smallest two are denormal.
    const std::uint32_t e = block[0], bits = e < 2 ? 0x00200000u << e : (e - 1) << 23;
    float scale = 0;
    std::memcpy(&scale, &bits, sizeof scale);
    for (int i = 0; i < 16; ++i) {
        to[i] = scale * levels[static_cast<std::size_t>(gguf_low(block[1 + i]))];
        to[i + 16] = scale * levels[static_cast<std::size_t>(gguf_high(block[1 + i]))];
    }
}

/// All types, in the order of their numbers. Those without a function that are no plain numbers are not read.
inline constexpr std::array<gguf_block, 32> gguf_blocks{{{"F32", 0, 1, 4, nullptr},
                                                         {"F16", 1, 1, 2, nullptr},
                                                         {"Q4_0", 2, 32, 18, read_q4<false>},
                                                         {"Q4_1", 3, 32, 20, read_q4<true>},
                                                         {"Q5_0", 6, 32, 22, read_q5<false>},
                                                         {"Q5_1", 7, 32, 24, read_q5<true>},
                                                         {"Q8_0", 8, 32, 34, read_q8_0},
                                                         {"Q8_1", 9, 32, 40, nullptr},
                                                         {"Q2_K", 10, 256, 84, read_q2_k},
                                                         {"Q3_K", 11, 256, 110, read_q3_k},
                                                         {"Q4_K", 12, 256, 144, read_q4_k<false>},
                                                         {"Q5_K", 13, 256, 176, read_q4_k<true>},
                                                         {"Q6_K", 14, 256, 210, read_q6_k},
                                                         {"Q8_K", 15, 256, 292, read_q8_k},
                                                         {"IQ2_XXS", 16, 256, 66, nullptr},
                                                         {"IQ2_XS", 17, 256, 74, nullptr},
                                                         {"IQ3_XXS", 18, 256, 98, nullptr},
                                                         {"IQ1_S", 19, 256, 50, nullptr},
                                                         {"IQ4_NL", 20, 32, 18, read_iq4_nl},
                                                         {"IQ3_S", 21, 256, 110, nullptr},
                                                         {"IQ2_S", 22, 256, 82, nullptr},
                                                         {"IQ4_XS", 23, 256, 136, read_iq4_xs},
                                                         {"I8", 24, 1, 1, nullptr},
                                                         {"I16", 25, 1, 2, nullptr},
                                                         {"I32", 26, 1, 4, nullptr},
                                                         {"I64", 27, 1, 8, nullptr},
                                                         {"F64", 28, 1, 8, nullptr},
                                                         {"IQ1_M", 29, 256, 56, nullptr},
                                                         {"BF16", 30, 1, 2, nullptr},
                                                         {"TQ1_0", 34, 256, 54, nullptr},
                                                         {"TQ2_0", 35, 256, 66, nullptr},
                                                         {"MXFP4", 39, 32, 17, read_mxfp4}}};

/// Null for a number that is none of them.
inline const gguf_block* find_gguf_block(std::uint32_t number) {
    for (const gguf_block& each : gguf_blocks)
        if (each.number == number) return &each;
    return nullptr;
}

} // namespace tapegraph::io::detail
