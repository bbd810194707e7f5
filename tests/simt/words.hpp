#pragma once

#include <simt/executor.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

/// Defines the words of CUDA C++ for a plain C++ compiler, as far as our kernels use them. Include
/// it before a kernel's header.

#define __global__ inline
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __grid_constant__
#define __align__(n) alignas(n)
#define __constant__
// At block scope it is static as well: one variable, which every block finds poisoned.
#define __shared__ thread_local

using dim3 = simt::extent3;
using uint3 = simt::index3;

#define threadIdx (::simt::executor::running()->index)
#define blockIdx (::simt::executor::running()->owner->index)
#define blockDim (::simt::executor::active()->config().block)
#define gridDim (::simt::executor::active()->config().grid)
inline constexpr int warpSize = 32;

#define SIMT_SITE (::simt::site{__FILE__, __LINE__})
#define __syncthreads() ::simt::detail::barrier(SIMT_SITE, 0)
#define __syncthreads_count(p) ::simt::detail::barrier(SIMT_SITE, (p))
#define __syncthreads_or(p) (::simt::detail::barrier(SIMT_SITE, (p)) != 0)
#define __syncthreads_and(p) (::simt::detail::barrier(SIMT_SITE, !(p)) == 0)
#define __syncwarp(...) ::simt::detail::sync_warp(SIMT_SITE __VA_OPT__(, ) __VA_ARGS__)
#define __shfl_sync(...) ::simt::detail::shuffle(SIMT_SITE, __VA_ARGS__)
#define __shfl_up_sync(...) ::simt::detail::shuffle_up(SIMT_SITE, __VA_ARGS__)
#define __shfl_down_sync(...) ::simt::detail::shuffle_down(SIMT_SITE, __VA_ARGS__)
#define __shfl_xor_sync(...) ::simt::detail::shuffle_xor(SIMT_SITE, __VA_ARGS__)
#define __ballot_sync(mask, p) ::simt::detail::ballot(SIMT_SITE, mask, (p) != 0)
#define __any_sync(mask, p) (::simt::detail::ballot(SIMT_SITE, mask, (p) != 0) != 0)
#define __all_sync(mask, p) (::simt::detail::ballot(SIMT_SITE, mask, (p) == 0) == 0)
#define __ffs(x) __builtin_ffs(x)
#define __reduce_add_sync(mask, v)                                                                                     \
    ::simt::detail::reduce(SIMT_SITE, mask, v, [](std::uint64_t a, std::uint64_t b) { return a + b; })
#define __reduce_max_sync(mask, v)                                                                                     \
    ::simt::detail::reduce(SIMT_SITE, mask, v, [](std::uint64_t a, std::uint64_t b) { return a > b ? a : b; })

