#pragma once

#include <tapegraph/cpu/caches.hpp>
#include <tapegraph/cpu/gemm_kernel.hpp>
#include <tapegraph/cpu/tasks.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

/// What a matrix product is called with, and how it is cut into blocks (cpu/gemm.hpp).

namespace tapegraph::cpu {

/// c [m, n] = (or +=) op(a) [m, k] * op(b) [k, n], row-major; `lda` and so on are the lengths of
/// stored rows. A transposed operand is stored [k, m] or [n, k]. If requested, c = relu(c + bias)
/// follows once all of k is added.
template <class T>
struct gemm_arguments {
    std::int64_t m, n, k;
    const T* a;
    std::int64_t lda;
    bool transpose_a;
    const T* b;
    std::int64_t ldb;
    bool transpose_b;
    T* c;
    std::int64_t ldc;
    bool accumulate = false;
    const T* packed_b = nullptr; // op(b) as packed by gemm_pack_b, instead of b
    const T* bias = nullptr;     // [n], for every row
    bool relu = false;
    bool rows_are_near = false; // the threads that multiply rows of a have just written them
};

/// Bias and relu, where the kernel that adds the sums does not apply them.
template <class T>
TG_VECTORISES void finish_rows(const gemm_arguments<T>& g) {
    for (std::int64_t i = 0; i < g.m && (g.bias != nullptr || g.relu); ++i) {
        T* const c = g.c + i * g.ldc;
        if (g.bias != nullptr) {
            TG_SIMD
            for (std::int64_t j = 0; j < g.n; ++j) c[j] += g.bias[j];
        }
        if (g.relu) {
            TG_SIMD
            for (std::int64_t j = 0; j < g.n; ++j) c[j] = c[j] <= T(0) ? T(0) : c[j]; // keeps NaN
        }
    }
}

namespace detail {

template <class T>
double multiply_adds(const gemm_arguments<T>& g) {
    return static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
}

/// Block sizes. The order of summation depends on block_k alone.
struct gemm_plan {
    std::int64_t block_m, block_n, block_k;
    std::int64_t resident; // columns of b that stay in L2 while rows of a stream past
    bool shared_b;         // b is packed once for all threads; otherwise each thread packs the panels it uses
    bool b_stays;          // whole panels of b are read in place,
    bool few_rows;         // part_k rows of k at a time for all panels,
    std::int64_t part_k;   // while sums wait
    bool pack_a;
    bool a_by_turns; // some rows just before they are used
    bool packed_b;   // by the caller

    /// The block of k that is summed in registers. It depends neither on the storage of operands nor
    /// on m: one mode may pass an operand transposed or alone that the other copies and joins. Longer
    /// blocks leave less of b in L2, shorter ones add to c more often.
    static constexpr std::int64_t most_k = 512;

    static constexpr std::int64_t most_few_rows = 160, columns_of_few = 512;
    static constexpr std::int64_t fewest_rows = 24, columns_of_fewest = 4096; // memory is read row by row, sums are few
    static constexpr std::int64_t most_packed_rows = 4096, rows_of_turn = 48;
    static constexpr std::int64_t most_unshared = 160;

