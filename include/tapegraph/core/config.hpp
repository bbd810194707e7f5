#pragma once

#include <tapegraph/core/agreement.hpp>
#include <tapegraph/version.hpp>

/// The few compiler-dependent words the whole library uses.

#define TG_VERSION_NAME(major, minor, patch) major##_##minor##_##patch
#define TG_VERSION_EXPANDED(major, minor, patch) TG_VERSION_NAME(major, minor, patch)
TG_OBJECTS_AGREE(version,
                 TG_VERSION_EXPANDED(TAPEGRAPH_VERSION_MAJOR, TAPEGRAPH_VERSION_MINOR, TAPEGRAPH_VERSION_PATCH))
#undef TG_VERSION_EXPANDED
#undef TG_VERSION_NAME

// TG_INLINE: always inlined. A kernel is compiled for several instruction sets by inlining one body into functions with
// different target attributes; whatever stayed a call would be compiled once, for the baseline, and run at its speed.
#define TG_INLINE __attribute__((always_inline)) inline

// TG_HD: may be called from kernels on every backend.
#if defined(__CUDACC__)
#define TG_HD __host__ __device__ __forceinline__
#else
#define TG_HD TG_INLINE
#endif
