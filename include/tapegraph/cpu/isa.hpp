#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/core/environment.hpp>
#include <tapegraph/core/error.hpp>

/// Instruction sets. One kernel body is inlined into a function for each of them, and the function
/// is chosen at run time, so that a program built with a plain -O2 uses the processor's best set.
/// The set is a template parameter, never a macro: functions for different sets have different
/// names and the linker cannot merge them.
///
/// TG_INSTRUCTION_SETS selects the sets that kernels are compiled for: the sum of 1 (baseline), 2
/// (AVX2) and 4 (AVX-512). Fewer sets give a smaller program and a shorter compilation; on a
/// processor that has none of them the first kernel throws. All sources of a program must define it
/// alike, as a single digit; the linker checks that. By default these are the sets that the program
/// may meet: all of them, or those from the compiler's own options (-march) up. A program compiled
/// by nvcc has a GPU for its kernels and leaves AVX-512 out, unless it is required. A program that
/// links the component uses the component's sets.

#if !defined(__x86_64__)
#undef TG_INSTRUCTION_SETS
#define TG_INSTRUCTION_SETS 1
#elif !defined(TG_INSTRUCTION_SETS)
#if defined(TG_COMPONENT)
#define TG_INSTRUCTION_SETS 7
#elif defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__) && defined(__AVX512VL__) &&               \
    defined(__FMA__)
#define TG_INSTRUCTION_SETS 4
#elif defined(__AVX2__) && defined(__FMA__)
#if defined(TG_CUDA) && !defined(TG_SIMT)
#define TG_INSTRUCTION_SETS 2
#else
#define TG_INSTRUCTION_SETS 6
#endif
#elif defined(TG_CUDA) && !defined(TG_SIMT)
#define TG_INSTRUCTION_SETS 3
#else
#define TG_INSTRUCTION_SETS 7
#endif
#endif
static_assert(TG_INSTRUCTION_SETS >= 1 && TG_INSTRUCTION_SETS <= 7,
              "TG_INSTRUCTION_SETS is a sum of 1 (baseline), 2 (AVX2) and 4 (AVX-512)");
TG_OBJECTS_AGREE(TG_INSTRUCTION_SETS, TG_INSTRUCTION_SETS)

