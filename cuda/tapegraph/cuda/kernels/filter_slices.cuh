#pragma once

#include <tapegraph/cuda/kernels/platform.cuh>

#include <cstdint>

/// Adds up the slices of a filter gradient (warpgroup_slices).

namespace tapegraph::cuda::kernels {

/// `slices` is [parts, channels, taps, columns], `to` [taps, channels, columns]: `count` elements, a
/// thread for each. Slices are added in order.
template <class T>
__global__ void add_slices(const float* slices, T* to, std::uint32_t count, int parts, divisor by_columns,
                           divisor by_channels, int taps) {
    const std::uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count) return;
    const std::uint32_t row = by_columns.quotient(index), tap = by_channels.quotient(row);
    const auto of_slices = static_cast<std::int64_t>(by_channels.remainder(row, tap)) * taps + tap;
    const float* from = slices + of_slices * by_columns.value + by_columns.remainder(index, row);
    float sum = *from;
    for (int part = 1; part < parts; ++part) {
        from += count;
        sum += *from;
    }
    to[index] = static_cast<T>(sum);
}

} // namespace tapegraph::cuda::kernels
