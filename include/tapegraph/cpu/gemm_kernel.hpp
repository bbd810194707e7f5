#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/config.hpp>
#include <tapegraph/cpu/gemm_panels.hpp>
#include <tapegraph/cpu/gemm_tile.hpp>
#include <tapegraph/cpu/isa.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

/// The tile kernel (cpu/gemm_tile.hpp) compiled for each instruction set.

namespace tapegraph::cpu {
namespace detail {

// Functions for one instruction set in which a * b + c is one fused operation where the processor
// has it. Unlike for elementwise kernels (on<Isa>), no other evaluation of the same formula has to
// give the same bits.
#define TG_FUSED(...) TG_FUSED_FUNCTION __VA_ARGS__
#if defined(__clang__)
#define TG_FUSED_AVX512 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))
#else
#define TG_FUSED_AVX512 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,prefer-vector-width=512")))
#endif
#define TG_FUSED_AVX2 __attribute__((target("avx2,fma")))

// clang-format off
#define TG_FUSED_FUNCTIONS(Isa, Target, Leave)                                                                        \
    template <>                                                                                                       \
    struct fused<Isa> {                                                                                               \
        template <class T, int Rows, int Vectors>                                                                     \
        TG_FUSED(Target) static void run(const tile_job<T>& job) {                                                    \
            tile<Isa, T, Rows, Vectors>::run(job);                                                                    \
            Leave                                                                                                     \
        }                                                                                                             \
        template <class Body, class... Args>                                                                          \
        TG_FUSED(Target) static void call(Args... args) {                                                             \
            Body::template run<Isa>(args...);                                                                         \
            Leave                                                                                                     \
        }                                                                                                             \
        template <class T>                                                                                            \
        TG_FUSED(Target) __attribute__((noinline)) static void finish(const tile_job<T>& job, const T* values,        \
                                                                      int rows, int vectors) {                        \
            tile_finish<Isa, T>::run(job, values, rows, vectors);                                                     \
            Leave                                                                                                     \
        }                                                                                                             \
    };
// clang-format on

TG_FUSED_FUNCTIONS(baseline, , )
#if defined(__x86_64__)
TG_FUSED_FUNCTIONS(avx2, TG_FUSED_AVX2, TG_LEAVE_VECTORS)
TG_FUSED_FUNCTIONS(avx512, TG_FUSED_AVX512, TG_LEAVE_VECTORS)
#endif
#undef TG_FUSED_FUNCTIONS
#undef TG_FUSED
#undef TG_FUSED_AVX2
#undef TG_FUSED_AVX512

/// dispatch (cpu/isa.hpp) for a body in which a * b + c may be one operation.
template <class Body, class... Args>
void dispatch_fused(Args... args) {
    switch (active_instruction_set()) {
#if TG_INSTRUCTION_SETS & 4
    case instruction_set::avx512: return fused<avx512>::template call<Body>(args...);
#endif
#if TG_INSTRUCTION_SETS & 2
    case instruction_set::avx2: return fused<avx2>::template call<Body>(args...);
#endif
#if TG_INSTRUCTION_SETS & 1
    case instruction_set::baseline: return fused<baseline>::template call<Body>(args...);
#endif
    default: __builtin_unreachable(); // only compiled sets become active
    }
}

} // namespace detail

/// The kernels of one instruction set: tiles of 1 to `rows` rows and 1 or 2 vectors.
template <class T>
struct tile_kernels {
    static constexpr int most_rows = 12;
    static constexpr int most_lanes = 64 / static_cast<int>(sizeof(T));
    using function = void (*)(const tile_job<T>&);
    int lanes;
    int rows;
    function run[2][most_rows];
};

namespace detail {
template <class Isa, class T, int... R>
const tile_kernels<T>& tile_table(std::integer_sequence<int, R...>) {
    static constexpr tile_kernels<T> table = {
        Isa::vector_bytes / static_cast<int>(sizeof(T)),
        static_cast<int>(sizeof...(R)),
        {{&fused<Isa>::template run<T, R + 1, 1>...}, {&fused<Isa>::template run<T, R + 1, 2>...}}};
    return table;
}
template <class Isa, class T>
const tile_kernels<T>& tile_table() {
    return tile_table<Isa, T>(std::make_integer_sequence<int, tile_rows<Isa>>{});
}
} // namespace detail

/// The kernels for the active instruction set.
template <class T>
const tile_kernels<T>& active_tile_kernels() {
    switch (active_instruction_set()) {
#if TG_INSTRUCTION_SETS & 4
    case instruction_set::avx512: return detail::tile_table<avx512, T>();
#endif
#if TG_INSTRUCTION_SETS & 2
    case instruction_set::avx2: return detail::tile_table<avx2, T>();
#endif
#if TG_INSTRUCTION_SETS & 1
    case instruction_set::baseline: return detail::tile_table<baseline, T>();
#endif
    default: __builtin_unreachable(); // only compiled sets become active
    }
}

TG_COMPILED(product, const tile_kernels<float>& active_tile_kernels<float>())
TG_COMPILED(product, const tile_kernels<double>& active_tile_kernels<double>())

} // namespace tapegraph::cpu
