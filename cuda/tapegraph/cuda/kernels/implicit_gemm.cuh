#pragma once

#include <tapegraph/cuda/kernels/operand_walk.cuh>

/// C = A B where neither operand need exist in memory: a problem defines element (m, k) of A,
/// element (k, n) of B, and the address of an element of C. Convolutions are such products
/// (kernels/convolution.cuh).
///
/// One block computes a tile of C, BM by BN; each of its threads keeps TM by TN sums in registers.
/// Shared memory holds two tiles of A (BK by BM, padded) and two of B (BK by BN): while one pair is
/// multiplied, the next is loaded through registers into the other, so one barrier per step
/// suffices. k runs in order: results do not depend on timing. Grid: x tiles of M, y tiles of N, z
/// = groups times splits of k; a split writes to its own slice.

namespace tapegraph::cuda::kernels {

/// The shape of a tile. The lanes of a warp form a grid of 8 by 4, so a warp computes 8 TM by 4 TN.
template <int BM_, int BN_, int BK_, int TM_, int TN_>
struct tile_shape {
    static constexpr int BM = BM_, BN = BN_, BK = BK_, TM = TM_, TN = TN_;
    static constexpr int warps_n = BN / (4 * TN);
    static constexpr int threads = BM / (8 * TM) * warps_n * 32;
    static_assert(BM % (8 * TM) == 0 && BN % (4 * TN) == 0 && TM % 4 == 0 && TN % 4 == 0 && threads <= 1024);
};

/// Avoids bank conflicts where a warp writes neighbouring steps of k into a tile whose rows are
/// four banks apart, so that later steps would hit the banks of the first: line l is stored at l ^
/// exchanged(step). Without that, such writes took two cycles instead of one with 16 steps of
/// floats, which is 4 or 8 of 100 cycles of all accesses (tools/bank_conflicts).
template <class T, int BK, bool AlongK, int V>
__host__ __device__ constexpr int exchanged(int step) {
    constexpr int banks = 128 / static_cast<int>(sizeof(T)); // in elements
    return AlongK ? step / (banks / 4) * (banks * V / BK) : 0;
}

/// Blocks per multiprocessor for which registers are reserved. A filter gradient reserves for four:
/// otherwise the compiler uses 141 for odd channels instead of 127.
template <class Problem, class Tile>
inline constexpr int
    implicit_gemm_blocks = sizeof(typename Problem::T) == 4 && Tile::TM* Tile::TN == 32 && !Problem::a_along_k ? 4 : 1;

/// `Problem` has the element type T; extents m, n, k, groups, splits; a_along_k, b_along_k; what
/// operand_walk.cuh needs; row(m, group, split), the begin of C's row; `width`, how many elements
/// are stored at once; optionally bias and relu, for sums that are not split. Indices beyond the
/// extents are passed, too.
/// The V neighbours along the direction in which an operand is contiguous are either all inside or
/// all outside, and aligned to V.
template <class Problem, class Tile, int V>
__global__ void __launch_bounds__(Tile::threads, implicit_gemm_blocks<Problem, Tile>) implicit_gemm(Problem problem) {
    using T = typename Problem::T;
    using quad = pack<T, 4>;
    constexpr int BK = Tile::BK;
    constexpr bool pixels = Problem::walks_pixels;
    constexpr int pitch_a = Tile::BM + 4, pitch_b = Tile::BN + 4; // transposed writes end in different banks
    constexpr auto exchanged_a = exchanged<T, BK, Problem::a_along_k, V>;
    constexpr auto exchanged_b = exchanged<T, BK, Problem::b_along_k, V>;
    static_assert(exchanged_a(BK - 1) < 16 && exchanged_b(BK - 1) < 16, "pieces of lanes lie 16 apart");
    alignas(16) __shared__ T shared_a[2][BK * pitch_a];
    alignas(16) __shared__ T shared_b[2][BK * pitch_b];
    using load_a = walk_loader<Tile::threads, Tile::BM, BK, Problem::a_along_k, V>;
    using load_b = walk_loader<Tile::threads, Tile::BN, BK, Problem::b_along_k, V>;

    __shared__ gathered_line table[pixels ? 2 : 1][BK];

    const int thread = static_cast<int>(threadIdx.x);
    const int group = static_cast<int>(blockIdx.z) % problem.groups,
              split = static_cast<int>(blockIdx.z) / problem.groups;
    operand_walk<Problem, load_a, load_b, BK> walk(problem, thread, static_cast<int>(blockIdx.x) * Tile::BM,
                                                   static_cast<int>(blockIdx.y) * Tile::BN, Tile::BM, group, split,
                                                   table);

    pack<T, V> next_a[load_a::each], next_b[load_b::each];
    const auto read = [](const walked<T>& e) {
        return e.there ? *reinterpret_cast<const pack<T, V>*>(e.at) : pack<T, V>{};
    };
    const auto fetch = [&] {
        walk.load(
            problem, thread, group, [&](int i, const walked<T>& a) { next_a[i] = read(a); },
            [&](int i, const walked<T>& b) { next_b[i] = read(b); });
    };
    const auto keep_operand = [&](auto load, T* shared, int pitch, bool along_k, const auto& exchange,
                                  const pack<T, V>* next) {
        TG_UNROLL
        for (int i = 0; i < load.each; ++i) {
            if (!load.mine(thread, i)) break;
            const int step = load.step(thread, i), at = step * pitch + (load.line(thread, i) ^ exchange(step));
            if (along_k) {
                TG_UNROLL
                for (int j = 0; j < V; ++j) shared[at + j * pitch] = next[i].v[j];
            } else {
                *reinterpret_cast<pack<T, V>*>(shared + at) = next[i];
            }
        }
    };
    const auto keep = [&](int buffer) {
        keep_operand(load_a{}, shared_a[buffer], pitch_a, Problem::a_along_k, exchanged_a, next_a);
        keep_operand(load_b{}, shared_b[buffer], pitch_b, Problem::b_along_k, exchanged_b, next_b);
    };

    // A thread's sums: TM rows and TN columns in pieces of four that the lanes interleave, so that
    // a warp's reads of shared memory are consecutive.
    const int warp = thread / 32, lane = thread % 32;
    const int row = warp / Tile::warps_n * (8 * Tile::TM) + lane / 4 * 4;
    const int column = warp % Tile::warps_n * (4 * Tile::TN) + lane % 4 * 4;
    T sum[Tile::TM][Tile::TN];
    const auto multiply = [&](const T* a_tile, const T* b_tile) {
        TG_UNROLL
        for (int i = 0; i < BK; ++i) {
            quad a[Tile::TM / 4], b[Tile::TN / 4];
            TG_UNROLL
            for (int r = 0; r < Tile::TM / 4; ++r)
                a[r] = *reinterpret_cast<const quad*>(a_tile + i * pitch_a + (row ^ (exchanged_a(i) & ~3)) + r * 32);
            TG_UNROLL
            for (int c = 0; c < Tile::TN / 4; ++c)
                b[c] = *reinterpret_cast<const quad*>(b_tile + i * pitch_b + (column ^ (exchanged_b(i) & ~3)) + c * 16);
            TG_UNROLL
            for (int r = 0; r < Tile::TM; ++r) TG_UNROLL
            for (int c = 0; c < Tile::TN; ++c)
                sum[r][c] =
                    multiply_add(a[r / 4].v[(r ^ exchanged_a(i)) % 4], b[c / 4].v[(c ^ exchanged_b(i)) % 4], sum[r][c]);
        }
    };

    int buffer = 1;
    bool first = true, loaded = false; // loaded: there is a tile to be multiplied
    do {
        TG_UNROLL
        for (int r = 0; r < Tile::TM; ++r) TG_UNROLL
        for (int c = 0; c < Tile::TN; ++c) sum[r][c] = T(0);
        // The very first step only loads: the loading code is long, and stands here once.
        for (int step = loaded ? 0 : -1; step < longest_chain / BK && (loaded || walk.more()); ++step, buffer ^= 1) {
            if (pixels && step < 0) __syncthreads(); // for the first pixels
            const bool more = walk.more();
            if (more) fetch();
            if (loaded) multiply(shared_a[buffer], shared_b[buffer]);
            if (more) keep(buffer ^ 1);
            loaded = more;
            __syncthreads();
        }
        // With first_m, the compiler would keep all addresses in registers through the loop.
        const int begin_m = computed_here(static_cast<int>(blockIdx.x)) * Tile::BM,
                  begin_n = computed_here(static_cast<int>(blockIdx.y)) * Tile::BN;
        const auto column_of = [&](int c) { return begin_n + column + c / 4 * 16 + c % 4; };
        const auto row_of = [&](int r) { return begin_m + row + r / 4 * 32 + r % 4; };
        if (!first) { // the sums of an earlier chain
            TG_UNROLL
            for (int r = 0; r < Tile::TM; ++r) {
                if (row_of(r) >= problem.m) continue;
                const T* const before = problem.row(row_of(r), group, split);
                TG_UNROLL
                for (int c = 0; c < Tile::TN; ++c) sum[r][c] += stored(problem, before, column_of(c));
            }
        }
        if (!loaded)
            finish_sums<Tile::TN>(problem, group, column_of, [&](int c, const auto& f) {
                TG_UNROLL
                for (int r = 0; r < Tile::TM; ++r) f(sum[r][c]);
            });
        TG_UNROLL
        for (int r = 0; r < Tile::TM; ++r) {
            const int m = row_of(r);
            if (m >= problem.m) continue;
            if constexpr (pools_rows<Problem>) { // a thread has all four rows of a window
                if (r % 4 != 0) continue;
                TG_UNROLL
                for (int c = 0; c < Tile::TN; c += 4) {
                    T piece[4];
                    TG_UNROLL
                    for (int i = 0; i < 4; ++i) {
                        piece[i] = sum[r / 4 * 4][c + i];
                        TG_UNROLL
                        for (int q = 1; q < 4; ++q) piece[i] = larger(piece[i], sum[r / 4 * 4 + q][c + i]);
                    }
                    store_run(problem, problem.pooled_row(m / 4, group), column_of(c), piece);
                }
                continue;
            }
            T* const to = problem.row(m, group, split);
            TG_UNROLL
            for (int c = 0; c < Tile::TN; c += 4) {
                const T piece[4]{sum[r][c], sum[r][c + 1], sum[r][c + 2], sum[r][c + 3]};
                store_run(problem, to, column_of(c), piece);
            }
        }
        first = false;
    } while (loaded);
}

} // namespace tapegraph::cuda::kernels
