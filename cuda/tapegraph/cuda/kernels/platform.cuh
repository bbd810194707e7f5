#pragma once

#include <cstdint>

/// The words that kernels need besides CUDA's own. nvcc compiles them to instructions; tests/simt
/// compiles the same kernels with a plain C++ compiler and defines the words first.

#if !defined(__CUDACC__) && !defined(TG_SIMT)
#error "kernels are compiled by nvcc, or by tests that include <simt/words.hpp> first"
#endif

#ifdef TG_SIMT
#define TG_DYNAMIC_SHARED(type, name) type* const name = static_cast<type*>(::simt::dynamic_shared())
#define TG_UNROLL
#define TG_ROLLED
#else
#define TG_DYNAMIC_SHARED(type, name)                                                                                  \
    extern __shared__ __align__(16) unsigned char tapegraph_dynamic_shared[];                                          \
    type* const name = reinterpret_cast<type*>(tapegraph_dynamic_shared)
#ifdef __CUDA_ARCH__
#define TG_UNROLL _Pragma("unroll")
#define TG_ROLLED _Pragma("unroll 1")
#else // the host's compiler knows neither
#define TG_UNROLL
#define TG_ROLLED
#endif
#endif

namespace tapegraph::cuda::kernels {

/// A number as a type.
template <int Value>
struct constant {
    static constexpr int value = Value;
};

/// Hides x from the optimiser, so that what is derived from it is computed where it is used and not
/// kept in registers through a loop that has none to spare.
__device__ inline int computed_here(int x) {
#ifdef __CUDA_ARCH__
    asm volatile("" : "+r"(x));
#endif
    return x;
}

/// The float with these bits.
__host__ __device__ inline float from_bits(std::uint32_t bits) {
#ifdef __CUDA_ARCH__
    return __uint_as_float(bits);
#else
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
#endif
}

__host__ __device__ inline std::uint32_t to_bits(float x) {
#ifdef __CUDA_ARCH__
    return __float_as_uint(x);
#else
    std::uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
#endif
}

/// a b + c, rounded once on devices. Explicit because kernels are compiled without contraction
/// (elementwise ones give the CPU's bits), which would halve the speed of a product.
template <class T>
__host__ __device__ inline T multiply_add(T a, T b, T c) {
#ifdef TG_SIMT
    return a * b + c; // without the instruction it would be a call into the C library
#else
    if constexpr (sizeof(T) == sizeof(float))
        return fmaf(a, b, c);
    else
        return fma(a, b, c);
#endif
}

/// Division by a number known before the launch, as a multiplication: exact for numerators below 2^31.
/// Granlund and Montgomery, "Division by Invariant Integers using Multiplication", 1994.
struct divisor {
    std::uint32_t value = 1, multiplier = 1, shift = 0;

    divisor() = default;
    explicit divisor(std::uint32_t d)
        : value(d == 0 ? 1 : d) { // no launch divides by 0: what has no elements has no threads
        d = value;
        while (shift < 31 && (std::uint32_t{1} << shift) < d) ++shift;
        multiplier = static_cast<std::uint32_t>((((std::uint64_t{1} << shift) - d) << 32) / d + 1);
    }
    __host__ __device__ std::uint32_t quotient(std::uint32_t n) const {
        const auto high = static_cast<std::uint32_t>(static_cast<std::uint64_t>(n) * multiplier >> 32);
        return (high + n) >> shift; // no carry: n < 2^31 and high < n
    }
    __host__ __device__ std::uint32_t remainder(std::uint32_t n, std::uint32_t q) const { return n - q * value; }
};

} // namespace tapegraph::cuda::kernels
