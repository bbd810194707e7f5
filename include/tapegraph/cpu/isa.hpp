#pragma once

#include <tapegraph/core/config.hpp>

#include <cstdlib>
#include <cstring>

/// Instruction sets. One kernel body is inlined into a function for each of them and chosen at run time, so that a
/// program built with a plain -O2 uses what the processor has. The set is a template parameter, never a macro: functions
/// for different sets have different names and the linker cannot merge them.

namespace tapegraph::cpu {

/// `vector_bytes` is the width explicit vectors should have.
struct baseline {
    static constexpr int vector_bytes = 16;
};
struct avx2 {
    static constexpr int vector_bytes = 32;
};
struct avx512 {
    static constexpr int vector_bytes = 64;
};

enum class instruction_set { baseline, avx2, avx512 };

/// What this processor can run.
inline instruction_set supported_instruction_set() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma"))
        return instruction_set::avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return instruction_set::avx2;
#endif
    return instruction_set::baseline;
}

namespace detail {
// TAPEGRAPH_ISA=baseline|avx2|avx512 lowers the choice; it never raises it above what the processor has.
inline instruction_set initial_instruction_set() {
    const instruction_set best = supported_instruction_set();
    const char* wish = std::getenv("TAPEGRAPH_ISA");
    if (wish == nullptr) return best;
    const auto wanted = std::strcmp(wish, "baseline") == 0 ? instruction_set::baseline
                        : std::strcmp(wish, "avx2") == 0   ? instruction_set::avx2
                                                           : instruction_set::avx512;
    return wanted < best ? wanted : best;
}
inline instruction_set& current_instruction_set() {
    static instruction_set set = initial_instruction_set();
    return set;
}
} // namespace detail

/// The instruction set in use by every kernel of the process.
inline instruction_set active_instruction_set() { return detail::current_instruction_set(); }

/// Chooses an instruction set (for tests and measurements); one the processor lacks is lowered to the best it has.
inline void set_instruction_set(instruction_set set) {
    const auto best = supported_instruction_set();
    detail::current_instruction_set() = set < best ? set : best;
}

// g++ contracts a*b+c into fma across inlined operators unless told otherwise, and then fused and unfused evaluation
// give different bits. clang only contracts within one source expression, which is the same in both.
#if defined(__clang__)
#define TG_KERNEL_FUNCTION
#else
#define TG_KERNEL_FUNCTION __attribute__((optimize("fp-contract=off")))
#endif

/// Runs `Body::template run<Isa>(args...)` inside a function compiled for `Isa`.
template <class Isa>
struct on;

template <>
struct on<baseline> {
    template <class Body, class... Args>
    TG_KERNEL_FUNCTION static void run(Args... args) {
        Body::template run<baseline>(args...);
    }
};

#if defined(__x86_64__)
template <>
struct on<avx2> {
    template <class Body, class... Args>
    TG_KERNEL_FUNCTION __attribute__((target("avx2,fma"))) static void run(Args... args) {
        Body::template run<avx2>(args...);
    }
};

template <>
struct on<avx512> {
    template <class Body, class... Args>
#if defined(__clang__)
    __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))
#else
    TG_KERNEL_FUNCTION __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,prefer-vector-width=512")))
#endif
    static void run(Args... args) {
        Body::template run<avx512>(args...);
    }
};
#endif

/// Runs a kernel body for the active instruction set. Arguments are copied: pass pointers and small structs.
template <class Body, class... Args>
void dispatch(Args... args) {
#if defined(__x86_64__)
    switch (active_instruction_set()) {
    case instruction_set::avx512: return on<avx512>::run<Body>(args...);
    case instruction_set::avx2: return on<avx2>::run<Body>(args...);
    case instruction_set::baseline: break;
    }
#endif
    on<baseline>::run<Body>(args...);
}

} // namespace tapegraph::cpu
