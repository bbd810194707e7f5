#pragma once

#include <tapegraph/core/config.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

/// Stable hashes, compatible with TensorFlow: FarmHash's Fingerprint64
/// (tf.strings.to_hash_bucket_fast), SipHash-2-4 with a key (to_hash_bucket_strong), and the mixing
/// of crossed columns. Files hashed by other programs keep their meaning.

namespace tapegraph::data {

namespace detail {

/// FarmHash (G. Pike, 2014), the portable 64-bit function without a seed.
class farm_hash {
    using word = std::uint64_t;
    using pair = std::pair<word, word>;
    static constexpr word k0 = 0xc3a5c85c97cb3127, k1 = 0xb492b66fbe98f273, k2 = 0x9ae16a3b2f90404f;

public:
    explicit farm_hash(std::string_view text) : text_(text) {}

    word value() const {
        const std::size_t n = text_.size();
        if (n > 64) return of_blocks();
        if (n > 32) return of_33_to_64();
        if (n > 16) return of_17_to_32();
        const word by = k2 + n * 2;
        if (n >= 8) {
            const word a = at(0) + k2, b = at(n - 8);
            return mixed(std::rotr(b, 37) * by + a, (std::rotr(a, 25) + b) * by, by);
        }
        if (n >= 4) return mixed(n + (half(0) << 3), half(n - 4), by);
        if (n == 0) return k2;
        const word y = byte(0) + (byte(n / 2) << 8), z = n + (byte(n - 1) << 2);
        return folded(y * k2 ^ z * k0) * k2;
    }

private:
    word byte(std::size_t i) const { return static_cast<unsigned char>(text_[i]); }
    word half(std::size_t i) const { return byte(i) | byte(i + 1) << 8 | byte(i + 2) << 16 | byte(i + 3) << 24; }
    word at(std::size_t i) const { return half(i) | half(i + 4) << 32; }

    static word folded(word value) { return value ^ value >> 47; }
    static word mixed(word u, word v, word by) {
        const word a = folded((u ^ v) * by);
        return folded((v ^ a) * by) * by;
    }
    word of_17_to_32() const {
        const std::size_t n = text_.size();
        const word by = k2 + n * 2, a = at(0) * k1, b = at(8), c = at(n - 8) * by, d = at(n - 16) * k2;
        return mixed(std::rotr(a + b, 43) + std::rotr(c, 30) + d, a + std::rotr(b + k2, 18) + c, by);
    }
    word of_33_to_64() const {
        const std::size_t n = text_.size();
        const word by = k2 + n * 2, a = at(0) * k2, b = at(8), c = at(n - 8) * by, d = at(n - 16) * k2;
        const word y = std::rotr(a + b, 43) + std::rotr(c, 30) + d;
        const word z = mixed(y, a + std::rotr(b + k2, 18) + c, by);
        const word e = at(16) * by, f = at(24), g = (y + at(n - 32)) * by, h = (z + at(n - 24)) * by;
        return mixed(std::rotr(e + f, 43) + std::rotr(g, 30) + h, e + std::rotr(f + a, 18) + g, by);
    }
    /// Mixes 32 bytes into two words.
    pair stirred(std::size_t i, word a, word b) const {
        a += at(i);
        b = std::rotr(b + a + at(i + 24), 21);
        const word first = a;
        a += at(i + 8) + at(i + 16);
        b += std::rotr(a, 44);
        return {a + at(i + 24), b + first};
    }
    word of_blocks() const {
        const std::size_t n = text_.size(), last = (n - 1) / 64 * 64, rest = (n - 1) & 63;
        word y = 81 * k1 + 113, z = folded(y * k2 + 113) * k2, x = 81 * k2 + at(0);
        pair v{0, 0}, w{0, 0};
        const auto block = [&](std::size_t i, word by, word weight) {
            x = std::rotr(x + y + v.first + at(i + 8), 37) * by;
            y = std::rotr(y + v.second + at(i + 48), 42) * by;
            x ^= w.second * weight;
            y += v.first * weight + at(i + 40);
            z = std::rotr(z + w.first, 33) * by;
            v = stirred(i, v.second * by, x + w.first);
            w = stirred(i + 32, z + w.second, y + at(i + 16));
            std::swap(z, x);
        };
        for (std::size_t i = 0; i < last; i += 64) block(i, k1, 1);
        const word by = k1 + ((z & 0xFF) << 1);
        w.first += rest;
        v.first += w.first;
        w.first += v.first;
        block(last + rest - 63, by, 9); // the last 64 bytes, some of them a second time
        return mixed(mixed(v.first, w.first, by) + folded(y) * k0 + z, mixed(v.second, w.second, by) + x, by);
    }

    std::string_view text_;
};

} // namespace detail

/// FarmHash's Fingerprint64 of some bytes.
inline std::uint64_t fingerprint64(std::string_view text) { return detail::farm_hash(text).value(); }

/// Combines two hashes, as in TensorFlow's crossed columns.
inline std::uint64_t combined_fingerprint(std::uint64_t first, std::uint64_t second) {
    constexpr std::uint64_t by = 0xc6a4a7935bd1e995;
    const auto folded = [](std::uint64_t value) { return value ^ value >> 47; };
    const std::uint64_t result = ((first ^ by) ^ folded(second * by) * by) * by;
    return folded(folded(result) * by);
}

/// SipHash-2-4 (Aumasson and Bernstein, 2012) of some bytes with a key: collisions cannot be found
/// without the key.
inline std::uint64_t keyed_hash(std::string_view text, std::uint64_t key0, std::uint64_t key1) {
    std::uint64_t v0 = key0 ^ 0x736f6d6570736575, v1 = key1 ^ 0x646f72616e646f6d, v2 = key0 ^ 0x6c7967656e657261,
                  v3 = key1 ^ 0x7465646279746573;
    const auto rounds = [&](int count) {
        for (int i = 0; i < count; ++i) {
            v0 += v1;
            v2 += v3;
            v1 = std::rotl(v1, 13) ^ v0;
            v3 = std::rotl(v3, 16) ^ v2;
            v0 = std::rotl(v0, 32);
            v2 += v1;
            v0 += v3;
            v1 = std::rotl(v1, 17) ^ v2;
            v3 = std::rotl(v3, 21) ^ v0;
            v2 = std::rotl(v2, 32);
        }
    };
    for (std::size_t at = 0; at <= text.size(); at += 8) {
        const std::string_view part = text.substr(at, 8);
        std::uint64_t word = part.size() < 8 ? static_cast<std::uint64_t>(text.size()) << 56 : 0;
        for (std::size_t i = 0; i < part.size(); ++i)
            word |= static_cast<std::uint64_t>(static_cast<unsigned char>(part[i])) << (8 * i);
        v3 ^= word;
        rounds(2);
        v0 ^= word;
    }
    v2 ^= 0xFF;
    rounds(4);
    return v0 ^ v1 ^ v2 ^ v3;
}

} // namespace tapegraph::data
