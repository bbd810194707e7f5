#pragma once

#include <tapegraph/cpu/gemm_plan.hpp>
#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/cpu/tasks.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

/// A block of a matrix product (cpu/gemm.hpp): what is packed, and in which order tiles meet panels.

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
    std::int64_t next_column, next_k; // of the next block of b

    std::int64_t tiles() const { return divide_up(rows, kernels.rows); }
    std::int64_t tile_row(std::int64_t tile) const { return rows * tile / tiles(); }
    struct tile_rows {
        std::int64_t first, height;
    };
    tile_rows rows_of(std::int64_t tile) const { return {tile_row(tile), height(tile)}; }
    std::int64_t height(std::int64_t tile) const { return tile_row(tile + 1) - tile_row(tile); }
    panel_layout layout() const { return {columns, kernels.lanes}; }

    // Tiles [begin, end): a line of a has columns of several.
    void pack_a(std::int64_t begin, std::int64_t end, T* to) const {
        to -= tile_row(begin) * k;
        if (!g.transpose_a) {
            for (std::int64_t t = begin; t < end; ++t)
                transpose(to + tile_row(t) * k, height(t), g.a + (row + tile_row(t)) * g.lda + first_k, g.lda,
                          height(t), k);
            return;
        }
        // The lines of some rows stay in L1 until all tiles have used them.
        constexpr std::int64_t some = 32;
        for (std::int64_t at = 0; at < k; at += some)
            for (std::int64_t t = begin; t < end; ++t) {
                const std::int64_t count = height(t);
                const T* from = g.a + (first_k + at) * g.lda + row + tile_row(t);
                T* tile = to + tile_row(t) * k + at * count;
                for (std::int64_t i = std::min(some, k - at); i > 0; --i, from += g.lda, tile += count)
                    copy_columns(tile, from, count);
            }
    }
    // Copies of constant sizes, which may overlap: a memcpy of run-time size would be a call.
    TG_INLINE static void copy_columns(T* to, const T* from, std::int64_t count) {
        if (count >= 8) {
            std::memcpy(to, from, 8 * sizeof(T));
            std::memcpy(to + count - 8, from + count - 8, 8 * sizeof(T));
        } else if (count >= 4) {
            std::memcpy(to, from, 4 * sizeof(T));
            std::memcpy(to + count - 4, from + count - 4, 4 * sizeof(T));
        } else {
            for (std::int64_t n = 0; n < count; ++n) to[n] = from[n];
        }
    }
    void pack_b(std::int64_t panel, T* to) const {
        const T* from = g.transpose_b ? g.b + column * g.ldb + first_k : g.b + first_k * g.ldb + column;
        pack_panel(to, layout(), panel, from, g.ldb, g.transpose_b, k);
    }
    /// Rows [at, at + count) of k in this block, the last of which finishes the sums. A null `a` or
    /// `b` is read in place.
    void multiply(const tile_rows& tile, std::int64_t panel, const T* a, const T* b, std::int64_t at,
                  std::int64_t count, tile_fetch<T>* next_a = nullptr, tile_fetch<T>* next_b = nullptr) const {
        const auto [first, height] = tile;
        tile_job<T> job{};
        job.walk.inner = count;
        if (a != nullptr) {
            job.a = a + at * height;
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
            if (at + count < k && first == 0) job.b_ahead = count * g.ldb;
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
        job.later[0] = next_a, job.later[1] = next_b;
        kernels.run[layout().vectors(panel) - 1][height - 1](job);
    }
    const T* tile_of(std::int64_t tile) const { return plan.pack_a ? packed_a + tile_row(tile) * k : nullptr; }

    /// Where sums of few rows wait, [row, block_n], and behind them a panel of each thread.
    T* waiting() const { return packed_b; }
    T* panel_of_thread(int thread) const {
        return packed_b + (plan.few_rows ? plan.block_n * rows : 0) + thread * 32 * plan.block_k;
    }
    bool stays(std::int64_t panel) const { return plan.b_stays && layout().columns(panel) == layout().width(panel); }

    /// Few rows wait for b to arrive from memory. All panels use some rows of it before the next are
    /// read: a panel by itself would touch a page for every row, more than a core remembers. The
    /// sums wait meanwhile, so that their order, and with it the bits, are those of many rows.
    void run_few(bool parallel) const {
        const std::int64_t panels = layout().count(), last = panels - 1;
        const std::int64_t tasks = parallel ? std::min<std::int64_t>(panels, thread_count()) : 1;
        for_tasks(tasks, parallel, [&](std::int64_t task, int thread) {
            const std::int64_t begin = panels * task / tasks, end = panels * (task + 1) / tasks;
            T* const own = panel_of_thread(thread);
            if (end == panels && !stays(last)) pack_b(last, own);
            for (std::int64_t at = 0; at < k; at += plan.part_k)
                for (std::int64_t panel = begin; panel < end; ++panel)
                    for (std::int64_t t = 0; t < tiles(); ++t)
                        multiply(rows_of(t), panel, tile_of(t), stays(panel) ? nullptr : own, at,
                                 std::min(plan.part_k, k - at));
        });
    }

    const T* panel_of(std::int64_t panel) const {
        if (!plan.packed_b) return packed_b + layout().offset(panel, k);
        const panel_layout whole{g.n, kernels.lanes};
        const std::int64_t p = column / (2 * kernels.lanes) + panel;
        return g.packed_b + whole.offset(p, g.k) + first_k * whole.width(p);
    }

    // So many tiles are packed at a time.
    std::int64_t turn() const { return gemm_plan::rows_of_turn / kernels.rows; }
    // The lines of tiles [begin, end) of a, over `calls` of the kernel.
    tile_fetch<T> fetch_tiles(std::int64_t begin, std::int64_t end, std::int64_t calls) const {
        if (begin >= end) return {};
        const std::int64_t first = tile_row(begin), count = tile_row(end) - first;
        if (plan.pack_a && !plan.a_by_turns) return fetch(packed_a + first * k, 0, 1, count * k, calls);
        if (g.transpose_a) return fetch(g.a + first_k * g.lda + row + first, g.lda, k, count, calls);
        return fetch(g.a + (row + first) * g.lda + first_k, g.lda, count, k, calls);
    }
    // Part `part` of `parts` of the lines of the block of b that comes next.
    tile_fetch<T> fetch_b(std::int64_t part, std::int64_t parts, std::int64_t calls) const {
        if (next_k >= g.k) return {};
        const std::int64_t columns_of = std::min(plan.block_n, g.n - next_column),
                           k_of = std::min(plan.block_k, g.k - next_k);
        const std::int64_t all = g.transpose_b ? columns_of : k_of, from = all * part / parts,
                           to = all * (part + 1) / parts;
        if (g.transpose_b) return fetch(g.b + (next_column + from) * g.ldb + next_k, g.ldb, to - from, k_of, calls);
        return fetch(g.b + (next_k + from) * g.ldb + next_column, g.ldb, to - from, columns_of, calls);
    }
    // The lines of a matrix [height, width], whose rows are `apart`.
    tile_fetch<T> fetch(const T* from, std::int64_t apart, std::int64_t height, std::int64_t width,
                        std::int64_t calls) const {
        tile_fetch<T> all;
        // Few columns may lie across the end of a line.
        all.per_row = width <= line ? std::min<std::int64_t>(width, 2) : divide_up(width, line);
        all.step = width <= line ? width - 1 : line;
        all.skip = apart - all.per_row * all.step;
        all.lines = height * all.per_row;
        all.in_row = all.per_row;
        all.from = from;
        all.at_once = divide_up(all.lines, calls * divide_up(k, tile_job<T>::pause));
        return all;
    }
    // The lines of a panel of b; after the last panel, those of the first one of the next rows.
    TG_INLINE void prefetch_panel(std::int64_t panel, std::int64_t part, std::int64_t parts) const {
        const bool below = panel >= layout().count();
        if (below && first_k + 2 * k > g.k) return;
        const std::int64_t top = below ? first_k + k : first_k, left = column + (below ? 0 : panel * 2 * kernels.lanes);
        if (g.transpose_b) {
            const std::int64_t rows_of_b = layout().columns(below ? 0 : panel);
            for (std::int64_t j = rows_of_b * part / parts; j < rows_of_b * (part + 1) / parts; ++j)
                for (std::int64_t i = 0; i < k; i += line) __builtin_prefetch(g.b + (left + j) * g.ldb + top + i, 0, 2);
            return;
        }
        const T* const from = g.b + top * g.ldb + left;
        for (std::int64_t i = k * part / parts; i < k * (part + 1) / parts; ++i) {
            __builtin_prefetch(from + i * g.ldb, 0, 2);
            __builtin_prefetch(from + i * g.ldb + line, 0, 2);
        }
    }
    static constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));

    void run(bool parallel) const {
        if (plan.pack_a && !plan.a_by_turns && column == 0)
            for_tasks(divide_up(tiles(), turn()), parallel && rows > 24, [&](std::int64_t task, int) {
                const std::int64_t first = task * turn();
                pack_a(first, std::min(tiles(), first + turn()), packed_a + tile_row(first) * k);
            });
        if (plan.shared_b || plan.packed_b) return run_rows(parallel);
        const std::int64_t panels = layout().count();
        if (plan.few_rows) return run_few(parallel);
        // Threads may share a panel that is not copied: where there are fewer panels than threads, and
        // where each has packed rows of a, which it then finds in its own caches.
        const std::int64_t threads = parallel ? thread_count() : 1,
                           wanted = plan.pack_a ? threads : divide_up(threads, panels);
        const std::int64_t shares = plan.b_stays ? std::clamp<std::int64_t>(wanted, 1, tiles()) : 1;
        for_tasks(panels * shares, parallel, [&](std::int64_t task, int thread) {
            const std::int64_t panel = task % panels, share = task / panels;
            T* const b = stays(panel) ? nullptr : panel_of_thread(thread);
            if (b != nullptr) pack_b(panel, b);
            for (std::int64_t t = tiles() * share / shares; t < tiles() * (share + 1) / shares; ++t) {
                if (b == nullptr || tiles() > 4) prefetch_panel(panel + 1, t, tiles()); // fewer would wait for it
                multiply(rows_of(t), panel, tile_of(t), b, 0, k);
            }
        });
    }
    void pack_all_b(bool parallel, int threads) const {
        if (g.transpose_b)
            return for_tasks(layout().count(), parallel, [&](std::int64_t panel, int) {
                prefetch_panel(panel + 1, 0, 1);
                pack_b(panel, packed_b + layout().offset(panel, k));
            });
        const std::int64_t strip = std::clamp<std::int64_t>(k / (4 * threads), 1, 16);
        for_tasks(divide_up(k, strip), parallel, [&](std::int64_t task, int) {
            pack_rows(packed_b, layout(), g.b + first_k * g.ldb + column, g.ldb, k, task * strip,
                      std::min(k, task * strip + strip));
        });
    }
    /// Tile by tile of many rows. A task is some tiles times panels that stay in L2.
    void run_rows(bool parallel) const {
        const std::int64_t panels = layout().count();
        const int threads = parallel ? thread_count() : 1;
        if (!plan.packed_b) pack_all_b(parallel, threads);
        // Every thread has as many groups of rows (cpu/parallel.hpp), and takes part by part of them.
        // Where b is kept packed and is the larger operand, but small enough that a part of it stays in
        // the cache of its thread from call to call, a thread takes all rows of some parts instead.
        const bool by_parts = plan.packed_b && !g.rows_are_near && g.m < g.n &&
                              g.n * g.k * static_cast<std::int64_t>(sizeof(T)) <= large_l2_bytes();
        const std::int64_t most = std::clamp<std::int64_t>(tiles() / threads, 1, threads > 1 ? 8 : 1);
        const std::int64_t groups = std::min<std::int64_t>(tiles(), most * threads), some = by_parts ? groups : most;
        const std::int64_t parts =
            std::clamp<std::int64_t>(std::max(divide_up(panels * 2 * kernels.lanes, plan.resident),
                                              threads > 1 ? divide_up(8 * threads, groups) : 1),
                                     1, panels);
        for_tasks(groups * parts, parallel, [&](std::int64_t task, int thread) {
            const std::int64_t group = task / (some * parts) * some + task % some, part = task / some % parts;
            const std::int64_t first_panel = panels * part / parts, count = panels * (part + 1) / parts - first_panel;
            const std::int64_t step = plan.a_by_turns ? turn() : 1, last = tiles() * (group + 1) / groups;
            tile_fetch<T> next_b;
            if (!plan.packed_b) next_b = fetch_b(task, groups * parts, (last - tiles() * group / groups) * count);
            T* const own = packed_a + thread * gemm_plan::rows_of_turn * plan.block_k;
            for (std::int64_t t = tiles() * group / groups; t < last; t += step) {
                const std::int64_t end = std::min(t + step, last), next = std::min(end + step, last);
                if (plan.a_by_turns) pack_a(t, end, own);
                tile_fetch<T> next_a = fetch_tiles(end, next, (end - t) * count);
                for (std::int64_t u = t; u < end; ++u) {
                    const T* const a = plan.a_by_turns ? own + (tile_row(u) - tile_row(t)) * k : tile_of(u);
                    const tile_rows tile = rows_of(u);
                    for (std::int64_t p = 0; p < count; ++p)
                        multiply(tile, first_panel + p, a, panel_of(first_panel + p), 0, k, &next_a, &next_b);
                }
            }
        });
    }
};

} // namespace detail

} // namespace tapegraph::cpu
