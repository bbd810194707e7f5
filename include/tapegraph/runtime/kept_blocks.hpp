#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/shape.hpp>
#include <tapegraph/runtime/memory.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

/// What programs have derived from variables, in all of the process: programs that derive the same
/// from the same elements share it.

namespace tapegraph {

namespace runtime {

/// Derived data, complete and read-only once it is published.
struct kept_block {
    arena memory;
    std::uint64_t operand_hash = 0; ///< where tests check marks (content_mark::checked)

    explicit kept_block(std::size_t bytes) : memory(bytes) {}
};

/// The blocks that some program holds.
class kept_blocks {
public:
    /// The number of the elements (runtime/content_mark.hpp), the place in the variable, the kernel's
    /// key, and the operand's rank and extents, which differ where one variable is seen in two shapes.
    using id = std::array<std::int64_t, 7 + max_rank>;

    static kept_blocks& instance();

    /// The block; null if no program holds it.
    std::shared_ptr<const kept_block> find(const id& which);
    /// Lets other programs find a block. If one has published the same meanwhile, returns that.
    std::shared_ptr<const kept_block> publish(const id& which, std::unique_ptr<kept_block> made);

    std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

    /// Whether programs that are planned from now on keep anything.
    std::atomic<bool> keeps{true};

private:
    using entry = std::pair<id, std::weak_ptr<const kept_block>>;

    void forget(const id& which);
    /// The entry of that number, or the end.
    std::vector<entry>::iterator entry_of(const id& which) {
        return std::find_if(blocks_.begin(), blocks_.end(), [&](const entry& e) { return e.first == which; });
    }

    std::mutex mutex_;
    std::vector<entry> blocks_; // a handful for each layer; searched when a program meets new elements
    std::atomic<std::size_t> bytes_{0};
};

#if TG_DEFINES(runtime)

// Never destroyed, because programs in static variables may be destroyed later.
TG_DEFINITION kept_blocks& kept_blocks::instance() {
    static kept_blocks& all = *new kept_blocks;
    return all;
}

TG_DEFINITION std::shared_ptr<const kept_block> kept_blocks::find(const id& which) {
    const std::lock_guard lock(mutex_);
    const auto found = entry_of(which);
    return found == blocks_.end() ? nullptr : found->second.lock();
}

TG_DEFINITION std::shared_ptr<const kept_block> kept_blocks::publish(const id& which,
                                                                     std::unique_ptr<kept_block> made) {
    const std::size_t size = made->memory.size();
    const std::shared_ptr<const kept_block> block(made.release(), [this, which, size](const kept_block* last) {
        forget(which);
        bytes_.fetch_sub(size, std::memory_order_relaxed);
        delete last;
    });
    bytes_.fetch_add(size, std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    const auto found = entry_of(which);
    if (found == blocks_.end()) {
        blocks_.emplace_back(which, block);
        return block;
    }
    if (std::shared_ptr<const kept_block> others = found->second.lock()) return others;
    found->second = block;
    return block;
}

TG_DEFINITION void kept_blocks::forget(const id& which) {
    const std::lock_guard lock(mutex_);
    const auto found = entry_of(which);
    if (found == blocks_.end() || !found->second.expired()) return;
    std::swap(*found, blocks_.back());
    blocks_.pop_back();
}

#endif

} // namespace runtime

/// Whether programs of predictions keep what they derive from weights: matrices packed for
/// products, transformed filters. They do by default. It applies to programs that are planned
/// afterwards.
inline void set_kept_memory(bool keep) { runtime::kept_blocks::instance().keeps.store(keep); }
/// Bytes that programs keep at present, of all threads. Programs that derive the same from the same
/// variable share it.
inline std::size_t kept_memory_bytes() { return runtime::kept_blocks::instance().bytes(); }

} // namespace tapegraph
