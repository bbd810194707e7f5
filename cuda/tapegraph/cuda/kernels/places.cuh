#pragma once

#include <tapegraph/cuda/kernels/box.cuh>
#include <tapegraph/ops/ordering/cpu_places.hpp>

#include <cstdint>

/// Finds positions in rows (ops/ordering/places.hpp). A thread per element, no shared memory.

namespace tapegraph::cuda::kernels {

/// out[i] is the number of elements of the row of `sorted` [rows, n] before values[i] of [rows, m],
/// or with Right not after it.
template <bool Right, class T>
__global__ void search_rows(std::int64_t first, std::int64_t end, std::int64_t n, std::int64_t m, const T* sorted,
                            const T* values, std::int32_t* out) {
    const std::int64_t i = first + thread_number();
    if (i >= end) return;
    out[i] = tapegraph::detail::bisected<Right>(sorted + i / m * n, n, values[i]);
}

/// Converts marks to numbers that can be summed.
template <class = void>
__global__ void numbers_of_marks(std::int64_t first, std::int64_t end, const std::uint8_t* marks, std::int32_t* out) {
    const std::int64_t i = first + thread_number();
    if (i < end) out[i] = marks[i] != 0;
}
/// numbers [rows, n] is the rank of each mark among those of its row, counted from 1. out [rows,
/// size] must be zero before.
template <class = void>
__global__ void put_places(std::int64_t first, std::int64_t end, std::int64_t n, std::int64_t size,
                           const std::uint8_t* marks, const std::int32_t* numbers, std::int32_t* out) {
    const std::int64_t i = first + thread_number();
    if (i >= end || marks[i] == 0 || numbers[i] > size) return;
    const std::int64_t row = i / n;
    out[row * size + numbers[i] - 1] = static_cast<std::int32_t>(i - row * n + 1);
}

} // namespace tapegraph::cuda::kernels
