#pragma once

#ifdef TG_SIMT
#include <simt/blas.hpp>
#else
#include <tapegraph/cuda/ops/product/blas.cuh>
#endif
#include <tapegraph/cuda/memory.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

/// The state of cuBLASLt on one device: the handle, an algorithm per product, scratch memory per
/// stream.

namespace tapegraph::cuda {

/// Whatever a product needs besides its inputs is created when the product is first met and then
/// kept, so run every product once before a stream is captured. Thread-safe.
class blas_context {
public:
    /// `major` is the device's compute capability. The device must be current.
    blas_context(memory_pool& memory, int major)
        : memory_(memory), workspace_bytes_(std::size_t{major >= 9 ? 32u : 4u} << 20), handle_(blas::create()) {}
    blas_context(const blas_context&) = delete;
    blas_context& operator=(const blas_context&) = delete;
    ~blas_context() {
        plans_.clear();
        for (const auto& [stream, at] : workspaces_) memory_.release(at);
        blas::destroy(handle_);
    }

    /// Enqueues a product. Returns false, and does nothing, when cuBLASLt has no algorithm for it.
    bool multiply(driver::stream stream, const char* operation, const blas::product& p, const void* a, const void* b,
                  const void* bias, void* d) {
        const std::lock_guard lock(guard_);
        auto found = plans_.find(p);
        if (found == plans_.end())
            found = plans_.emplace(p, blas::plan::find(handle_, operation, p, workspace_bytes_, bias)).first;
        if (found->second == nullptr) return false;
        found->second->run(handle_, stream, operation, a, b, bias, d, workspace(stream), workspace_bytes_);
        return true;
    }

    /// Releases the scratch memory of a stream that is about to be destroyed.
    void forget(driver::stream stream) {
        const std::lock_guard lock(guard_);
        const auto found = workspaces_.find(stream);
        if (found == workspaces_.end()) return;
        driver::wait(stream);
        memory_.release(found->second);
        workspaces_.erase(found);
    }

private:
    struct before {
        static auto key(const blas::product& p) {
            return std::tie(p.m, p.n, p.k, p.type, p.tf32, p.transpose_a, p.transpose_b, p.accumulate, p.bias, p.lda,
                            p.ldb, p.ldd, p.batch, p.stride_a, p.stride_b, p.stride_d, p.align_a, p.align_b, p.align_d,
                            p.align_bias);
        }
        bool operator()(const blas::product& a, const blas::product& b) const { return key(a) < key(b); }
    };

    // Products on two streams run concurrently, so each stream has its own scratch memory.
    void* workspace(driver::stream stream) {
        void*& at = workspaces_[stream];
        if (at == nullptr) {
            at = memory_.allocate(workspace_bytes_, "scratch memory of cuBLAS");
            if (stream != memory_.stream()) driver::wait(memory_.stream());
        }
        return at;
    }

    memory_pool& memory_;
    std::size_t workspace_bytes_;
    blas::handle handle_;
    std::map<blas::product, std::unique_ptr<blas::plan>, before> plans_;
    std::map<driver::stream, void*> workspaces_;
    std::mutex guard_;
};

} // namespace tapegraph::cuda
