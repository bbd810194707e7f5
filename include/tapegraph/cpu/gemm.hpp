#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/cpu/gemm_plan.hpp>
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

namespace detail {

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
    /// Rows [at, at + count) of k in this block, the last of which finishes the sums. A null `b` is
    /// read in place.
    void multiply(std::int64_t tile, std::int64_t panel, const T* b, std::int64_t at, std::int64_t count,
                  const T* ahead = nullptr) const {
        const std::int64_t first = tile_row(tile), height = tile_row(tile + 1) - first;
        tile_job<T> job{};
        job.walk.inner = count;
        if (plan.pack_a) {
            job.a = packed_a + first * k + at * height;
            job.a_row = 1;
            job.walk.a_inner = height;
        } else {
            const std::int64_t i = row + first, from = first_k + at;
            job.a = g.transpose_a ? g.a + from * g.lda + i : g.a + i * g.lda + from;
            job.a_row = g.transpose_a ? 1 : g.lda;
            job.walk.a_inner = g.transpose_a ? g.lda : 1;
        }
        const std::int64_t width = layout().width(panel), left = panel * 2 * kernels.lanes;
        if (b != nullptr) {
            job.b = b + at * width;
        } else {
            job.b = g.b + (first_k + at) * g.ldb + column + left;
            job.walk.b_inner = g.ldb;
            if (at + count < k && tile == 0) job.b_ahead = count * g.ldb;
        }
        T* const sums = waiting() + first * plan.block_n + left;
        if (at > 0) job.start = sums, job.start_row = plan.block_n;
        if (at + count < k) {
            job.c = sums;
            job.c_row = plan.block_n;
            job.columns = width;
        } else {
            job.c = g.c + (row + first) * g.ldc + column + left;
            job.c_row = g.ldc;
            job.columns = layout().columns(panel);
            job.accumulate = g.accumulate || first_k > 0;
            if (first_k + k == g.k) {
                if (g.bias != nullptr) job.bias = g.bias + column + left;
                job.relu = g.relu;
            }
        }
        job.a_ahead = ahead;
        kernels.run[layout().vectors(panel) - 1][height - 1](job);
    }
    void multiply(std::int64_t tile, std::int64_t panel, const T* b) const { multiply(tile, panel, b, 0, k); }

    /// Where sums of few rows wait, [row, block_n], behind the panels of all threads.
    T* waiting() const { return packed_b + thread_count() * 32 * plan.block_k; }
    bool stays(std::int64_t panel) const { return plan.b_stays && layout().columns(panel) == layout().width(panel); }

    /// Few rows wait for b to arrive from memory. All panels use some rows of it before the next are
    /// read: a panel by itself would touch a page for every row, more than a core remembers. The
    /// sums wait meanwhile, so that their order, and with it the bits, are those of many rows.
    void run_few(bool parallel) const {
        const std::int64_t panels = layout().count(), last = panels - 1;
        const std::int64_t tasks = parallel ? std::min<std::int64_t>(panels, thread_count()) : 1;
        for_tasks(tasks, parallel, [&](std::int64_t task, int thread) {
            const std::int64_t begin = panels * task / tasks, end = panels * (task + 1) / tasks;
            T* const own = packed_b + thread * 32 * plan.block_k;
            if (end == panels && !stays(last)) pack_b(last, own);
            for (std::int64_t at = 0; at < k; at += plan.part_k)
                for (std::int64_t panel = begin; panel < end; ++panel)
                    for (std::int64_t t = 0; t < tiles(); ++t)
                        multiply(t, panel, stays(panel) ? nullptr : own, at, std::min(plan.part_k, k - at));
        });
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
        if (plan.few_rows) return run_few(parallel);
        if (!plan.shared_b && !plan.packed_b) {
            // Where there are fewer panels than threads, threads may share a panel that is not
            // copied.
            const std::int64_t shares =
                plan.b_stays ? std::clamp<std::int64_t>(divide_up(thread_count(), panels), 1, tiles()) : 1;
            for_tasks(panels * shares, parallel, [&](std::int64_t task, int thread) {
                const std::int64_t panel = task / shares, share = task % shares;
                T* const b = stays(panel) ? nullptr : packed_b + thread * 32 * plan.block_k;
                if (b != nullptr) pack_b(panel, b);
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
                for (std::int64_t p = first_panel; p < last_panel; ++p) {
                    // The tiles of this panel fetch the next one into L2, each a part of it: one by itself would wait.
                    const std::int64_t part = kernels.rows * k;
                    std::int64_t left = p + 1 < last_panel ? layout().width(p + 1) * k : 0;
                    const T* ahead = panel_of(p + 1 < last_panel ? p + 1 : p);
                    for (std::int64_t t = first_tile; t < last_tile; ++t, ahead += part, left -= part)
                        multiply(t, p, panel_of(p), 0, k, left > 0 ? ahead : nullptr);
                }
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
