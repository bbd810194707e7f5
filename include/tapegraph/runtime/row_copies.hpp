#pragma once

#include <tapegraph/runtime/kernel.hpp>

#include <cstdint>
#include <cstring>
#include <vector>

/// Memory copies of a kernel that is a program, between the kernels it calls
/// (graph/scan_program.hpp): immediate on the CPU, in the call's stream on a device.

namespace tapegraph::runtime {

/// Rows of bytes; a pitch is the distance from one row to the next.
struct row_copy {
    void* to;
    const void* from; ///< null: zeros are written
    std::int64_t rows;
    std::size_t bytes, to_pitch, from_pitch; ///< bytes of a row, and the pitches
};

/// A batch of copies, none of which reads or writes memory that another writes.
template <class Backend = backend>
class row_copies {
public:
    void add(const kernel_call& c, const row_copy& copy) {
        if (copy.rows == 0 || copy.bytes == 0) return;
        if (has_backend && c.stream != nullptr)
            waiting_.push_back(copy);
        else
            copy_here(copy);
    }
    /// Adds a copy of contiguous memory.
    void add(const kernel_call& c, void* to, const void* from, std::size_t bytes) {
        add(c, {to, from, 1, bytes, bytes, bytes});
    }
    /// Submits the added copies to the call's stream.
    void launch([[maybe_unused]] const kernel_call& c) {
        if constexpr (has_backend)
            if (!waiting_.empty()) Backend::copy_rows(c, waiting_.data(), waiting_.size());
        waiting_.clear();
    }

private:
    static void copy_here(const row_copy& copy) {
        auto* to = static_cast<std::byte*>(copy.to);
        const auto* from = static_cast<const std::byte*>(copy.from);
        for (std::int64_t row = 0; row < copy.rows; ++row, to += copy.to_pitch) {
            if (from == nullptr) {
                std::memset(to, 0, copy.bytes);
                continue;
            }
            std::memcpy(to, from, copy.bytes);
            from += copy.from_pitch;
        }
    }

    std::vector<row_copy> waiting_; // on a device, where one launch takes several
};

/// A kernel whose result is the end of its first operand.
template <class Backend = backend>
struct copy_of_end {
    static void run(const kernel_call& c) {
        const std::size_t bytes = c.out[0].bytes();
        row_copies<Backend> copies;
        copies.add(c, c.out[0].data, c.in[0].as<const std::byte>() + c.in[0].bytes() - bytes, bytes);
        copies.launch(c);
    }
    static std::size_t workspace(const kernel_call&) { return 0; }
};

/// A kernel that runs on the device of its call's stream.
template <class Kernel>
constexpr kernel_pair on_both(bool has_device_half = has_backend) {
    constexpr kernel_functions f{&Kernel::run, &Kernel::workspace};
    return {f, has_device_half ? f : kernel_functions{}};
}

} // namespace tapegraph::runtime
