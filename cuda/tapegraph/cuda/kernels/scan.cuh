#pragma once

#include <tapegraph/cuda/kernels/box.cuh>

#include <cstdint>
#include <type_traits>

/// Running sums and products along one axis of [outer, length, inner], accumulated in double for
/// floats and in 64 bits for integers. A line is a sequence of elements along the axis. Memory
/// plan:
///
///   scan_lines   A thread per line, neighbours side by side where inner > 1; in the CPU's order.
///                No shared memory.
///   scan_rows    A block per line, or per chunk of one: tiles of 4 elements per thread go through
///                shared memory (up to 8.5 KiB), where each thread sums its own four; the warps'
///                totals are scanned by shuffles, the block's by all warps. The prefix is carried
///                from tile to tile.
///   fold_chunks  Computes the totals of chunks, from which a scan makes the prefix of each.

namespace tapegraph::cuda::kernels {

template <class T>
using scan_accumulator = std::conditional_t<std::is_floating_point_v<T>, double,
                                            std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;

template <bool Product, class A>
__device__ A joined(A a, A b) {
    if constexpr (Product)
        return a * b;
    else
        return a + b;
}

struct scan_shape {
    std::int64_t length, inner;
    bool exclusive, reverse;
    std::int64_t chunk, chunks; ///< a line is split into chunks of `chunk` elements

    /// The offset of the first element of a line, and the distance between its elements.
    __device__ std::int64_t begin(std::int64_t line) const {
        return (line / inner * length + (reverse ? length - 1 : 0)) * inner + line % inner;
    }
    __device__ std::int64_t step() const { return reverse ? -inner : inner; }
};

template <bool Product, class T>
__global__ void scan_lines(scan_shape s, std::int64_t first, std::int64_t end, const T* x, T* y) {
    using A = scan_accumulator<T>;
    const std::int64_t line = first + thread_number(), step = s.step();
    if (line >= end) return;
    std::int64_t at = s.begin(line);
    A total = Product ? A(1) : A(0);
    for (std::int64_t k = 0; k < s.length; ++k, at += step) {
        const A next = joined<Product>(total, static_cast<A>(x[at]));
        y[at] = static_cast<T>(s.exclusive ? total : next);
        total = next;
    }
}

inline constexpr int scan_threads = 256, scan_items = 4, scan_tile = scan_threads * scan_items;

/// Blocks have a multiple of 32 threads, one block for each chunk of each line. `before` [lines,
/// chunks] is the prefix of each chunk, or null for none. y may be x.
template <bool Product, class T>
__global__ void scan_rows(scan_shape s, const T* x, T* y, const scan_accumulator<T>* before) {
    using A = scan_accumulator<T>;
    constexpr A start = Product ? A(1) : A(0);
    constexpr int span = 128 / sizeof(T); // fills the banks once: keeps a thread's four apart from its neighbours'
    __shared__ T staged[scan_tile + scan_tile / span];
    __shared__ A totals[scan_threads / 32];
    const auto slot = [](int i) { return i + i / span; };
    const int t = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x), lane = t % 32, warp = t / 32;
    const std::int64_t line = blockIdx.x / s.chunks, chunk = blockIdx.x - line * s.chunks, step = s.step();
    const std::int64_t end = (chunk + 1) * s.chunk < s.length ? (chunk + 1) * s.chunk : s.length;
    x += s.begin(line), y += s.begin(line);
    A carried = before != nullptr ? before[blockIdx.x] : start;
    for (std::int64_t tile = chunk * s.chunk; tile < end; tile += threads * scan_items) {
        const int there = end - tile < threads * scan_items ? static_cast<int>(end - tile) : threads * scan_items;
        for (int i = t; i < there; i += threads) staged[slot(i)] = x[(tile + i) * step];
        __syncthreads();
        A own[scan_items], total = start;
        TG_UNROLL
        for (int k = 0; k < scan_items; ++k) {
            const int i = t * scan_items + k;
            const A next = i < there ? joined<Product>(total, static_cast<A>(staged[slot(i)])) : total;
            own[k] = s.exclusive ? total : next;
            total = next;
        }
        A scanned = total;
        TG_UNROLL
        for (int away = 1; away < 32; away *= 2) {
            const A from = __shfl_up_sync(0xFFFFFFFFu, scanned, static_cast<unsigned>(away));
            if (lane >= away) scanned = joined<Product>(from, scanned);
        }
        A in_front = __shfl_up_sync(0xFFFFFFFFu, scanned, 1u);
        if (lane == 0) in_front = start;
        if (lane == 31) totals[warp] = scanned;
        __syncthreads();
        A all = carried;
        for (int w = 0; w < threads / 32; ++w) {
            if (w == warp) in_front = joined<Product>(all, in_front);
            all = joined<Product>(all, totals[w]);
        }
        carried = all;
        TG_UNROLL
        for (int k = 0; k < scan_items; ++k)
            staged[slot(t * scan_items + k)] = static_cast<T>(joined<Product>(in_front, own[k]));
        __syncthreads();
        // The next tile needs no barrier: a thread loads what it has stored.
        for (int i = t; i < there; i += threads) y[(tile + i) * step] = staged[slot(i)];
    }
}

/// totals is [lines, chunks]; blocks have scan_threads threads.
template <bool Product, class T>
__global__ void fold_chunks(scan_shape s, const T* x, scan_accumulator<T>* totals) {
    using A = scan_accumulator<T>;
    __shared__ A warps[scan_threads / 32];
    const int t = static_cast<int>(threadIdx.x);
    const std::int64_t line = blockIdx.x / s.chunks, chunk = blockIdx.x - line * s.chunks, step = s.step();
    const std::int64_t end = (chunk + 1) * s.chunk < s.length ? (chunk + 1) * s.chunk : s.length;
    x += s.begin(line);
    A total = Product ? A(1) : A(0);
    for (std::int64_t i = chunk * s.chunk + t; i < end; i += scan_threads)
        total = joined<Product>(total, static_cast<A>(x[i * step]));
    TG_UNROLL
    for (int away = 16; away > 0; away /= 2)
        total = joined<Product>(total, __shfl_down_sync(0xFFFFFFFFu, total, static_cast<unsigned>(away)));
    if (t % 32 == 0) warps[t / 32] = total;
    __syncthreads();
    if (t != 0) return;
    for (int w = 1; w < scan_threads / 32; ++w) total = joined<Product>(total, warps[w]);
    totals[blockIdx.x] = total;
}

} // namespace tapegraph::cuda::kernels
