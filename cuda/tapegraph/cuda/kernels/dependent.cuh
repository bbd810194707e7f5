#pragma once

#include <tapegraph/cuda/kernels/platform.cuh>

#ifdef TG_SIMT
#include <simt/predecessors.hpp>
#endif

/// Kernels that may begin while what was launched before them is still being done.

namespace tapegraph::cuda::kernels {

#ifndef TG_SIMT
/// Waits until all that the stream was given before is done and can be seen; afterwards the kernel behind this one may begin, too. Nothing
/// where a kernel was not launched so, and on devices before compute capability 9.0, which launch none so.
__device__ __forceinline__ void wait_for_predecessors() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
#endif

/// The argument of such a kernel, its only one: whoever reads it has waited. So no thread knows an address before all that was
/// launched earlier is done, and that a kernel is launched early follows from its type.
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

/// Whether a kernel of these parameters waits for what was launched before.
template <class... P>
inline constexpr bool waits_for_predecessors = false;
template <class P>
inline constexpr bool waits_for_predecessors<dependent<P>> = true;

} // namespace tapegraph::cuda::kernels
