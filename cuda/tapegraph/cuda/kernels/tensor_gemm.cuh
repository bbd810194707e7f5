#pragma once

#include <tapegraph/cuda/kernels/operand.cuh>
#ifndef TG_SIMT
#include <tapegraph/cuda/kernels/instructions.cuh>
#endif

/// The products of implicit_gemm.cuh on tensor cores: TF32 operands, float sums. Same problems, float only.
///
/// Elements travel by asynchronous copies, V at a time, straight into shared memory, Stages tiles ahead of the products;
/// they are rounded to TF32 (to nearest: truncation would shrink every result) on the way into registers. One barrier
/// per step: it says that the tile to be multiplied has arrived everywhere and that the one to be overwritten has been
/// used. Shared memory (dynamic): per stage A, BM lines of BK or BK steps of BM (+pad), and B likewise. The pads, and where
/// operands lie along k an exchange of a line's quads, put the eight lines and four steps that a fragment reads into 32
/// different banks, and the lines that a warp copies, too (tools/bank_conflicts; a pad of 4 behind such lines took twice the
/// turns for copies, a fifth to a quarter of all of an input gradient). Of lines of 80 copies take 1.2 times the least.

namespace tapegraph::cuda::kernels {

/// tf32 rounds operands once (relative error 2^-11 each). tf32x3 splits them in two and adds three products, which gives
/// almost float's accuracy at a third of the speed (NVIDIA, CUTLASS example 28).
enum class tensor_precision { tf32, tf32x3 };

/// Tiles BM by BN by BK; warps in WM rows and WN columns.
template <int BM_, int BN_, int BK_, int WM_, int WN_, int Stages_>
struct tensor_tile {
    static constexpr int BM = BM_, BN = BN_, BK = BK_, WM = WM_, WN = WN_, Stages = Stages_;
    static constexpr int threads = WM * WN * 32;
    static constexpr int rows = BM / WM / 16, columns = BN / WN / 8; ///< fragments of a warp
    static_assert(BM % (WM * 16) == 0 && BN % (WN * 8) == 0 && BK % 8 == 0 && Stages >= 2);
};

/// One operand's tile in shared memory and how it is filled. Line and step are the row of the operand and k.
template <class Tile, int Lines, bool AlongK, int V>
struct staged_operand : loader<Tile::threads, Lines, Tile::BK, AlongK, V> {
    static constexpr int pitch = AlongK ? Tile::BK : Lines + (40 - Lines % 32) % 32;
    static constexpr int size = AlongK ? Lines * pitch : Tile::BK * pitch;
    static constexpr int quads = Tile::BK / 4, turn = quads < 8 ? 8 / quads : 1; ///< of a line; lines in all banks
    static_assert(pitch % 4 == 0 && (!AlongK || (quads & (quads - 1)) == 0) && quads <= 8);

    using walk = loader<Tile::threads, Lines, Tile::BK, AlongK, V>;

