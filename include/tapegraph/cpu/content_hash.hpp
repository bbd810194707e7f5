#pragma once

#include <tapegraph/cpu/isa.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

/// A hash of numbers in memory, as fast as reading them, by which the CPU detects changes.

namespace tapegraph::cpu {

namespace detail {

struct content_hash_body {
    static constexpr int lanes = 16;
    static constexpr std::size_t block = lanes * sizeof(std::uint64_t);

    struct state {
        std::uint64_t sum[lanes], key[lanes];
    };
    // Each word is multiplied, half by half, by a key that depends on its place, so that exchanged
    // words change the sum; it is also added unmultiplied, so that a half of zero hides nothing.
    TG_INLINE static void add(state& s, const std::byte* from) {
        std::uint64_t word[lanes];
        std::memcpy(word, from, block);
        TG_SIMD
        for (int k = 0; k < lanes; ++k) {
            const std::uint64_t mixed = word[k] ^ s.key[k];
            s.sum[k] += word[k] + (mixed & 0xFFFFFFFFu) * (mixed >> 32);
            s.key[k] += 0x9E3779B97F4A7C15u;
        }
    }
    template <class Isa>
    TG_INLINE static void run(const std::byte* from, std::size_t bytes, std::uint64_t* result) {
        state s;
        for (int k = 0; k < lanes; ++k) {
            s.sum[k] = 0;
            s.key[k] = static_cast<std::uint64_t>(k + 1) * 0xD6E8FEB86659FD93u;
        }
        const std::size_t whole = bytes / block * block;
        for (std::size_t i = 0; i < whole; i += block) add(s, from + i);
        if (whole < bytes) {
            std::byte last[block]{};
            std::memcpy(last, from + whole, bytes - whole);
            add(s, last);
        }
        std::uint64_t all = bytes;
        for (int k = 0; k < lanes; ++k) {
            all = (all ^ s.sum[k]) * 0xD6E8FEB86659FD93u;
            all ^= all >> 32;
        }
        *result = all;
    }
};

} // namespace detail

/// A 64-bit hash of `bytes` bytes, the same on every instruction set.
inline std::uint64_t content_hash(const void* data, std::size_t bytes) {
    std::uint64_t result = 0;
    dispatch<detail::content_hash_body>(static_cast<const std::byte*>(data), bytes, &result);
    return result;
}

} // namespace tapegraph::cpu
