#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/cpu/content_hash.hpp>
#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/runtime/memory.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tapegraph::runtime {

/// What a step of a program has made of an operand that is, as a rule, the same in the next run: a variable that the program does not
/// update. Hashes of the operand, one for each piece of it, tell whether it has changed, for nobody need say so. Of changes that are not made
/// to deceive them they miss one in 2^64.
class kept_memory {
public:
    using key_type = std::array<std::int64_t, 4>;

    /// The `bytes` that make(to) makes of the operand: made now, unless operand and key are what they were made of. The key is what
    /// else they depend on, not all of it 0.
    template <class Make>
    const void* made_of(const buffer_view& operand, const key_type& key, std::size_t bytes, const Make& make) {
        const std::size_t size = operand.bytes();
        if (key == key_ && size == hashed_ && hash<false>(operand.data, size)) return made_.data();
        key_ = {};
        if (made_.size() < bytes) made_ = arena(bytes);
        make(made_.data());
        hashes_.resize((size + piece - 1) / piece);
        hash<true>(operand.data, size);
        hashed_ = size;
        key_ = key;
        return made_.data();
    }

private:
    static constexpr std::size_t piece = std::size_t{1} << 18;

    /// Writes the hashes of all pieces, or says whether they are as written.
    template <bool Writes>
    bool hash(const void* data, std::size_t size) {
        std::atomic<bool> same{true};
        const auto pieces = static_cast<std::int64_t>(hashes_.size());
        cpu::parallel_for(pieces, pieces > 1, [&](std::int64_t i) {
            if (!same.load(std::memory_order_relaxed)) return;
            const std::size_t at = static_cast<std::size_t>(i), first = at * piece;
            const std::uint64_t now =
                cpu::content_hash(static_cast<const std::byte*>(data) + first, std::min(piece, size - first));
            if constexpr (Writes)
                hashes_[at] = now;
            else if (now != hashes_[at])
                same.store(false, std::memory_order_relaxed);
        });
        return same.load(std::memory_order_relaxed);
    }

    arena made_;
    std::vector<std::uint64_t> hashes_;
    std::size_t hashed_ = 0;
    key_type key_{};
};

} // namespace tapegraph::runtime
