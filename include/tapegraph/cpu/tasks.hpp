#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/cpu/parallel.hpp>

#include <cstddef>
#include <cstdint>

/// How matrix and convolution kernels divide their workspace and their work.

namespace tapegraph::cpu::detail {

inline std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The size of the equal parts into which `whole` is cut when none may be longer than `most`.
inline std::int64_t equal_part(std::int64_t whole, std::int64_t most) {
    if (whole <= 0 || most >= whole) return whole;
    return divide_up(whole, divide_up(whole, most < 1 ? 1 : most));
}

/// Divides the caller's workspace into parts aligned to 64 bytes. The same calls compute its size
/// and hand out the parts.
class workspace_cutter {
public:
    explicit workspace_cutter(void* memory) : memory_(static_cast<std::byte*>(memory)) {}

    template <class T>
    T* take(std::int64_t elements) {
        T* p = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + used_);
        used_ += (static_cast<std::size_t>(elements) * sizeof(T) + 63) / 64 * 64;
        return p;
    }
    std::size_t used() const { return used_; }

private:
    std::byte* memory_;
    std::size_t used_ = 0;
};

using cpu::for_tasks;

// Below this many multiply-adds a parallel region costs more than it saves.
inline bool worth_threads(double multiply_adds) { return multiply_adds > 100000; }

} // namespace tapegraph::cpu::detail
