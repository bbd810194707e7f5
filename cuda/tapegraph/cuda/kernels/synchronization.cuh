#pragma once

#include <tapegraph/cuda/kernels/platform.cuh>

#ifdef TG_SIMT
#include <simt/synchronization.hpp>
#endif

/// How blocks wait for each other and see each other's memory, one function each; tests on the CPU supply twins
/// (simt/synchronization.hpp). Counters in global memory are for grids that run together (cooperative launches), clusters
/// for sm_90 and later; elsewhere a kernel that uses clusters traps.

#ifndef TG_SIMT
namespace tapegraph::cuda::kernels {

/// Reads what another block has written: past this multiprocessor's own cache.
template <class T>
__device__ __forceinline__ T load_from_others(const T* at) {
    return __ldcg(at);
}
/// Counts one up; who sees it in wait_for_count sees everything this thread had written or had seen before.
__device__ __forceinline__ void add_to_count(unsigned* count) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(__cvta_generic_to_global(count)) : "memory");
}
/// Waits until the counter has come to `target`, or gone past it.
__device__ __forceinline__ void wait_for_count(const unsigned* count, unsigned target) {
    unsigned seen;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                     : "=r"(seen)
                     : "l"(__cvta_generic_to_global(count))
                     : "memory");
    } while (static_cast<int>(seen - target) < 0);
}

/// This block's number in its cluster.
__device__ __forceinline__ unsigned cluster_rank() {
    unsigned rank = 0;
#if __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#else
    __trap();
#endif
    return rank;
}
/// Writes to where `own`, an address in this block's shared memory, lies in that of block `rank` of the cluster.
template <class T>
__device__ __forceinline__ void store_to_cluster(T* own, unsigned rank, T value) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
#if __CUDA_ARCH__ >= 900
    const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(own));
    std::uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
    if constexpr (sizeof(T) == 4)
        asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(value) : "memory");
    else
        asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(there), "d"(value) : "memory");
#else
    __trap();
#endif
}
/// The two halves of a barrier of all threads of a cluster: what each wrote before it arrived is seen after the wait.
__device__ __forceinline__ void arrive_at_cluster() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#else
    __trap();
#endif
}
__device__ __forceinline__ void wait_for_cluster() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#else
    __trap();
#endif
}

} // namespace tapegraph::cuda::kernels
#endif
