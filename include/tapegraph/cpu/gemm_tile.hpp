#pragma once

#include <tapegraph/core/config.hpp>
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
    std::int64_t columns;    // how many of the panel's Vectors * lanes exist
    bool accumulate;         // rows are updated in order, so rows of c may overlap each other shifted
    const T* bias = nullptr; // [columns], added at the end
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
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define TG_FMA_BY_NAME
#endif

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
    /// The column `n` numbers on in each row.
    TG_INLINE tile_column beside(std::int64_t n) const {
        tile_column next = *this;
        next.first += n * static_cast<std::int64_t>(sizeof(T)), next.sixth += n * static_cast<std::int64_t>(sizeof(T));
        return next;
    }
    TG_INLINE const T* begin() const { return reinterpret_cast<const T*>(first); }
};

/// The same of a packed tile, [k, Rows].
template <class T, int Rows>
struct packed_column {
    const T* first;

    template <int R>
    TG_INLINE T at() const {
        return first[R];
    }
    TG_INLINE void move(std::int64_t steps) {
        first += steps * Rows;
        TG_IN_REGISTER(first)
    }
    TG_INLINE packed_column beside(std::int64_t n) const { return {first + n * Rows}; }
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
    TG_INLINE tile_column beside(std::int64_t n) const { return {first + n, row}; }
};
#endif

/// What the next call reads, fetched while this one multiplies: at each step a row of b and a line of a.
template <class T>
struct tile_ahead {
    bool any;
    std::int64_t b;
    const T* a;
    std::int64_t a_step;
};

// Accumulators, one panel row and one broadcast value share the registers: 32 of AVX-512 and of AArch64, 16 elsewhere. On AArch64
// g++ loads many broadcast values ahead and spills accumulators from 11 rows on (tests/machines/tile_registers.py). Without fma,
// whose products need registers, too, 4 rows are nearly as fast as 6, and there are fewer tiles to compile.
template <class Isa>
inline constexpr int tile_rows = Isa::vector_bytes == 64   ? 12
                                 : Isa::registers == 32    ? 10
                                 : Isa::vector_bytes == 32 ? 6
                                                           : 4;

template <class Isa, class T, int Rows, int Vectors>
struct tile {
    using v = vector<T, Isa::vector_bytes>;
    using type = typename v::type;

    template <class A, int... R, int... N>
    TG_INLINE static void step(type (&c)[Rows][Vectors], const A& a, const T* b, std::integer_sequence<int, R...>,
                               std::integer_sequence<int, N...> n) {
        type panel[Vectors];
        (v::load(panel[N], b + N * v::lanes), ...);
        (row_step(c[R], a.template at<R>(), panel, n), ...);
    }
    template <int... N>
    TG_INLINE static void row_step(type (&c)[Vectors], T a, const type (&panel)[Vectors],
                                   std::integer_sequence<int, N...>) {
#if defined(TG_FMA_BY_NAME)
        // g++ would take all three forms of fma, and then copy sums from one register to another.
        if constexpr (Isa::vector_bytes == 64) {
            const type all = a - type{};
            (fma(c[N], panel[N], all), ...);
            return;
        }
#endif
        (v::multiply_add(c[N], panel[N], a), ...);
    }
#if defined(TG_FMA_BY_NAME)
    TG_INLINE static void fma(type& sum, const type& a, const type& b) {
        if constexpr (sizeof(T) == 4)
            __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
        else
            __asm__("vfmadd231pd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    }
#endif
    template <int Where>
    TG_INLINE static void fetch_row(const T* b) {
        __builtin_prefetch(b, 0, Where);
        if constexpr (Vectors * sizeof(type) > 64) __builtin_prefetch(b + v::lanes, 0, Where);
    }
    // `times` times as many steps as there are S.
    template <class A, int... S, class R, class N>
    TG_INLINE static void steps(type (&c)[Rows][Vectors], A& a, std::int64_t a_inner, const T*& b, std::int64_t b_inner,
                                std::int64_t near, tile_ahead<T>& ahead, std::int64_t times,
                                std::integer_sequence<int, S...>, R rows, N vectors) {
        constexpr int count = sizeof...(S);
        for (; times > 0; --times) {
            TG_IN_MEMORY(ahead.any)
            if (ahead.any) {
                const T* far = b + ahead.b;
                TG_IN_REGISTER(far)
                (fetch_row<2>(far + S * b_inner), ...);
                ((__builtin_prefetch(ahead.a + S * ahead.a_step, 0, 2)), ...);
                ahead.a += count * ahead.a_step;
            }
            const T* next = b + near;
            TG_IN_REGISTER(next)
            ((fetch_row<3>(next + S * b_inner), step(c, a.beside(S), b + S * b_inner, rows, vectors)), ...);
            a.move(count * a_inner);
            b += count * b_inner;
        }
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
        // Without a prefetch target, the same line again: an unmapped address would be looked up
        // each time.
        tile_ahead<T> ahead{job.b_ahead != 0 || job.a_ahead != nullptr, job.b_ahead,
                            job.a_ahead != nullptr ? job.a_ahead : job.a, job.a_ahead != nullptr ? Rows : 0};
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
                    std::int64_t count = walk.inner - i < pause ? walk.inner - i : pause;
                    i += count;
#if defined(__x86_64__)
                    // Four steps at a time: counting takes the place of multiply-adds. In small tiles it matters less
                    // than the time to compile them.
                    if constexpr (Vectors == 2 && 2 * Rows > tile_rows<Isa> && Isa::vector_bytes > 16) {
                        constexpr auto four = std::make_integer_sequence<int, 4>{};
                        if (row == 1 && walk.a_inner == Rows) {
                            packed_column<T, Rows> packed{a.begin()};
                            steps(c, packed, 1, b, b_inner, near, ahead, count / 4, four, rows, vectors);
                            a.move(count / 4 * 4 * Rows);
                            count %= 4;
                        } else if (walk.a_inner == 1) {
                            steps(c, a, 1, b, b_inner, near, ahead, count / 4, four, rows, vectors);
                            count %= 4;
                        }
                    }
#endif
                    steps(c, a, walk.a_inner, b, b_inner, near, ahead, count, std::integer_sequence<int, 0>{}, rows,
                          vectors);
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

} // namespace detail
} // namespace tapegraph::cpu