namespace simt {

namespace detail {

inline bool skips(const site& where) {
    race_detector_looks(false);
    settings& s = current_settings();
    if (s.visited != nullptr) s.visited->insert(where);
    const bool skipped = s.skipped.line != 0 && s.skipped == where;
    race_detector_looks(true);
    return skipped;
}

inline int barrier(const site& where, int predicate) {
    thread& t = *executor::running();
    if (skips(where)) return predicate != 0;
    t.predicate = predicate;
    executor::active()->wait(waiting::barrier, where);
    return t.passed;
}

inline std::uint64_t meet(const site& where, unsigned mask, collective kind, std::uint64_t value, int source = 0,
                          std::uint64_t (*combine)(std::uint64_t, std::uint64_t) = nullptr) {
    thread& t = *executor::running();
    t.mask = mask, t.kind = kind, t.value = value, t.source = source, t.combine = combine;
    executor::active()->wait(waiting::collective, where);
    return t.result;
}

inline void sync_warp(const site& where, unsigned mask = 0xFFFFFFFFu) {
    if (!skips(where)) meet(where, mask, collective::sync, 0);
}

template <class T>
T exchange(const site& where, unsigned mask, T value, int source) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    word = meet(where, mask, collective::shuffle, word, source);
    std::memcpy(&value, &word, sizeof value);
    return value;
}
inline int lane() { return executor::running()->lane(); }

template <class T>
T shuffle(const site& where, unsigned mask, T value, int source, int width = 32) {
    return exchange(where, mask, value, (lane() & ~(width - 1)) + (source & (width - 1)));
}
template <class T>
T shuffle_up(const site& where, unsigned mask, T value, unsigned by, int width = 32) {
    const int from = lane() - static_cast<int>(by);
    return exchange(where, mask, value, from < (lane() & ~(width - 1)) ? lane() : from);
}
template <class T>
T shuffle_down(const site& where, unsigned mask, T value, unsigned by, int width = 32) {
    const int from = lane() + static_cast<int>(by);
    return exchange(where, mask, value, from > (lane() | (width - 1)) ? lane() : from);
}
template <class T>
T shuffle_xor(const site& where, unsigned mask, T value, int bits, int width = 32) {
    const int from = lane() ^ bits;
    return exchange(where, mask, value, from > (lane() | (width - 1)) ? lane() : from);
}
inline unsigned ballot(const site& where, unsigned mask, bool predicate) {
    return static_cast<unsigned>(meet(where, mask, collective::ballot, predicate));
}
template <class T>
T reduce(const site& where, unsigned mask, T value, std::uint64_t (*combine)(std::uint64_t, std::uint64_t)) {
    static_assert(std::is_unsigned_v<T>, "reductions of unsigned integers only");
    return static_cast<T>(meet(where, mask, collective::reduce, value, 0, combine));
}

} // namespace detail

/// The dynamic shared memory of this block, and of another block of its cluster.
inline void* dynamic_shared() { return executor::running()->owner->dynamic; }

/// A memory fence. For the race detector a fence orders everything before it with everything after
/// the next one: more than CUDA promises.
inline void fence() {
#ifdef SIMT_TSAN
    static char all = 0;
    __tsan_acquire(&all);
    __tsan_release(&all);
#endif
}

/// Barriers beyond a block, and the rank of a block in its cluster.
inline void sync_cluster(const site& where) {
    if (detail::skips(where)) return;
    executor::active()->arrive_at_cluster();
    executor::active()->wait_for_cluster(where);
}
inline void sync_grid(const site& where) {
    if (!detail::skips(where)) executor::active()->wait(waiting::grid, where);
}
inline unsigned cluster_size() { return executor::active()->config().cluster; }
inline unsigned cluster_rank() { return executor::running()->owner->index.x % cluster_size(); }
inline void* cluster_shared(unsigned rank) { return executor::active()->peer(rank).dynamic; }

} // namespace simt

// Fibres of one OS thread never run concurrently, so atomics are plain; the race detector is told
// that they are ordered.
template <class T, class F>
T simt_atomic(T* at, const F& f) {
    T old;
    __atomic_load(at, &old, __ATOMIC_RELAXED);
    T next = f(old);
    __atomic_store(at, &next, __ATOMIC_RELAXED);
    return old;
}
template <class T>
T atomicAdd(T* at, std::type_identity_t<T> v) {
    return simt_atomic(at, [v](T old) { return static_cast<T>(old + v); });
}
template <class T>
T atomicMax(T* at, std::type_identity_t<T> v) {
    return simt_atomic(at, [v](T old) { return old > v ? old : v; });
}
template <class T>
T atomicMin(T* at, std::type_identity_t<T> v) {
    return simt_atomic(at, [v](T old) { return old < v ? old : v; });
}
template <class T>
T atomicExch(T* at, std::type_identity_t<T> v) {
    return simt_atomic(at, [v](T) { return v; });
}
template <class T>
T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> v) {
    return simt_atomic(at, [=](T old) { return old == expected ? v : old; });
}
inline void __threadfence() { simt::fence(); }
inline void __threadfence_block() { simt::fence(); }
template <class T>
T __ldg(const T* p) {
    return *p;
}
