#pragma once

#include <tapegraph/core/half.hpp>
#include <tapegraph/cuda/kernels/box.cuh>

#include <cstdint>

/// Writes equally spaced numbers. A thread per element, no shared memory.

namespace tapegraph::cuda::kernels {

/// begin + step i, with each operation rounded: the compiler must not fuse the two.
__device__ inline double point(double begin, double step, double i) {
#ifdef __CUDA_ARCH__
    return __dadd_rn(begin, __dmul_rn(step, i));
#else
    return begin + step * i;
#endif
}

/// Writes out[i] for i in [first, end); element `last_at` is `last` itself.
template <class T>
__global__ void arange(double begin, double step, double last, std::int64_t last_at, std::int64_t first,
                       std::int64_t end, T* out) {
    const std::int64_t i = first + thread_number();
    if (i >= end) return;
    if (i == last_at)
        out[i] = static_cast<T>(last);
    else if (step == 0)
        out[i] = static_cast<T>(begin);
    else if constexpr (is_floating_type<T>)
        out[i] = static_cast<T>(point(begin, step, static_cast<double>(i)));
    else
        out[i] = static_cast<T>(static_cast<std::int64_t>(begin) + static_cast<std::int64_t>(step) * i);
}

} // namespace tapegraph::cuda::kernels
