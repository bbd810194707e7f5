#pragma once

#include <tapegraph/ops/product/blas.hpp>
#include <tapegraph/ops/product/kernel_matrices.hpp>
#include <tapegraph/runtime/kept_memory.hpp>

/// Second factors of products that a program keeps packed between runs.

namespace tapegraph::runtime::detail {

/// Whether products of a call would read a packed second factor: one matrix for all rows, in a
/// program that keeps what it derives from variables. One row or column reads the matrix itself.
template <class T>
bool packs_factor(const kernel_call& c, const cpu::gemm_arguments<T>& g) {
    return products_read_panels && c.kept != nullptr && g.m > 1 && g.n > 1 && g.k > 0 && matrices_of(c.in[1]) == 1;
}

/// Tells reports how much memory that takes.
template <class T>
void announce_factor(const kernel_call& c, const cpu::gemm_arguments<T>& g) {
    if (c.kept != nullptr && c.kept->watches(c, 1))
        c.kept->announce(packs_factor(c, g) ? cpu::gemm_packed_bytes<T>(g.n, g.k) : 0);
}

/// The second factor of a call's products, packed; null where it is not kept.
template <class T>
const T* kept_factor(const kernel_call& c, const cpu::gemm_arguments<T>& g) {
    if (!packs_factor(c, g)) return nullptr;
    const kept_memory::key_type key{kept_product + (g.transpose_b ? 1 : 0), g.n, g.k,
                                    cpu::active_tile_kernels<T>().lanes};
    return static_cast<const T*>(c.kept->made_if_unchanged(
        c, 1, key, cpu::gemm_packed_bytes<T>(g.n, g.k), [&](void* to) { cpu::gemm_pack_b(g, static_cast<T*>(to)); }));
}

} // namespace tapegraph::runtime::detail
