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

/// Caches data that a step of a program derives from an operand that rarely changes between runs: a
/// variable that the program does not update. Hashes of the operand, one per piece, detect changes,
/// so nobody has to announce them. They miss one accidental change in 2^64.
class kept_memory {
public:
    using key_type = std::array<std::int64_t, 4>;

    /// Returns the `bytes` bytes that make(to) derives from the operand, and calls it only if the
    /// operand or the key has changed. The key holds all else that they depend on, and is not all
    /// 0.
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

    /// Writes the hashes of all pieces, or returns whether they are unchanged.
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
