#pragma once

#include <tapegraph/cpu/gemm.hpp>
#include <tapegraph/ops/product/matmul.hpp>
#include <tapegraph/runtime/kernel.hpp>

/// Locates the matrices of a product in a call's operands.

namespace tapegraph::runtime::detail {

/// The first of a batch of products, from the operands' last two axes; the axes before them are the
/// batch.
template <class T>
cpu::gemm_arguments<T> first_product(const kernel_call& call) {
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
    return g;
}

inline std::int64_t matrices_of(const buffer_view& x) { return span(x, 0, x.rank - 2); }

/// The number of elements of operand `x` before its matrix for product `index` of result `c`. Where
/// batches broadcast, the smaller operand's matrices are used again.
inline std::int64_t matrix_offset(const buffer_view& x, const buffer_view& c, std::int64_t index) {
    const int outer = c.rank - 2;
    std::int64_t at = 0, stride = x.extents[x.rank - 2] * x.extents[x.rank - 1];
    for (int i = outer - 1; i >= 0; --i) {
        const int axis = i - (outer - (x.rank - 2));
        const std::int64_t own = axis >= 0 ? x.extents[axis] : 1;
        if (own != 1) at += index % c.extents[i] * stride;
        index /= c.extents[i];
        stride *= own;
    }
    return at;
}

} // namespace tapegraph::runtime::detail
