#pragma once

/// Version and the few compiler-dependent words the whole library uses.

#define TG_VERSION_MAJOR 0
#define TG_VERSION_MINOR 1
#define TG_VERSION_PATCH 0

// TG_INLINE: always inlined. A kernel is compiled for several instruction sets by inlining one body into functions with
// different target attributes; whatever stayed a call would be compiled once, for the baseline, and run at its speed.
#define TG_INLINE __attribute__((always_inline)) inline

// TG_HD: may be called from kernels on every backend.
#if defined(__CUDACC__)
#define TG_HD __host__ __device__ __forceinline__
#else
#define TG_HD TG_INLINE
#endif

namespace tapegraph {

/// False for every T, but only once T is known: for static_assert in templates that are not to be used.
template <class T>
inline constexpr bool always_false = false;

} // namespace tapegraph
