#pragma once

#include <tapegraph/cuda/kernels/operand.cuh>

#include <bit>

/// C = A B for one step of a recurrence: few rows, small tiles, one element at a time, and an
/// epilogue that receives a thread's sums of a row together, so that all gates of a unit are in one
/// thread. For long products see implicit_gemm.cuh.
///
/// One block computes a tile of C, BM by BN; each of its threads keeps TM by TN sums in registers.
/// Shared memory holds two tiles of A (BK by BM, padded) and two of B (BK by BN): while one pair is
/// multiplied, the next is loaded through registers into the other, so one barrier per step
/// suffices. k runs in order: results do not depend on timing. Grid: x tiles of M, y tiles of N.

namespace tapegraph::cuda::kernels {

template <int BM_, int BN_, int BK_, int TM_, int TN_>
struct step_tile {
    static constexpr int BM = BM_, BN = BN_, BK = BK_, TM = TM_, TN = TN_;
    static constexpr int threads = BM / TM * (BN / TN);
    static_assert(BM % TM == 0 && BN % TN == 0 && threads % 32 == 0 && threads <= 1024);
    /// Lines that B's loader walks over: some beyond BN, where the number of threads is not a
    /// multiple of it.
    static constexpr int loaded_n = threads % BN == 0 ? BN : static_cast<int>(std::bit_ceil(unsigned(BN)));
    static_assert(threads % BK == 0 && threads % BM == 0 && threads % loaded_n == 0, "loaders walk in whole lines");
    static_assert(BM * BK % threads == 0 && loaded_n * BK % threads == 0, "every thread loads as much");
};

/// Loads one operand's tile: `lines` runs over m or n, `steps` over k. Neighbouring threads take
/// neighbouring elements in memory: along k if AlongK, else along the line.
template <class Tile, int Lines, bool AlongK>
struct step_loader {
    static constexpr int each = Lines * Tile::BK / Tile::threads;
    static constexpr int rows = AlongK ? each : 1; ///< different lines that one thread loads
    static constexpr int taps = AlongK ? 1 : each; ///< different k that one thread loads
    static constexpr int line_step = AlongK ? Tile::threads / Tile::BK : 0;
    static constexpr int tap_step = AlongK ? 0 : Tile::threads / Lines;