    template <class T>
    gemm_plan(const gemm_arguments<T>& g, int threads) {
        constexpr auto bytes = static_cast<std::int64_t>(sizeof(T));
        block_k = equal_part(g.k, most_k); // equal parts, so that the last is not tiny
        packed_b = g.packed_b != nullptr;
        // Rows that lie close together are read in place, panel by panel, by up to some twenty tiles.
        // Rows further apart would share a few cache sets and touch a page each, which does not
        // matter where some of them are used up before the next are read (run_few).
        const bool whole = !packed_b && !g.transpose_b;
        const bool close = whole && g.ldb * bytes <= 2048 && g.m > fewest_rows && g.m <= 256;
        few_rows = whole && !close && g.m <= most_few_rows;
        b_stays = few_rows || close;
        shared_b = g.m > most_unshared && !b_stays;
        resident = columns_in_l2<T>(g.n, std::min(g.k, most_k), g.m);
        const std::int64_t columns = shared_b || packed_b            ? resident * shares(threads)
                                     : few_rows && g.m > fewest_rows ? columns_of_few * shares(threads)
                                                                     : columns_of_fewest;
        block_n = panel_layout::padded(equal_part(g.n, columns), 32); // whole panels
        const std::int64_t rows_of_part = g.m > fewest_rows ? 256 * 1024 / (std::min(block_n, columns_of_few) * bytes)
                                                            : 128 * 1024 / (block_n * bytes);
        part_k = equal_part(block_k, std::clamp<std::int64_t>(rows_of_part, 16, most_k));
        // Rows of a are read in place unless a stride of pages would make them share a few cache
        // sets, or unless they are scattered and read often. A narrow product reads each number
        // once, so copying would cost as much. Many rows of 512 bytes share L1's sets as well:
        // tiles that read less than half of a line at a time lose a tenth to that, others nothing.
        const bool scattered = g.n > 96 && g.lda * bytes > 1024;
        const bool part_of_lines = g.n >= 128 && block_k >= 128 && g.lda * bytes >= 512;
        pack_a = g.transpose_a ? scattered || part_of_lines : g.lda * bytes % 4096 == 0 && g.n > 32;
        // Another copy of the same rows costs more than keeping the first one beyond L2.
        a_by_turns = pack_a && (shared_b || packed_b) && g.n <= block_n;
        block_m = pack_a && !a_by_turns ? equal_part(g.m, most_packed_rows) : g.m;
    }
    // Threads that get a block of their own between two meetings of all.
    static std::int64_t shares(int threads) { return std::clamp(threads, 1, 8); }
    template <class T>
    static std::int64_t elements_in_l2() {
        return large_l2_bytes() / 2 / static_cast<std::int64_t>(sizeof(T));
    }
    // A block of b takes half of L2. Some hundred rows use it up so soon that the next one, which
    // arrives meanwhile, must fit beside it.
    template <class T>
    static std::int64_t columns_in_l2(std::int64_t n, std::int64_t k, std::int64_t m) {
        const std::int64_t half = elements_in_l2<T>();
        const bool next = m <= 512 && panel_layout::padded(n, 32) * k > half;
        const std::int64_t all = next ? std::min(half, l2_bytes() / 2 / static_cast<std::int64_t>(sizeof(T))) : half;
        return std::max<std::int64_t>(1, all / (32 * k)) * 32;
    }
    // Of workspace, for any instruction set, and for every smaller m, n, k and number of threads.
    template <class T>
    static std::int64_t a_elements(const gemm_arguments<T>& g, int threads) {
        if (g.n <= 32) return 0; // then a is read in place, whatever lda is
        return std::max(std::min(g.m, most_packed_rows) + tile_kernels<float>::most_rows, threads * rows_of_turn) *
               std::min(g.k, most_k);
    }
    static std::int64_t waiting_elements(std::int64_t m, std::int64_t n, int threads) {
        const std::int64_t columns = panel_layout::padded(n, 32);
        return std::max(std::min(m, most_few_rows) * std::min(columns, columns_of_few * shares(threads)),
                        std::min(m, fewest_rows) * std::min(columns, columns_of_fewest));
    }
    /// For rows that are too few to pack b for all threads.
    template <class T>
    static std::int64_t few_elements(const gemm_arguments<T>& g, int threads) {
        return std::int64_t{threads} * 32 * std::min(g.k, most_k) + waiting_elements(g.m, g.n, threads);
    }
    template <class T>
    static std::int64_t b_elements(const gemm_arguments<T>& g, int threads) {
        if (g.packed_b != nullptr) return 0;
        const std::int64_t k = std::min(g.k, most_k);
        const std::int64_t shared =
            std::min(panel_layout::padded(g.n, 32) * k, shares(threads) * std::max(elements_in_l2<T>(), 32 * k));
        return std::max(shared, few_elements(g, threads));
    }
};

} // namespace detail
} // namespace tapegraph::cpu
