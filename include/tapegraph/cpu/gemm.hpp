#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/cpu/caches.hpp>
#include <tapegraph/cpu/gemm_kernel.hpp>
#include <tapegraph/cpu/gemm_vector.hpp>
#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/cpu/tasks.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

/// Matrix products. Both operands are packed block by block into the layout that the tile kernel
/// reads (cpu/gemm_kernel.hpp); memory-bound kernels compute products with one row or one column
/// (cpu/gemm_vector.hpp).

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
    bool shared_b; // b is packed once for all threads; otherwise each thread packs the panels it uses
    bool b_stays;  // whole panels of b are read in place
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
        // A few rows do not pay for a copy. Rows of b far apart would share a few cache sets, which a
        // single tile of rows does not mind: it reads each number once.
        b_stays = !packed_b && !g.transpose_b &&
                  (g.m <= active_tile_kernels<T>().rows || (g.m <= 256 && g.ldb * bytes <= 2048));
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
        return shared_b ? block_n * block_k : threads * 32 * block_k;
    }
};

template <class T>
struct gemm_block {
    const gemm_arguments<T>& g;
    const gemm_plan& plan;
    const tile_kernels<T>& kernels;
    T* packed_a; // tile by tile, [k, rows of the tile]
    T* packed_b;
    std::int64_t row, rows, column, columns, first_k, k;

    std::int64_t tiles() const { return divide_up(rows, kernels.rows); }
    std::int64_t tile_row(std::int64_t tile) const { return rows * tile / tiles(); }
    panel_layout layout() const { return {columns, kernels.lanes}; }

    void pack_a(std::int64_t tile) const {
        const std::int64_t first = tile_row(tile), count = tile_row(tile + 1) - first;
        T* to = packed_a + first * k;
        if (g.transpose_a) {
            const T* from = g.a + first_k * g.lda + row + first;
            for (std::int64_t i = 0; i < k; ++i)
                for (std::int64_t r = 0; r < count; ++r) to[i * count + r] = from[i * g.lda + r];
        } else {
            transpose(to, count, g.a + (row + first) * g.lda + first_k, g.lda, count, k);
        }
    }
    void pack_b(std::int64_t panel, T* to) const {
        const T* from = g.transpose_b ? g.b + column * g.ldb + first_k : g.b + first_k * g.ldb + column;
        pack_panel(to, layout(), panel, from, g.ldb, g.transpose_b, k);
    }
    /// A null `b` is read in place.
    void multiply(std::int64_t tile, std::int64_t panel, const T* b) const {
        const std::int64_t first = tile_row(tile), count = tile_row(tile + 1) - first;
        tile_job<T> job{};
        job.walk.inner = k;
        if (plan.pack_a) {
            job.a = packed_a + first * k;
            job.a_row = 1;
            job.walk.a_inner = count;
        } else {
            job.a = g.transpose_a ? g.a + first_k * g.lda + row + first : g.a + (row + first) * g.lda + first_k;
            job.a_row = g.transpose_a ? 1 : g.lda;
            job.walk.a_inner = g.transpose_a ? g.lda : 1;
        }
        job.b = b;
        if (b == nullptr) {
            job.b = g.b + first_k * g.ldb + column + panel * 2 * kernels.lanes;
            job.walk.b_inner = g.ldb;
        }
        job.c = g.c + (row + first) * g.ldc + column + panel * 2 * kernels.lanes;
        job.c_row = g.ldc;
        job.columns = layout().columns(panel);
        job.accumulate = g.accumulate || first_k > 0;
        if (first_k + k == g.k) {
            if (g.bias != nullptr) job.bias = g.bias + column + panel * 2 * kernels.lanes;
            job.relu = g.relu;
        }
        kernels.run[layout().vectors(panel) - 1][count - 1](job);
    }

    const T* panel_of(std::int64_t panel) const {
        if (!plan.packed_b) return packed_b + layout().offset(panel, k);
        const panel_layout whole{g.n, kernels.lanes};
        const std::int64_t p = column / (2 * kernels.lanes) + panel;
        return g.packed_b + whole.offset(p, g.k) + first_k * whole.width(p);
    }

