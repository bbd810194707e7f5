#pragma once

#include <tapegraph/cpu/gemm.hpp>
#include <tapegraph/cpu/widen.hpp>

/// Matrix products of 16-bit operands. Packing converts them to float, the tile kernels of
/// cpu/gemm_kernel.hpp sum in float, and a block of the result is rounded once all of k has been
/// added: the bits are those of the float product of the same numbers, rounded once.

namespace tapegraph::cpu {

namespace detail {

/// to[c * to_row + r] = from[r * from_row + c]; at most 32 rows.
template <storage_type T>
void transpose_widened(float* to, std::int64_t to_row, const T* from, std::int64_t from_row, std::int64_t rows,
                       std::int64_t columns) {
    constexpr std::int64_t piece = 128;
    alignas(64) float wide[32 * piece];
    for (std::int64_t c = 0; c < columns; c += piece) {
        const std::int64_t count = std::min(piece, columns - c);
        widen_rows(wide, piece, from + c, from_row, rows, count);
        transpose(to + c * to_row, to_row, wide, piece, rows, count);
    }
}

/// pack_panel of cpu/gemm_panels.hpp with a conversion to float.
template <storage_type T>
void pack_panel_widened(float* to, const panel_layout& layout, std::int64_t panel, const T* from, std::int64_t from_row,
                        bool transposed, std::int64_t k) {
    const std::int64_t width = layout.width(panel), columns = layout.columns(panel);
    const std::int64_t first = panel * 2 * layout.lanes;
    if (transposed)
        transpose_widened(to, width, from + first * from_row, from_row, columns, k);
    else
        widen_rows(to, width, from + first, from_row, k, columns);
    if (columns < width)
        for (std::int64_t i = 0; i < k; ++i)
            for (std::int64_t n = columns; n < width; ++n) to[i * width + n] = 0;
}

/// Block sizes, from the shape alone. Those of k are gemm's, which fixes the order of summation.
struct storage_gemm_plan {
    std::int64_t block_m, block_n, block_k;
    bool shared_b; // b is packed once for all threads; otherwise each thread packs the panels it uses

    template <class T>
    explicit storage_gemm_plan(const gemm_arguments<T>& g) {
        block_k = equal_part(g.k, gemm_plan::most_k);
        block_m = equal_part(g.m, 1024);
        block_n = panel_layout::padded(equal_part(g.n, 1024), 32);
        shared_b = g.m > 96;
    }
    std::int64_t a_elements() const { return block_m * block_k; }
    std::int64_t b_elements(int threads) const { return shared_b ? block_n * block_k : threads * 32 * block_k; }
    std::int64_t c_elements() const { return block_m * block_n; }
};

/// One block of the result.
template <storage_type T>
struct storage_gemm_block {
    const gemm_arguments<T>& g;
    const storage_gemm_plan& plan;
    const tile_kernels<float>& kernels;
    float *a, *b, *c;
    const float* bias;     // null: none
    const float* packed_b; // all of b's panels, or null
    std::int64_t row, rows, column, columns;
    std::int64_t first_k = 0, k = 0;

    std::int64_t tiles() const { return divide_up(rows, kernels.rows); }
    std::int64_t tile_row(std::int64_t tile) const { return rows * tile / tiles(); }
    panel_layout layout() const { return {columns, kernels.lanes}; }

