#pragma once

#include <tapegraph/ops/convolution/geometry.hpp>
#include <tapegraph/cuda/kernels/operand.cuh>

/// Convolutions of a first layer: images of C = 1, 3 or 4 channels, one group. The product is short
/// (27 for 3x3 taps of 3 channels), so memory traffic dominates. Each element of x is read once per
/// tile and each element of y is transferred once.
///
/// A block takes a tile of output pixels, 2^tile_log wide, and `columns` output channels. The lanes
/// of a warp form a grid of 4 (pixels or taps) by 8 (channels), each with 8 by TN sums in
/// registers. Dynamic shared memory:
///   forward          the part of x that the tile reads ("halo", zero outside the image); w [taps *
///                    C, columns]
///   filter gradient  the halo; dy [64 pixels, columns], which in the end is reused for the sums
///                    [32, columns]

namespace tapegraph::cuda::kernels {

/// How output pixels are divided into tiles, and the part of x that a tile reads.
struct pixel_tiles {
    int in_height, in_width, out_height, out_width, out_channels, taps_height, taps_width;
    int stride_height, stride_width, pad_top, pad_left, dilation_height, dilation_width;
    int tile_log, tile_height, halo_height, halo_width; ///< of one tile
    int count;                                          ///< of tiles, all images
    divisor by_image, by_row, by_halo_line; ///< tiles per image, per line of tiles; elements per line of a halo

    pixel_tiles(const convolution_geometry& g, int pixels, int tile_log_)
        : in_height(int(g.in_height)),
          in_width(int(g.in_width)),
          out_height(int(g.out_height)),
          out_width(int(g.out_width)),
          out_channels(int(g.out_channels)),
          taps_height(int(g.kernel_height)),
          taps_width(int(g.kernel_width)),
          stride_height(int(g.stride_height)),
          stride_width(int(g.stride_width)),
          pad_top(int(g.pad_top)),
          pad_left(int(g.pad_left)),
          dilation_height(int(g.dilation_height)),
          dilation_width(int(g.dilation_width)),
          tile_log(tile_log_),
          tile_height(pixels >> tile_log_),
          halo_height((tile_height - 1) * stride_height + int(g.span_height())),
          halo_width(((1 << tile_log_) - 1) * stride_width + int(g.span_width())) {
        const int across = (out_width + (1 << tile_log) - 1) >> tile_log;
        const int down = (out_height + tile_height - 1) / tile_height;
        count = int(g.batch) * across * down;
        by_image = divisor(unsigned(across * down));
        by_row = divisor(unsigned(across));
        by_halo_line = divisor(unsigned(halo_width * int(g.in_channels)));
    }

    /// The number of elements of a halo in shared memory, rounded so that the data after it is
    /// aligned.
    __host__ __device__ int halo_size(int channels) const { return (halo_height * halo_width * channels + 3) / 4 * 4; }

    struct place {
        int image, row, column; ///< the tile's first output pixel
    };
    __device__ place at(int tile) const {
        const std::uint32_t image = by_image.quotient(static_cast<std::uint32_t>(tile));
        const std::uint32_t within = by_image.remainder(static_cast<std::uint32_t>(tile), image);
        const std::uint32_t line = by_row.quotient(within);
        return {static_cast<int>(image), static_cast<int>(line) * tile_height,
                static_cast<int>(by_row.remainder(within, line)) << tile_log};
    }
    /// The offset in the halo where the window of the tile's output `pixel` begins, and the offset
    /// of a tap from there.
    __device__ int window(int pixel, int channels) const {
        const int row = pixel >> tile_log, column = pixel & ((1 << tile_log) - 1);
        return (row * stride_height * halo_width + column * stride_width) * channels;
    }
    __device__ int tap(int u, int v, int channels) const {
        return (u * dilation_height * halo_width + v * dilation_width) * channels;
    }
    /// Calls f(index, address) for a thread's elements of a halo; the address is null outside of the image.
    template <class T, class F>
    __device__ void each_of_halo(const T* x, const place& p, int channels, int thread, int threads, const F& f) const {
        const int row = p.row * stride_height - pad_top, first = (p.column * stride_width - pad_left) * channels;
        const T* const image = x + static_cast<std::int64_t>(p.image) * in_height * in_width * channels;
        for (int i = thread; i < halo_height * halo_width * channels; i += threads) {
            const std::uint32_t line = by_halo_line.quotient(static_cast<std::uint32_t>(i));
            const int r = row + static_cast<int>(line);
            const int e = first + static_cast<int>(by_halo_line.remainder(static_cast<std::uint32_t>(i), line));
            const bool inside = r >= 0 && r < in_height && e >= 0 && e < in_width * channels;
            f(i, inside ? image + static_cast<std::int64_t>(r) * in_width * channels + e : nullptr);
        }
    }
    template <int C, class T>
    __device__ void load_halo(const T* x, const place& p, T* halo, int thread, int threads) const {
        each_of_halo(x, p, C, thread, threads, [&](int i, const T* at) { halo[i] = at != nullptr ? *at : T(0); });
    }
    /// Pixel q, in row-major order, of the tile's 2 by 2 window v; both extents of the tile are
    /// even.
    __device__ int pixel_of(int v, int q) const {
        const int row = 2 * (v >> (tile_log - 1)) + q / 2, column = 2 * (v & ((1 << (tile_log - 1)) - 1)) + q % 2;
        return row << tile_log | column;
    }
    /// The offset of that window in the pooled y, or -1 if it is beyond its end.
    __device__ std::int64_t pooled_output(const place& p, int v) const {
        const int row = p.row / 2 + (v >> (tile_log - 1)), column = p.column / 2 + (v & ((1 << (tile_log - 1)) - 1));
        if (row >= out_height / 2 || column >= out_width / 2) return -1;
        return ((static_cast<std::int64_t>(p.image) * (out_height / 2) + row) * (out_width / 2) + column) *
               out_channels;
    }
    /// Whether all pixels of a tile are outputs.
    __device__ bool is_whole(const place& p) const {
        return p.row + tile_height <= out_height && p.column + (1 << tile_log) <= out_width;
    }
    /// The offset in y of an output pixel of the tile, or -1 if it is beyond the end of y.
    __device__ std::int64_t output(const place& p, int pixel) const {
        const int row = p.row + (pixel >> tile_log), column = p.column + (pixel & ((1 << tile_log) - 1));
        if (row >= out_height || column >= out_width) return -1;
        return ((static_cast<std::int64_t>(p.image) * out_height + row) * out_width + column) * out_channels;
    }
};

/// The arguments of both kernels. `n` and `width` are as in a problem of implicit_gemm.
template <class Element>
struct few_channels_problem {
    using T = Element;
    pixel_tiles tiles;
    int n, columns, warps_across; ///< output channels: all, per block, in warps
    const T *x, *other;           ///< w, or dy
    T* out;                       ///< y, or a [taps * C, n] per block of x
    const T* bias = nullptr;
    bool relu = false;
    int width = 1;

