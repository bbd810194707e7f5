#pragma once

#include <tapegraph/cuda/kernels/platform.cuh>

#ifdef TG_SIMT
#include <simt/predecessors.hpp>
#endif

/// Programmatic dependent launch: kernels that may begin while the preceding work of the stream is
/// still running.

namespace tapegraph::cuda::kernels {

#ifndef TG_SIMT
/// Waits until all preceding work of the stream is done and its writes are visible; afterwards the
/// next kernel may begin, too. Does nothing in a kernel that was not launched this way, or on
/// devices before compute capability 9.0, which do not support it.
__device__ __forceinline__ void wait_for_predecessors() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
#endif

/// The only argument of such a kernel. Reading it waits first, so no thread knows an address before
/// all work launched earlier is done. The type of the parameter decides that the kernel is launched
/// early.
template <class P>
class dependent {
public:
    __host__ __device__ dependent(const P& p) : arguments_(p) {}

    __device__ const P& after_predecessors() const {
        wait_for_predecessors();
        return arguments_;
    }

private:
    P arguments_;
};

/// Whether a kernel with these parameters waits for what was launched before.
template <class... P>
inline constexpr bool waits_for_predecessors = false;
template <class P>
inline constexpr bool waits_for_predecessors<dependent<P>> = true;

} // namespace tapegraph::cuda::kernels