    // Tile by tile, [k, rows of the tile].
    void pack_a(std::int64_t tile) const {
        const std::int64_t first = tile_row(tile), count = tile_row(tile + 1) - first;
        float* const to = a + first * k;
        if (g.transpose_a)
            widen_rows(to, count, g.a + first_k * g.lda + row + first, g.lda, k, count);
        else
            transpose_widened(to, count, g.a + (row + first) * g.lda + first_k, g.lda, count, k);
    }
    void pack_b(std::int64_t panel, float* to) const {
        const T* from = g.transpose_b ? g.b + column * g.ldb + first_k : g.b + first_k * g.ldb + column;
        pack_panel_widened(to, layout(), panel, from, g.ldb, g.transpose_b, k);
    }
    const float* panel_of(std::int64_t panel) const {
        if (packed_b == nullptr) return b + layout().offset(panel, k);
        const panel_layout whole{g.n, kernels.lanes};
        const std::int64_t p = column / (2 * kernels.lanes) + panel;
        return packed_b + whole.offset(p, g.k) + first_k * whole.width(p);
    }
    void multiply(std::int64_t tile, std::int64_t panel, const float* packed) const {
        const std::int64_t first = tile_row(tile), count = tile_row(tile + 1) - first;
        tile_job<float> job{};
        job.walk.inner = k;
        job.walk.a_inner = count;
        job.a = a + first * k;
        job.a_row = 1;
        job.b = packed;
        job.c = c + first * columns + panel * 2 * kernels.lanes;
        job.c_row = columns;
        job.columns = layout().columns(panel);
        job.accumulate = first_k > 0;
        kernels.run[layout().vectors(panel) - 1][count - 1](job);
    }

    void add(bool parallel) const {
        const std::int64_t panels = layout().count(), packs = divide_up(tiles(), 4);
        const bool packs_b = plan.shared_b && packed_b == nullptr;
        for_tasks(packs + (packs_b ? panels : 0), parallel && rows > 24, [&](std::int64_t task, int) {
            if (task < packs)
                for (std::int64_t t = task * 4; t < std::min(tiles(), task * 4 + 4); ++t) pack_a(t);
            else
                pack_b(task - packs, b + layout().offset(task - packs, k));
        });
        if (!plan.shared_b && packed_b == nullptr) {
            for_tasks(panels, parallel, [&](std::int64_t panel, int thread) {
                float* const own = b + thread * 32 * plan.block_k;
                pack_b(panel, own);
                for (std::int64_t t = 0; t < tiles(); ++t) multiply(t, panel, own);
            });
            return;
        }
        // As many tiles as keep their part of a in L2 while the panels stream past, times some
        // panels.
        const std::int64_t tile_bytes = kernels.rows * k * static_cast<std::int64_t>(sizeof(float));
        const std::int64_t groups = divide_up(tiles(), parts_within_l2(tile_bytes));
        const std::int64_t shares = std::clamp<std::int64_t>(divide_up(8 * thread_count(), groups), 1, panels);
        for_tasks(groups * shares, parallel, [&](std::int64_t task, int) {
            const std::int64_t t0 = task / shares, p0 = task % shares;
            for (std::int64_t p = panels * p0 / shares; p < panels * (p0 + 1) / shares; ++p)
                for (std::int64_t t = tiles() * t0 / groups; t < tiles() * (t0 + 1) / groups; ++t)
                    multiply(t, p, panel_of(p));
        });
    }