    __device__ T finished(T value, int column) const {
        return with_epilogue(value, column < n ? bias : nullptr, column, relu);
    }
};

/// Grid: tiles, columns of channels. Pooled: the largest of every 2 by 2 pixels goes to y [batch,
/// out_height / 2, out_width / 2, n]; a thread's eight pixels are two windows.
template <class T, int C, int TN, bool Pooled = false>
__global__ void __launch_bounds__(256, C == 4 || sizeof(T) > 4 ? 1 : 2)
    few_channels_forward(few_channels_problem<T> p) {
    TG_DYNAMIC_SHARED(T, halo);
    T* const w = halo + p.tiles.halo_size(C);
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    const int warp = thread / 32, lane = thread % 32;
    const auto place = p.tiles.at(static_cast<int>(blockIdx.x));
    const int first_n = static_cast<int>(blockIdx.y) * p.columns;

    p.tiles.template load_halo<C>(p.x, place, halo, thread, threads);
    const int taps = p.tiles.taps_height * p.tiles.taps_width;
    for (int i = thread; i < taps * C * p.columns; i += threads) {
        const int k = i / p.columns, column = first_n + i % p.columns;
        w[i] = column < p.n ? p.other[static_cast<std::int64_t>(k) * p.n + column] : T(0);
    }
    __syncthreads();

    const int first_pixel = warp / p.warps_across * 32 + lane / 8; // and every fourth after it
    const int first_window = warp / p.warps_across * 8 + lane / 8; // and the fourth after it
    const int column = warp % p.warps_across * (8 * TN) + lane % 8 * 2;
    int window[8];
    TG_UNROLL
    for (int r = 0; r < 8; ++r)
        window[r] = p.tiles.window(Pooled ? p.tiles.pixel_of(first_window + r / 4 * 4, r % 4) : first_pixel + r * 4, C);
    T sum[8][TN]{};
    const T* weights = w + column;
    for (int u = 0; u < p.tiles.taps_height; ++u)
        for (int v = 0; v < p.tiles.taps_width; ++v) {
            const T* const seen = halo + p.tiles.tap(u, v, C);
            TG_UNROLL
            for (int c = 0; c < C; ++c, weights += p.columns) {
                T a[8];
                TG_UNROLL
                for (int r = 0; r < 8; ++r) a[r] = seen[window[r] + c];
                TG_UNROLL
                for (int j = 0; j < TN / 2; ++j) {
                    const auto b = *reinterpret_cast<const pack<T, 2>*>(weights + j * 16);
                    TG_UNROLL
                    for (int r = 0; r < 8; ++r) TG_UNROLL
                    for (int i = 0; i < 2; ++i) sum[r][2 * j + i] = multiply_add(a[r], b.v[i], sum[r][2 * j + i]);
                }
            }
        }
    if constexpr (Pooled) {
        TG_UNROLL
        for (int r = 0; r < 8; r += 4) {
            const std::int64_t at = p.tiles.pooled_output(place, first_window + r);
            if (at < 0) continue;
            TG_UNROLL
            for (int j = 0; j < TN / 2; ++j) {
                const int n = first_n + column + j * 16;
                T pair[2];
                TG_UNROLL
                for (int i = 0; i < 2; ++i) {
                    pair[i] = p.finished(sum[r][2 * j + i], n + i);
                    TG_UNROLL
                    for (int q = 1; q < 4; ++q) pair[i] = larger(pair[i], p.finished(sum[r + q][2 * j + i], n + i));
                }
                store_run(p, p.out + at, n, pair);
            }
        }
    } else {
        TG_UNROLL
        for (int r = 0; r < 8; ++r) {
            const std::int64_t at = p.tiles.output(place, first_pixel + r * 4);
            if (at < 0) continue;
            TG_UNROLL
            for (int j = 0; j < TN / 2; ++j) {
                const int n = first_n + column + j * 16;
                const T pair[2]{p.finished(sum[r][2 * j], n), p.finished(sum[r][2 * j + 1], n + 1)};
                store_run(p, p.out + at, n, pair);
            }
        }
    }
}

inline constexpr int gradient_pixels = 64; ///< per tile of few_channels_filter_gradient
inline constexpr int gradient_taps = 32;   ///< (tap, channel) pairs per block

/// Grid: splits of the tiles, columns of channels, (tap, channel) pairs. Warps that share columns
/// alternate over the pixels of a tile; their sums are added in order at the end.
template <class T, int C, int TN>
__global__ void __launch_bounds__(256, C == 4 || sizeof(T) > 4 ? 1 : 2)
    few_channels_filter_gradient(few_channels_problem<T> p) {
    TG_DYNAMIC_SHARED(T, halo);
    T* const dy = halo + p.tiles.halo_size(C);
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    const int warp = thread / 32, lane = thread % 32;
    const int turns = threads / 32 / p.warps_across, turn = warp / p.warps_across;
    const int first_n = static_cast<int>(blockIdx.y) * p.columns;
    const int column = warp % p.warps_across * (8 * TN) + lane % 8 * 2;
    const int pairs = p.tiles.taps_height * p.tiles.taps_width * C;
    const int first_pair = static_cast<int>(blockIdx.z) * gradient_taps;

    int tap[8];
    TG_UNROLL
    for (int r = 0; r < 8; ++r) {
        const int k = first_pair + lane / 8 + r * 4, t = k / C;
        const int u = t / p.tiles.taps_width, v = t % p.tiles.taps_width;
        tap[r] = k < pairs ? p.tiles.tap(u, v, C) + k % C : 0; // surplus is not stored
    }
    T sum[8][TN]{};
    const auto part = [&](unsigned split) {
        return static_cast<int>(static_cast<std::int64_t>(p.tiles.count) * split / gridDim.x);
    };
    for (int tile = part(blockIdx.x); tile < part(blockIdx.x + 1); ++tile) {
        const auto place = p.tiles.at(tile);
        p.tiles.template load_halo<C>(p.x, place, halo, thread, threads);
        for (int i = thread; i < gradient_pixels * p.columns; i += threads) {
            const int n = first_n + i % p.columns;
            const std::int64_t at = p.tiles.output(place, i / p.columns);
            dy[i] = at >= 0 && n < p.n ? p.other[at + n] : T(0);
        }
        __syncthreads();
        for (int pixel = turn; pixel < gradient_pixels; pixel += turns) {
            if (p.tiles.output(place, pixel) < 0) continue; // its window may lie in the image and hold anything
            const T* const seen = halo + p.tiles.window(pixel, C);
            const T* const row = dy + pixel * p.columns + column;
            T a[8];
            TG_UNROLL
            for (int r = 0; r < 8; ++r) a[r] = seen[tap[r]];
            TG_UNROLL
            for (int j = 0; j < TN / 2; ++j) {
                const auto b = *reinterpret_cast<const pack<T, 2>*>(row + j * 16);
                TG_UNROLL
                for (int r = 0; r < 8; ++r) TG_UNROLL
                for (int i = 0; i < 2; ++i) sum[r][2 * j + i] = multiply_add(a[r], b.v[i], sum[r][2 * j + i]);
            }
        }
        __syncthreads();
    }
    T* const total = dy; // dy is no longer needed; four lanes hit one bank (tools/bank_conflicts), once per block
    for (int t = 0; t < turns; ++t) {
        if (t == turn) {
            TG_UNROLL
            for (int r = 0; r < 8; ++r) TG_UNROLL
            for (int j = 0; j < TN; ++j) {
                T& at = total[(lane / 8 + r * 4) * p.columns + column + j / 2 * 16 + j % 2];
                at = t == 0 ? sum[r][j] : at + sum[r][j];
            }
        }
        __syncthreads();
    }
    T* const out = p.out + static_cast<std::int64_t>(blockIdx.x) * pairs * p.n;
    for (int i = thread; i < gradient_taps * p.columns; i += threads) {
        const int k = first_pair + i / p.columns, n = first_n + i % p.columns;
        if (k < pairs && n < p.n) out[static_cast<std::int64_t>(k) * p.n + n] = total[i];
    }
}

} // namespace tapegraph::cuda::kernels
