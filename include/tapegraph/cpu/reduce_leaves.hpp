#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/core/reduction.hpp>
#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/cpu/vector.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

/// Reductions of one tile: rows are folded across vector lanes, or down their columns.

namespace tapegraph::cpu {

/// The source of a domain's values: `direct` memory, or `produce`, which writes the elements
/// [begin, begin + count) of the row-major domain and is called from several threads at once with
/// counts up to 2,048.
template <class T>
struct reduce_source {
    const T* direct = nullptr;
    void (*produce)(const void* state, std::int64_t begin, std::int64_t count, T* out) = nullptr;
    const void* state = nullptr;
};

/// The maximum number of values of a domain that one pass reduces.
inline constexpr int most_reduced = 4;

namespace reduce_detail {
inline constexpr std::int64_t tile_elements = 2048; // 8 or 16 KiB: stays in L1 together with the accumulators
}

/// The same for several values of a domain that are reduced over the same axes. One call of
/// `produce` writes all that are not `direct`, the k-th from out + k * reduce_detail::tile_elements
/// on; it may also write direct ones, which are read afterwards.
template <class T>
struct reduce_sources {
    int count = 1;
    const T* direct[most_reduced] = {};
    void (*produce)(const void* state, std::int64_t begin, std::int64_t count, T* out) = nullptr;
    const void* state = nullptr;
    /// If not null, the function that sums down columns instead of `produce` where the number of
    /// columns is a multiple of `period`. It adds `rows` rows of `columns` elements, the first at
    /// `begin` and each next one `stride` elements later, to partial + k * widest_partial as
    /// reduce_detail::columns_body does.
    void (*add_columns)(const void* state, std::int64_t begin, std::int64_t rows, std::int64_t columns,
                        std::int64_t stride, T* partial) = nullptr;
    std::int64_t period = 0;
};

using tapegraph::reduction;

namespace reduce_detail {

inline constexpr std::int64_t task_elements = 32768; // below two of these, threads cost more than they save
inline constexpr std::int64_t parallel_elements = 32768;
inline constexpr std::int64_t most_parts = 32;
inline constexpr std::int64_t widest_columns = 1024;
inline constexpr std::int64_t widest_partial = widest_columns + 64;
inline constexpr std::int64_t rows_in_t = 64;    // folded in T before they join a double
inline constexpr std::int64_t rows_at_once = 16; // rows read per access to the accumulators
inline constexpr std::int64_t longest_block = 256;
inline constexpr std::int64_t prefetch_bytes = 2048;

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The type that accumulates results of tiles. Integer sums and products use unsigned types: they
/// wrap around.
template <class T>
using accumulator = std::conditional_t<std::is_floating_point_v<T>, double,
                                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;

using tapegraph::detail::combine;
using tapegraph::detail::identity;
using tapegraph::detail::largest_value;
using tapegraph::detail::smallest_value;

// All bits of the middle 64 bytes are set: a 64-byte window over the array keeps the first or the
// last lanes of a unit.
template <class Integer>
struct lane_window {
    static constexpr int lanes = 64 / static_cast<int>(sizeof(Integer));
    Integer bits[3 * lanes]{};
    constexpr lane_window() {
        for (int i = lanes; i < 2 * lanes; ++i) bits[i] = -1;
    }
};
template <class Integer>
inline constexpr lane_window<Integer> window{};

template <reduction R>
inline constexpr bool arithmetic = R == reduction::sum || R == reduction::product;

// `combine` for sums and products of whole vectors, which nvcc allows only in host functions.
template <reduction R, class V>
TG_INLINE void combine_vectors(V& a, const V& b) {
    if constexpr (R == reduction::sum)
        a = a + b;
    else
        a = a * b;
}
// `combine` of x and y. Comparisons go through arrays: g++ lowers a selection between 64-byte vectors to scalars, but vectorises the loop.
template <reduction R, int N, class T>
TG_INLINE void compare(T* x, const T* y) {
    TG_SIMD
    for (int i = 0; i < N; ++i) {
        const T a = x[i], b = y[i];
        const T best = (R == reduction::maximum ? b > a : b < a) ? b : a;
        x[i] = b != b ? b : best;
    }
}
template <reduction R, int N, class T>
TG_INLINE void compare_halves(T* x) {
    if constexpr (N > 0) {
        compare<R, N>(x, x + N);
        compare_halves<R, N / 2>(x);
    }
}

// 64 bytes of lanes on every instruction set (one, two or four registers), so that lanes mean the same everywhere.
template <class Isa, class T>
struct unit {
    static constexpr int parts = 64 / Isa::vector_bytes;
    static constexpr int part_lanes = Isa::vector_bytes / static_cast<int>(sizeof(T));
    static constexpr int lanes = 64 / static_cast<int>(sizeof(T));
    typedef T vector __attribute__((vector_size(Isa::vector_bytes)));
    using integer =
        std::conditional_t<sizeof(T) == 1, std::int8_t, std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>>;
    typedef integer bits __attribute__((vector_size(Isa::vector_bytes)));
    using all_parts = std::make_index_sequence<parts>;

