#pragma once

#include <tapegraph/core/math.hpp>

#include <array>
#include <cstdint>

/// Counter-based random numbers: Philox4x32 with 10 rounds (J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random
/// numbers: as easy as 1, 2, 3", SC 2011). Element i of a random node is a pure function of (seed, step, ordinal, i), so
/// it does not depend on threads, chunks, vector width or mode.
///
/// The address: the key is the seed. The counter's 128 bits are
///
///     word 0  block, low 32 bits       block = i / 4 (float) or i / 2 (double)
///     word 1  block, next 16 bits; above them the low 16 bits of the ordinal
///     word 2  step, low 32 bits
///     word 3  step, next 16 bits; above them the high 16 bits of the ordinal
///
/// so different (step, ordinal, block) have different counters, and with them independent numbers, for fewer than 2^48
/// blocks (10^15 floats), 2^48 steps and any 32-bit ordinal.

namespace tapegraph {

/// Philox4x32-10, a counter-based generator (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").
struct philox4x32 {
    static constexpr std::uint32_t multiplier_0 = 0xd2511f53u, multiplier_2 = 0xcd9e8d57u;
    static constexpr std::uint32_t weyl_0 = 0x9e3779b9u, weyl_1 = 0xbb67ae85u; // golden ratio, sqrt(3) - 1

private:
    // Defined before its use: clang otherwise instantiates it too late for constant evaluation.
    template <std::uint32_t Round>
    TG_HD static constexpr void round(std::uint32_t& c0, std::uint32_t& c1, std::uint32_t& c2, std::uint32_t& c3,
                                      std::uint32_t k0, std::uint32_t k1) {
        const std::uint64_t a = std::uint64_t{multiplier_0} * c0, b = std::uint64_t{multiplier_2} * c2;
        c0 = static_cast<std::uint32_t>(b >> 32) ^ c1 ^ (k0 + Round * weyl_0);
        c2 = static_cast<std::uint32_t>(a >> 32) ^ c3 ^ (k1 + Round * weyl_1);
        c1 = static_cast<std::uint32_t>(b);
        c3 = static_cast<std::uint32_t>(a);
    }

public:
    /// Encrypts the counter in place. Plain words, so that a loop over blocks vectorises.
    TG_HD static constexpr void encrypt(std::uint32_t& c0, std::uint32_t& c1, std::uint32_t& c2, std::uint32_t& c3,
                                        std::uint32_t k0, std::uint32_t k1) {
        round<0>(c0, c1, c2, c3, k0, k1);
        round<1>(c0, c1, c2, c3, k0, k1);
        round<2>(c0, c1, c2, c3, k0, k1);
        round<3>(c0, c1, c2, c3, k0, k1);
        round<4>(c0, c1, c2, c3, k0, k1);
        round<5>(c0, c1, c2, c3, k0, k1);
        round<6>(c0, c1, c2, c3, k0, k1);
        round<7>(c0, c1, c2, c3, k0, k1);
        round<8>(c0, c1, c2, c3, k0, k1);
        round<9>(c0, c1, c2, c3, k0, k1);
    }

    /// The four words of a counter under a key.
    static constexpr std::array<std::uint32_t, 4> block(std::array<std::uint32_t, 4> counter,
                                                        std::array<std::uint32_t, 2> key) {
        encrypt(counter[0], counter[1], counter[2], counter[3], key[0], key[1]);
        return counter;
    }
};

namespace random {

/// Uniform in [0, 1): 24 bits (float) or 53 bits (double), all multiples of 2^-24 or 2^-53.
template <class T>
    requires(sizeof(T) == sizeof(float))
TG_HD constexpr T uniform01(std::uint32_t word) {
    return static_cast<T>(static_cast<std::int32_t>(word >> 8)) * 0x1p-24f;
}
template <class T>
    requires(sizeof(T) == sizeof(double))
TG_HD constexpr T uniform01(std::uint32_t high, std::uint32_t low) {
    // 26 and 27 bits, each exact in double; SSE2 and AVX2 cannot convert 64-bit integers.
    const auto upper = static_cast<double>(static_cast<std::int32_t>(high >> 6));
    const auto lower = static_cast<double>(static_cast<std::int32_t>(low >> 5));
    return math::detail::mul_add(upper, 0x1p-26, lower * 0x1p-53);
}

/// Two independent standard normal numbers from two uniform ones in [0, 1) (Box and Muller). 1 - u is in (0, 1], so the
/// logarithm is finite; the largest magnitudes are 5.8 (float) and 8.6 (double).
template <class T>
TG_HD constexpr void box_muller(T u, T v, T& first, T& second) {
    const T radius = math::sqrt(T(-2) * math::log(T(1) - u));
    const T angle = T(6.283185307179586) * v;
    first = math::detail::product(radius, math::cos(angle));
    second = math::detail::product(radius, math::sin(angle));
}

/// Numbers per block of 128 bits.
template <class T>
inline constexpr int per_block = static_cast<int>(16 / sizeof(T));

/// Names one stream of numbers: the key and the part of the counter that does not vary with the element.
struct address {
    std::uint32_t key_0, key_1, ordinal_low, step_low, step_high;

