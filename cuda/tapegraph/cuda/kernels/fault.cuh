#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/cuda/kernels/platform.cuh>

#include <cstdint>

/// How kernels report what they cannot throw. One `device_fault` lies in the device's memory, zero to begin with; it keeps the
/// first call that reports and of that call the first element, as the CPU would name it, until the host has looked at it and
/// zeroed it. Whoever reports goes on, without touching what does not exist.

namespace tapegraph::cuda {

enum class fault_kind : int { none, index, not_finite, not_true };

/// What the host knows of a call that may report.
struct fault_site {
    fault_kind kind = fault_kind::none;
    dtype type = dtype::f32; ///< of what is looked at
    int rank = 0;
    std::int64_t extents[max_rank]{};
    const char* label = nullptr; ///< the operation, or the text of a check: in the host's memory, which has it for ever
    unsigned long long call = 0; ///< something that distinguishes calls: where their result lies
    std::int64_t depth = 0;      ///< so many indices make a tuple; 0: there are no tuples
};

struct device_fault {
    int kind; ///< a fault_kind; none: nothing has happened
    int lock;
    unsigned long long position; ///< of the element
    fault_site site;
    std::int64_t index, extent;
    std::uint64_t bits; ///< of the element that is not finite
};

namespace kernels {

/// Where to report to, null for nowhere, and as what.
struct fault_report {
    device_fault* at = nullptr;
    fault_site site;

    __device__ void operator()(std::int64_t position, std::int64_t index, std::int64_t extent,
                               std::uint64_t bits = 0) const {
        if (at == nullptr) return;
        const auto own = static_cast<unsigned long long>(position);
        for (;;) {
            if (seen(&at->kind) != 0) {
                __threadfence(); // what follows was written before
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
