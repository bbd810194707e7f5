#pragma once

#include <simt/driver.hpp>

#include <tapegraph/core/half.hpp>
#include <tapegraph/cuda/ops/product/blas_product.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// Imitates cuBLASLt for tests without a device: the functions of cuda/ops/product/blas.cuh, which
/// multiply column-major matrices in three loops. It refuses what the real one refuses (leading
/// dimensions that are too short, empty matrices, addresses with less alignment than stated) and
/// overwrites its workspace.

namespace tapegraph::cuda::blas {

struct imitation {
    bool bias_for_double = true; ///< whether there is an algorithm for a product of doubles with bias
    int found = 0, run = 0;      ///< searches for algorithms, and those found; products
    double cost = 1;             ///< microseconds per product
    std::vector<product> products;

    static imitation& instance() {
        static imitation& i = *new imitation; // like the device that it belongs to
        return i;
    }
};

using handle = void*;
inline handle create() { return new char; }
inline void destroy(handle h) { delete static_cast<char*>(h); }

class plan {
public:
    static std::unique_ptr<plan> find(handle, const char* operation, const product& p, std::size_t workspace,
                                      const void*) {
        const auto refuse = [&](const char* why) {
            throw device_error(std::string("imitated cuBLASLt for ") + operation + " of " + text(p) + ": " + why);
        };
        driver::imitation::instance().not_in_capture("an algorithm of cuBLASLt is looked for");
        if (p.m < 1 || p.n < 1 || p.k < 1 || p.batch < 1) refuse("an extent is not positive");
        if (p.lda < (p.transpose_a ? p.k : p.m)) refuse("lda is less than A's rows");
        if (p.ldb < (p.transpose_b ? p.n : p.k)) refuse("ldb is less than B's rows");
        if (p.ldd < p.m) refuse("ldd is less than D's rows");
        if (p.batch > 1 && p.stride_d < p.ldd * (p.n - 1) + p.m) refuse("the matrices of D overlap");
        if (p.bias && p.type == dtype::f64 && !imitation::instance().bias_for_double) return nullptr;
        ++imitation::instance().found;
        return std::unique_ptr<plan>(new plan(p, workspace));
    }

    void run(handle, driver::stream stream, const char*, const void* a, const void* b, const void* bias, void* d,
             void* workspace, std::size_t workspace_bytes) {
        const auto aligned = [](const void* at, std::uint32_t bytes) {
            if (reinterpret_cast<std::uintptr_t>(at) % bytes != 0) throw device_error("cuBLASLt: misaligned address");
        };
        aligned(a, product_.align_a), aligned(b, product_.align_b), aligned(d, product_.align_d);
        if (product_.bias) aligned(bias, 16); // its kernels read bias as vectors
        if (workspace_bytes != workspace_) throw device_error("cuBLASLt: not the workspace that was promised");
        auto& i = imitation::instance();
        ++i.run;
        i.products.push_back(product_);
        driver::enqueue(stream, [=, p = *this, cost = i.cost] {
            driver::imitation::instance().clock += cost;
            std::memset(workspace, 0xFF, workspace_bytes);
            switch (p.product_.type) {
            case dtype::f64: return p.multiply<double>(a, b, bias, d);
            case dtype::f16: return p.multiply<half>(a, b, bias, d);
            case dtype::bf16: return p.multiply<bfloat16>(a, b, bias, d);
            default: return p.multiply<float>(a, b, bias, d);
            }
        });
    }

private:
    plan(const product& p, std::size_t workspace) : product_(p), workspace_(workspace) {}

    template <class T>
    void multiply(const void* a, const void* b, const void* bias, void* d) const {
        using sum_type = arithmetic_type_t<T>;
        const product& p = product_;
        const auto at = [](const void* base, std::int64_t offset) {
            return static_cast<sum_type>(static_cast<const T*>(base)[offset]);
        };
        for (std::int64_t x = 0; x < p.batch; ++x)
            for (std::int64_t j = 0; j < p.n; ++j)
                for (std::int64_t i = 0; i < p.m; ++i) {
                    sum_type sum{};
                    for (std::int64_t l = 0; l < p.k; ++l)
                        sum += at(a, x * p.stride_a + (p.transpose_a ? l + i * p.lda : i + l * p.lda)) *
                               at(b, x * p.stride_b + (p.transpose_b ? j + l * p.ldb : l + j * p.ldb));
                    T& to = static_cast<T*>(d)[x * p.stride_d + i + j * p.ldd];
                    if (p.accumulate) sum += static_cast<sum_type>(to);
                    if (p.bias) sum += at(bias, i);
                    to = static_cast<T>(sum);
                }
    }

    product product_;
    std::size_t workspace_;
};

} // namespace tapegraph::cuda::blas
