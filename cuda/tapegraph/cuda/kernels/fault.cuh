#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/cuda/kernels/platform.cuh>

#include <cstdint>

/// How kernels report errors, since they cannot throw. One `device_fault` lies in the device's
/// memory, initially zero. It keeps the first call that reports and, of that call, the first
/// element in the CPU's order, until the host has read and zeroed it. A thread that reports
/// continues without accessing what does not exist.

namespace tapegraph::cuda {

enum class fault_kind : int { none, index, not_finite, not_true };

/// What the host knows about a call that may report.
struct fault_site {
    fault_kind kind = fault_kind::none;
    dtype type = dtype::f32; ///< of the elements checked
    int rank = 0;
    std::int64_t extents[max_rank]{};
    const char* label = nullptr; ///< the operation, or the text of a check: in host memory that is never freed
    unsigned long long call = 0; ///< distinguishes calls: the address of their result
    std::int64_t depth = 0;      ///< the number of indices in a tuple; 0: there are no tuples
};

struct device_fault {
    int kind; ///< a fault_kind; none: no error
    int lock;
    unsigned long long position; ///< of the element
    fault_site site;
    std::int64_t index, extent;
    std::uint64_t bits; ///< of the element that is not finite
};

namespace kernels {

/// Where to report to (null: nowhere), and the kind of error.
struct fault_report {
    device_fault* at = nullptr;
    fault_site site;

    __device__ void operator()(std::int64_t position, std::int64_t index, std::int64_t extent,
                               std::uint64_t bits = 0) const {
        if (at == nullptr) return;
        const auto own = static_cast<unsigned long long>(position);
        for (;;) {
            if (seen(&at->kind) != 0) {
                __threadfence(); // to see what was written before `kind`
                if (at->site.call != site.call || seen(&at->position) <= own) return;
            }
            if (atomicCAS(&at->lock, 0, 1) != 0) continue;
            __threadfence();
            const bool none = seen(&at->kind) == 0;
            if (none || (at->site.call == site.call && own < seen(&at->position))) {
                if (none) at->site = site;
                at->index = index, at->extent = extent, at->bits = bits;
                atomicExch(&at->position, own);
                __threadfence();
                atomicExch(&at->kind, static_cast<int>(site.kind));
            }
            __threadfence();
            atomicExch(&at->lock, 0);
            return;
        }
    }

private:
    // As the other threads left it: not from a cache.
    template <class T>
    __device__ static T seen(T* p) {
        return atomicCAS(p, T(0), T(0));
    }
};

} // namespace kernels
} // namespace tapegraph::cuda
