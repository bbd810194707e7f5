#pragma once

#include <tapegraph/cuda/word_hash.hpp>
#include <tapegraph/runtime/device_runtime.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace tapegraph::cuda {

/// Tracks the content of a ring buffer on the device that holds the small arguments of eager calls.
/// Most calls of a training step bring the same numbers as in the step before, and these need not
/// be sent again. Everything happens in the order of one stream, so a place is valid for any kernel
/// launched before the next numbers are sent.
template <std::size_t Bytes>
class sent_numbers {
public:
    /// The offset in the buffer of `bytes` bytes, at most its size: where they already are, or
    /// where `send(place)` copies them.
    template <class Send>
    std::size_t place(const void* from, std::size_t bytes, const Send& send) {
        entry& known = entries_[place_of(from, bytes)];
        if (known.bytes == bytes && bytes > 0 && next_ <= known.at + Bytes &&
            std::memcmp(copy_.data() + known.at % Bytes, from, bytes) == 0)
            return known.at % Bytes;
        if (next_ % Bytes + bytes > Bytes) next_ += Bytes - next_ % Bytes;
        const std::size_t begin = next_, at = begin % Bytes;
        next_ += runtime::padded(bytes);
        known.bytes = 0; // invalid if sending throws
        send(at);
        if (bytes == 0) return at;
        copy_.resize(Bytes);
        std::memcpy(copy_.data() + at, from, bytes);
        known = {begin, bytes};
        return at;
    }
    void forget() { entries_ = {}; }

private:
    struct entry {
        std::size_t at = 0, bytes = 0; ///< counted from the first number on, not from the buffer's begin
    };
    static std::size_t place_of(const void* from, std::size_t bytes) {
        word_hash hash(bytes);
        const auto* const first = static_cast<const std::byte*>(from);
        for (std::size_t i = 0; i < bytes; i += 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, first + i, bytes - i < 8 ? bytes - i : 8);
            hash.add(word);
        }
        return hash.place();
    }

    std::array<entry, 256> entries_{}; // indexed by word_hash
    std::vector<std::byte> copy_;      ///< copy of the device's memory
    std::size_t next_ = 0;             ///< counted as in entries
};

} // namespace tapegraph::cuda
