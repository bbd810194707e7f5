#pragma once

#include <cstddef>
#include <cstdint>

/// Places that CUB and Thrust find where a program has them: cuda/tapegraph/cuda/library/places.cu puts its functions here before main()
/// when it is linked. Without it our kernels find them, the same ones (cuda/ops/ordering/places.cuh). Counts are from 1 to 2^31 - 1.
/// Nothing here waits for the device or allocates; errors are device_error with the operation's name.

namespace tapegraph::cuda {

/// cub::DeviceSelect: the places of marks.
struct library_selection {
    /// Scratch memory on the current device; 0 where the source was not compiled for that device.
    std::size_t (*scratch_bytes)(std::int64_t count) = nullptr;
    /// The places, counted from 1, of the first `size` of the marks that are not 0, in order; what is behind them in `out` [size] stays.
    void (*select)(const char* operation, void* stream, const std::uint8_t* marks, std::int32_t* out,
                   std::int64_t count, std::int64_t size, void* scratch, std::size_t scratch_bytes) = nullptr;
};
inline library_selection selection_of_library;

/// cub::DeviceRunLengthEncode: lengths of runs.
struct library_runs {
    std::size_t (*scratch_bytes)(std::int64_t count) = nullptr;
    /// Of equal neighbours, the first `size` runs; what is behind them in `out` [size] stays.
    void (*encode)(const char* operation, void* stream, const std::int32_t* x, std::int32_t* out, std::int64_t count,
                   std::int64_t size, void* scratch, std::size_t scratch_bytes) = nullptr;
};
inline library_runs runs_of_library;

/// cub::DeviceHistogram: how often each of 0 .. length - 1 occurs.
struct library_histogram {
    std::size_t (*scratch_bytes)(std::int64_t count, std::int64_t length) = nullptr;
    /// All of `out` [length] is written.
    void (*count)(const char* operation, void* stream, const std::int32_t* x, std::int32_t* out, std::int64_t count,
                  std::int64_t length, void* scratch, std::size_t scratch_bytes) = nullptr;
};
inline library_histogram histogram_of_library;

/// thrust::lower_bound and thrust::upper_bound of many values, NaN last.
template <class Element>
struct library_search {
    /// Whether the source was compiled for the current device.
    bool (*usable)() = nullptr;
    /// out [m]: how many of `sorted` [n] come before each of the values, or with `right` not behind it. m is not 0.
    void (*search)(const char* operation, void* stream, bool right, const Element* sorted, std::int64_t n,
                   const Element* values, std::int64_t m, std::int32_t* out) = nullptr;
};
template <class Element>
inline library_search<Element> search_of_library;

} // namespace tapegraph::cuda
