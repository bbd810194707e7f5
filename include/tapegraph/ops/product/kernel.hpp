#pragma once

#include <tapegraph/ops/product/blas.hpp>
#include <tapegraph/ops/product/kept_factor_kernel.hpp>
#include <tapegraph/ops/product/kernel_matrices.hpp>

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
        const buffer_view &a = call.in[0], &b = call.in[1];
        job j{detail::first_product<T>(call), detail::matrices_of(call.out[0])};
        cpu::gemm_arguments<T>& g = j.first;
        if (g.m == 1 && g.transpose_a) g.transpose_a = false, g.lda = g.k; // a column is stored like a row
        // Matrices with a common second factor are one tall matrix.
        if (j.batch > 1 && !g.transpose_a && detail::matrices_of(a) == j.batch && detail::matrices_of(b) == 1) {
            g.m *= j.batch;
            j.batch = 1;
        }
        return j;
    }
    static std::size_t workspace(const kernel_call& call) {
        const job j = matrices(call);
        detail::announce_factor(call, j.first);
        return product_workspace<T>(j.first, j.batch, thread_count());
    }
    static void run(const kernel_call& call) { multiply(call, nullptr, false); }
    static void multiply(const kernel_call& call, const T* bias, bool relu) {
        job j = matrices(call);
        j.first.bias = bias;
        j.first.relu = relu;
        j.first.packed_b = detail::kept_factor(call, j.first);
        product_each<T>(
            j.first, j.batch,
            [&](std::int64_t i, cpu::gemm_arguments<T>& g) {
                if (i == 0) return;
                g.a += detail::matrix_offset(call.in[0], call.out[0], i);
                g.b += detail::matrix_offset(call.in[1], call.out[0], i);
                g.c += i * g.m * g.n;
            },
            call.workspace);
    }
};

template <bool Relu, class T>
struct kernel<matmul_bias_op<Relu>, T> {
    static std::size_t workspace(const kernel_call& c) { return kernel<matmul_op, T>::workspace(c); }
    static void run(const kernel_call& c) { kernel<matmul_op, T>::multiply(c, c.in[2].as<const T>(), Relu); }
};

} // namespace tapegraph::runtime
