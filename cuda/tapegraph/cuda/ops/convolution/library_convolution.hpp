#pragma once

#include <tapegraph/core/dtype.hpp>
#include <tapegraph/cuda/ops/convolution/plan.hpp>

#include <cstddef>
#include <cstdint>

/// Declares convolutions by wgmma products of tiles that TMA fetches, which only devices of compute
/// capability 9.0 support. When the source that implements them,
/// cuda/tapegraph/cuda/library/convolution_sm90.cu, is linked, it registers its functions here
/// before main().

namespace tapegraph::cuda {

/// Addresses in device memory.
struct library_convolution_operands {
    const void *pixels, *filters; ///< x and w; of an input gradient dy and w, of a filter gradient x and dy
    void* results;                ///< y, dx or dw
    const void* bias = nullptr;   ///< one element per channel of y, or null
    bool relu = false;
};

/// Elements are f32 (factors are rounded to TF32) or have 16 bits; sums are float. The functions
/// neither wait for the device nor allocate.
struct library_convolution {
    static constexpr std::size_t scratch_alignment = 256;
    /// Whether the current device supports a pass.
    bool (*takes)(const convolution_geometry& g, convolution_pass pass, dtype element) = nullptr;
    /// Scratch memory for a supported pass, aligned to scratch_alignment.
    std::size_t (*scratch_bytes)(const convolution_geometry& g, convolution_pass pass, dtype element) = nullptr;
    /// Computes a supported pass on `stream`. Throws device_error with the operation's name.
    void (*run)(const char* operation, void* stream, const convolution_geometry& g, convolution_pass pass,
                dtype element, const library_convolution_operands& operands, void* scratch) = nullptr;
};

/// Empty until a linked source registers its functions.
inline library_convolution convolution_of_library;

/// Whether the library computes a pass on the current device.
inline bool library_takes(const convolution_geometry& g, convolution_pass pass, dtype type = dtype::f32) {
    return convolution_of_library.takes != nullptr && convolution_of_library.takes(g, pass, type);
}
/// Scratch memory for that pass with room to align it: programs align memory less strictly than the
/// library requires.
inline std::size_t library_workspace(const convolution_geometry& g, convolution_pass pass, dtype type = dtype::f32) {
    return convolution_of_library.scratch_bytes(g, pass, type) + library_convolution::scratch_alignment - 1;
}
inline void* library_scratch(void* workspace) {
    constexpr auto to = static_cast<std::uintptr_t>(library_convolution::scratch_alignment);
    return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(workspace) + to - 1) / to * to);
}

} // namespace tapegraph::cuda
