#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/cuda/driver.cuh>
#include <tapegraph/cuda/ops/product/blas_product.hpp>

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

/// Wraps the few calls to cuBLASLt and checks each of them. Tests on the CPU replace this header by
/// simt/blas.hpp, which computes the products.

namespace tapegraph::cuda::blas {

/// Throws device_error with the call, the operation it was for, its shapes and cuBLAS's error text.
inline void check(cublasStatus_t status, const char* call, const char* operation, const product* p = nullptr) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    throw device_error(std::string(call) + " for " + operation + (p == nullptr ? "" : " of " + text(*p)) + ": " +
                       cublasLtGetStatusName(status) + " (" + cublasLtGetStatusString(status) + ")");
}

using handle = cublasLtHandle_t;
/// Creates a handle on the current device.
inline handle create() {
    handle h = nullptr;
    check(cublasLtCreate(&h), "cublasLtCreate", "matrix products");
    return h;
}
inline void destroy(handle h) { cublasLtDestroy(h); }

/// A product together with the algorithm that computes it.
class plan {
public:
    /// Returns null when cuBLASLt has no algorithm for the product. A product with a bias and the
    /// same one without use one algorithm, the best of those that support both, so that their sums
    /// have the same bits. Where no algorithm supports both, there is none for the product with a
    /// bias.
    static std::unique_ptr<plan> find(handle h, const char* operation, const product& p, std::size_t workspace,
                                      const void*) {
        std::unique_ptr<plan> made(new plan(p));
        made->describe(operation);
        struct preference {
            cublasLtMatmulPreference_t p = nullptr;
            ~preference() {
                if (p != nullptr) cublasLtMatmulPreferenceDestroy(p);
            }
        } wish;
        check(cublasLtMatmulPreferenceCreate(&wish.p), "cublasLtMatmulPreferenceCreate", operation, &p);
        const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
            check(cublasLtMatmulPreferenceSetAttribute(wish.p, attribute, &value, sizeof value),
                  "cublasLtMatmulPreferenceSetAttribute", operation, &p);
        };
        prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace});
        // Partial sums are added in the type they were computed in, so a 16-bit result is rounded
        // once.
        std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
        if (size_of(p.type) > 2) schemes |= CUBLASLT_REDUCTION_SCHEME_INPLACE;
        prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, p.align_a);
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, p.align_b);
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, p.align_d);
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, p.align_d);
        const bool may_have_bias = size_of(p.type) > 2 && !p.accumulate;
        const auto find_algorithm = [&](bool for_both) {
            constexpr int most = 16;
            cublasLtMatmulHeuristicResult_t ranked[most]{};
            int found = 0;
            made->set_epilogue(operation, for_both);
            const cublasStatus_t status =
                cublasLtMatmulAlgoGetHeuristic(h, made->operation_, made->a_, made->b_, made->d_, made->d_, wish.p,
                                               for_both ? most : 1, ranked, &found);
            if (status == CUBLAS_STATUS_NOT_SUPPORTED)
                found = 0;
            else
                check(status, "cublasLtMatmulAlgoGetHeuristic", operation, &p);
            made->set_epilogue(operation, false);
            for (int i = 0; i < found; ++i) {
                if (ranked[i].state != CUBLAS_STATUS_SUCCESS) continue;
                cublasLtMatmulHeuristicResult_t alone{};
                if (for_both && (cublasLtMatmulAlgoCheck(h, made->operation_, made->a_, made->b_, made->d_, made->d_,
                                                         &ranked[i].algo, &alone) != CUBLAS_STATUS_SUCCESS ||
                                 alone.state != CUBLAS_STATUS_SUCCESS || alone.workspaceSize > workspace))
                    continue;
                made->algorithm_ = ranked[i].algo;
                return true;
            }
            return false;
        };
        if (may_have_bias && find_algorithm(true)) {
            made->set_epilogue(operation, p.bias);
            return made;
        }
        if (p.bias || !find_algorithm(false)) return nullptr;
        return made;
    }

    /// Enqueues the product. `workspace` has the size that find() was given, aligned to 256 bytes.
    void run(handle h, driver::stream s, const char* operation, const void* a, const void* b, const void* bias, void* d,
             void* workspace, std::size_t workspace_bytes) {
        if (product_.bias) set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
        const double one = 1, zero = 0; // scale factors have the type float for float, double for double
        const float one_f = 1, zero_f = 0;
        const bool wide = product_.type == dtype::f64;
        const void* const alpha = wide ? static_cast<const void*>(&one) : &one_f;
        const void* const beta = product_.accumulate ? alpha : wide ? static_cast<const void*>(&zero) : &zero_f;
        check(cublasLtMatmul(h, operation_, alpha, a, a_, b, b_, beta, d, d_, d, d_, &algorithm_, workspace,
                             workspace_bytes, s),
              "cublasLtMatmul", operation, &product_);
    }

    plan(const plan&) = delete;
    plan& operator=(const plan&) = delete;
    ~plan() {
        for (cublasLtMatrixLayout_t layout : {a_, b_, d_})
            if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
        if (operation_ != nullptr) cublasLtMatmulDescDestroy(operation_);
    }

