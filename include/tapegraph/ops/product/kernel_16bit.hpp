#pragma once

#include <tapegraph/cpu/gemm_storage.hpp>
#include <tapegraph/ops/product/kernel.hpp>

/// Matrix products of 16-bit elements, converted while they are packed instead of around a float
/// kernel.

namespace tapegraph::runtime {

namespace detail {
/// Whether a program that keeps what it derives from variables keeps the second factor as panels of
/// float, twice its size: one matrix for all rows. One row reads them, too; converting takes as long.
template <storage_type T>
bool keeps_widened_factor(const kernel_call& c, const cpu::gemm_arguments<T>& g) {
    return c.kept != nullptr && g.n > 1 && g.k > 0 && matrices_of(c.in[1]) == 1;
}
} // namespace detail

// Operands are converted while they are packed. A CBLAS has no such product, so the library's own
// kernels always compute it.
template <storage_type T>
struct kernel<matmul_op, T> {
    static cpu::gemm_arguments<T> matrices(const kernel_call& call) {
        cpu::gemm_arguments<T> g = detail::first_product<T>(call);
        if (call.inputs > 2) g.bias = call.in[2].as<const T>();
        return g;
    }
    static std::size_t workspace(const kernel_call& call) {
        const cpu::gemm_arguments<T> g = matrices(call);
        if (call.kept != nullptr && call.kept->watches(call, 1))
            call.kept->announce(detail::keeps_widened_factor(call, g) ? cpu::gemm_packed_bytes<float>(g.n, g.k) : 0);
        return cpu::gemm_storage_workspace_bytes(g, thread_count());
    }
    static void run(const kernel_call& call) { multiply<cpu::detail::narrow_rows<T>>(call); }
    template <class Finish>
    static void multiply(const kernel_call& call) {
        const cpu::gemm_arguments<T> first = matrices(call);
        const buffer_view& c = call.out[0];
        const std::int64_t batch = detail::matrices_of(c);
        const float* const packed_b = kept_factor(call, first);
        for (std::int64_t i = 0; i < batch; ++i) {
            cpu::gemm_arguments<T> g = first;
            g.a += detail::matrix_offset(call.in[0], c, i);
            g.b += detail::matrix_offset(call.in[1], c, i);
            g.c += i * g.m * g.n;
            cpu::gemm_storage<T, Finish>(g, call.workspace, packed_b);
        }
    }

private:
    static const float* kept_factor(const kernel_call& c, const cpu::gemm_arguments<T>& g) {
        if (!detail::keeps_widened_factor(c, g)) return nullptr;
        const kept_memory::key_type key{kept_product + (g.transpose_b ? 1 : 0), g.n, g.k,
                                        cpu::active_tile_kernels<float>().lanes};
        return static_cast<const float*>(
            c.kept->made_if_unchanged(c, 1, key, cpu::gemm_packed_bytes<float>(g.n, g.k),
                                      [&](void* to) { cpu::gemm_storage_pack_b(g, static_cast<float*>(to)); }));
    }
};

// Each of the three fused operations rounds its result, as it would alone.
template <bool Relu, storage_type T>
struct kernel<matmul_bias_op<Relu>, T> {
    static std::size_t workspace(const kernel_call& c) { return kernel<matmul_op, T>::workspace(c); }
    static void run(const kernel_call& c) {
        kernel<matmul_op, T>::template multiply<cpu::detail::narrow_rows_biased<T, Relu>>(c);
    }
};

} // namespace tapegraph::runtime

#include <tapegraph/ops/compiled_kernels.hpp>