    // Prefetches the operands of the next tile or panel into L2, a part at each product, while this
    // one computes. Part `part` of `parts` of the rows of a tile:
    TG_INLINE void prefetch_tile(std::int64_t tile, std::int64_t part, std::int64_t parts) const {
        if (plan.pack_a || g.transpose_a || tile >= tiles()) return;
        const std::int64_t first = tile_row(tile), count = tile_row(tile + 1) - first;
        const T* const from = g.a + (row + first) * g.lda + first_k;
        for (std::int64_t r = count * part / parts; r < count * (part + 1) / parts; ++r)
            for (std::int64_t i = 0; i < k; i += line) __builtin_prefetch(from + r * g.lda + i, 0, 2);
    }
    // The rows of a panel of b; after the last panel, those of the first one of the next rows.
    TG_INLINE void ask_for_panel(std::int64_t panel, std::int64_t part, std::int64_t parts) const {
        const bool below = panel >= layout().count();
        if (below && first_k + 2 * k > g.k) return;
        const T* const from =
            g.b + (below ? first_k + k : first_k) * g.ldb + column + (below ? 0 : panel * 2 * kernels.lanes);
        for (std::int64_t i = k * part / parts; i < k * (part + 1) / parts; ++i) {
            __builtin_prefetch(from + i * g.ldb, 0, 2);
            __builtin_prefetch(from + i * g.ldb + line, 0, 2);
        }
    }
    static constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));

    void run(bool parallel) const {
        const std::int64_t panels = layout().count();
        const std::int64_t packs = plan.pack_a ? divide_up(tiles(), 4) : 0;
        const bool pack_shared = plan.shared_b && !plan.packed_b;
        for_tasks(packs + (pack_shared ? panels : 0), parallel && rows > 24, [&](std::int64_t task, int) {
            if (task < packs)
                for (std::int64_t t = task * 4; t < std::min(tiles(), task * 4 + 4); ++t) pack_a(t);
            else
                pack_b(task - packs, packed_b + layout().offset(task - packs, k));
        });
        if (!plan.shared_b && !plan.packed_b) {
            // Where there are fewer panels than threads, threads may share a panel that is not
            // copied.
            const std::int64_t shares =
                plan.b_stays ? std::clamp<std::int64_t>(divide_up(thread_count(), panels), 1, tiles()) : 1;
            for_tasks(panels * shares, parallel, [&](std::int64_t task, int thread) {
                const std::int64_t panel = task / shares, share = task % shares;
                const bool stays = plan.b_stays && layout().columns(panel) == layout().width(panel);
                T* const b = stays ? nullptr : packed_b + thread * 32 * plan.block_k;
                if (!stays) pack_b(panel, b);
                for (std::int64_t t = tiles() * share / shares; t < tiles() * (share + 1) / shares; ++t) {
                    if (plan.b_stays) ask_for_panel(panel + 1, t, tiles());
                    multiply(t, panel, b);
                }
            });
            return;
        }
        // A task is as many tiles as keep their part of a in L2 while the panels stream past, times
        // some panels.
        const std::int64_t tile_bytes = kernels.rows * k * static_cast<std::int64_t>(sizeof(T));
        std::int64_t groups = divide_up(tiles(), parts_within_l2(tile_bytes));
        if (plan.rows_first) groups = std::min(tiles(), std::max<std::int64_t>(groups, 8 * thread_count()));
        const std::int64_t panel_groups = std::clamp<std::int64_t>(divide_up(8 * thread_count(), groups), 1, panels);
        for_tasks(groups * panel_groups, parallel, [&](std::int64_t task, int) {
            const std::int64_t first_tile = tiles() * (task / panel_groups) / groups,
                               last_tile = tiles() * (task / panel_groups + 1) / groups;
            const std::int64_t first_panel = panels * (task % panel_groups) / panel_groups,
                               last_panel = panels * (task % panel_groups + 1) / panel_groups;
            if (plan.rows_first)
                for (std::int64_t t = first_tile; t < last_tile; ++t)
                    for (std::int64_t p = first_panel; p < last_panel; ++p) {
                        prefetch_tile(t + 1, p - first_panel, last_panel - first_panel);
                        multiply(t, p, panel_of(p));
                    }
            else
                for (std::int64_t p = first_panel; p < last_panel; ++p)
                    for (std::int64_t t = first_tile; t < last_tile; ++t) multiply(t, p, panel_of(p));
        });
    }
};

} // namespace detail

