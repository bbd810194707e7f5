#pragma once

#include <cstddef>
#include <cstdint>

/// Declares searches for positions by CUB and Thrust. When cuda/tapegraph/cuda/library/places.cu is
/// linked, it registers its functions here before main(). Without it our own kernels find the same
/// positions (cuda/ops/ordering/places.cuh). Counts are from 1 to 2^31 - 1. The functions neither
/// wait for the device nor allocate; errors are device_error with the operation's name.

namespace tapegraph::cuda {

/// cub::DeviceSelect: the positions of nonzero marks.
struct library_selection {
    /// Scratch memory on the current device; 0 where the source was not compiled for that device.
    std::size_t (*scratch_bytes)(std::int64_t count) = nullptr;
    /// Writes the positions, counted from 1, of the first `size` nonzero marks, in order; the rest
    /// of `out` [size] stays as it is.
    void (*select)(const char* operation, void* stream, const std::uint8_t* marks, std::int32_t* out,
                   std::int64_t count, std::int64_t size, void* scratch, std::size_t scratch_bytes) = nullptr;
};
inline library_selection selection_of_library;

/// cub::DeviceRunLengthEncode: lengths of runs.
struct library_runs {
    std::size_t (*scratch_bytes)(std::int64_t count) = nullptr;
    /// The lengths of the first `size` runs of equal neighbours; the rest of `out` [size] stays as
    /// it is.
    void (*encode)(const char* operation, void* stream, const std::int32_t* x, std::int32_t* out, std::int64_t count,
                   std::int64_t size, void* scratch, std::size_t scratch_bytes) = nullptr;
};
inline library_runs runs_of_library;

/// cub::DeviceHistogram: the number of occurrences of each of 0 .. length - 1.
struct library_histogram {
    std::size_t (*scratch_bytes)(std::int64_t count, std::int64_t length) = nullptr;
    /// Writes all of `out` [length].
    void (*count)(const char* operation, void* stream, const std::int32_t* x, std::int32_t* out, std::int64_t count,
                  std::int64_t length, void* scratch, std::size_t scratch_bytes) = nullptr;
};
inline library_histogram histogram_of_library;

/// thrust::lower_bound and thrust::upper_bound for many values, with NaN last.
template <class Element>
struct library_search {
    /// Whether the source was compiled for the current device.
    bool (*usable)() = nullptr;
    /// out [m] is, for each of the values, the number of elements of `sorted` [n] before it, or
    /// with `right` not after it. m is not 0.
    void (*search)(const char* operation, void* stream, bool right, const Element* sorted, std::int64_t n,
                   const Element* values, std::int64_t m, std::int32_t* out) = nullptr;
};
template <class Element>
inline library_search<Element> search_of_library;

} // namespace tapegraph::cuda
