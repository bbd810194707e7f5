#pragma once

#include <tapegraph/core/half.hpp>
#include <tapegraph/cuda/kernels/box.cuh>

#include <cstdint>

/// Adds what ranks have sent each other. Threads stride over the elements; the kernel is bound by
/// memory.

namespace tapegraph::cuda::kernels {

/// sum[i] = left[i] + right[i], as in cluster/ranks/sum_kind.hpp: 16-bit types are added as float
/// and rounded once. The result may be either operand.
template <class T>
__global__ void add(const T* left, const T* right, std::int64_t count, T* sum) {
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t i = thread_number(); i < count; i += stride)
        if constexpr (storage_type<T>)
            sum[i] = static_cast<T>(static_cast<float>(left[i]) + static_cast<float>(right[i]));
        else
            sum[i] = static_cast<T>(left[i] + right[i]);
}

} // namespace tapegraph::cuda::kernels
