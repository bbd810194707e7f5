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

/// Block sizes. They and the order of summation depend only on the shape, not on the threads.
struct gemm_plan {
    std::int64_t block_m, block_n, block_k;
    bool shared_b;                // b is packed once for all threads; otherwise each thread packs the panels it uses
    bool b_stays;                 // whole panels of b are read in place,
    bool few_rows;                // part_k rows of k at a time for all panels,
    std::int64_t part_k, waiting; // while so many sums wait
    bool pack_a;
    bool part_of_lines; // a is packed where tiles have few rows
    bool packed_b;      // by the caller
    bool rows_first;    // a tile visits all panels, which stay in L2, before the next tile does

    /// The block of k that is summed in registers: 1,024, or 256 of a long sum for few columns (the
    /// gradient by a layer's weights over many rows), so that a block of both factors is read from
    /// memory only once and stays in L2 until all of the result has used it. It depends neither on
    /// the storage of operands nor on m: one mode may pass an operand transposed or alone that the
    /// other copies and joins.
    static constexpr std::int64_t most_k(std::int64_t n, std::int64_t k) { return k > 4096 && n <= 512 ? 256 : 1024; }

    template <class T>
    explicit gemm_plan(const gemm_arguments<T>& g) {
        constexpr auto bytes = static_cast<std::int64_t>(sizeof(T));
        // Equal parts of k and m, so that the last is not tiny.
        block_k = equal_part(g.k, most_k(g.n, g.k));
        block_m = equal_part(g.m, 1536);
        block_n = panel_layout::padded(equal_part(g.n, 4096), 32); // whole panels
        packed_b = g.packed_b != nullptr;
        // A few rows do not pay for a copy. Rows of b far apart would share a few cache sets, which
        // does not matter where some of them are used up before the next are read (run_few).
        const bool whole = !packed_b && !g.transpose_b;
        few_rows = whole && g.m <= 2 * active_tile_kernels<T>().rows;
        b_stays = few_rows || (whole && g.m <= 256 && g.ldb * bytes <= 2048);
        part_k = equal_part(block_k, std::clamp<std::int64_t>(128 * 1024 / (block_n * bytes), 16, 256));
        waiting = whole ? std::min<std::int64_t>(g.m, 2 * tile_kernels<T>::most_rows) * block_n : 0;
        shared_b = g.m > 96 && !b_stays;
        // Rows of a are read in place unless a stride of pages would make them share a few cache
        // sets, or unless they are scattered and read often. A narrow product reads each number
        // once, so copying would cost as much. Many rows of 512 bytes share L1's sets as well:
        // tiles that read less than half of a line at a time lose a tenth to that, others nothing.
        const bool scattered = g.n > 96 && g.lda * bytes > 1024;
        part_of_lines = g.transpose_a && g.n >= 128 && block_k >= 128 && g.lda * bytes >= 512;
        pack_a = g.transpose_a ? scattered || (part_of_lines && active_tile_kernels<T>().rows * bytes < 32)
                               : g.lda * bytes % 4096 == 0 && g.n > 32;
        rows_first = (shared_b || packed_b) && block_n * block_k * bytes <= l2_bytes() / 2;
    }
    /// For any instruction set.
    std::int64_t a_elements() const {
        return pack_a || part_of_lines ? (block_m + tile_kernels<float>::most_rows) * block_k : 0;
    }
    std::int64_t b_elements(int threads) const {
        if (packed_b) return 0;
        // A workspace planned for many rows must do for a few, too.
        return std::max(shared_b ? block_n * block_k : 0, threads * 32 * block_k + waiting);
    }
};

} // namespace detail
} // namespace tapegraph::cpu
