#pragma once

#include <tapegraph/core/config.hpp>

#include <cstdint>

/// How a thread's floating-point arithmetic rounds, and whether it knows denormal numbers.

namespace tapegraph {
namespace cpu::detail {

#if defined(__x86_64__)
inline constexpr bool has_flush = true;
inline constexpr std::uint64_t flush_bits = 0x8040; // of results, and of operands
/// The control word, without the flags for what has happened.
inline std::uint64_t float_environment() { return __builtin_ia32_stmxcsr() & ~0x3FU; }
inline void set_float_environment(std::uint64_t word) { __builtin_ia32_ldmxcsr(static_cast<std::uint32_t>(word)); }
#elif defined(__aarch64__)
inline constexpr bool has_flush = true;
inline constexpr std::uint64_t flush_bits = 1 << 24; // of both
inline std::uint64_t float_environment() {
    std::uint64_t word = 0;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(word));
    return word;
}
inline void set_float_environment(std::uint64_t word) { __asm__ __volatile__("msr fpcr, %0" : : "r"(word)); }
#else
inline constexpr bool has_flush = false;
inline constexpr std::uint64_t flush_bits = 0;
inline std::uint64_t float_environment() { return 0; }
inline void set_float_environment(std::uint64_t) {}
#endif

} // namespace cpu::detail

/// Whether this thread takes denormal numbers for zero (`set_flush_denormals`).
inline bool flush_denormals() {
    return cpu::detail::has_flush &&
           (cpu::detail::float_environment() & cpu::detail::flush_bits) == cpu::detail::flush_bits;
}

/// From now on this thread, and the threads that compute for it, take denormal numbers for zero, as
/// operands and as results of arithmetic on the CPU; with `false` no longer. Denormal are the numbers
/// nearer to zero than `std::numeric_limits<T>::min()`, 1.2e-38 for float and 2.2e-308 for double, on
/// which processors are many times slower. Threads of the program's own inherit what their creator has.
///
/// Off unless called, as in PyTorch and NumPy. Returns false, and does nothing, where the processor has
/// no such mode.
inline bool set_flush_denormals(bool flush) {
    const std::uint64_t word = cpu::detail::float_environment();
    cpu::detail::set_float_environment(flush ? word | cpu::detail::flush_bits : word & ~cpu::detail::flush_bits);
    return cpu::detail::has_flush;
}

} // namespace tapegraph
