#pragma once

#include <tapegraph/cuda/kernels/operand_walk.cuh>
#ifdef TG_SIMT
#include <simt/instructions.hpp>
#else
#include <tapegraph/cuda/kernels/instructions.cuh>
#endif

/// The products of implicit_gemm.cuh on tensor cores: operands in TF32 or of 16 bits, float sums.
/// The problems are the same.
///
/// Asynchronous copies bring elements, V at a time, straight into shared memory, Stages tiles ahead
/// of the products; floats are rounded to TF32 (to nearest: truncation would shrink every result)
/// on the way into registers. One barrier per step ensures that the tile to be multiplied has
/// arrived for all threads and that the one to be overwritten has been used. Dynamic shared memory:
/// per stage A, BM lines of BK floats' bytes or as many steps of BM (+pad), and B likewise.
/// The pads and, where operands are contiguous along k, a permutation of a line's quads place the
/// eight lines and four steps that a fragment reads in 32 different banks, and the lines that a
/// warp copies, too (tools/bank_conflicts; a pad of 4 after such lines took twice the cycles for
/// copies, a fifth to a quarter of all of an input gradient).

namespace tapegraph::cuda::kernels {

/// tf32 rounds operands once (relative error 2^-11 each). tf32x3 splits them in two and adds three
/// products, which gives almost float's accuracy at a third of the speed (NVIDIA, CUTLASS example
/// 28).
enum class tensor_precision { tf32, tf32x3 };

/// Tiles of BM by BN by BK; warps in WM rows and WN columns.
template <int BM_, int BN_, int BK_, int WM_, int WN_, int Stages_>
struct tensor_tile {
    static constexpr int BM = BM_, BN = BN_, BK = BK_, WM = WM_, WN = WN_, Stages = Stages_;
    static constexpr int threads = WM * WN * 32;
    static constexpr int rows = BM / WM / 16, columns = BN / WN / 8; ///< fragments per warp
    static_assert(BM % (WM * 16) == 0 && BN % (WN * 8) == 0 && BK % 8 == 0 && Stages >= 2);
};

/// Steps of k in a tile: BK floats, or as many bytes of 16-bit elements.
template <class Tile, class T>
inline constexpr int tile_depth = Tile::BK * 4 / static_cast<int>(sizeof(T));

/// The distance between steps of copies that are made at once, chosen so that they end in different
/// banks: transposed lines are longer than a multiple of all banks by 32 bytes or, for 16-bit
/// elements, by an odd number of 16.
template <class Tile, class T, int V>
inline constexpr int copy_spread = [] {
    constexpr int bytes = Tile::threads / tile_depth<Tile, T> * V * static_cast<int>(sizeof(T)),
                  more = sizeof(T) == 4 ? 32 : 16;
    return bytes >= 128 || bytes < more ? 1 : bytes / more;
}();

/// One operand's tile in shared memory and how it is filled. Line and step are the row of the
/// operand and k. Along k a line consists of pieces of 16 bytes; otherwise a step holds all lines,
/// and a few more.
template <class Tile, class T, int Lines, bool AlongK, int V>
struct staged_operand : walk_loader<Tile::threads, Lines, tile_depth<Tile, T>, AlongK, V, copy_spread<Tile, T, V>> {
    static constexpr int depth = tile_depth<Tile, T>, piece = 16 / static_cast<int>(sizeof(T));
    static constexpr int across = sizeof(T) == 4 ? Lines + (40 - Lines % 32) % 32 : (Lines / piece | 1) * piece;
    static constexpr int pitch = AlongK ? depth : across;
    static constexpr int size = AlongK ? Lines * pitch : depth * pitch;
    static constexpr int pieces = depth / piece, turn = pieces < 8 ? 8 / pieces : 1; ///< per line; lines in all banks
    static_assert(pitch % piece == 0 && (!AlongK || (pieces & (pieces - 1)) == 0) && pieces <= 8);

    using walk = walk_loader<Tile::threads, Lines, depth, AlongK, V, copy_spread<Tile, T, V>>;

