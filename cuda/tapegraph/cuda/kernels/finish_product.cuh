#pragma once

#include <tapegraph/core/half.hpp>
#include <tapegraph/cuda/kernels/platform.cuh>

#include <cstdint>

/// The epilogue of a matrix product, for products whose own kernel cannot do it.

namespace tapegraph::cuda::kernels {

/// Rows of n elements, `pitch` apart, in matrices of `rows` rows, `stride` apart: c = relu(c +
/// bias), with each step rounded to T like the operations that it stands for. `empty` treats c as
/// zeros: the product over an inner extent of 0.
template <class T>
struct unfinished_product {
    T* c;
    const T* bias; ///< [n], or null
    std::int64_t rows, n, pitch, stride, matrices;
    bool empty, relu;
};

/// One thread reads and writes every element once: 32 columns by 8 rows per block.
template <class T>
__global__ void finish_product(unfinished_product<T> p) {
    using number = arithmetic_type_t<T>;
    const std::int64_t all = p.rows * p.matrices, step = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
    for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; row < all; row += step) {
        T* const at = p.c + row / p.rows * p.stride + row % p.rows * p.pitch;
        for (std::int64_t i = threadIdx.x; i < p.n; i += blockDim.x) {
            number value = p.empty ? number(0) : static_cast<number>(at[i]);
            if (p.bias != nullptr) value = static_cast<number>(static_cast<T>(value + static_cast<number>(p.bias[i])));
            if (p.relu) value = value > number(0) || value != value ? value : number(0); // NaN stays NaN
            at[i] = static_cast<T>(value);
        }
    }
}

/// c = relu(sum of the splits' sums + bias) for 16-bit c [rows, n]: the sum is rounded first, then
/// each step is. `sums` is [splits, rows, n]; `bias` may be null. Threads are arranged as above.
template <class T>
__global__ void narrow_product(const float* sums, const T* bias, T* c, std::int64_t rows, std::int64_t n, bool relu,
                               int splits) {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.y, slice = rows * n;
    for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; row < rows; row += step)
        for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
            float sum = sums[row * n + i];
            for (int split = 1; split < splits; ++split) sum += sums[split * slice + row * n + i];
            T value = static_cast<T>(sum);
            if (bias != nullptr) value = static_cast<T>(static_cast<float>(value) + static_cast<float>(bias[i]));
            const float rounded = static_cast<float>(value);
            c[row * n + i] = !relu || rounded > 0 || rounded != rounded ? value : static_cast<T>(0.0f);
        }
}

} // namespace tapegraph::cuda::kernels
