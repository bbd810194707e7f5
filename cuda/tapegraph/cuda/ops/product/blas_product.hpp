#pragma once

#include <tapegraph/core/dtype.hpp>

#include <cstdint>
#include <string>

/// Describes a matrix product for cuBLASLt. cuda/ops/product/blas.cuh and its twin on the CPU share
/// it.

namespace tapegraph::cuda::blas {

/// A column-major product: D = op(A) op(B), plus the old D with `accumulate`, plus bias[i] in row i
/// with `bias`. op(A) is m by k, op(B) k by n. Leading dimensions and strides between the matrices
/// of a batch count elements; a stride of 0 reads the same matrix again. 16-bit elements are
/// multiplied and added as float and rounded once.
struct product {
    dtype type = dtype::f32;
    bool tf32 = false; ///< float operands may be rounded to TF32
    bool transpose_a = false, transpose_b = false, accumulate = false, bias = false;
    std::int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldd = 0;
    std::int64_t batch = 1, stride_a = 0, stride_b = 0, stride_d = 0;
    /// The alignment of the addresses in bytes, at most 256.
    std::uint32_t align_a = 256, align_b = 256, align_d = 256, align_bias = 256;
};

/// "f32 [4, 3] by [3, 5], batch of 7": row-major, as the library's shapes are, so the operands are
/// swapped.
inline std::string text(const product& p) {
    std::string t = name_of(p.type);
    const auto matrix = [&](bool transposed, std::int64_t rows, std::int64_t columns) {
        t += " [";
        t += std::to_string(transposed ? columns : rows);
        t += ", ";
        t += std::to_string(transposed ? rows : columns);
        t += transposed ? "] transposed" : "]";
    };
    matrix(p.transpose_b, p.n, p.k);
    t += " by";
    matrix(p.transpose_a, p.k, p.m);
    if (p.batch != 1) t += ", batch of " + std::to_string(p.batch);
    return t;
}

} // namespace tapegraph::cuda::blas