    __device__ static int at(int line, int step) {
        return AlongK ? line * pitch + (step ^ line / turn % pieces * piece) : step * pitch + line;
    }
    /// The address that a thread's i-th copy goes to. Lines eight apart have the same permutation,
    /// which saves registers.
    __device__ static int copied_to(int thread, int i) {
        if constexpr (!AlongK || walk::apart % 8 == 0)
            return at(walk::line(thread, 0), walk::step(thread, 0)) + i * walk::apart * (AlongK ? pitch : 1);
        else
            return at(walk::line(thread, i), walk::step(thread, i));
    }
    /// Moves from the address of (line, step below a piece or two) to that of (line + more, step +
    /// further); multiples of 8, and of one piece or two.
    __device__ static int moved(int place, int more, int further) {
        return AlongK ? (place ^ further) + more * pitch : place + further * pitch + more;
    }
};

/// Reads fragments of an operand: registers of 4 bytes, Count for (line, k), with the lanes that
/// multiply_tf32 and multiply_pairs expect. Of A they are lines 0 and 8, then the next piece of k;
/// of B, where k comes first, the two pieces of each 8 lines.
template <class Operand, class T, bool AlongK>
class fragment_reader {
    static constexpr bool by_element = !AlongK && sizeof(T) == 4; ///< no transposed loads of 4-byte elements exist

public:
    __device__ fragment_reader(int first, int lane, bool of_b) : of_b_(of_b) {
        // Lane 8 i + j addresses row j of matrix i: one bit of i selects the lines, the other one
        // k.
        const int lines = of_b ? lane / 16 : lane / 8 % 2, further = of_b ? lane / 8 % 2 : lane / 16;
        if constexpr (by_element)
            place_ = Operand::at(first + lane / 4, lane % 4);
        else if constexpr (AlongK)
            place_ = Operand::at(first + lines * 8 + lane % 8, further * Operand::piece);
        else
            place_ = Operand::at(first + lines * 8, further * Operand::piece + lane % 8);
    }
    template <int Count>
    __device__ void read(std::uint32_t* to, const T* tile, int more, int k) const {
        if constexpr (by_element) {
            TG_UNROLL
            for (int i = 0; i < Count; ++i) {
                const int lines = of_b_ ? i / 2 : i % 2, further = of_b_ ? i % 2 : i / 2;
                to[i] = to_bits(tile[Operand::moved(place_, more + lines * 8, k + further * 4)]);
            }
        } else {
            load_matrices<Count, !AlongK>(to, tile + Operand::moved(place_, more, k));
        }
    }

private:
    int place_;
    bool of_b_;
};

/// Rounds floats to TF32 and, in tf32x3, also the remainder.
template <tensor_precision Precision, int Count>
__device__ __forceinline__ void round_to_tf32(std::uint32_t (&x)[Count], std::uint32_t (&low)[Count]) {
    TG_UNROLL
    for (int i = 0; i < Count; ++i) {
        const float number = from_bits(x[i]);
        x[i] = to_tf32(number);
        if constexpr (Precision == tensor_precision::tf32x3)
            low[i] = to_tf32(number - from_bits(x[i] & ~std::uint32_t{0x1FFF})); // without the bits beyond TF32
    }
}

/// sum += a b of one stage's tiles, for a warp. `RoundA`: the elements of A have not been rounded
/// before.
template <class Tile, tensor_precision Precision, bool RoundA, class ReadA, class ReadB, class T>
__device__ __forceinline__ void multiply_tiles(float (&sum)[Tile::rows][Tile::columns][4], const ReadA& read_a,
                                               const T* a, const ReadB& read_b, const T* b) {
    TG_UNROLL
    for (int k = 0; k < tile_depth<Tile, T>; k += 32 / static_cast<int>(sizeof(T))) {
        std::uint32_t of_a[Tile::rows][4], low_a[Tile::rows][4];
        TG_UNROLL
        for (int r = 0; r < Tile::rows; ++r) {
            read_a.template read<4>(of_a[r], a, r * 16, k);
            if constexpr (RoundA) round_to_tf32<Precision>(of_a[r], low_a[r]);
        }
        TG_UNROLL
        for (int c = 0; c < Tile::columns; c += 2) { // two at a time, as they are read
            constexpr bool odd = Tile::columns % 2 != 0;
            std::uint32_t of_b[2][2], low_b[2][2];
            if (odd && c + 1 == Tile::columns)
                read_b.template read<2>(&of_b[0][0], b, c * 8, k);
            else
                read_b.template read<4>(&of_b[0][0], b, c * 8, k);
            TG_UNROLL
            for (int h = 0; h < 2; ++h) {
                if (c + h >= Tile::columns) break;
                if constexpr (sizeof(T) == 4) round_to_tf32<Precision>(of_b[h], low_b[h]);
                TG_UNROLL
                for (int r = 0; r < Tile::rows; ++r) {
                    float(&to)[4] = sum[r][c + h < Tile::columns ? c + h : c];
                    if constexpr (sizeof(T) == 2) {
                        multiply_pairs<T>(to, of_a[r], of_b[h]);
                    } else if constexpr (Precision == tensor_precision::tf32x3) {
                        // The small products first. The cores truncate when they add, so long sums
                        // stay outside.
                        float eight[4]{};
                        multiply_tf32(eight, low_a[r], of_b[h]);
                        multiply_tf32(eight, of_a[r], low_b[h]);
                        multiply_tf32(eight, of_a[r], of_b[h]);
                        TG_UNROLL
                        for (int i = 0; i < 4; ++i) to[i] += eight[i];
                    } else {
                        multiply_tf32(to, of_a[r], of_b[h]);
                    }
                }
            }
        }
    }
}

template <class Problem, class Tile, int V>
inline constexpr int
    tensor_gemm_shared_bytes = Tile::Stages* static_cast<int>(sizeof(typename Problem::element)) *
                               (staged_operand<Tile, typename Problem::element, Tile::BM, Problem::a_along_k, V>::size +
                                staged_operand<Tile, typename Problem::element, Tile::BN, Problem::b_along_k, V>::size);

template <class Problem, class Tile, int V, tensor_precision Precision>
__global__ void __launch_bounds__(Tile::threads, 1) tensor_gemm(Problem problem) {
    using element = typename Problem::element;
    using operand_a = staged_operand<Tile, element, Tile::BM, Problem::a_along_k, V>;
    using operand_b = staged_operand<Tile, element, Tile::BN, Problem::b_along_k, V>;
    constexpr int depth = operand_a::depth, Stages = Tile::Stages;
    constexpr int stage_size = operand_a::size + operand_b::size;
    constexpr bool pixels = Problem::walks_pixels;
    TG_DYNAMIC_SHARED(element, shared);
    __shared__ gathered_line table[pixels ? 2 : 1][depth];

    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    const int group = static_cast<int>(blockIdx.z) % problem.groups,
              split = static_cast<int>(blockIdx.z) / problem.groups;
    operand_walk<Problem, typename operand_a::walk, typename operand_b::walk, depth> walk(
        problem, thread, static_cast<int>(blockIdx.x) * Tile::BM, static_cast<int>(blockIdx.y) * Tile::BN, Tile::BM,
        group, split, table);

    const auto load = [&](int stage) {
        element* const to_a = shared + stage * stage_size;
        element* const to_b = to_a + operand_a::size;
        constexpr int bytes = static_cast<int>(sizeof(element)) * V;
        walk.load(
            problem, thread, group,
            [&](int i, const walked<element>& a) {
                copy_async<bytes>(to_a + operand_a::copied_to(thread, i), a.at, a.there);
            },
            [&](int i, const walked<element>& b) {
                copy_async<bytes>(to_b + operand_b::copied_to(thread, i), b.at, b.there);
            });
    };

    const int g = lane / 4, t = lane % 4; // a lane's position in a fragment
    const int warp_m = warp / Tile::WN * (Tile::rows * 16), warp_n = warp % Tile::WN * (Tile::columns * 8);
    const fragment_reader<operand_a, element, Problem::a_along_k> read_a(warp_m, lane, false);
    const fragment_reader<operand_b, element, Problem::b_along_k> read_b(warp_n, lane, true);
    float sum[Tile::rows][Tile::columns][4];
    const auto multiply = [&](int stage) {
        const element* const a = shared + stage * stage_size;
        multiply_tiles<Tile, Precision, sizeof(element) == 4>(sum, read_a, a, read_b, a + operand_a::size);
    };

    int loaded = 0;
    const auto load_next = [&](int stage) {
        if (walk.more()) {
            load(stage);
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
        // The very first steps only load: the loading code is long, and stands here once.
        TG_ROLLED
        for (int step = first ? 1 - Stages : 0; step < longest_chain / depth && (step < 0 || done < loaded); ++step) {
            if (step >= 0) wait_copies<Stages - 2>();
            if (step >= 0 || pixels) __syncthreads();
            load_next(step < 0 ? step + Stages - 1 : stage == 0 ? Stages - 1 : stage - 1);
            if (step < 0) continue;
            multiply(stage);
            stage = stage + 1 == Stages ? 0 : stage + 1;
            ++done;
        }
        // With first_m, the compiler would keep all addresses in registers through the loop.
        const int begin_m = computed_here(static_cast<int>(blockIdx.x)) * Tile::BM,
                  begin_n = computed_here(static_cast<int>(blockIdx.y)) * Tile::BN;
        const auto column_of = [&](int c) { return begin_n + warp_n + c / 2 * 8 + 2 * t + c % 2; };
        const auto row_of = [&](int r) { return begin_m + warp_m + r / 2 * 16 + g + r % 2 * 8; };
        if (!first) { // the sums of an earlier chain
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
            if constexpr (pools_rows<Problem>) { // the rows of a window are in four lanes, four apart
                TG_UNROLL
                for (int c = 0; c < Tile::columns; ++c) {
                    float pair[2];
                    TG_UNROLL
                    for (int i = 0; i < 2; ++i) {
                        float value = sum[r][c][2 * half + i];
                        const float beside = __shfl_xor_sync(0xFFFFFFFFu, value, 4);
                        value = g % 2 == 0 ? larger(value, beside) : larger(beside, value);
                        const float below = __shfl_xor_sync(0xFFFFFFFFu, value, 8);
                        pair[i] = larger(value, below); // only lanes with g % 4 == 0 store
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