/// Workspace of gemm when thread_count() is at most `threads`, for any instruction set.
template <class T>
std::size_t gemm_workspace_bytes(const gemm_arguments<T>& g, int threads) {
    if (g.m <= 0 || g.n <= 0 || g.k <= 0) return 0;
    detail::workspace_cutter cut(nullptr);
    if (g.m == 1 || g.n == 1) {
        cut.take<T>(detail::gemm_vector_elements(g.m, g.n, g.k, threads));
    } else {
        const detail::gemm_plan plan(g);
        cut.take<T>(plan.a_elements());
        cut.take<T>(plan.b_elements(threads));
        // A batch of one record turns a matrix into a vector, and workspace planned for a larger
        // batch must suffice for it.
        detail::workspace_cutter vector(nullptr);
        vector.take<T>(detail::gemm_vector_elements(g.m, g.n, g.k, threads));
        return std::max(cut.used(), vector.used());
    }
    return cut.used();
}

/// Bytes of op(b) packed once for many products.
template <class T>
std::size_t gemm_packed_bytes(std::int64_t n, std::int64_t k) {
    return static_cast<std::size_t>(panel_layout::padded(n, tile_kernels<T>::most_lanes) * k) * sizeof(T);
}

/// Packs op(b) of `g` for the active instruction set; `packed` is aligned to 64 bytes. With one row
/// or column gemm reads b itself, so b must be kept, too.
template <class T>
void gemm_pack_b(const gemm_arguments<T>& g, T* packed) {
    const panel_layout layout{g.n, active_tile_kernels<T>().lanes};
    parallel_for(layout.count(), detail::worth_threads(static_cast<double>(g.n) * static_cast<double>(g.k)),
                 [&](std::int64_t panel) {
                     pack_panel(packed + layout.offset(panel, g.k), layout, panel, g.b, g.ldb, g.transpose_b, g.k);
                 });
}

/// Computes the product `g`. `workspace` is aligned to 64 bytes.
template <class T>
void gemm(const gemm_arguments<T>& g, void* workspace) {
    if (g.m <= 0 || g.n <= 0) return;
    if (g.k <= 0) {
        if (!g.accumulate)
            for (std::int64_t i = 0; i < g.m; ++i) std::fill_n(g.c + i * g.ldc, g.n, T(0));
        return finish_rows(g);
    }
    detail::workspace_cutter cut(workspace);
    if (g.m == 1 || g.n == 1) {
        // A row times a matrix is the transposed matrix times a column.
        const bool column = g.n == 1;
        T* scratch = cut.take<T>(detail::gemm_vector_elements(g.m, g.n, g.k, thread_count()));
        detail::gemm_vector_arguments<T> v{};
        v.rows = column ? g.m : g.n;
        v.k = g.k;
        v.matrix = column ? g.a : g.b;
        v.matrix_row = column ? g.lda : g.ldb;
        v.by_columns = column ? g.transpose_a : !g.transpose_b;
        v.x = column ? g.b : g.a;
        v.x_stride = column ? (g.transpose_b ? 1 : g.ldb) : (g.transpose_a ? g.lda : 1);
        v.y = g.c;
        v.y_stride = column ? g.ldc : 1;
        v.accumulate = g.accumulate;
        detail::gemm_vector(v, scratch);
        return finish_rows(g);
    }
    const detail::gemm_plan plan(g);
    T* packed_a = cut.take<T>(plan.a_elements());
    T* packed_b = cut.take<T>(plan.b_elements(thread_count()));
    const auto& kernels = active_tile_kernels<T>();
    const bool parallel = detail::worth_threads(detail::multiply_adds(g));
    for (std::int64_t row = 0; row < g.m; row += plan.block_m)
        for (std::int64_t column = 0; column < g.n; column += plan.block_n)
            for (std::int64_t k = 0; k < g.k; k += plan.block_k)
                detail::gemm_block<T>{g,
                                      plan,
                                      kernels,
                                      packed_a,
                                      packed_b,
                                      row,
                                      std::min(plan.block_m, g.m - row),
                                      column,
                                      std::min(plan.block_n, g.n - column),
                                      k,
                                      std::min(plan.block_k, g.k - k)}
                    .run(parallel);
}

