#pragma once

#include <tapegraph/core/dtype.hpp>
#include <tapegraph/cuda/ops/convolution/plan.hpp>

#include <cstddef>

/// Convolutions by a warpgroup's products (wgmma) of tiles that TMA fetches, which devices of compute capability 9.0 alone have. One
/// source has them, cuda/tapegraph/cuda/library/convolution_sm90.cu. When it is linked, it puts its functions here before main().
/// Nothing chooses them by itself: they have not run on a GPU yet.

namespace tapegraph::cuda {

/// Addresses in the device's memory.
struct library_convolution_operands {
    const void *pixels, *filters; ///< x and w; of an input gradient dy and w
    void* results;                ///< y; of an input gradient dx
    const void* bias = nullptr;   ///< of y's channels, or null
    bool relu = false;
};

/// Elements are f32, whose factors are rounded to TF32, bf16 or f16; sums are float. Nothing here waits for the device or allocates.
struct library_convolution {
    /// Whether the current device computes a pass so.
    bool (*takes)(const convolution_geometry& g, convolution_pass pass, dtype element) = nullptr;
    /// Scratch memory of a call that is taken, aligned to 256 bytes.
    std::size_t (*scratch_bytes)(const convolution_geometry& g, convolution_pass pass, dtype element) = nullptr;
    /// Computes a pass that is taken on `stream`. Throws device_error with the operation's name.
    void (*run)(const char* operation, void* stream, const convolution_geometry& g, convolution_pass pass,
                dtype element, const library_convolution_operands& operands, void* scratch) = nullptr;
};

/// Empty until a source puts functions there.
inline library_convolution convolution_of_library;

} // namespace tapegraph::cuda
