#pragma once

#include <tapegraph/cuda/ops/product/gemm.cuh>
#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/ops/product/matmul.hpp>
#include <tapegraph/ops/product/kernel_16bit.hpp>

#include <algorithm>
#include <utility>

/// Kernels of matmul, by cuBLASLt.

namespace tapegraph::cuda {

namespace detail {

/// The leading axes of a product, with the stride of each in A, B and C; 0 where an operand is
/// broadcast.
struct batch_axes {
    struct axis {
        std::int64_t extent, a, b, c;
    };
    axis axes[max_rank]{};
    int count = 0;

    /// Merges axes that all three operands walk alike, so that only cases like [n, 1, ...] with [1,
    /// m, ...] need two.
    batch_axes(const buffer_view& a, const buffer_view& b, const buffer_view& c) {
        std::int64_t strides[3]{matrix(a), matrix(b), matrix(c)};
        for (int i = c.rank - 3; i >= 0; --i) { // the innermost first
            const std::int64_t own_a = extent(a, i, c.rank), own_b = extent(b, i, c.rank), all = c.extents[i];
            const axis next{all, own_a == 1 ? 0 : strides[0], own_b == 1 ? 0 : strides[1], strides[2]};
            strides[0] *= own_a, strides[1] *= own_b, strides[2] *= all;
            if (all == 1) continue;
            axis* const inner = count == 0 ? nullptr : &axes[count - 1];
            if (inner != nullptr && next.a == inner->a * inner->extent && next.b == inner->b * inner->extent &&
                next.c == inner->c * inner->extent)
                inner->extent *= all;
            else
                axes[count++] = next;
        }
    }
    void remove(int i) {
        for (--count; i < count; ++i) axes[i] = axes[i + 1];
    }

private:
    static std::int64_t matrix(const buffer_view& x) { return x.extents[x.rank - 2] * x.extents[x.rank - 1]; }
    // The extent of an operand along axis i of a result of `rank` axes.
    static std::int64_t extent(const buffer_view& x, int i, int rank) {
        const int own = i - (rank - x.rank);
        return own >= 0 ? x.extents[own] : 1;
    }
};

} // namespace detail

template <class T>
struct kernel<matmul_op, T> {
    static_assert(is_floating_type<T>,
                  "matmul, dot, einsum: elements must be floating-point; cast<float>(x) converts them");

    static void run(const kernel_call& call) { multiply(call, matmul_op::name.data(), nullptr, false); }
    // Leading axes are batches at constant strides: the longest becomes the batch of one call,
    // which is repeated for the others.
    static void multiply(const kernel_call& call, const char* operation, const T* bias, bool relu) {
        const auto t = runtime::attributes_of<matmul_op>(call);
        const buffer_view &a = call.in[0], &b = call.in[1], &c = call.out[0];
        if (c.elements() == 0) return;
        gemm_arguments<T> g;
        g.m = c.extents[c.rank - 2], g.n = c.extents[c.rank - 1];
        g.k = a.extents[t.transpose_a ? a.rank - 2 : a.rank - 1];
        g.a = a.as<const T>(), g.lda = a.extents[a.rank - 1], g.transpose_a = t.transpose_a != 0;
        g.b = b.as<const T>(), g.ldb = b.extents[b.rank - 1], g.transpose_b = t.transpose_b != 0;
        g.c = c.as<T>(), g.ldc = g.n;
        g.bias = bias, g.relu = relu;
        if (g.m == 1 && g.transpose_a) g.transpose_a = false, g.lda = g.k; // a column is stored like a row
        detail::batch_axes batch(a, b, c);
        // Matrices that are all multiplied by the same second factor form one tall matrix.
        for (int i = 0; i < batch.count; ++i) {
            const auto& x = batch.axes[i];
            if (x.b != 0 || g.transpose_a || x.a != g.m * g.lda || x.c != g.m * g.ldc) continue;
            g.m *= x.extent;
            batch.remove(i--);
        }
        if (batch.count > 0) {
            const auto longest = std::max_element(batch.axes, batch.axes + batch.count,
                                                  [](const auto& x, const auto& y) { return x.extent < y.extent; });
            g.batch = longest->extent, g.stride_a = longest->a, g.stride_b = longest->b, g.stride_c = longest->c;
            batch.remove(static_cast<int>(longest - batch.axes));
        }
        repeat(static_cast<driver::stream>(call.stream), operation, g, batch, batch.count);
    }

private:
    static void repeat(driver::stream stream, const char* operation, const gemm_arguments<T>& g,
                       const detail::batch_axes& batch, int axes) {
        if (axes == 0) return gemm(stream, operation, g);
        const auto& axis = batch.axes[axes - 1];
        for (std::int64_t i = 0; i < axis.extent; ++i) {
            gemm_arguments<T> part = g;
            part.a += i * axis.a, part.b += i * axis.b, part.c += i * axis.c;
            repeat(stream, operation, part, batch, axes - 1);
        }
    }
};

// cuBLASLt adds the bias of floats and doubles itself; whatever it would do differently from the
// CPU runs after it (gemm.cuh).
template <bool Relu, class T>
struct kernel<matmul_bias_op<Relu>, T> {
    static void run(const kernel_call& c) {
        kernel<matmul_op, T>::multiply(c, matmul_bias_op<Relu>::name.data(), c.in[2].as<const T>(), Relu);
    }
};

} // namespace tapegraph::cuda
