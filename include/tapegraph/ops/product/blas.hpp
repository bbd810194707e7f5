#pragma once

#include <tapegraph/cpu/gemm.hpp>

/// Matrix products by a CBLAS instead of the library's own kernels. The CMake option TAPEGRAPH_BLAS
/// defines TAPEGRAPH_USE_CBLAS for everything that links the target, so that all sources of a
/// program agree.

#if defined(TAPEGRAPH_USE_CBLAS)
#include <cblas.h>
TG_OBJECTS_AGREE(TAPEGRAPH_USE_CBLAS, on)
#else
TG_OBJECTS_AGREE(TAPEGRAPH_USE_CBLAS, off)
#endif

namespace tapegraph::runtime {

#if defined(TAPEGRAPH_USE_CBLAS)

/// Whether products read a second factor that gemm_pack_b has packed.
inline constexpr bool products_read_panels = false;

/// C = op(A) op(B), or C += with `accumulate`; then bias and relu. Needs no scratch memory.
template <class T>
void product(const cpu::gemm_arguments<T>& g, void*) {
    if (g.m == 0 || g.n == 0) return;
    const auto size = [](std::int64_t value) { return static_cast<int>(value); };
    const auto a = g.transpose_a ? CblasTrans : CblasNoTrans, b = g.transpose_b ? CblasTrans : CblasNoTrans;
    const T beta = g.accumulate ? T(1) : T(0);
    // A leading dimension of 0 (an empty inner axis) is an error to BLAS.
    const int lda = size(g.lda > 0 ? g.lda : 1), ldb = size(g.ldb > 0 ? g.ldb : 1), ldc = size(g.ldc);
    if constexpr (sizeof(T) == sizeof(float))
        cblas_sgemm(CblasRowMajor, a, b, size(g.m), size(g.n), size(g.k), T(1), g.a, lda, g.b, ldb, beta, g.c, ldc);
    else
        cblas_dgemm(CblasRowMajor, a, b, size(g.m), size(g.n), size(g.k), T(1), g.a, lda, g.b, ldb, beta, g.c, ldc);
    cpu::finish_rows(g);
}
/// `batch` products of one shape, placed as in cpu::gemm_each.
template <class T, class Place>
void product_each(const cpu::gemm_arguments<T>& first, std::int64_t batch, const Place& place, void*) {
    for (std::int64_t i = 0; i < batch; ++i) {
        cpu::gemm_arguments<T> g = first;
        place(i, g);
        product(g, nullptr);
    }
}
template <class T>
std::size_t product_workspace(const cpu::gemm_arguments<T>&, std::int64_t, int) {
    return 0;
}

#else

inline constexpr bool products_read_panels = true;

template <class T, class Place>
void product_each(const cpu::gemm_arguments<T>& first, std::int64_t batch, const Place& place, void* workspace) {
    cpu::gemm_each(first, batch, place, workspace);
}
template <class T>
std::size_t product_workspace(const cpu::gemm_arguments<T>& g, std::int64_t batch, int threads) {
    return cpu::gemm_batched_workspace_bytes<T>(g, batch, threads);
}

#endif

} // namespace tapegraph::runtime