    __device__ static int line(int thread, int i) {
        return AlongK ? thread / Tile::BK + i * line_step : thread % Lines;
    }
    __device__ static int step(int thread, int i) { return AlongK ? thread % Tile::BK : thread / Lines + i * tap_step; }
};

template <class T>
__device__ T element_or_zero(const T* at) {
    return at == nullptr ? T(0) : *at;
}

template <class Problem, class Line, class Step>
__device__ auto a_of(const Problem& problem, const Line& line, const Step& step) {
    if constexpr (requires { problem.a_value(line, step); })
        return problem.a_value(line, step);
    else
        return element_or_zero(problem.a(line, step));
}

/// `Problem` has the element type T; extents m, n, k; a_along_k, b_along_k; types a_line, a_step,
/// b_line, b_step with functions line_a(m), step_a(k, end of k) and so on; a(line, step) and
/// b(line, step), which return addresses or null where the operand is zero, or for A a_value(line,
/// step), the element itself; store(m, n, value). Indices beyond the extents are passed, too. A
/// problem with store_line(m, tile, column, sums) instead receives a thread's sums of a row
/// together, those of columns column + i * BN / TN of the tile, and checks the extent of n itself.
template <class Problem, class Tile>
__global__ void __launch_bounds__(Tile::threads) step_gemm(Problem problem) {
    using T = typename Problem::T;
    constexpr int pad = 8 / static_cast<int>(sizeof(T)); // puts a warp's transposed writes into different banks
    constexpr int pitch_a = Tile::BM + pad, pitch_b = Tile::BN + pad;
    __shared__ T shared_a[2][Tile::BK * pitch_a];
    __shared__ T shared_b[2][Tile::BK * pitch_b];
    using load_a = step_loader<Tile, Tile::BM, Problem::a_along_k>;
    using load_b = step_loader<Tile, Tile::loaded_n, Problem::b_along_k>;

    const int thread = static_cast<int>(threadIdx.x);
    const int first_m = static_cast<int>(blockIdx.x) * Tile::BM, first_n = static_cast<int>(blockIdx.y) * Tile::BN;
    const int end = problem.k;

    const auto of_b = [&](int i) { return Tile::loaded_n == Tile::BN || load_b::line(thread, i) < Tile::BN; };
    typename Problem::a_line lines_a[load_a::rows];
    typename Problem::b_line lines_b[load_b::rows];
    TG_UNROLL
    for (int i = 0; i < load_a::rows; ++i) lines_a[i] = problem.line_a(first_m + load_a::line(thread, i));
    TG_UNROLL
    for (int i = 0; i < load_b::rows; ++i) lines_b[i] = problem.line_b(first_n + load_b::line(thread, i));

    T next_a[load_a::each], next_b[load_b::each];
    const auto fetch = [&](int k) {
        typename Problem::a_step steps_a[load_a::taps];
        typename Problem::b_step steps_b[load_b::taps];
        TG_UNROLL
        for (int i = 0; i < load_a::taps; ++i) steps_a[i] = problem.step_a(k + load_a::step(thread, i), end);
        TG_UNROLL
        for (int i = 0; i < load_b::taps; ++i) steps_b[i] = problem.step_b(k + load_b::step(thread, i), end);
        TG_UNROLL
        for (int i = 0; i < load_a::each; ++i)
            next_a[i] = a_of(problem, lines_a[load_a::rows == 1 ? 0 : i], steps_a[load_a::taps == 1 ? 0 : i]);
        TG_UNROLL
        for (int i = 0; i < load_b::each; ++i)
            if (of_b(i))
                next_b[i] =
                    element_or_zero(problem.b(lines_b[load_b::rows == 1 ? 0 : i], steps_b[load_b::taps == 1 ? 0 : i]));
    };
    const auto keep = [&](int buffer) {
        TG_UNROLL
        for (int i = 0; i < load_a::each; ++i)
            shared_a[buffer][load_a::step(thread, i) * pitch_a + load_a::line(thread, i)] = next_a[i];
        TG_UNROLL
        for (int i = 0; i < load_b::each; ++i)
            if (of_b(i)) shared_b[buffer][load_b::step(thread, i) * pitch_b + load_b::line(thread, i)] = next_b[i];
    };

    // A thread's sums: TM rows and TN columns, in pieces of four that neighbours interleave, so
    // that a warp's reads of shared memory are consecutive.
    const int across = Tile::BN / Tile::TN;
    const int row = thread / across, column = thread % across;
    T sum[Tile::TM][Tile::TN]{};
    if (end > 0) fetch(0), keep(0);
    __syncthreads();
    for (int k = 0, buffer = 0; k < end; k += Tile::BK, buffer ^= 1) {
        const bool more = k + Tile::BK < end;
        if (more) fetch(k + Tile::BK);
        TG_UNROLL
        for (int i = 0; i < Tile::BK; ++i) {
            T a[Tile::TM], b[Tile::TN];
            TG_UNROLL
            for (int r = 0; r < Tile::TM; ++r) a[r] = shared_a[buffer][i * pitch_a + row + r * (Tile::BM / Tile::TM)];
            TG_UNROLL
            for (int c = 0; c < Tile::TN; ++c) b[c] = shared_b[buffer][i * pitch_b + column + c * across];
            TG_UNROLL
            for (int r = 0; r < Tile::TM; ++r) TG_UNROLL
            for (int c = 0; c < Tile::TN; ++c) sum[r][c] = multiply_add(a[r], b[c], sum[r][c]);
        }
        if (more) keep(buffer ^ 1);
        __syncthreads();
    }
    TG_UNROLL
    for (int r = 0; r < Tile::TM; ++r) {
        const int m = first_m + row + r * (Tile::BM / Tile::TM);
        if constexpr (requires { problem.store_line(m, 0, column, sum[r]); }) {
            if (m < problem.m) problem.store_line(m, static_cast<int>(blockIdx.y), column, sum[r]);
        } else {
            TG_UNROLL
            for (int c = 0; c < Tile::TN; ++c) {
                const int n = first_n + column + c * across;
                if (m < problem.m && n < problem.n) problem.store(m, n, sum[r][c]);
            }
        }
    }
}

} // namespace tapegraph::cuda::kernels
