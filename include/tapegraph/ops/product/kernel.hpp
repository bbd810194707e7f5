#pragma once

#include <tapegraph/ops/product/blas.hpp>
#include <tapegraph/ops/product/matmul.hpp>
#include <tapegraph/runtime/kernel.hpp>

/// Kernels of matrix products.

namespace tapegraph::runtime {

template <class T>
struct kernel<matmul_op, T> {
    static_assert(std::is_floating_point_v<T>,
                  "matmul, dot, einsum: elements must be floating-point; cast<float>(x) converts them");

    struct job {
        cpu::gemm_arguments<T> first;
        std::int64_t batch = 1;
    };
    static job matrices(const kernel_call& call) {
        const auto t = attributes_of<matmul_op>(call);
        const buffer_view &a = call.in[0], &b = call.in[1], &c = call.out[0];
        job j{};
        cpu::gemm_arguments<T>& g = j.first;
        g.m = c.extents[c.rank - 2];
        g.n = c.extents[c.rank - 1];
        g.k = a.extents[t.transpose_a ? a.rank - 2 : a.rank - 1];
        g.a = a.as<const T>();
        g.lda = a.extents[a.rank - 1];
        g.transpose_a = t.transpose_a != 0;
        g.b = b.as<const T>();
        g.ldb = b.extents[b.rank - 1];
        g.transpose_b = t.transpose_b != 0;
        g.c = c.as<T>();
        g.ldc = g.n;
        g.accumulate = false;
        j.batch = 1;
        for (int i = 0; i < c.rank - 2; ++i) j.batch *= c.extents[i];
        if (g.m == 1 && g.transpose_a) g.transpose_a = false, g.lda = g.k; // a column is stored like a row
        // Matrices that all meet the same second factor are one tall matrix.
        if (j.batch > 1 && !g.transpose_a && matrices_of(a) == j.batch && matrices_of(b) == 1) {
            g.m *= j.batch;
            j.batch = 1;
        }
        return j;
    }
    static std::size_t workspace(const kernel_call& call) {
        const job j = matrices(call);
        return product_workspace<T>(j.first, j.batch, thread_count());
    }
    static void run(const kernel_call& call) { multiply(call, nullptr, false); }
    // Leading axes are batches; where they broadcast, the smaller operand's matrices are visited again.
    static void multiply(const kernel_call& call, const T* bias, bool relu) {
        job j = matrices(call);
        j.first.bias = bias;
        j.first.relu = relu;
        const buffer_view &a = call.in[0], &b = call.in[1], &c = call.out[0];
        const int outer = c.rank - 2;
        const auto offset = [&](const buffer_view& x, std::int64_t index) {
            std::int64_t at = 0, stride = x.extents[x.rank - 2] * x.extents[x.rank - 1];
            for (int i = outer - 1; i >= 0; --i) {
                const int axis = i - (outer - (x.rank - 2));
                const std::int64_t own = axis >= 0 ? x.extents[axis] : 1;
                if (own != 1) at += index % c.extents[i] * stride;
                index /= c.extents[i];
                stride *= own;
            }
            return at;
        };
        product_each<T>(
            j.first, j.batch,
            [&](std::int64_t i, cpu::gemm_arguments<T>& g) {
                if (i == 0) return;
                g.a += offset(a, i);
                g.b += offset(b, i);
                g.c += i * g.m * g.n;
            },
            call.workspace);
    }

private:
    static std::int64_t matrices_of(const buffer_view& x) {
        std::int64_t count = 1;
        for (int i = 0; i < x.rank - 2; ++i) count *= x.extents[i];
        return count;
    }
};

template <bool Relu, class T>
struct kernel<matmul_bias_op<Relu>, T> {
    static std::size_t workspace(const kernel_call& c) { return kernel<matmul_op, T>::workspace(c); }
    static void run(const kernel_call& c) { kernel<matmul_op, T>::multiply(c, c.in[2].as<const T>(), Relu); }
};

} // namespace tapegraph::runtime