private:
    explicit plan(const product& p) : product_(p) {}

    void describe(const char* operation) {
        const product& p = product_;
        const bool wide = p.type == dtype::f64;
        const cublasComputeType_t compute = wide                             ? CUBLAS_COMPUTE_64F
                                            : p.type == dtype::f32 && p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                             : CUBLAS_COMPUTE_32F;
        check(cublasLtMatmulDescCreate(&operation_, compute, wide ? CUDA_R_64F : CUDA_R_32F),
              "cublasLtMatmulDescCreate", operation, &p);
        set(operation, CUBLASLT_MATMUL_DESC_TRANSA, std::int32_t{p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N});
        set(operation, CUBLASLT_MATMUL_DESC_TRANSB, std::int32_t{p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N});
        lay_out(operation, a_, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.lda, p.stride_a);
        lay_out(operation, b_, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.ldb, p.stride_b);
        lay_out(operation, d_, p.m, p.n, p.ldd, p.stride_d);
    }
    // Here the address of the bias only states its alignment, the same for all products; the real
    // one is set when the product runs.
    void set_epilogue(const char* operation, bool bias) {
        set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE,
            static_cast<std::uint32_t>(bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT));
        const void* const aligned_to_16 = reinterpret_cast<const void*>(std::uintptr_t{16});
        set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias ? aligned_to_16 : nullptr);
    }
    template <class V>
    void set(const char* operation, cublasLtMatmulDescAttributes_t attribute, const V& value) {
        check(cublasLtMatmulDescSetAttribute(operation_, attribute, &value, sizeof value),
              "cublasLtMatmulDescSetAttribute", operation, &product_);
    }
    void lay_out(const char* operation, cublasLtMatrixLayout_t& layout, std::int64_t rows, std::int64_t columns,
                 std::int64_t leading, std::int64_t stride) {
        const cudaDataType type = product_.type == dtype::f64    ? CUDA_R_64F
                                  : product_.type == dtype::f16  ? CUDA_R_16F
                                  : product_.type == dtype::bf16 ? CUDA_R_16BF
                                                                 : CUDA_R_32F;
        check(cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(rows),
                                         static_cast<std::uint64_t>(columns), leading),
              "cublasLtMatrixLayoutCreate", operation, &product_);
        if (product_.batch == 1) return;
        const auto count = static_cast<std::int32_t>(product_.batch);
        check(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
              "cublasLtMatrixLayoutSetAttribute", operation, &product_);
        check(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                               sizeof stride),
              "cublasLtMatrixLayoutSetAttribute", operation, &product_);
    }

    product product_;
    cublasLtMatmulDesc_t operation_ = nullptr;
    cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
    cublasLtMatmulAlgo_t algorithm_{};
};

} // namespace tapegraph::cuda::blas
