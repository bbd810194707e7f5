#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace tapegraph::cuda {

/// Hashes a sequence of 64-bit words, for tables of 256 entries.
class word_hash {
public:
    explicit word_hash(std::uint64_t start = 0) : value_(start) {}
    void add(std::uint64_t word) {
        value_ =
            (std::rotl(value_, 5) ^ word) * 0x9E3779B97F4A7C15u; // the odd number next to 2^64 over the golden ratio
    }
    std::size_t place() const { return static_cast<std::size_t>(value_ >> 56); } ///< below 256

private:
    std::uint64_t value_;
};

} // namespace tapegraph::cuda
