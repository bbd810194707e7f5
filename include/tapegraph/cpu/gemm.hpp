#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/cpu/gemm_along.hpp>
#include <tapegraph/cpu/gemm_block.hpp>
#include <tapegraph/cpu/gemm_plan.hpp>
#include <tapegraph/cpu/gemm_vector.hpp>
#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/cpu/tasks.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

/// Matrix products. Both operands are packed block by block (cpu/gemm_block.hpp) into the layout that
/// the tile kernel reads (cpu/gemm_tile.hpp); memory-bound kernels compute products with one row or
/// one column (cpu/gemm_vector.hpp), and with few rows and a transposed b (cpu/gemm_along.hpp).

namespace tapegraph::cpu {

template <class T>
void gemm(const gemm_arguments<T>& g, void* workspace);

namespace detail {

inline constexpr std::int64_t most_turned = 24, least_turned = 64; // columns, rows

/// Whether c' = b' a is computed instead of c = a' b, with bits as they are: few columns, such as the classes of a
/// layer whose weights' gradient this is, fill a part of the lanes, while turned they are whole rows of a tile.
template <class T>
bool is_turned(const gemm_arguments<T>& g) {
    return g.transpose_a && !g.transpose_b && g.packed_b == nullptr && g.bias == nullptr && !g.relu && !g.accumulate &&
           g.m >= least_turned && (g.n <= 12 || (g.n <= most_turned && g.k >= 128));
}
/// c' = b' a into `c`, of at most as many columns as may be turned.
template <class T>
gemm_arguments<T> turned(const gemm_arguments<T>& g, T* c) {
    gemm_arguments<T> t = g;
    t.m = std::min(g.n, most_turned), t.n = g.m;
    t.a = g.b, t.lda = g.ldb, t.b = g.a, t.ldb = g.lda;
    t.c = c, t.ldc = g.m;
    return t;
}
template <class T>
void gemm_turned(const gemm_arguments<T>& g, void* workspace) {
    workspace_cutter cut(workspace);
    const gemm_arguments<T> t = turned(g, cut.take<T>(g.m * g.n));
    gemm(t, cut.take<std::byte>(0));
    for (std::int64_t i = 0; i < g.m; ++i)
        for (std::int64_t j = 0; j < g.n; ++j) g.c[i * g.ldc + j] = t.c[j * t.ldc + i];
}

} // namespace detail

/// Workspace of gemm when thread_count() is at most `threads`, for any instruction set.
template <class T>
std::size_t gemm_workspace_bytes(const gemm_arguments<T>& g, int threads) {
    if (g.m <= 0 || g.n <= 0 || g.k <= 0) return 0;
    detail::workspace_cutter cut(nullptr);
    if (g.m == 1 || g.n == 1) {
        cut.take<T>(detail::gemm_vector_elements(g.m, g.n, g.k, threads));
    } else {
        cut.take<T>(detail::gemm_plan::a_elements(g, threads));
        cut.take<T>(detail::gemm_plan::b_elements(g, threads));
        // A batch of one record turns a matrix into a vector, and workspace planned for a larger
        // batch must suffice for it, as for a product that is computed the other way round.
        detail::workspace_cutter vector(nullptr), other(nullptr);
        vector.take<T>(detail::gemm_vector_elements(g.m, g.n, g.k, threads));
        if (g.transpose_a && !g.transpose_b && g.m >= detail::least_turned) {
            const gemm_arguments<T> t = detail::turned<T>(g, nullptr);
            other.take<T>(t.m * t.n);
            other.take<T>(detail::gemm_plan::a_elements(t, threads));
            other.take<T>(detail::gemm_plan::few_elements(t, threads));
        }
        return std::max({cut.used(), vector.used(), other.used()});
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
    if (detail::is_turned(g)) return detail::gemm_turned(g, workspace);
    const int threads = detail::may_divide() ? thread_count() : 1; // as many as the workspace is for
    T* packed_a = cut.take<T>(detail::gemm_plan::a_elements(g, threads));
    T* packed_b = cut.take<T>(detail::gemm_plan::b_elements(g, threads));
    const auto& kernels = active_tile_kernels<T>();
    const bool parallel = detail::worth_threads(detail::multiply_adds(g));
    const detail::gemm_plan plan(g, parallel ? threads : 1);
    if (detail::goes_along(g)) return detail::gemm_along(g, plan.block_k, packed_b, parallel);
    for (std::int64_t row = 0; row < g.m; row += plan.block_m)
        for (std::int64_t k = 0; k < g.k; k += plan.block_k)
            for (std::int64_t column = 0; column < g.n; column += plan.block_n) {
                const bool beside = column + plan.block_n < g.n;
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
                                      std::min(plan.block_k, g.k - k),
                                      beside ? column + plan.block_n : 0,
                                      beside ? k : k + plan.block_k}
                    .run(parallel);
            }
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
