#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/config.hpp>
#include <tapegraph/cpu/gemm_panels.hpp>
#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/vector.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

/// The one inner kernel of every matrix product and convolution: a tile of `Rows` rows and
/// `Vectors` vectors of columns, held in registers,
///   c[r, n] (+)= sum over k of a[r, k] * b[k, n],
/// where b is a packed panel and a is any memory that three nested loops can traverse. GEMM and the
/// three passes of a convolution differ only in that traversal (cpu/convolution_*.hpp), so the
/// kernels are instantiated once per instruction set and element type, and everything around them
/// is ordinary code compiled once.

namespace tapegraph::cpu {

/// k = (outer, middle, inner). All strides count elements.
struct tile_walk {
    std::int64_t outer = 1, a_outer = 0;
    std::int64_t middle = 1, a_middle = 0;
    std::int64_t inner = 0, a_inner = 1;
    std::int64_t b_skip = 0;  // panel elements skipped after each outer step
    std::int64_t b_inner = 0; // from one k to the next in b; 0: the width of the panel
};

template <class T>
struct tile_job {
    tile_walk walk;
    const T* a;
    std::int64_t a_row;
    const T* b; // [k, Vectors * lanes]
    T* c;
    std::int64_t c_row;
    std::int64_t columns;         // how many of the panel's Vectors * lanes exist
    bool accumulate;              // rows are updated in order, so rows of c may overlap each other shifted
    const T* bias = nullptr;      // [columns], added at the end
    bool relu = false;
    // Prefetches into L2 for the next call: b this many elements further on, and k elements per row
    // from here.
    std::int64_t b_ahead = 0;
    const T* a_ahead = nullptr;
    // The sums of an earlier part of k, in whole vectors, which this part continues as if there had
    // been no pause; null: they start from zero.
    const T* start = nullptr;
    std::int64_t start_row = 0;
};

namespace detail {

template <class Isa>
struct fused;

template <class Isa, class T, int Rows, int Vectors>
struct tile {
    using v = vector<T, Isa::vector_bytes>;
    using type = typename v::type;

    template <int... R, int... N>
    TG_INLINE static void step(type (&c)[Rows][Vectors], const T* a, std::int64_t row, const T* b,
                               std::integer_sequence<int, R...>, std::integer_sequence<int, N...> n) {
        type panel[Vectors];
        (v::load(panel[N], b + N * v::lanes), ...);
        (row_step(c[R], a[R * row], panel, n), ...);
    }
    template <int... N>
    TG_INLINE static void row_step(type (&c)[Vectors], T a, const type (&panel)[Vectors],
                                   std::integer_sequence<int, N...>) {
        (v::multiply_add(c[N], panel[N], a), ...);
    }

    template <int... R, int... N>
    TG_INLINE static void load_rows(type (&c)[Rows][Vectors], const T* from, std::int64_t row,
                                    std::integer_sequence<int, R...>, std::integer_sequence<int, N...> n) {
        (load_row(c[R], from + R * row, n), ...);
    }
    template <int... N>
    TG_INLINE static void load_row(type (&c)[Vectors], const T* from, std::integer_sequence<int, N...>) {
        (v::load(c[N], from + N * v::lanes), ...);
    }
    template <int... R, int... N>
    TG_INLINE static void store_rows(const type (&c)[Rows][Vectors], T* to, std::int64_t row,
                                     std::integer_sequence<int, R...>, std::integer_sequence<int, N...> n) {
        (store_row(c[R], to + R * row, n), ...);
    }
    template <int... N>
    TG_INLINE static void store_row(const type (&c)[Vectors], T* to, std::integer_sequence<int, N...>) {
        (v::store(to + N * v::lanes, c[N]), ...);
    }
    // Row by row: the rows of c may overlap. `other` is c itself, or the same bias for every row.
    template <int... R, int... N>
    TG_INLINE static void add_rows(const type (&c)[Rows][Vectors], T* to, std::int64_t row, const T* other,
                                   std::int64_t other_row, std::integer_sequence<int, R...>,
                                   std::integer_sequence<int, N...> n) {
        (add_row(c[R], to + R * row, other + R * other_row, n), ...);
    }
    template <int... N>
    TG_INLINE static void add_row(const type (&c)[Vectors], T* to, const T* other, std::integer_sequence<int, N...>) {
        type old[Vectors];
        (v::load(old[N], other + N * v::lanes), ...);
        (v::store(to + N * v::lanes, c[N] + old[N]), ...);
    }

