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

/// Lines that a later call reads, in rows: fetched into L2 a few at a time, because those from further
/// away hold a core's few line buffers, which what this call reads from L2 needs.
template <class T>
struct tile_fetch {
    const T* from = nullptr; // the next line
    std::int64_t lines = 0;  // that are left
    std::int64_t at_once = 0;
    std::int64_t step = 0;    // from one line of a row to the next,
    std::int64_t in_row = 0;  // of which this row has so many left,
    std::int64_t per_row = 0; // and others so many;
    std::int64_t skip = 0;    // from the last line of a row, on top of a step, to the first of the next row

    TG_INLINE void fetch() {
        for (std::int64_t n = at_once < lines ? at_once : lines; n > 0; --n, --lines) {
            __builtin_prefetch(from, 0, 2);
            from += step;
            if (--in_row == 0) from += skip, in_row = per_row;
        }
    }
};

template <class T>
struct tile_job {
    static constexpr std::int64_t pause = 128; // steps of k between fetches of what comes from far away
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
    tile_fetch<T>* later[2] = {}; // what later calls read, or null
    // The sums of an earlier part of k, in whole vectors, which this part continues as if there had
    // been no pause; null: they start from zero.
    const T* start = nullptr;
    std::int64_t start_row = 0;
};

namespace detail {

template <class Isa>
struct fused;

#if defined(__x86_64__)
// Keeps a condition in memory: g++ would keep it in a mask register, whose test, too, takes the place
// of multiply-adds; and an address from being taken apart.
#define TG_IN_MEMORY(condition) __asm__("" : "+m"(condition));
#define TG_IN_REGISTER(address) __asm__("" : "+r"(address));

/// The numbers of a, `row` elements apart, that a step multiplies. A pointer or a distance for each of
/// twelve rows is more than x86 has registers for: compilers keep some in vector registers, and
/// copying them back takes the place of multiply-adds. Here two pointers and three distances reach
/// all rows; the empty statements keep compilers from computing other ones.
template <class T, int Rows>
struct tile_column {
    const char *first, *sixth;
    std::int64_t one, three, five;

    TG_INLINE tile_column(const T* a, std::int64_t row)
        : first(reinterpret_cast<const char*>(a)), one(row * static_cast<std::int64_t>(sizeof(T))) {
        three = 3 * one, five = 5 * one, sixth = first + 6 * one;
        TG_IN_REGISTER(three)
        TG_IN_REGISTER(five)
    }
    template <int R>
    TG_INLINE T at() const {
        constexpr int r = R % 6;
        return *reinterpret_cast<const T*>((R < 6 ? first : sixth) + (r == 3 ? three : r == 5 ? five : r * one));
    }
    TG_INLINE void move(std::int64_t elements) {
        first += elements * static_cast<std::int64_t>(sizeof(T));
        TG_IN_REGISTER(first)
        if constexpr (Rows > 6) {
            sixth += elements * static_cast<std::int64_t>(sizeof(T));
            TG_IN_REGISTER(sixth)
        }
    }
};
#else
#define TG_IN_MEMORY(condition)
#define TG_IN_REGISTER(address)

template <class T, int Rows>
struct tile_column {
    const T* first;
    std::int64_t row;

    TG_INLINE tile_column(const T* a, std::int64_t apart) : first(a), row(apart) {}
    template <int R>
    TG_INLINE T at() const {
        return first[R * row];
    }
    TG_INLINE void move(std::int64_t elements) { first += elements; }
};
#endif

template <class Isa, class T, int Rows, int Vectors>
struct tile {
    using v = vector<T, Isa::vector_bytes>;
    using type = typename v::type;

    template <int... R, int... N>
    TG_INLINE static void step(type (&c)[Rows][Vectors], const tile_column<T, Rows>& a, const T* b,
                               std::integer_sequence<int, R...>, std::integer_sequence<int, N...> n) {
        type panel[Vectors];
        (v::load(panel[N], b + N * v::lanes), ...);
        (row_step(c[R], a.template at<R>(), panel, n), ...);
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
        bool ahead = b_ahead != 0 || job.a_ahead != nullptr;
        // Without a prefetch target, the same line again: an unmapped address would be looked up
        // each time.
        const T* a_ahead = job.a_ahead != nullptr ? job.a_ahead : job.a;
        const std::int64_t a_ahead_step = job.a_ahead != nullptr ? Rows : 0;
        const std::int64_t b_inner = walk.b_inner != 0 ? walk.b_inner : Vectors * v::lanes;
        // From L2 a kilobyte of b arrives in time. The processor's own prefetching comes too late.
        constexpr auto row_bytes = static_cast<std::int64_t>(Vectors * sizeof(type));
        const std::int64_t near = b_inner * (row_bytes < 1024 ? 1024 / row_bytes : 1);
        // What comes from far away is fetched a few lines before each `pause` steps of k: this call's c,
        // which it reads or writes at the end, and what the next calls read.
        constexpr std::int64_t pause = tile_job<T>::pause;
        const std::int64_t pauses = walk.outer * walk.middle * ((walk.inner + pause - 1) / pause);
        const int c_rows = pauses > 0 && pauses < Rows ? (Rows - 1) / static_cast<int>(pauses) + 1 : 1;
        int fetched = 0;
        // The shortest sums (those of three channels) need c soon, in L1; for longer ones that comes too early.
        if (walk.outer * walk.middle * walk.inner <= 32)
            for (; fetched < Rows; ++fetched) {
                __builtin_prefetch(job.c + fetched * job.c_row, 1);
                __builtin_prefetch(job.c + fetched * job.c_row + job.columns - 1, 1);
            }
        for (std::int64_t o = 0; o < walk.outer; ++o) {
            for (std::int64_t m = 0; m < walk.middle; ++m) {
                tile_column<T, Rows> a(job.a + o * walk.a_outer + m * walk.a_middle, row);
                for (std::int64_t i = 0; i < walk.inner;) {
                    for (int n = 0; n < c_rows && fetched < Rows; ++n, ++fetched) {
                        __builtin_prefetch(job.c + fetched * job.c_row, 0, 2);
                        __builtin_prefetch(job.c + fetched * job.c_row + job.columns - 1, 0, 2);
                    }
                    for (tile_fetch<T>* const later : job.later)
                        if (later != nullptr) later->fetch();
                    for (const std::int64_t end = walk.inner - i < pause ? walk.inner : i + pause; i < end; ++i) {
                        __builtin_prefetch(b + near, 0, 3);
                        if constexpr (Vectors * sizeof(type) > 64) __builtin_prefetch(b + near + v::lanes, 0, 3);
                        TG_IN_MEMORY(ahead)
                        if (ahead) {
                            const T* far = b + b_ahead;
                            TG_IN_REGISTER(far)
                            __builtin_prefetch(far, 0, 2);
                            if constexpr (Vectors * sizeof(type) > 64) __builtin_prefetch(far + v::lanes, 0, 2);
                            __builtin_prefetch(a_ahead, 0, 2);
                            a_ahead += a_ahead_step;
                        }
                        step(c, a, b, rows, vectors);
                        a.move(walk.a_inner);
                        b += b_inner;
                    }
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
