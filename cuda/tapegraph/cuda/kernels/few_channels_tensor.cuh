#pragma once

#ifndef TG_SIMT
#include <tapegraph/cuda/kernels/instructions.cuh>
#endif
#include <tapegraph/cuda/kernels/few_channels.cuh>
#include <tapegraph/cuda/ops/convolution/plan.hpp>

/// Convolutions of few channels in TF32 on tensor cores (sm_80 and later), for the same tiles of
/// pixels. With 27 products a result they are bound by memory: what counts is that y or dy moves once,
/// in whole lines. A block has 8 warps; the product's inner extent is padded with zeros to whole steps
/// of 8. Rows in shared memory are 8 floats longer than whole groups of 32 banks, so that the lanes
/// of a fragment read from different banks (few_channels_tensor_tile). Dynamic shared memory:
///   forward          twice the halo, of which one arrives while the other is multiplied; w [taps *
///                    channels, columns]; for each of these rows its offset in the halo; for each warp
///                    64 columns of its results
///   filter gradient  twice the halo and dy [64 pixels, columns], of which one arrives while the other
///                    is multiplied; the offset of each pixel's window

namespace tapegraph::cuda::kernels {

/// Rounds what products read to TF32, ready for multiply_tf32.
__device__ inline float tf32_of(float x) { return from_bits(to_tf32(x)); }

/// The offset in a halo of the `pair`-th (tap, channel).
__device__ inline int halo_offset(const pixel_tiles& tiles, int pair, int channels) {
    const int tap = pair / channels;
    return tiles.tap(tap / tiles.taps_width, tap % tiles.taps_width, channels) + pair % channels;
}

/// Grid: blocks that share the tiles, columns of channels. A warp multiplies 16 pixels by all
/// columns. `pairs`: taps * channels. Pooled: as few_channels_forward.
template <int Columns, bool Pooled>
__global__ void __launch_bounds__(256, 2)
    few_channels_tensor_forward(few_channels_problem<float> p, int channels, int pairs) {
    using shape = cuda::detail::few_channels_tensor_tile;
    constexpr int fragments = Columns / 8, pitch = shape::pitch(Columns);
    constexpr int piece = shape::piece, staged_pitch = shape::pitch(piece), pixels = shape::pixels_of_warp;
    static_assert(Columns % 32 == 0);
    TG_DYNAMIC_SHARED(float, halos);
    const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
    const int rows = shape::rows_of(pairs), first_n = static_cast<int>(blockIdx.y) * Columns;
    const int halo_size = p.tiles.halo_size(channels);
    float* const w = halos + 2 * halo_size;
    int* const offsets = reinterpret_cast<int*>(w + rows * pitch);
    float* const staged = w + rows * (pitch + 1) + warp * pixels * staged_pitch;

    const auto fetch = [&](int tile, float* to) {
        p.tiles.each_of_halo(p.x, p.tiles.at(tile), channels, thread, shape::warps * 32, [&](int i, const float* at) {
            copy_async<4>(to + i, at != nullptr ? at : p.x, at != nullptr);
        });
    };
    fetch(static_cast<int>(blockIdx.x), halos);
    commit_copies();
    for (int k = warp; k < rows; k += shape::warps) {
        if (lane == 0) offsets[k] = k < pairs ? halo_offset(p.tiles, k, channels) : -1;
        for (int i = lane; i < Columns; i += 32) {
            const bool there = k < pairs && first_n + i < p.n;
            w[k * pitch + i] = there ? tf32_of(p.other[static_cast<std::int64_t>(k) * p.n + first_n + i]) : 0.0f;
        }
    }
    const int g = lane / 4, t = lane % 4, first_pixel = warp * pixels;
    int window[2];
    TG_UNROLL
    for (int r = 0; r < 2; ++r) {
        const int pixel = first_pixel + g + 8 * r;
        window[r] = p.tiles.window(Pooled ? p.tiles.pixel_of(pixel / 4, pixel % 4) : pixel, channels);
    }

    const int step = static_cast<int>(gridDim.x);
    int turn = 0;
    for (int tile = static_cast<int>(blockIdx.x); tile < p.tiles.count; tile += step, turn ^= 1) {
        const float* const halo = halos + turn * halo_size;
        if (tile + step < p.tiles.count) fetch(tile + step, halos + (turn ^ 1) * halo_size);
        commit_copies();
        wait_copies<1>();
        __syncthreads();
        float sum[fragments][4]{};
        TG_ROLLED
        for (int k = t; k < rows; k += 8) {
            std::uint32_t a[4];
            TG_UNROLL
            for (int h = 0; h < 2; ++h) {
                const int offset = offsets[k + 4 * h];
                TG_UNROLL
                for (int r = 0; r < 2; ++r) a[2 * h + r] = offset < 0 ? 0u : to_tf32(halo[window[r] + offset]);
            }
            const float* const row = w + k * pitch + g;
            TG_UNROLL
            for (int j = 0; j < fragments; ++j) {
                const std::uint32_t b[2]{to_bits(row[8 * j]), to_bits(row[4 * pitch + 8 * j])};
                multiply_tf32(sum[j], a, b);
            }
        }
        __syncthreads(); // the tile after the next one is copied over this one

        // Results go through shared memory, some columns at a time, so that lanes store neighbours. A
        // lane knows where one row goes.
        const auto place = p.tiles.at(tile);
        const int row_of_lane = lane % pixels;
        const std::int64_t own = Pooled ? p.tiles.pooled_output(place, (first_pixel + row_of_lane) / 4)
                                        : p.tiles.output(place, first_pixel + row_of_lane);
        TG_UNROLL
        for (int first = 0; first < Columns; first += piece) {
            __syncwarp(); // the last piece has been read
            TG_UNROLL
            for (int j = first / 8; j < fragments && j < (first + piece) / 8; ++j) TG_UNROLL
            for (int r = 0; r < 2; ++r)
                *reinterpret_cast<pack<float, 2>*>(staged + (g + 8 * r) * staged_pitch + 8 * j - first +
                                                   2 * t) = {{sum[j][2 * r], sum[j][2 * r + 1]}};
            __syncwarp();
            const int column = first + 2 * lane, n = first_n + column;
            const bool stores = column < Columns && n < p.n, second = n + 1 < p.n, biased = p.bias != nullptr;
            float bias[2]{};
            TG_UNROLL
            for (int c = 0; c < 2; ++c)
                if (biased && stores && (c == 0 || second)) bias[c] = p.bias[n + c];
            const auto finished = [&](int row, int c) {
                const float value = staged[row * staged_pitch + 2 * lane + c], whole = biased ? value + bias[c] : value;
                return p.relu ? rectified(whole) : whole;
            };
            TG_UNROLL
            for (int r = 0; r < pixels; r += Pooled ? 4 : 1) {
                const std::int64_t at = __shfl_sync(0xFFFFFFFFu, own, r);
                if (at < 0 || !stores) continue;
                float pair[2]{finished(r, 0), finished(r, 1)};
                if constexpr (Pooled)
                    for (int q = 1; q < 4; ++q)
                        for (int c = 0; c < 2; ++c) pair[c] = larger(pair[c], finished(r + q, c));
                float* const to = p.out + at + n;
                if (p.width == 2) {
                    *reinterpret_cast<pack<float, 2>*>(to) = {{pair[0], pair[1]}};
                } else {
                    to[0] = pair[0];
                    if (second) to[1] = pair[1];
                }
            }
        }
    }
}

/// Grid: splits of the tiles, columns of channels, (tap, channel) pairs, 32 for a block. Four groups
/// of warps share the columns, two the pixels of a tile, whose sums are added in order at the end.
/// `width`: floats of dy that are copied at once, 1 or 2.
template <int Columns>
__global__ void __launch_bounds__(256, 2)
    few_channels_tensor_filter_gradient(few_channels_problem<float> p, int channels, int pairs, int width) {
    using shape = cuda::detail::few_channels_tensor_tile;
    constexpr int columns_of_warp = Columns / 4, fragments = columns_of_warp / 8, pitch = shape::pitch(Columns);
    constexpr int turns = 2, pixels_of_turn = gradient_pixels / turns;
    static_assert(Columns % 32 == 0 && gradient_taps == 32 && shape::gradient_pixels == gradient_pixels);
    TG_DYNAMIC_SHARED(float, shared);
    const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
    const int group = warp % 4, turn = warp / 4, g = lane / 4, t = lane % 4;
    const int first_n = static_cast<int>(blockIdx.y) * Columns;
    const int first_pair = static_cast<int>(blockIdx.z) * gradient_taps;
    const int halo_size = p.tiles.halo_size(channels), stage_size = halo_size + gradient_pixels * pitch;
    int* const windows = reinterpret_cast<int*>(shared + 2 * stage_size);
    if (thread < gradient_pixels) windows[thread] = p.tiles.window(thread, channels);
    int offset[4];
    TG_UNROLL
    for (int r = 0; r < 4; ++r) {
        const int pair = first_pair + g + 8 * r;
        offset[r] = pair < pairs ? halo_offset(p.tiles, pair, channels) : 0; // surplus is not stored
    }

    const auto fetch = [&](int tile, float* to) {
        const auto place = p.tiles.at(tile);
        p.tiles.each_of_halo(p.x, place, channels, thread, shape::warps * 32, [&](int i, const float* at) {
            copy_async<4>(to + i, at != nullptr ? at : p.x, at != nullptr);
        });
        for (int pixel = warp; pixel < gradient_pixels; pixel += shape::warps) {
            const std::int64_t at = p.tiles.output(place, pixel);
            float* const row = to + halo_size + pixel * pitch;
            for (int i = width * lane; i < Columns; i += width * 32) {
                const bool there = at >= 0 && first_n + i < p.n;
                const float* const from = there ? p.other + at + first_n + i : p.other;
                if (width == 2)
                    copy_async<8>(row + i, from, there);
                else
                    copy_async<4>(row + i, from, there);
            }
        }
    };
    const auto part = [&](unsigned split) {
        return static_cast<int>(static_cast<std::int64_t>(p.tiles.count) * split / gridDim.x);
    };
    const int first = part(blockIdx.x), end = part(blockIdx.x + 1);
    float sum[2][fragments][4]{};
    if (first < end) fetch(first, shared);
    commit_copies();
    for (int tile = first; tile < end; ++tile) {
        float* const halo = shared + (tile - first) % 2 * stage_size;
        if (tile + 1 < end) fetch(tile + 1, shared + (tile + 1 - first) % 2 * stage_size);
        commit_copies();
        wait_copies<1>();
        __syncthreads();
        // A window beyond the last output may lie in the image and hold anything.
        const auto place = p.tiles.at(tile);
        const bool whole = p.tiles.is_whole(place);
        TG_ROLLED
        for (int pixel = turn * pixels_of_turn + t; pixel < (turn + 1) * pixels_of_turn; pixel += 8) {
            const bool counts[2]{whole || p.tiles.output(place, pixel) >= 0,
                                 whole || p.tiles.output(place, pixel + 4) >= 0};
            std::uint32_t a[2][4];
            TG_UNROLL
            for (int h = 0; h < 2; ++h) {
                const float* const seen = halo + windows[pixel + 4 * h];
                TG_UNROLL
                for (int r = 0; r < 4; ++r) a[r / 2][2 * h + r % 2] = counts[h] ? to_tf32(seen[offset[r]]) : 0u;
            }
            const float* const row = halo + halo_size + pixel * pitch + group * columns_of_warp + g;
            TG_UNROLL
            for (int j = 0; j < fragments; ++j) {
                const std::uint32_t b[2]{to_tf32(row[8 * j]), to_tf32(row[4 * pitch + 8 * j])};
                TG_UNROLL
                for (int m = 0; m < 2; ++m) multiply_tf32(sum[m][j], a[m], b);
            }
        }
        __syncthreads(); // the tile after the next one is copied over this one
    }
    for (int turned = 0; turned < turns; ++turned) {
        if (turned == turn) {
            TG_UNROLL
            for (int m = 0; m < 2; ++m) TG_UNROLL
            for (int j = 0; j < fragments; ++j) TG_UNROLL
            for (int i = 0; i < 4; ++i) {
                float& at = shared[(16 * m + g + i / 2 * 8) * pitch + group * columns_of_warp + 8 * j + 2 * t + i % 2];
                at = turned == 0 ? sum[m][j][i] : at + sum[m][j][i];
            }
        }
        __syncthreads();
    }
    float* const out = p.out + static_cast<std::int64_t>(blockIdx.x) * pairs * p.n;
    for (int k = warp; k < gradient_taps && first_pair + k < pairs; k += shape::warps)
        for (int i = lane; i < Columns && first_n + i < p.n; i += 32)
            out[static_cast<std::int64_t>(first_pair + k) * p.n + first_n + i] = shared[k * pitch + i];
}

} // namespace tapegraph::cuda::kernels
