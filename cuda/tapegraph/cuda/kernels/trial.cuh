#pragma once

#include <tapegraph/cuda/kernels/platform.cuh>

#include <cstdint>

/// Supports trials of kernels: makes operands, and compares two results. Threads stride over the
/// elements.

namespace tapegraph::cuda::kernels {

/// Numbers between -1 and 1 without a pattern: with a pattern, tensor cores and memory would use
/// less power, and so less time.
template <class T>
__global__ void noise(T* at, std::int64_t count, std::uint32_t seed) {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        // A multiplicative hash, mixed by shifts twice.
        std::uint32_t h = static_cast<std::uint32_t>(i) * 0x9E3779B1u + static_cast<std::uint32_t>(i >> 32) + seed;
        h = (h ^ h >> 16) * 0x85EBCA6Bu;
        h = (h ^ h >> 13) * 0xC2B2AE35u;
        h ^= h >> 16;
        at[i] = static_cast<T>(static_cast<float>(static_cast<std::int32_t>(h)) * 0x1p-31f);
    }
}

/// largest[thread of the grid] = the largest |a[i] - b[i]| among the thread's elements; infinity
/// where one is NaN.
template <class T>
__global__ void largest_differences(const T* a, const T* b, std::int64_t count, double* largest) {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    double most = 0;
    for (std::int64_t i = thread; i < count; i += step) {
        double apart = static_cast<double>(a[i]) - static_cast<double>(b[i]);
        if (apart < 0) apart = -apart;
        if (!(apart <= most)) most = apart == apart ? apart : __builtin_huge_val();
    }
    largest[thread] = most;
}

} // namespace tapegraph::cuda::kernels