/// Workspace of gemm_batched.
template <class T>
std::size_t gemm_batched_workspace_bytes(const gemm_arguments<T>& first, std::int64_t batch, int threads) {
    return std::max(gemm_workspace_bytes(first, threads),
                    batch > 1 ? gemm_workspace_bytes(first, 1) * static_cast<std::size_t>(threads) : 0);
}

/// `batch` products of one shape; `place(i, g)` points a copy of `first` at product i. Threads
/// divide small products among them, and the rows of large ones: the bits are the same either way.
template <class T, class Place>
void gemm_each(const gemm_arguments<T>& first, std::int64_t batch, const Place& place, void* workspace) {
    const auto product = [&](std::int64_t i) {
        gemm_arguments<T> g = first;
        place(i, g);
        return g;
    };
    const double work = detail::multiply_adds(first);
    if (batch < 2 || (batch < thread_count() && detail::worth_threads(work))) {
        for (std::int64_t i = 0; i < batch; ++i) gemm(product(i), workspace);
        return;
    }
    const std::size_t share = gemm_workspace_bytes(first, 1);
    // Several small products make one task.
    const std::int64_t run = std::clamp<std::int64_t>(static_cast<std::int64_t>(50000 / (work + 1)), 1, batch);
    const std::int64_t tasks = detail::divide_up(batch, run);
    const bool parallel = detail::worth_threads(work * static_cast<double>(batch));
    detail::for_tasks(tasks, parallel, [&](std::int64_t task, int thread) {
        for (std::int64_t i = batch * task / tasks; i < batch * (task + 1) / tasks; ++i)
            gemm(product(i), static_cast<std::byte*>(workspace) + static_cast<std::size_t>(thread) * share);
    });
}

/// A batch of products whose operands lie `stride_*` elements apart from one product to the next (0: all products share them).
template <class T>
void gemm_batched(const gemm_arguments<T>& first, std::int64_t batch, std::int64_t stride_a, std::int64_t stride_b,
                  std::int64_t stride_c, void* workspace) {
    gemm_each(
        first, batch,
        [&](std::int64_t i, gemm_arguments<T>& g) { g.a += i * stride_a, g.b += i * stride_b, g.c += i * stride_c; },
        workspace);
}

TG_COMPILED(product, void finish_rows<float>(const gemm_arguments<float>&))
TG_COMPILED(product, std::size_t gemm_workspace_bytes<float>(const gemm_arguments<float>&, int))
TG_COMPILED(product, void gemm_pack_b<float>(const gemm_arguments<float>&, float*))
TG_COMPILED(product, void gemm<float>(const gemm_arguments<float>&, void*))
TG_COMPILED(product, void gemm_batched<float>(const gemm_arguments<float>&, std::int64_t, std::int64_t, std::int64_t,
                                              std::int64_t, void*))
TG_COMPILED(product, void finish_rows<double>(const gemm_arguments<double>&))
TG_COMPILED(product, std::size_t gemm_workspace_bytes<double>(const gemm_arguments<double>&, int))
TG_COMPILED(product, void gemm_pack_b<double>(const gemm_arguments<double>&, double*))
TG_COMPILED(product, void gemm<double>(const gemm_arguments<double>&, void*))
TG_COMPILED(product, void gemm_batched<double>(const gemm_arguments<double>&, std::int64_t, std::int64_t, std::int64_t,
                                               std::int64_t, void*))

} // namespace tapegraph::cpu
