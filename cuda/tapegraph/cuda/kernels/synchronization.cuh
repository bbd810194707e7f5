#pragma once

#include <tapegraph/cuda/kernels/platform.cuh>

#include <cstdint>

#ifdef TG_SIMT
#include <simt/synchronization.hpp>
#endif

/// How blocks wait for each other and see each other's memory; tests on the CPU supply twins
/// (simt/synchronization.hpp). Counters in global memory are for cooperative launches, clusters for
/// sm_90 and later; elsewhere a kernel that uses clusters traps.

#ifndef TG_SIMT
namespace tapegraph::cuda::kernels {

/// Reads what another block has written, bypassing this multiprocessor's own cache.
template <class T>
__device__ __forceinline__ T load_from_others(const T* at) {
    return __ldcg(at);
}
/// Writes what other blocks will read after they have seen this block's next add_to_count.
template <class T>
__device__ __forceinline__ void store_for_others(T* at, T value) {
    *at = value;
}
/// Increments the counter; a thread that sees this in wait_for_count sees everything this thread
/// had written or seen before.
__device__ __forceinline__ void add_to_count(unsigned* count) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(__cvta_generic_to_global(count)) : "memory");
}
/// Waits until the counter has reached or passed `target`.
__device__ __forceinline__ void wait_for_count(const unsigned* count, unsigned target) {
    unsigned seen;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                     : "=r"(seen)
                     : "l"(__cvta_generic_to_global(count))
                     : "memory");
    } while (static_cast<int>(seen - target) < 0);
}

/// The rank of this block in its cluster.
__device__ __forceinline__ unsigned cluster_rank() {
    unsigned rank = 0;
#if __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#else
    __trap();
#endif
    return rank;
}
/// A barrier on which this block waits for data that others of its cluster send: a phase ends when
/// as many bytes have arrived as expect_bytes announced. It lies in shared memory; one thread calls
/// begin_arrivals before a barrier of the cluster.
using arrivals = std::uint64_t;
__device__ __forceinline__ void begin_arrivals(arrivals* own) {
#if __CUDA_ARCH__ >= 900
    const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(own));
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#else
    __trap();
#endif
}
/// Called by one thread, once per phase, before or after the first bytes have arrived.
__device__ __forceinline__ void expect_bytes(arrivals* own, unsigned bytes) {
#if __CUDA_ARCH__ >= 900
    const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(own));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
#else
    __trap();
#endif
}
/// Sends a value to the location of `own`, an address in this block's shared memory, in block
/// `rank` of the cluster, and counts its bytes among the arrivals there. A thread that has waited
/// for these sees the value. Nothing else is ordered by it, so it needs no fence of all memory,
/// which a barrier of the cluster does (MEMBAR.ALL.GPU).
template <class T>
__device__ __forceinline__ void send_to_cluster(T* own, unsigned rank, T value, arrivals* arrived) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
#if __CUDA_ARCH__ >= 900
    std::uint32_t there, counted;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(there)
        : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(own))), "r"(rank));
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(counted)
        : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(arrived))), "r"(rank));
    if constexpr (sizeof(T) == 4)
        asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(there),
                     "f"(value), "r"(counted)
                     : "memory");
    else
        asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f64 [%0], %1, [%2];" ::"r"(there),
                     "d"(value), "r"(counted)
                     : "memory");
#else
    __trap();
#endif
}
/// Waits for the end of a phase: `parity` is 0 for the first, then 1, 0, ... No thread may be two
/// phases behind.
__device__ __forceinline__ void wait_for_arrivals(arrivals* own, unsigned parity) {
#if __CUDA_ARCH__ >= 900
    const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(own));
    unsigned ended;
    do {
        asm volatile("{\n\t.reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t}"
                     : "=r"(ended)
                     : "r"(at), "r"(parity)
                     : "memory");
    } while (ended == 0);
#else
    __trap();
#endif
}
/// The two halves of a barrier of all threads of a cluster: what each wrote before it arrived is
/// visible after the wait.
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