    __device__ static int at(int line, int step) {
        return AlongK ? line * pitch + (step ^ line / turn % quads * 4) : step * pitch + line;
    }
    /// Where a thread's i-th copy goes. Lines eight apart are exchanged alike, which spares registers.
    __device__ static int copied_to(int thread, int i) {
        constexpr int apart = Tile::threads / walk::inner;
        if constexpr (AlongK && walk::straight && apart % 8 == 0)
            return at(walk::line(thread, 0), walk::step(thread, 0)) + i * apart * pitch;
        else
            return at(walk::line(thread, i), walk::step(thread, i));
    }
    /// From the place of (line, step below 4) to that of (line + more, step + further); multiples of 8 and 4.
    __device__ static int moved(int place, int more, int further) {
        return AlongK ? (place ^ further) + more * pitch : place + further * pitch + more;
    }
};

/// What rounding x to TF32 has left of it.
__device__ __forceinline__ float left_by_tf32(float x, std::uint32_t rounded) {
    return x - from_bits(rounded & ~std::uint32_t{0x1FFF}); // the number alone, without what stands behind it
}

template <class Problem, class Tile, int V>
inline constexpr int tensor_gemm_shared_bytes = Tile::Stages * 4 *
                                                (staged_operand<Tile, Tile::BM, Problem::a_along_k, V>::size +
                                                 staged_operand<Tile, Tile::BN, Problem::b_along_k, V>::size);

template <class Problem, class Tile, int V, tensor_precision Precision>
__global__ void __launch_bounds__(Tile::threads, 1) tensor_gemm(Problem problem) {
    using operand_a = staged_operand<Tile, Tile::BM, Problem::a_along_k, V>;
    using operand_b = staged_operand<Tile, Tile::BN, Problem::b_along_k, V>;
    constexpr int BK = Tile::BK, Stages = Tile::Stages;
    constexpr int stage_size = operand_a::size + operand_b::size;
    TG_DYNAMIC_SHARED(float, shared);

    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    const int first_m = static_cast<int>(blockIdx.x) * Tile::BM, first_n = static_cast<int>(blockIdx.y) * Tile::BN;
    const int group = static_cast<int>(blockIdx.z) % problem.groups,
              split = static_cast<int>(blockIdx.z) / problem.groups;
    const k_range range(problem.k, BK, split, problem.splits);
    const int end = range.end;

    typename Problem::a_line lines_a[operand_a::rows];
    typename Problem::b_line lines_b[operand_b::rows];
    TG_UNROLL
    for (int i = 0; i < operand_a::rows; ++i) lines_a[i] = problem.line_a(first_m + operand_a::line(thread, i), group);
    TG_UNROLL
    for (int i = 0; i < operand_b::rows; ++i) lines_b[i] = problem.line_b(first_n + operand_b::line(thread, i), group);

    const auto load = [&](int k, int stage) {
        float* const to_a = shared + stage * stage_size;
        float* const to_b = to_a + operand_a::size;
        typename Problem::a_step step_a{};
        typename Problem::b_step step_b{};
        TG_UNROLL
        for (int i = 0; i < operand_a::each; ++i) {
            if (!operand_a::mine(thread, i)) break;
            if (i < operand_a::taps) step_a = problem.step_a(k + operand_a::step(thread, i), end, group);
            copy_async<4 * V>(to_a + operand_a::copied_to(thread, i),
                              problem.a(lines_a[operand_a::rows == 1 ? 0 : i], step_a), problem.anywhere_a());
        }
        TG_UNROLL
        for (int i = 0; i < operand_b::each; ++i) {
            if (!operand_b::mine(thread, i)) break;
            if (i < operand_b::taps) step_b = problem.step_b(k + operand_b::step(thread, i), end, group);
            copy_async<4 * V>(to_b + operand_b::copied_to(thread, i),
                              problem.b(lines_b[operand_b::rows == 1 ? 0 : i], step_b), problem.anywhere_b());
        }
    };

    const int g = lane / 4, t = lane % 4; // a lane's place in a fragment
    const int warp_m = warp / Tile::WN * (Tile::rows * 16), warp_n = warp % Tile::WN * (Tile::columns * 8);
    const int place_a = operand_a::at(warp_m + g, t), place_b = operand_b::at(warp_n + g, t);
    float sum[Tile::rows][Tile::columns][4];
    const auto multiply = [&](int stage) {
        const float* const a = shared + stage * stage_size;
        const float* const b = a + operand_a::size;
        TG_UNROLL
        for (int k = 0; k < BK; k += 8) {
            std::uint32_t high_a[Tile::rows][4], low_a[Tile::rows][4];
            TG_UNROLL
            for (int r = 0; r < Tile::rows; ++r) TG_UNROLL
            for (int i = 0; i < 4; ++i) {
                const float x = a[operand_a::moved(place_a, r * 16 + i % 2 * 8, k + i / 2 * 4)];
                high_a[r][i] = to_tf32(x);
                if constexpr (Precision == tensor_precision::tf32x3)
                    low_a[r][i] = to_tf32(left_by_tf32(x, high_a[r][i]));
            }
            TG_UNROLL
            for (int c = 0; c < Tile::columns; ++c) {
                std::uint32_t high_b[2], low_b[2];
                TG_UNROLL
                for (int i = 0; i < 2; ++i) {
                    const float x = b[operand_b::moved(place_b, c * 8, k + i * 4)];
                    high_b[i] = to_tf32(x);
                    if constexpr (Precision == tensor_precision::tf32x3) low_b[i] = to_tf32(left_by_tf32(x, high_b[i]));
                }
                TG_UNROLL
                for (int r = 0; r < Tile::rows; ++r) {
                    if constexpr (Precision == tensor_precision::tf32x3) {
                        // The small products first. The cores truncate when they add, so long sums stay outside.
                        float eight[4]{};
                        multiply_tf32(eight, low_a[r], high_b);
                        multiply_tf32(eight, high_a[r], low_b);
                        multiply_tf32(eight, high_a[r], high_b);
                        TG_UNROLL
                        for (int i = 0; i < 4; ++i) sum[r][c][i] += eight[i];
                    } else {
                        multiply_tf32(sum[r][c], high_a[r], high_b);
                    }
                }
            }
        }
    };

    const auto taps = problem.taps_of(first_m, Tile::BM);
    int ahead = problem.next_step(taps, range.begin, end, BK), loaded = 0;
    const auto load_next = [&](int stage) {
        if (ahead < end) {
            load(ahead, stage);
            ahead = problem.next_step(taps, ahead + BK, end, BK);
            ++loaded;
        }
        commit_copies(); // empty groups too, so that counting groups counts stages
    };
    int done = 0, stage = 0;
    bool first = true;
    do {
        TG_UNROLL
        for (int r = 0; r < Tile::rows; ++r) TG_UNROLL
        for (int c = 0; c < Tile::columns; ++c) TG_UNROLL
        for (int i = 0; i < 4; ++i) sum[r][c][i] = 0;
        // The first steps of all only load: what loads is long, and stands here once.
        TG_ROLLED
        for (int step = first ? 1 - Stages : 0; step < longest_chain / BK && (step < 0 || done < loaded); ++step) {
            if (step >= 0) {
                wait_copies<Stages - 2>();
                __syncthreads();
            }
            load_next(step < 0 ? step + Stages - 1 : stage == 0 ? Stages - 1 : stage - 1);
            if (step < 0) continue;
            multiply(stage);
            stage = stage + 1 == Stages ? 0 : stage + 1;
            ++done;
        }
        // Of first_m the compiler would keep all addresses through the loop.
        const int begin_m = computed_here(static_cast<int>(blockIdx.x)) * Tile::BM,
                  begin_n = computed_here(static_cast<int>(blockIdx.y)) * Tile::BN;
        const auto column_of = [&](int c) { return begin_n + warp_n + c / 2 * 8 + 2 * t + c % 2; };
        const auto row_of = [&](int r) { return begin_m + warp_m + r / 2 * 16 + g + r % 2 * 8; };
        if (!first) { // an earlier chain's sums
            TG_UNROLL
            for (int r = 0; r < 2 * Tile::rows; ++r) {
                if (row_of(r) >= problem.m) continue;
                const float* const before = problem.row(row_of(r), group, split);
                TG_UNROLL
                for (int c = 0; c < 2 * Tile::columns; ++c)
                    sum[r / 2][c / 2][r % 2 * 2 + c % 2] += stored(problem, before, column_of(c));
            }
        }
        if (done >= loaded)
            finish_sums<2 * Tile::columns>(problem, group, column_of, [&](int c, const auto& f) {
                TG_UNROLL
                for (int r = 0; r < 2 * Tile::rows; ++r) f(sum[r / 2][c / 2][r % 2 * 2 + c % 2]);
            });
        TG_UNROLL
        for (int r = 0; r < Tile::rows; ++r) TG_UNROLL
        for (int half = 0; half < 2; ++half) {
            const int m = row_of(2 * r + half);
            if constexpr (pools_rows<Problem>) { // the rows of a window are those of four lanes, four apart
                TG_UNROLL
                for (int c = 0; c < Tile::columns; ++c) {
                    float pair[2];
                    TG_UNROLL
                    for (int i = 0; i < 2; ++i) {
                        float value = sum[r][c][2 * half + i];
                        const float beside = __shfl_xor_sync(0xFFFFFFFFu, value, 4);
                        value = g % 2 == 0 ? larger(value, beside) : larger(beside, value);
                        const float below = __shfl_xor_sync(0xFFFFFFFFu, value, 8);
                        pair[i] = larger(value, below); // of lanes with g % 4 == 0, which alone store
                    }
                    if (g % 4 == 0 && m < problem.m)
                        store_run(problem, problem.pooled_row(m / 4, group), column_of(2 * c), pair);
                }
                continue;
            }
            if (m >= problem.m) continue;
            float* const to = problem.row(m, group, split);
            TG_UNROLL
            for (int c = 0; c < Tile::columns; ++c) {
                const float pair[2]{sum[r][c][2 * half], sum[r][c][2 * half + 1]};
                store_run(problem, to, column_of(2 * c), pair);
            }
        }
        first = false;
    } while (done < loaded);
}

} // namespace tapegraph::cuda::kernels
