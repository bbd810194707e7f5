#pragma once

#include <tapegraph/core/math_mode.hpp>
#include <tapegraph/cuda/context.hpp>
#include <tapegraph/cuda/kernels/finish_product.cuh>

#include <algorithm>
#include <cstdint>

/// Matrix products on a device, used by every kernel that contains one.

namespace tapegraph::cuda {

/// C = relu(op(A) op(B) + bias), row-major: op(A) is m by k, op(B) k by n; leading dimensions are
/// the number of elements between two rows in memory. T is a floating type (those of 16
/// bits accumulate in float). `accumulate` adds to C; `bias` of n elements is added to every
/// row; the products of a `batch` are `stride_*` elements apart, and a stride of 0 reads the same
/// matrix again.
template <class T>
struct gemm_arguments {
    std::int64_t m = 0, n = 0, k = 0;
    const T* a = nullptr;
    std::int64_t lda = 0;
    bool transpose_a = false;
    const T* b = nullptr;
    std::int64_t ldb = 0;
    bool transpose_b = false;
    T* c = nullptr;
    std::int64_t ldc = 0;
    bool accumulate = false;
    std::int64_t batch = 1, stride_a = 0, stride_b = 0, stride_c = 0;
    const T* bias = nullptr;
    bool relu = false;
};

namespace detail {

inline std::uint32_t alignment_of(const void* at) {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    return address % 256 == 0 ? 256u : static_cast<std::uint32_t>(address & (~address + 1));
}

// A row-major matrix is the transpose of the column-major one in the same memory, and C^T = op(B)^T
// op(A)^T: the operands are swapped and keep their flags. A bias per column of C is one per row of
// C^T.
template <class T>
blas::product product_of(const gemm_arguments<T>& g, bool bias, math_mode mode) {
    blas::product q;
    q.type = dtype_of<T>;
    q.tf32 = mode == math_mode::tf32 && q.type == dtype::f32; // cuBLAS has no 3xTF32 and computes in float then
    q.m = g.n, q.n = g.m, q.k = g.k;
    q.transpose_a = g.transpose_b, q.lda = g.ldb, q.stride_a = g.stride_b;
    q.transpose_b = g.transpose_a, q.ldb = g.lda, q.stride_b = g.stride_a;
    q.ldd = g.ldc, q.stride_d = g.stride_c, q.batch = g.batch;
    q.accumulate = g.accumulate, q.bias = bias;
    q.align_a = alignment_of(g.b), q.align_b = alignment_of(g.a), q.align_d = alignment_of(g.c);
    q.align_bias = bias ? alignment_of(g.bias) : 256;
    return q;
}

template <class T>
void finish(driver::stream stream, const char* operation, const gemm_arguments<T>& g, bool empty) {
    const std::int64_t blocks = (g.m * g.batch + 7) / 8;
    driver::launch(stream, operation, {dim3(static_cast<unsigned>(std::min<std::int64_t>(blocks, 65535))), dim3(32, 8)},
                   kernels::finish_product<T>,
                   kernels::unfinished_product<T>{g.c, g.bias, g.m, g.n, g.ldc, g.stride_c, g.batch, empty, g.relu});
}

} // namespace detail

/// Enqueues the product on a stream of this thread's device; `operation` is named in errors. An
/// empty inner extent gives zeros. Throws device_error. The first call with a shape searches for an
/// algorithm, and the first on a stream allocates its scratch memory: run both before a capture.
template <class T>
void gemm(driver::stream stream, const char* operation, gemm_arguments<T> g, math_mode mode = current_math_mode()) {
    if (g.m == 0 || g.n == 0 || g.batch == 0) return;
    if (g.k == 0) {
        if (!g.accumulate || g.bias != nullptr || g.relu) detail::finish(stream, operation, g, !g.accumulate);
        return;
    }
    constexpr std::int64_t most = 65535; // limit of a grid's z
    if (g.batch > most) {
        for (std::int64_t first = 0; first < g.batch; first += most) {
            gemm_arguments<T> part = g;
            part.batch = std::min(most, g.batch - first);
            part.a += first * g.stride_a, part.b += first * g.stride_b, part.c += first * g.stride_c;
            gemm(stream, operation, part, mode);
        }
        return;
    }
    blas_context& blas = context::current().blas();
    // cuBLASLt's relu turns NaN into 0, its bias is added before rounding to 16 bits, and its
    // kernels read the bias as vectors without checking its alignment. In these cases our own
    // kernel runs after the product.
    const bool inside = g.bias != nullptr && !g.relu && sizeof(T) > 2 && detail::alignment_of(g.bias) >= 16;
    if (inside && blas.multiply(stream, operation, detail::product_of(g, true, mode), g.b, g.a, g.bias, g.c)) return;
    const blas::product q = detail::product_of(g, false, mode);
    if (!blas.multiply(stream, operation, q, g.b, g.a, nullptr, g.c))
        throw device_error(std::string(operation) + ": cuBLASLt has no algorithm for " + blas::text(q));
    if (g.bias != nullptr || g.relu) detail::finish(stream, operation, g, false);
}

} // namespace tapegraph::cuda