    template <class Finish>
    void run(bool parallel, const Finish& finish) {
        if (g.k <= 0) std::fill_n(c, rows * columns, 0.0f);
        for (first_k = 0; first_k < g.k; first_k += k) {
            k = std::min(plan.block_k, g.k - first_k);
            add(parallel);
        }
        const std::int64_t piece = std::max<std::int64_t>(1, widen_piece / columns);
        parallel_for(divide_up(rows, piece), parallel && rows * columns >= 4 * widen_piece, [&](std::int64_t task) {
            const std::int64_t first = task * piece;
            finish(g.c + (row + first) * g.ldc + column, g.ldc, static_cast<const float*>(c + first * columns), columns,
                   bias == nullptr ? bias : bias + column, std::min(piece, rows - first), columns);
        });
    }
};

// Computes a column as a row of the transposed product, because panels of one column would be
// mostly padding.
template <storage_type T>
gemm_arguments<T> rows_first(const gemm_arguments<T>& g) {
    if (g.n != 1 || g.ldc != 1) return g;
    gemm_arguments<T> t = g;
    t.m = 1;
    t.n = g.m;
    t.a = g.b;
    t.lda = g.ldb;
    t.transpose_a = !g.transpose_b;
    t.b = g.a;
    t.ldb = g.lda;
    t.transpose_b = !g.transpose_a;
    t.ldc = g.m;
    return t;
}

/// Rounds and stores finished sums.
template <storage_type T>
struct narrow_rows {
    void operator()(T* to, std::int64_t to_row, const float* from, std::int64_t from_row, const float*,
                    std::int64_t rows, std::int64_t columns) const {
        for (std::int64_t r = 0; r < rows; ++r) dispatch<narrow_body<T>>(to + r * to_row, from + r * from_row, columns);
    }
};
template <storage_type T, bool Relu>
struct narrow_rows_biased {
    void operator()(T* to, std::int64_t to_row, const float* from, std::int64_t from_row, const float* bias,
                    std::int64_t rows, std::int64_t columns) const {
        dispatch<narrow_biased_body<T, Relu>>(to, to_row, from, from_row, bias, rows, columns);
    }
};

} // namespace detail

/// Workspace of gemm_storage when thread_count() is at most `threads`, for any instruction set.
template <storage_type T>
std::size_t gemm_storage_workspace_bytes(const gemm_arguments<T>& given, int threads) {
    const gemm_arguments<T> g = detail::rows_first(given);
    if (g.m <= 0 || g.n <= 0) return 0;
    const detail::storage_gemm_plan plan(g);
    detail::workspace_cutter cut(nullptr);
    cut.take<float>(plan.a_elements());
    // Workspace planned for a large batch must suffice for a small one, whose threads pack for
    // themselves.
    cut.take<float>(std::max(plan.b_elements(threads), threads * 32 * plan.block_k));
    cut.take<float>(plan.c_elements());
    cut.take<float>(g.n); // a bias
    return cut.used();
}

/// op(b), converted and packed, as gemm_storage takes it: gemm_packed_bytes<float>(n, k) bytes.
template <storage_type T>
void gemm_storage_pack_b(const gemm_arguments<T>& g, float* packed) {
    const panel_layout layout{g.n, active_tile_kernels<float>().lanes};
    const bool parallel = detail::worth_threads(static_cast<double>(g.n) * static_cast<double>(g.k));
    parallel_for(layout.count(), parallel, [&](std::int64_t panel) {
        detail::pack_panel_widened(packed + layout.offset(panel, g.k), layout, panel, g.b, g.ldb, g.transpose_b, g.k);
    });
}

/// Computes the product `g`, but ignores `accumulate` and `g.packed_b`. `workspace` is aligned to 64
/// bytes. With a bias Finish is detail::narrow_rows_biased. `packed_b`: of gemm_storage_pack_b, or null.
template <storage_type T, class Finish = detail::narrow_rows<T>>
void gemm_storage(const gemm_arguments<T>& given, void* workspace, const float* packed_b = nullptr) {
    const gemm_arguments<T> g = detail::rows_first(given);
    if (g.m <= 0 || g.n <= 0) return;
    const detail::storage_gemm_plan plan(g);
    detail::workspace_cutter cut(workspace);
    float* const a = cut.take<float>(plan.a_elements());
    float* const b = cut.take<float>(plan.b_elements(thread_count()));
    float* const c = cut.take<float>(plan.c_elements());
    float* const bias = g.bias == nullptr ? nullptr : cut.take<float>(g.n);
    if (bias != nullptr) {
        if (given.n == g.n)
            widen_rows(bias, 0, g.bias, 0, 1, g.n);
        else // a column computed as a row
            std::fill_n(bias, g.n, static_cast<float>(*g.bias));
    }
    const auto& kernels = active_tile_kernels<float>();
    const bool parallel = detail::worth_threads(detail::multiply_adds(g));
    for (std::int64_t row = 0; row < g.m; row += plan.block_m)
        for (std::int64_t column = 0; column < g.n; column += plan.block_n)
            detail::storage_gemm_block<T>{g,       plan,
                                          kernels, a,
                                          b,       c,
                                          bias,    packed_b,
                                          row,     std::min(plan.block_m, g.m - row),
                                          column,  std::min(plan.block_n, g.n - column)}
                .run(parallel, Finish{});
}

} // namespace tapegraph::cpu
