#pragma once

#include <tapegraph/cuda/kernels/convolution.cuh>

/// Convolutions whose outputs are pooled, 2 by 2 with stride 2, before they are stored: only a
/// quarter of y's size is written, and y itself never exists. The sums are those of the kernels
/// that write y, in the same order.

namespace tapegraph::cuda::kernels {

/// A forward_problem of an image with even extents, with rows in groups of four: the pixels of a
/// window in row-major order. A window's sums are therefore in one thread of implicit_gemm, and in
/// lanes of one warp of tensor_gemm. The product is not split and k is at most longest_chain, since
/// there is no place for partial sums.
template <class Element>
struct pooled_forward_problem : forward_problem<Element> {
    using T = sum_type<Element>;
    static constexpr bool pools = true;
    pixel_order windows;

    pooled_forward_problem(const convolution_geometry& g, bool batch_innermost, const Element* x_, const Element* w_,
                           const T* bias_, bool relu_, T* pooled)
        : forward_problem<Element>(g, batch_innermost, x_, w_, bias_, relu_, pooled),
          windows(g.batch, g.out_height / 2, g.out_width / 2, batch_innermost) {}

    __device__ pixel_place pixel(int index) const {
        const pixel_place window = windows.at(index / 4);
        return {window.image, 2 * window.row + index / 2 % 2, 2 * window.column + index % 2};
    }
    __device__ gathered_line line_a(int index, int) const {
        return index < this->m ? this->window(pixel(index)) : gathered_line{0, -far_outside, -far_outside};
    }
    __device__ needed_taps taps_of(int first, int count) const {
        const pixel_range r = windows.range(first / 4, ((first + count < this->m ? first + count : this->m) - 1) / 4);
        return {this->s.rows.taps_of_outputs(2 * r.first_row, 2 * r.last_row + 1),
                this->s.columns.taps_of_outputs(2 * r.first_column, 2 * r.last_column + 1)};
    }
    __device__ T* pooled_row(int window, int group) const {
        return this->out + windows.position(window) * this->s.out_channels + group * this->n;
    }
};

/// For convolutions that were split, or that another kernel computed: y[image, i, j, c] = the
/// largest of 2 by 2 pixels of relu(sum over the splits of partial[split, image, 2 i.., 2 j.., c] +
/// bias). A thread per element, channels fastest.
template <class T>
struct partial_windows {
    const T* partial; ///< [splits, batch, in_height, in_width, channels]
    T* out;           ///< [batch, out_height, out_width, channels]
    std::int64_t batch;
    int in_height, in_width, out_height, out_width, channels, splits;
    const T* bias;
    bool relu;
};
template <class T>
__global__ void pool_splits(partial_windows<T> p) {
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    const std::int64_t row = static_cast<std::int64_t>(p.out_width) * p.channels;
    const std::int64_t slice = p.batch * p.in_height * p.in_width * p.channels;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
         i < p.batch * p.out_height * row; i += stride) {
        const std::int64_t line = i / row, image = line / p.out_height;
        const int within = static_cast<int>(i - line * row), column = within / p.channels;
        const int channel = within - column * p.channels, top = 2 * static_cast<int>(line - image * p.out_height);
        const T* const first =
            p.partial + ((image * p.in_height + top) * p.in_width + 2 * column) * p.channels + channel;
        T best{};
        TG_UNROLL
        for (int q = 0; q < 4; ++q) {
            const T* const at = first + static_cast<std::int64_t>(q / 2 * p.in_width + q % 2) * p.channels;
            T sum = *at;
            for (int s = 1; s < p.splits; ++s) sum += at[s * slice];
            sum = with_epilogue(sum, p.bias, channel, p.relu);
            best = q == 0 ? sum : larger(best, sum);
        }
        p.out[i] = best;
    }
}

} // namespace tapegraph::cuda::kernels