    TG_INLINE static void run(const tile_job<T>& job) {
        constexpr auto rows = std::make_integer_sequence<int, Rows>{};
        constexpr auto vectors = std::make_integer_sequence<int, Vectors>{};
        type c[Rows][Vectors] = {};
        if (job.start != nullptr) load_rows(c, job.start, job.start_row, rows, vectors);
        const tile_walk walk = job.walk;
        const std::int64_t row = job.a_row;
        const T* b = job.b;
        const std::int64_t b_ahead = job.b_ahead;
        // Without a prefetch target, the same line again: an unmapped address would be looked up
        // each time.
        const T* a_ahead = job.a_ahead != nullptr ? job.a_ahead : job.a;
        const std::int64_t a_ahead_step = job.a_ahead != nullptr ? Rows : 0;
        const std::int64_t b_inner = walk.b_inner != 0 ? walk.b_inner : Vectors * v::lanes;
        // Fetches c; the sums take long enough for it to arrive.
        for (int r = 0; r < Rows; ++r) {
            __builtin_prefetch(job.c + r * job.c_row, 1);
            __builtin_prefetch(job.c + r * job.c_row + job.columns - 1, 1);
        }
        for (std::int64_t o = 0; o < walk.outer; ++o) {
            for (std::int64_t m = 0; m < walk.middle; ++m) {
                const T* a = job.a + o * walk.a_outer + m * walk.a_middle;
                for (std::int64_t i = 0; i < walk.inner; ++i) {
                    __builtin_prefetch(b + b_ahead, 0, 2);
                    if constexpr (Vectors * sizeof(type) > 64) __builtin_prefetch(b + b_ahead + v::lanes, 0, 2);
                    __builtin_prefetch(a_ahead, 0, 2);
                    a_ahead += a_ahead_step;
                    step(c, a, row, b, rows, vectors);
                    a += walk.a_inner;
                    b += b_inner;
                }
            }
            b += walk.b_skip;
        }
        if (job.columns == Vectors * v::lanes && !(job.accumulate && job.bias != nullptr) && !job.relu) {
            if (job.accumulate || job.bias != nullptr)
                add_rows(c, job.c, job.c_row, job.accumulate ? job.c : job.bias, job.accumulate ? job.c_row : 0, rows,
                         vectors);
            else
                store_rows(c, job.c, job.c_row, rows, vectors);
        } else {
            alignas(64) T values[Rows * Vectors * v::lanes];
            store_rows(c, values, Vectors * v::lanes, rows, vectors);
            fused<Isa>::template finish<T>(job, values, Rows, Vectors);
        }
    }
};

/// The transfer of a tile between registers and memory where it is more than a store. Compiled once
/// for all tiles.
template <class Isa, class T>
struct tile_finish {
    using v = vector<T, Isa::vector_bytes>;
    using type = typename v::type;

    TG_INLINE static void run(const tile_job<T>& job, const T* values, int rows, int vectors) {
        const std::int64_t whole = job.columns / v::lanes;
        const int rest = static_cast<int>(job.columns % v::lanes);
        for (int r = 0; r < rows; ++r, values += vectors * v::lanes) {
            T* c = job.c + r * job.c_row;
            type value, other;
            for (std::int64_t n = 0; n < whole; ++n) {
                v::load(value, values + n * v::lanes);
                if (job.accumulate) {
                    v::load(other, c + n * v::lanes);
                    value += other;
                }
                if (job.bias != nullptr) {
                    v::load(other, job.bias + n * v::lanes);
                    value += other;
                }
                if (job.relu) value = value <= type{} ? type{} : value; // keeps NaN
                v::store(c + n * v::lanes, value);
            }
            if (rest != 0) {
                const std::int64_t n = whole * v::lanes;
                v::load(value, values + n);
                if (job.accumulate) {
                    v::load_first(other, c + n, rest);
                    value += other;
                }
                if (job.bias != nullptr) {
                    v::load_first(other, job.bias + n, rest);
                    value += other;
                }
                if (job.relu) value = value <= type{} ? type{} : value;
                v::store_first(c + n, value, rest);
            }
        }
    }
};

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

// Accumulators, one panel row and one broadcast value share the registers: 32 of AVX-512 and of AArch64, 16 elsewhere. On AArch64
// g++ loads many broadcast values ahead and spills accumulators from 11 rows on (tests/machines/tile_registers.py).
template <class Isa>
inline constexpr int tile_rows = Isa::vector_bytes == 64 ? 12 : Isa::registers == 32 ? 10 : 6;

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
    static constexpr tile_kernels<T> table = {Isa::vector_bytes / static_cast<int>(sizeof(T)),
                                              static_cast<int>(sizeof...(R)),
                                              {{&fused<Isa>::template run<T, R + 1, 1>...},
                                               {&fused<Isa>::template run<T, R + 1, 2>...}}};
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
