#pragma once

/// Compiler-dependent macros of the whole library, and its requirements on the compiler. Every
/// other header includes this one first, so a wrong command gives one error: including a file that
/// does not exist ends the compilation, where #error alone would let thousands of errors follow.

#if defined(_MSC_VER) && !defined(__clang__)
#error "TapeGraph needs g++ or clang, whose attributes it uses: on Windows MinGW's g++, not MSVC's own compiler"
#include <tapegraph/core/see_the_error_above>
#endif
#if __cplusplus < 202002L
#error "TapeGraph needs C++20: compile with -std=c++20"
#include <tapegraph/core/see_the_error_above>
#endif
#if defined(__clang__) && !defined(__apple_build_version__) && __clang_major__ < 16
#define TG_OLD_COMPILER
#elif defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 12
#define TG_OLD_COMPILER
#endif
#ifdef TG_OLD_COMPILER
#error "TapeGraph needs g++ 12 or clang 16 at least"
#include <tapegraph/core/see_the_error_above>
#endif
#if !defined(__cpp_exceptions)
#error "TapeGraph reports errors by exceptions: compile without -fno-exceptions"
#include <tapegraph/core/see_the_error_above>
#endif
// The functions of core/math rely on roundings that -ffast-math simplifies away: exp would be off
// by 0.4, and NaN would pass every check. clang reports only -ffinite-math-only among its parts.
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__)
#define TG_FAST_MATH
#elif defined(__NO_SIGNED_ZEROS__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#define TG_FAST_MATH
#endif
#ifdef TG_FAST_MATH
#error "TapeGraph needs exact arithmetic: compile without -ffast-math, -Ofast and the options these stand for"
#include <tapegraph/core/see_the_error_above>
#endif
#include <tapegraph/core/agreement.hpp>
#include <tapegraph/version.hpp>

#define TG_VERSION_NAME(major, minor, patch) major##_##minor##_##patch
#define TG_VERSION_EXPANDED(major, minor, patch) TG_VERSION_NAME(major, minor, patch)
TG_OBJECTS_AGREE(version,
                 TG_VERSION_EXPANDED(TAPEGRAPH_VERSION_MAJOR, TAPEGRAPH_VERSION_MINOR, TAPEGRAPH_VERSION_PATCH))
#undef TG_VERSION_EXPANDED
#undef TG_VERSION_NAME

// TG_INLINE: always inlined. A kernel is compiled for several instruction sets by inlining one body into functions with
// different target attributes; whatever stayed a call would be compiled once, for the baseline, and run at its speed.
#define TG_INLINE __attribute__((always_inline)) inline

// TG_SIMD, before a loop: its iterations do not depend on each other, so it may be vectorised without a check that its
// arrays do not overlap. TG_VECTORISES, before a function: loops are vectorised wherever that pays, also where g++'s -O1
// and -O2 do not (-O2 does not where it does not know the number of iterations). Functions that are called through on<Isa> and
// fused<Isa> (cpu/isa.hpp) have it. Neither needs a flag of the compiler, as OpenMP's pragma would.
#if defined(__clang__)
#define TG_SIMD _Pragma("clang loop vectorize(assume_safety)")
#define TG_VECTORISES
#else
#define TG_SIMD _Pragma("GCC ivdep")
#define TG_VECTORISES __attribute__((optimize("tree-loop-vectorize", "vect-cost-model=dynamic")))
#endif

// TG_HD: may be called from kernels on every backend.
#if defined(__CUDACC__)
#define TG_HD __host__ __device__ __forceinline__
#else
#define TG_HD TG_INLINE
#endif

namespace tapegraph {

/// False for every T, but only once T is known: for static_assert in templates that must not be
/// instantiated.
template <class T>
inline constexpr bool always_false = false;

} // namespace tapegraph
