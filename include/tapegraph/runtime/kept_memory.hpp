#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/cpu/content_hash.hpp>
#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/runtime/content_mark.hpp>
#include <tapegraph/runtime/kept_blocks.hpp>
#include <tapegraph/runtime/memory.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace tapegraph::runtime {

/// What is derived, in the first number of a kernel's key. Fast convolutions' numbers are smaller
/// (ops/convolution/cpu_algorithm.hpp).
inline constexpr std::int64_t kept_product = std::int64_t{1} << 40, kept_filters_key = std::int64_t{2} << 40,
                              kept_recurrence = std::int64_t{3} << 40;

/// Caches data that a step of a program derives from a variable that the program does not update.
/// The variable's mark (runtime/content_mark.hpp) says whether it is unchanged. Where the mark does
/// not know, because a pointer to the elements was handed out, hashes of the operand, one per piece,
/// detect changes; they miss one accidental change in 2^64.
class kept_memory {
public:
    using key_type = std::array<std::int64_t, 4>;

    /// Says that an operand of the step is a variable, or a part of it. Both pointers stay valid;
    /// what they point to is read at every run.
    void watch(int operand, const buffer_view* variable, content_mark* const* mark) {
        sources_.push_back({operand, variable, mark});
    }
    /// Whether an operand of a call is a variable, or a part of one.
    bool watches(const kernel_call& c, int operand) const {
        for (const source& s : sources_)
            if (s.operand == operand) return s.variable->type == c.in[operand].type;
        return false;
    }
    /// For kernels, while a program is planned: how many bytes they will keep.
    void announce(std::size_t bytes) { announced_ = bytes; }
    std::size_t announced() const { return announced_; }

    /// Returns the `bytes` bytes that make(to) derives from an operand of a call. Calls it only if
    /// the operand or the key has changed. The key holds all else that they depend on, and is not
    /// all 0.
    template <class Make>
    const void* made_of(const kernel_call& c, int operand, const key_type& key, std::size_t bytes, const Make& make) {
        const kept_blocks::id id = id_of(c, operand, key);
        return id[0] == 0 ? made_of(c.in[operand], key, bytes, make) : shared(c.in[operand], id, bytes, make);
    }
    /// The same for data that a kernel can do without, such as a packed matrix. Returns null where
    /// the variable's mark does not know whether it has changed, since hashing takes about as long
    /// as packing; at the first run with these elements, which may be the only one, as in programs
    /// that train between predictions; and where memory has run out.
    template <class Make>
    const void* made_if_unchanged(const kernel_call& c, int operand, const key_type& key, std::size_t bytes,
                                  const Make& make) {
        const kept_blocks::id id = id_of(c, operand, key);
        if (id[0] == 0) return nullptr;
        if (id != id_ && id != std::exchange(seen_, id) && !content_mark::checked.load(std::memory_order_relaxed)) {
            block_ = nullptr;
            id_ = {};
            return nullptr;
        }
        try {
            return shared(c.in[operand], id, bytes, make);
        } catch (const out_of_memory&) {
            return nullptr;
        }
    }

    /// The same of an operand that has no mark, by hashes.
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
    struct source {
        int operand;
        const buffer_view* variable;
        content_mark* const* mark;
    };
    static constexpr std::size_t piece = std::size_t{1} << 18;

    // All 0 where the mark does not know whether the operand has changed.
    kept_blocks::id id_of(const kernel_call& c, int operand, const key_type& key) const {
        for (const source& s : sources_) {
            if (s.operand != operand || *s.mark == nullptr) continue;
            const buffer_view& from = *s.variable;
            const auto* const first = static_cast<const std::byte*>(from.data);
            const auto* const here = static_cast<const std::byte*>(c.in[operand].data);
            // The operand of a kernel in a kernel may be a converted copy.
            if (here < first || here >= first + from.bytes() || c.in[operand].type != from.type) continue;
            const std::uint64_t number = (*s.mark)->number();
            if (number == 0) continue;
            kept_blocks::id id{
                static_cast<std::int64_t>(number), here - first, key[0], key[1], key[2], key[3], c.in[operand].rank};
            std::copy_n(c.in[operand].extents, c.in[operand].rank, id.end() - max_rank);
            return id;
        }
        return {};
    }

    template <class Make>
    const void* shared(const buffer_view& operand, const kept_blocks::id& id, std::size_t bytes, const Make& make) {
        const bool checks = content_mark::checked.load(std::memory_order_relaxed);
        if (id != id_) {
            block_ = nullptr; // before memory is taken for the next
            id_ = {};
            kept_blocks& all = kept_blocks::instance();
            block_ = all.find(id);
            if (block_ == nullptr) {
                auto made = std::make_unique<kept_block>(bytes);
                make(made->memory.data());
                if (checks) made->operand_hash = hash_of(operand);
                block_ = all.publish(id, std::move(made));
            }
            id_ = id;
        }
        if (checks && block_->operand_hash != 0 && block_->operand_hash != hash_of(operand))
            throw std::logic_error("kept memory: a variable has changed, and its mark has not");
        return block_->memory.data();
    }
    static std::uint64_t hash_of(const buffer_view& operand) {
        return cpu::content_hash(static_cast<const std::byte*>(operand.data), operand.bytes());
    }

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

    std::vector<source> sources_;
    std::size_t announced_ = 0;
    std::shared_ptr<const kept_block> block_;
    kept_blocks::id id_{}, seen_{};
    arena made_;
    std::vector<std::uint64_t> hashes_;
    std::size_t hashed_ = 0;
    key_type key_{};
};

} // namespace tapegraph::runtime
