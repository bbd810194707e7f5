#pragma once

#include <tapegraph/cuda/kernels/box.cuh>

#include <cstdint>

/// Finds the positions of the largest or smallest elements along one axis of [outer, length,
/// inner]; the first among equals, with NaN before everything. Memory plan:
///
///   arg_lines   A thread per line along the axis. No shared memory.
///   arg_rows    A block per line, or per chunk of one: each thread searches its elements, shuffles
///               find the warp's best, shared memory (32 bytes) the block's. The results of chunks
///               are the candidates of a second launch.

namespace tapegraph::cuda::kernels {

inline constexpr std::int32_t no_position = -1;

/// Whether value v at position i ranks before value w at position j.
template <bool Maximum, class T>
__device__ bool wins(T v, std::int32_t i, T w, std::int32_t j) {
    const bool v_nan = v != v, w_nan = w != w;
    if (v_nan != w_nan) return v_nan;
    if (v_nan || v == w) return i < j;
    return Maximum ? v > w : v < w;
}

struct arg_shape {
    std::int64_t length, inner;
    std::int64_t count, chunk, chunks; ///< what is searched, in chunks: all elements, or candidates
};

template <bool Maximum, class T>
__global__ void arg_lines(arg_shape s, std::int64_t first, std::int64_t end, const T* x, std::int32_t* out) {
    const std::int64_t line = first + thread_number();
    if (line >= end) return;
    x += line / s.inner * s.length * s.inner + line % s.inner;
    T best = x[0];
    std::int32_t at = 0;
    for (std::int32_t k = 1; k < s.length; ++k) {
        const T value = x[k * s.inner];
        if (wins<Maximum>(value, k, best, at)) best = value, at = k;
    }
    out[line] = at;
}

inline constexpr int arg_threads = 256;

/// Blocks have a multiple of 32 threads, up to arg_threads. candidates are positions [lines,
/// count], or null for all elements; out is [lines, chunks].
template <bool Maximum, class T>
__global__ void arg_rows(arg_shape s, const T* x, const std::int32_t* candidates, std::int32_t* out) {
    __shared__ std::int32_t warps[arg_threads / 32];
    const int t = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    const std::int64_t line = blockIdx.x / s.chunks, chunk = blockIdx.x - line * s.chunks;
    const std::int64_t end = (chunk + 1) * s.chunk < s.count ? (chunk + 1) * s.chunk : s.count;
    x += line / s.inner * s.length * s.inner + line % s.inner;
    const auto better = [&](std::int32_t a, std::int32_t b) {
        if (a == no_position || b == no_position) return a == no_position ? b : a;
        return wins<Maximum>(x[a * s.inner], a, x[b * s.inner], b) ? a : b;
    };
    std::int32_t best = no_position;
    T best_value{};
    for (std::int64_t i = chunk * s.chunk + t; i < end; i += threads) {
        const std::int32_t at = candidates != nullptr ? candidates[line * s.count + i] : static_cast<std::int32_t>(i);
        const T value = x[at * s.inner];
        if (best == no_position || wins<Maximum>(value, at, best_value, best)) best = at, best_value = value;
    }
    TG_UNROLL
    for (int away = 16; away > 0; away /= 2)
        best = better(best, __shfl_down_sync(0xFFFFFFFFu, best, static_cast<unsigned>(away)));
    if (t % 32 == 0) warps[t / 32] = best;
    __syncthreads();
    if (t != 0) return;
    for (int w = 1; w < threads / 32; ++w) best = better(best, warps[w]);
    out[blockIdx.x] = best;
}

} // namespace tapegraph::cuda::kernels
