#pragma once

#include <tapegraph/cpu/gemm_storage.hpp>
#include <tapegraph/ops/product/kernel.hpp>

/// Matrix products of 16-bit elements: more than a float kernel between conversions.

namespace tapegraph::runtime {

// Operands are converted while they are packed. A CBLAS has no such product: always our own.
template <storage_type T>
struct kernel<matmul_op, T> {
    static cpu::gemm_arguments<T> matrices(const kernel_call& call) {
        const auto t = attributes_of<matmul_op>(call);
        const buffer_view &a = call.in[0], &b = call.in[1], &c = call.out[0];
        cpu::gemm_arguments<T> g{};
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
        if (call.inputs > 2) g.bias = call.in[2].as<const T>();
        return g;
    }
    static std::size_t workspace(const kernel_call& call) {
        return cpu::gemm_storage_workspace_bytes(matrices(call), thread_count());
    }
    static void run(const kernel_call& call) { multiply<cpu::detail::narrow_rows<T>>(call); }
    // Leading axes are batches; where they broadcast, the smaller operand's matrices are visited again.
    template <class Finish>
    static void multiply(const kernel_call& call) {
        const cpu::gemm_arguments<T> first = matrices(call);
        const buffer_view& c = call.out[0];
        const int outer = c.rank - 2;
        std::int64_t batch = 1;
        for (int i = 0; i < outer; ++i) batch *= c.extents[i];
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
        for (std::int64_t i = 0; i < batch; ++i) {
            cpu::gemm_arguments<T> g = first;
            g.a += offset(call.in[0], i);
            g.b += offset(call.in[1], i);
            g.c += i * g.m * g.n;
            cpu::gemm_storage<T, Finish>(g, call.workspace);
        }
    }
};

// Each of the three operations that became one kernel rounds its result, as it does alone.
template <bool Relu, storage_type T>
struct kernel<matmul_bias_op<Relu>, T> {
    static std::size_t workspace(const kernel_call& c) { return kernel<matmul_op, T>::workspace(c); }
    static void run(const kernel_call& c) {
        kernel<matmul_op, T>::template multiply<cpu::detail::narrow_rows_biased<T, Relu>>(c);
    }
};

TG_COMPILED_KERNELS(product, floating_types, matmul_op)
TG_COMPILED_KERNELS(product, floating_types, matmul_bias_op<false>)
TG_COMPILED_KERNELS(product, floating_types, matmul_bias_op<true>)

} // namespace tapegraph::runtime