namespace tapegraph::cpu {

/// `vector_bytes` is the width explicit vectors should have, `registers` the number of the processor's vector registers.
struct baseline {
    static constexpr int vector_bytes = 16;
#if defined(__aarch64__)
    static constexpr int registers = 32;
#else
    static constexpr int registers = 16;
#endif
};
struct avx2 {
    static constexpr int vector_bytes = 32, registers = 16;
};
struct avx512 {
    static constexpr int vector_bytes = 64, registers = 32;
};

enum class instruction_set { baseline, avx2, avx512 };

/// Whether kernels are compiled for a set.
constexpr bool is_compiled(instruction_set set) { return (TG_INSTRUCTION_SETS >> static_cast<int>(set) & 1) != 0; }

/// The best set that this processor can run.
inline instruction_set processor_instruction_set() {
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
// The best compiled set up to `most`; if there is none, the lowest compiled one that the processor
// can run.
inline instruction_set best_instruction_set(instruction_set most) {
    const int last = static_cast<int>(processor_instruction_set());
    for (int i = static_cast<int>(most) < last ? static_cast<int>(most) : last; i >= 0; --i)
        if (is_compiled(static_cast<instruction_set>(i))) return static_cast<instruction_set>(i);
    for (int i = 0; i <= last; ++i)
        if (is_compiled(static_cast<instruction_set>(i))) return static_cast<instruction_set>(i);
    throw error(
        "cpu: the program was compiled for none of the instruction sets of this processor (TG_INSTRUCTION_SETS is " +
        std::to_string(TG_INSTRUCTION_SETS) + ")");
}
} // namespace detail

/// The best set that this processor can run and kernels are compiled for; throws if there is none.
inline instruction_set supported_instruction_set() { return detail::best_instruction_set(instruction_set::avx512); }

namespace detail {
// TAPEGRAPH_ISA lowers the choice; it never raises it above the processor's own.
inline instruction_set initial_instruction_set() {
    return best_instruction_set(static_cast<instruction_set>(
        tapegraph::detail::environment_choice("TAPEGRAPH_ISA", {"baseline", "avx2", "avx512"}, 2)));
}
inline instruction_set& current_instruction_set() {
    static instruction_set set = initial_instruction_set();
    return set;
}
} // namespace detail

/// The instruction set in use by every kernel of the process.
inline instruction_set active_instruction_set() { return detail::current_instruction_set(); }

/// Selects an instruction set (for tests and measurements). One that the processor lacks or that is
/// not compiled is lowered to the next available set.
inline void set_instruction_set(instruction_set set) {
    detail::current_instruction_set() = detail::best_instruction_set(set);
}

// g++ contracts a*b+c into fma across inlined operators unless told otherwise, and then fused and
// unfused evaluation give different bits. clang contracts only within one source expression, which
// is the same in both, but not on all instruction sets: kernels that have a*b+c in one expression
// stand between TG_ROUNDS_EACH_BEGIN and TG_ROUNDS_EACH_END, which leave the user's code as it is.
// g++ fuses the multiply-adds of a TG_FUSED_FUNCTION only with "expensive-optimizations", which -O1 lacks.
#if defined(__clang__)
#define TG_KERNEL_FUNCTION
#define TG_FUSED_FUNCTION
#define TG_ROUNDS_EACH_BEGIN _Pragma("float_control(push)") _Pragma("clang fp contract(off)")
#define TG_ROUNDS_EACH_END _Pragma("float_control(pop)")
#else
#define TG_KERNEL_FUNCTION __attribute__((optimize("fp-contract=off", "expensive-optimizations", "tree-loop-vectorize", "vect-cost-model=dynamic")))
#define TG_FUSED_FUNCTION __attribute__((optimize("fp-contract=fast", "expensive-optimizations", "tree-loop-vectorize", "vect-cost-model=dynamic")))
#define TG_ROUNDS_EACH_BEGIN
#define TG_ROUNDS_EACH_END
#endif

// The end of a function with vectors of more than 16 bytes. What leaves their upper halves in use makes every
// later call of libm take 27 times as long. g++ clears them itself where "expensive-optimizations" are on,
// which TG_KERNEL_FUNCTION sees to, and not in programs that are compiled for size.
#if defined(__x86_64__) && defined(__OPTIMIZE_SIZE__) && !defined(__clang__)
#define TG_LEAVE_VECTORS __builtin_ia32_vzeroupper();
#else
#define TG_LEAVE_VECTORS
#endif

#if defined(__clang__)
// To clang TG_SIMD is a request, not only a permission: where it does not vectorise such a
// loop, it warns at the function that the loop was inlined into, which is one of these.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
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
        TG_LEAVE_VECTORS
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
    static void
    run(Args... args) {
        Body::template run<avx512>(args...);
        TG_LEAVE_VECTORS
    }
};
#endif

#if defined(__clang__)
#pragma clang diagnostic pop
#endif

/// Runs a kernel body for the active instruction set. Arguments are copied: pass pointers and small structs.
template <class Body, class... Args>
void dispatch(Args... args) {
    switch (active_instruction_set()) {
#if TG_INSTRUCTION_SETS & 4
    case instruction_set::avx512: return on<avx512>::run<Body>(args...);
#endif
#if TG_INSTRUCTION_SETS & 2
    case instruction_set::avx2: return on<avx2>::run<Body>(args...);
#endif
#if TG_INSTRUCTION_SETS & 1
    case instruction_set::baseline: return on<baseline>::run<Body>(args...);
#endif
    default: __builtin_unreachable(); // only compiled sets become active
    }
}

} // namespace tapegraph::cpu
