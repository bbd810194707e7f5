#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace tapegraph::runtime {

inline constexpr std::size_t alignment = 64;

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

/// One block of memory on 64-byte boundaries; large ones ask for huge pages, since a quarter of a training step can go
/// into page faults otherwise.
class arena {
public:
    arena() = default;
    explicit arena(std::size_t bytes) : size_(bytes) {
        if (bytes == 0) return;
        constexpr std::size_t huge = std::size_t{1} << 21;
        const std::size_t boundary = bytes >= 2 * huge ? huge : alignment;
        const std::size_t whole = (bytes + boundary - 1) / boundary * boundary;
        data_ = std::aligned_alloc(boundary, whole);
        if (data_ == nullptr) throw std::bad_alloc();
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
    ~arena() { std::free(data_); }

    std::byte* data() const { return static_cast<std::byte*>(data_); }
    std::size_t size() const { return size_; }

private:
    void* data_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace tapegraph::runtime