    vector part[parts];

    template <std::size_t... I>
    TG_INLINE void load(const T* p, std::index_sequence<I...>) {
        (__builtin_memcpy(&part[I], p + I * part_lanes, sizeof(vector)), ...);
    }
    TG_INLINE void load(const T* p) { load(p, all_parts{}); }
    TG_INLINE void store(T* p) const { __builtin_memcpy(p, part, sizeof(part)); }

    template <reduction R, std::size_t... I>
    TG_INLINE void fold(const unit& b, std::index_sequence<I...>) {
        (combine_vectors<R>(part[I], b.part[I]), ...);
    }
    template <reduction R>
    TG_INLINE void fold(const unit& b) {
        if constexpr (arithmetic<R>) {
            fold<R>(b, all_parts{});
        } else {
            T x[lanes], y[lanes];
            store(x);
            b.store(y);
            compare<R, lanes>(x, y);
            load(x);
        }
    }
    template <reduction R>
    TG_INLINE void fold(const T* p) {
        unit b;
        b.load(p);
        fold<R>(b);
    }
    // Lanes whose bits in the window are clear become the identity.
    template <reduction R>
    TG_INLINE static void mask_part(vector& v, const integer* at) {
        bits kept, value, neutral;
        vector neutral_value; // `vector{} + identity` is too much for nvcc's front end
        for (int i = 0; i < part_lanes; ++i) neutral_value[i] = identity<R, T>;
        __builtin_memcpy(&kept, at, sizeof(kept));
        __builtin_memcpy(&value, &v, sizeof(value));
        __builtin_memcpy(&neutral, &neutral_value, sizeof(neutral));
        value = (value & kept) | (neutral & ~kept);
        __builtin_memcpy(&v, &value, sizeof(value));
    }
    template <reduction R, std::size_t... I>
    TG_INLINE void mask(const integer* at, std::index_sequence<I...>) {
        (mask_part<R>(part[I], at + I * part_lanes), ...);
    }
    template <reduction R>
    TG_INLINE void keep_first(std::int64_t count) {
        mask<R>(window<integer>.bits + 2 * lanes - count, all_parts{});
    }
    template <reduction R>
    TG_INLINE void keep_last(std::int64_t count) {
        mask<R>(window<integer>.bits + count, all_parts{});
    }
    template <reduction R, int Step, int... I>
    TG_INLINE void halve(std::integer_sequence<int, I...> all) {
        if constexpr (Step > 0) {
            vector other;
            shuffle<((I + Step) % part_lanes)...>(other, part[0], part[0]);
            part[0] = R == reduction::product ? part[0] * other : part[0] + other;
            halve<R, Step / 2>(all);
        }
    }
    // Lane i takes lane i + n / 2 until one is left.
    template <reduction R>
    TG_INLINE T total() {
        if constexpr (!arithmetic<R>) {
            T x[lanes];
            store(x);
            compare_halves<R, lanes / 2>(x);
            return x[0];
        } else {
            if constexpr (parts == 4) {
                combine_vectors<R>(part[0], part[2]);
                combine_vectors<R>(part[1], part[3]);
            }
            if constexpr (parts >= 2) combine_vectors<R>(part[0], part[1]);
            halve<R, part_lanes / 2>(std::make_integer_sequence<int, part_lanes>{});
            return part[0][0];
        }
    }
};

// out[r] = fold of x[r * length ... + length): four accumulators wide, length up to a tile.
template <reduction R, class T>
struct rows_body {
    template <class Isa>
    TG_INLINE static void run(const T* x, std::int64_t rows, std::int64_t length, accumulator<T>* out) {
        using lanes = unit<Isa, T>;
        constexpr std::int64_t n = lanes::lanes;
        // Loads of short rows reach into the following rows; the last ones use a padded copy.
        T padded[n] = {};
        const std::int64_t whole = rows * length >= n ? (rows * length - n) / length + 1 : 0;
        for (std::int64_t r = 0; r < rows; ++r) {
            const T* p = x + r * length;
            lanes a;
            if (length < n) {
                __builtin_prefetch(p + prefetch_bytes / sizeof(T));
                if (r >= whole) {
                    for (std::int64_t i = 0; i < length; ++i) padded[i] = p[i];
                    p = padded;
                }
                a.load(p);
                a.template keep_first<R>(length);
            } else {
                a.load(p);
                std::int64_t i = n;
                if (length >= 4 * n) {
                    lanes b, c, d;
                    b.load(p + n);
                    c.load(p + 2 * n);
                    d.load(p + 3 * n);
                    for (i = 4 * n; i + 4 * n <= length; i += 4 * n) {
                        a.template fold<R>(p + i);
                        b.template fold<R>(p + i + n);
                        c.template fold<R>(p + i + 2 * n);
                        d.template fold<R>(p + i + 3 * n);
                        if constexpr (!arithmetic<R>) // comparisons fill the window before far loads begin
                            for (std::int64_t k = 0; k < 4 * n; k += n)
                                __builtin_prefetch(p + i + k + prefetch_bytes / static_cast<std::int64_t>(sizeof(T)));
                    }
                    a.template fold<R>(b);
                    c.template fold<R>(d);
                    a.template fold<R>(c);
                }
                for (; i + n <= length; i += n) a.template fold<R>(p + i);
                if (i < length) {
                    lanes tail;
                    tail.load(p + length - n);
                    tail.template keep_last<R>(length - i);
                    a.template fold<R>(tail);
                }
            }
            out[r] = static_cast<accumulator<T>>(a.template total<R>());
        }
    }
};

// Rows of at most `narrowest` elements are reduced together, as many as there are lanes.
inline constexpr std::int64_t narrowest = 8;
template <reduction R, int Length, class T>
TG_INLINE T narrow_row(const T* x) {
    T s = x[0];
    for (int i = 1; i < Length; ++i) combine<R>(s, x[i]);
    return s;
}
template <reduction R, class T>
struct narrow_rows_body {
    template <int Length>
    TG_INLINE static void fold(const T* x, std::int64_t rows, accumulator<T>* out) {
        TG_SIMD
        for (std::int64_t r = 0; r < rows; ++r)
            out[r] = static_cast<accumulator<T>>(narrow_row<R, Length>(x + r * Length));
    }
    template <class Isa>
    TG_INLINE static void run(const T* x, std::int64_t rows, std::int64_t length, accumulator<T>* out) {
        switch (length) {
        case 1: return fold<1>(x, rows, out);
        case 2: return fold<2>(x, rows, out);
        case 3: return fold<3>(x, rows, out);
        case 4: return fold<4>(x, rows, out);
        case 5: return fold<5>(x, rows, out);
        case 6: return fold<6>(x, rows, out);
        case 7: return fold<7>(x, rows, out);
        default: return fold<8>(x, rows, out);
        }
    }
};

template <reduction R, class T>
void run_rows(const T* x, std::int64_t rows, std::int64_t length, accumulator<T>* out) {
    if (length <= narrowest)
        dispatch<narrow_rows_body<R, T>>(x, rows, length, out);
    else
        dispatch<rows_body<R, T>>(x, rows, length, out);
}

} // namespace reduce_detail

} // namespace tapegraph::cpu