    TG_HD constexpr address(std::uint64_t seed, std::uint64_t step, std::uint32_t ordinal)
        : key_0(static_cast<std::uint32_t>(seed)),
          key_1(static_cast<std::uint32_t>(seed >> 32)),
          ordinal_low(ordinal << 16),
          step_low(static_cast<std::uint32_t>(step)),
          step_high((static_cast<std::uint32_t>(step >> 32) & 0xffffu) | (ordinal & 0xffff0000u)) {}
};

/// Part `part` of ten of a stream's address: 16 bits of the seed (four), the step (four) and the ordinal. `State` has seed
/// and step. The numbers are exact in every floating-point type but half.
template <class State>
TG_HD constexpr std::uint32_t address_part(const State& state, std::uint32_t ordinal, std::int64_t part) {
    const std::uint64_t word = part < 4 ? state.seed : part < 8 ? state.step : ordinal;
    return static_cast<std::uint32_t>(word >> (part % 4 * 16)) & 0xffffu;
}
/// The address that ten such numbers are.
template <class T>
TG_HD constexpr address address_of(const T* parts) {
    std::uint64_t words[3]{};
    for (int i = 0; i < 10; ++i) words[i / 4] |= static_cast<std::uint64_t>(parts[i]) << (i % 4 * 16);
    return {words[0], words[1], static_cast<std::uint32_t>(words[2])};
}

namespace detail {

/// Block number `block` of a stream, as raw words.
TG_HD constexpr void words(const address& a, std::uint32_t block_low, std::uint32_t block_high, std::uint32_t& w0,
                           std::uint32_t& w1, std::uint32_t& w2, std::uint32_t& w3) {
    w0 = block_low;
    w1 = (block_high & 0xffffu) | a.ordinal_low;
    w2 = a.step_low;
    w3 = a.step_high;
    philox4x32::encrypt(w0, w1, w2, w3, a.key_0, a.key_1);
}

struct uniform {
    static constexpr bool transforms = false;
    template <class T>
    TG_HD static constexpr void run(T&, T&) {}
};

struct normal {
    static constexpr bool transforms = true;
    template <class T>
    TG_HD static constexpr void run(T& u, T& v) {
        T first = 0, second = 0;
        box_muller(u, v, first, second);
        u = first;
        v = second;
    }
};

/// The uniform numbers of one block.
template <class T>
TG_HD constexpr void block_numbers(const address& a, std::uint64_t block, T (&x)[per_block<T>]) {
    std::uint32_t w0 = 0, w1 = 0, w2 = 0, w3 = 0;
    words(a, static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), w0, w1, w2, w3);
    if constexpr (sizeof(T) == sizeof(float)) {
        x[0] = uniform01<T>(w0);
        x[1] = uniform01<T>(w1);
        x[2] = uniform01<T>(w2);
        x[3] = uniform01<T>(w3);
    } else {
        x[0] = uniform01<T>(w0, w1);
        x[1] = uniform01<T>(w2, w3);
    }
}

template <class Distribution, class T>
TG_HD constexpr T at(const address& a, std::uint64_t index) {
    T x[per_block<T>]{};
    block_numbers(a, index / per_block<T>, x);
    const int pair = static_cast<int>(index % per_block<T>) / 2 * 2;
    T u = x[pair], v = x[pair + 1];
    Distribution::run(u, v);
    return index % 2 == 0 ? u : v;
}

/// Number p of block b goes to out[p * plane + b * stride].
template <int Count, class T>
TG_INLINE void uniform_blocks(T* out, int plane, int stride, std::uint64_t block, const address& a) {
    const auto low = static_cast<std::uint32_t>(block), high = static_cast<std::uint32_t>(block >> 32);
    TG_SIMD
    for (int b = 0; b < Count; ++b) {
        const std::uint32_t b_low = low + static_cast<std::uint32_t>(b);
        std::uint32_t w0 = 0, w1 = 0, w2 = 0, w3 = 0;
        words(a, b_low, high + static_cast<std::uint32_t>(b_low < low), w0, w1, w2, w3);
        T* const to = out + b * stride;
        if constexpr (sizeof(T) == sizeof(float)) {
            to[0] = uniform01<T>(w0);
            to[plane] = uniform01<T>(w1);
            to[2 * plane] = uniform01<T>(w2);
            to[3 * plane] = uniform01<T>(w3);
        } else {
            to[0] = uniform01<T>(w0, w1);
            to[plane] = uniform01<T>(w2, w3);
        }
    }
}

/// `Count` consecutive blocks, written to out[0 .. Count * per_block). A transformation works on planes (plane p holds
/// number p of every block) in loops of its own, because a single one is too complicated for g++ to vectorise.
template <class Distribution, int Count, class T>
TG_INLINE void fill_blocks(T* out, std::uint64_t block, const address& a) {
    constexpr int per = per_block<T>;
    if constexpr (!Distribution::transforms) {
        uniform_blocks<Count>(out, 1, per, block, a);
    } else {
        T planes[per * Count];
        uniform_blocks<Count>(planes, Count, 1, block, a);
        for (int p = 0; p < per; p += 2) {
            T* const u = planes + p * Count;
            T* const v = u + Count;
            TG_SIMD
            for (int b = 0; b < Count; ++b) Distribution::run(u[b], v[b]);
        }
        for (int b = 0; b < Count; ++b)
            for (int p = 0; p < per; ++p) out[b * per + p] = planes[p * Count + b];
    }
}

/// Elements first .. first + count - 1 of a stream.
template <class Distribution, class T>
TG_INLINE void fill(T* out, std::int64_t first, std::int64_t count, const address& a) {
    constexpr std::int64_t per = per_block<T>;
    constexpr int tile = 64;
    // One loop around single numbers, whose code is long: an incomplete tile may be at either end.
    for (std::int64_t i = 0; i < count; ++i) {
        if ((first + i) % per == 0)
            for (; count - i >= per * tile; i += per * tile)
                fill_blocks<Distribution, tile>(out + i, static_cast<std::uint64_t>((first + i) / per), a);
        if (i < count) out[i] = at<Distribution, T>(a, static_cast<std::uint64_t>(first + i));
    }
}

} // namespace detail

/// Element `index` of a random node: uniform in [0, 1).
template <class T>
TG_HD constexpr T uniform_at(std::uint64_t seed, std::uint64_t step, std::uint32_t ordinal, std::uint64_t index) {
    return detail::at<detail::uniform, T>(address(seed, step, ordinal), index);
}

/// Element `index` of a random node: standard normal.
template <class T>
TG_HD constexpr T normal_at(std::uint64_t seed, std::uint64_t step, std::uint32_t ordinal, std::uint64_t index) {
    return detail::at<detail::normal, T>(address(seed, step, ordinal), index);
}

/// out[j] = uniform_at(seed, step, ordinal, first + j) for 0 <= j < count. Always inlined: call it from a kernel body run by
/// `cpu::dispatch` and it uses that kernel's instruction set.
template <class T>
TG_INLINE void fill_uniform(T* out, std::int64_t first, std::int64_t count, std::uint64_t seed, std::uint64_t step,
                            std::uint32_t ordinal) {
    detail::fill<detail::uniform>(out, first, count, address(seed, step, ordinal));
}

/// out[j] = normal_at(seed, step, ordinal, first + j) for 0 <= j < count.
template <class T>
TG_INLINE void fill_normal(T* out, std::int64_t first, std::int64_t count, std::uint64_t seed, std::uint64_t step,
                           std::uint32_t ordinal) {
    detail::fill<detail::normal>(out, first, count, address(seed, step, ordinal));
}

} // namespace random
} // namespace tapegraph
