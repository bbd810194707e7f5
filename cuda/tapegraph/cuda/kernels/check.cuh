#pragma once

#include <tapegraph/cuda/kernels/fault.cuh>

#include <bit>
#include <cstdint>
#include <type_traits>

/// Searches for an invalid element and reports the first. Threads stride by the whole grid, so that
/// neighbours read neighbouring elements; no shared memory.

namespace tapegraph::cuda::kernels {

/// An element is invalid if its exponent is all ones (T float or double), or if it is false (T
/// bool). `passed` becomes true in any case, as on the CPU, where an error is thrown otherwise.
template <class T>
__global__ void find_fault(const T* x, std::int64_t count, fault_report report, bool* passed) {
    const std::int64_t first = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    if (first == 0) *passed = true;
    for (std::int64_t i = first; i < count; i += step) {
        std::uint64_t bits = 0;
        bool fault = false;
        if constexpr (std::is_same_v<T, bool>) {
            fault = !x[i];
        } else {
            using word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
            constexpr word exponent = sizeof(T) == 4 ? word{0x7F800000u} : static_cast<word>(0x7FF0000000000000u);
            bits = std::bit_cast<word>(x[i]);
            fault = (bits & exponent) == exponent;
        }
        if (!fault) continue;
        report(i, 0, 0, bits);
        return;
    }
}

} // namespace tapegraph::cuda::kernels
