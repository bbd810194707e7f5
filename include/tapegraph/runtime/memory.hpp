#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/device.hpp>
#include <tapegraph/core/error.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace tapegraph {

namespace runtime {

inline constexpr std::size_t alignment = 64;

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

/// Bytes in use by all arenas of the process, and their limit.
struct arena_counters {
    std::atomic<std::size_t> in_use{0}, limit{SIZE_MAX};

    static arena_counters& instance() {
        static arena_counters counters;
        return counters;
    }
};

[[noreturn]] void refuse_arena(std::size_t requested_bytes, std::size_t in_use, std::size_t limit);

/// One block of memory on 64-byte boundaries. Large blocks ask for huge pages, because page faults
/// can otherwise take a quarter of a training step. Throws out_of_memory.
class arena {
public:
    arena() = default;
    explicit arena(std::size_t bytes) : size_(bytes) {
        if (bytes == 0) return;
        const std::size_t boundary = boundary_of(bytes), whole = (bytes + boundary - 1) / boundary * boundary;
        arena_counters& all = arena_counters::instance();
        const std::size_t before = all.in_use.fetch_add(bytes, std::memory_order_relaxed);
        const std::size_t limit = all.limit.load(std::memory_order_relaxed);
        if (before <= limit && bytes <= limit - before)
            data_ = ::operator new (whole, std::align_val_t{boundary}, std::nothrow);
        if (data_ == nullptr) {
            all.in_use.fetch_sub(bytes, std::memory_order_relaxed);
            refuse_arena(bytes, before, limit);
        }
#if defined(__linux__)
        if (boundary == huge) madvise(data_, whole, MADV_HUGEPAGE);
#endif
    }
    arena(arena&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    arena& operator=(arena&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~arena() {
        if (data_ == nullptr) return;
        arena_counters::instance().in_use.fetch_sub(size_, std::memory_order_relaxed);
        ::operator delete (data_, std::align_val_t{boundary_of(size_)});
    }

    std::byte* data() const { return static_cast<std::byte*>(data_); }
    std::size_t size() const { return size_; }

private:
    static constexpr std::size_t huge = std::size_t{1} << 21;
    static constexpr std::size_t boundary_of(std::size_t bytes) { return bytes >= 2 * huge ? huge : alignment; }

    void* data_ = nullptr;
    std::size_t size_ = 0;
};

#if TG_DEFINES(runtime)

[[noreturn]] TG_DEFINITION void refuse_arena(std::size_t requested_bytes, std::size_t in_use, std::size_t limit) {
    throw out_of_memory("out of memory on the CPU: " + tapegraph::detail::readable_bytes(requested_bytes) +
                            " requested, " + tapegraph::detail::readable_bytes(in_use) + " in use" +
                            (limit == SIZE_MAX ? "" : ", limit " + tapegraph::detail::readable_bytes(limit)),
                        requested_bytes, in_use);
}

#endif

} // namespace runtime

/// Limits the total bytes of the buffers of tensors and compiled programs in the CPU's memory; a
/// buffer beyond the limit throws out_of_memory. SIZE_MAX, the default, leaves the limit to the
/// system. Existing buffers stay, even above the limit.
inline void set_memory_limit(std::size_t bytes) { runtime::arena_counters::instance().limit.store(bytes); }

} // namespace tapegraph
