#pragma once

#include <tapegraph/cuda/kernels/convolution.cuh>

/// Writes a convolution's windows out as a matrix, and back, which turns its passes into products
/// that a library computes. One group. The matrix is [output pixels, taps * channels], channels
/// fastest, with `pitch` elements from one pixel to the next. A block has 32 threads along a line
/// and 8 lines; no shared memory.

namespace tapegraph::cuda::kernels {

/// to[p, k] = the element that output p reads through k: A of the forward problem.
template <class T>
__global__ void __launch_bounds__(256) im2col(forward_problem<T> problem, T* to, std::int64_t pitch) {
    for (int row = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y); row < problem.m;
         row += static_cast<int>(gridDim.x * blockDim.y)) {
        const auto line = problem.line_a(row, 0);
        T* const at = to + static_cast<std::int64_t>(row) * pitch;
        for (int k = static_cast<int>(threadIdx.x); k < problem.k; k += static_cast<int>(blockDim.x)) {
            const T* const from = problem.a(line, problem.step_a(k, problem.k, 0));
            at[k] = from == nullptr ? T(0) : *from;
        }
    }
}

/// dx[pixel, c] = the sum of from[output, (tap, c)] over the outputs that read the pixel, taps in
/// order.
template <class T>
__global__ void __launch_bounds__(256) col2im(convolution_shape s, const T* from, std::int64_t pitch, T* dx) {
    const int pixels = s.in_pixels.count();
    for (int pixel = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y); pixel < pixels;
         pixel += static_cast<int>(gridDim.x * blockDim.y)) {
        const pixel_place p = s.in_pixels.at(pixel);
        for (int c = static_cast<int>(threadIdx.x); c < s.in_channels; c += static_cast<int>(blockDim.x)) {
            T sum = 0;
            for (int u = 0; u < s.rows.taps; ++u) {
                const int i = s.rows.output_of(p.row, u);
                if (i < 0) continue;
                for (int v = 0; v < s.columns.taps; ++v) {
                    const int j = s.columns.output_of(p.column, v);
                    if (j < 0) continue;
                    const std::int64_t output =
                        (static_cast<std::int64_t>(p.image) * s.rows.out + i) * s.columns.out + j;
                    sum += from[output * pitch + (u * s.columns.taps + v) * s.in_channels + c];
                }
            }
            dx[static_cast<std::int64_t>(pixel) * s.in_channels + c] = sum;
        }
    }
}

} // namespace tapegraph::cuda::kernels
