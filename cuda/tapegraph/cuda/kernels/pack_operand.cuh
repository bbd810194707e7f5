#pragma once

#ifndef TG_SIMT
#include <tapegraph/cuda/kernels/instructions.cuh>
#endif
#include <tapegraph/cuda/kernels/platform.cuh>

#include <cstdint>

/// Copies operands into the form that TMA and wgmma require: floats rounded to TF32, rows padded to
/// 16 bytes (the padding is not written, since maps give the number of elements), what k counts
/// last: channels, or images for filter gradients.

namespace tapegraph::cuda::kernels {

template <class T>
__device__ T rounded_for_product(T x) {
    if constexpr (sizeof(T) == 4)
        return from_bits(to_tf32(x));
    else
        return x;
}

/// Copies [images, pixels, channels], `count` elements, to [pixels, images, pitch]; of one image that
/// is the same order. A thread keeps four elements in flight.
template <class T>
__global__ void pack_rows(const T* from, T* to, std::uint32_t count, divisor by_channels, divisor by_pixels,
                          std::uint32_t images, std::uint32_t pitch) {
    const std::uint32_t step = gridDim.x * blockDim.x;
    for (std::uint64_t first = blockIdx.x * blockDim.x + threadIdx.x; first < count; first += std::uint64_t{4} * step) {
        T value[4];
        TG_UNROLL
        for (int i = 0; i < 4; ++i)
            if (first + i * std::uint64_t{step} < count) value[i] = from[first + i * std::uint64_t{step}];
        TG_UNROLL
        for (int i = 0; i < 4; ++i) {
            const std::uint64_t at = first + i * std::uint64_t{step};
            if (at >= count) continue;
            const auto index = static_cast<std::uint32_t>(at), row = by_channels.quotient(index);
            const std::uint32_t image = by_pixels.quotient(row), pixel = by_pixels.remainder(row, image);
            to[(static_cast<std::uint64_t>(pixel) * images + image) * pitch + by_channels.remainder(index, row)] =
                rounded_for_product(value[i]);
        }
    }
}

/// Copies [taps, in, out] to [taps, out, pitch]. Blocks of 32 by 8 threads transpose 32 by 32
/// elements of tap blockIdx.z.
template <class T>
__global__ void turn_filters(const T* from, T* to, int in, int out, int pitch) {
    __shared__ T tile[32][33];
    const int across = static_cast<int>(threadIdx.x), down = static_cast<int>(threadIdx.y);
    const int first_in = static_cast<int>(blockIdx.x) * 32, first_out = static_cast<int>(blockIdx.y) * 32;
    const std::int64_t tap = blockIdx.z;
    TG_UNROLL
    for (int i = down; i < 32; i += 8)
        if (first_in + i < in && first_out + across < out)
            tile[i][across] = from[(tap * in + first_in + i) * out + first_out + across];
    __syncthreads();
    TG_UNROLL
    for (int i = down; i < 32; i += 8)
        if (first_out + i < out && first_in + across < in)
            to[(tap * out + first_out + i) * pitch + first_in + across] = rounded_for_product(tile[across][i]);
}

/// Copies [images, pixels, channels] with the images innermost, to rows `pitch` apart: the row of a
/// pixel and a channel is pixel * pixel_rows + channel * channel_rows. Blocks of 32 by 8 threads
/// transpose 32 images by 32 channels; those of a pixel follow each other in blockIdx.x.
template <class T>
__global__ void turn_images(const T* from, T* to, int images, int pixels, int channels, divisor by_blocks,
                            std::int64_t pixel_rows, std::int64_t channel_rows, int pitch) {
    __shared__ T tile[32][33];
    const int across = static_cast<int>(threadIdx.x), down = static_cast<int>(threadIdx.y);
    const auto pixel = static_cast<int>(by_blocks.quotient(blockIdx.x));
    const int first_channel = static_cast<int>(by_blocks.remainder(blockIdx.x, static_cast<std::uint32_t>(pixel))) * 32;
    const int first_image = static_cast<int>(blockIdx.y) * 32;
    TG_UNROLL
    for (int i = down; i < 32; i += 8)
        if (first_image + i < images && first_channel + across < channels)
            tile[i][across] =
                from[(static_cast<std::int64_t>(first_image + i) * pixels + pixel) * channels + first_channel + across];
    __syncthreads();
    TG_UNROLL
    for (int i = down; i < 32; i += 8)
        if (first_channel + i < channels && first_image + across < images)
            to[(pixel * pixel_rows + (first_channel + i) * channel_rows) * pitch + first_image + across] =
                rounded_for_product(tile[across][i]);
}

} // namespace tapegraph::cuda::kernels
