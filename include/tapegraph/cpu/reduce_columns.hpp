#pragma once

#include <tapegraph/cpu/reduce_leaves.hpp>

/// Reductions down the columns of a tile, and functions that the drivers need for all kinds.

namespace tapegraph::cpu {

namespace reduce_detail {

// Folds the columns of x[rows, width], whose rows lie `stride` apart, row by row into `partial`:
// column c into partial[c], except for the last ones of a width that is not a multiple of the
// lanes. These are stored at the end of a unit of their own, because units that overlap in memory
// would wait for one another. `column_place` gives the place.
template <reduction R, class T>
struct columns_body {
    template <class Isa>
    TG_INLINE static void run(const T* x, std::int64_t stride, std::int64_t rows, std::int64_t width, T* partial) {
        using lanes = unit<Isa, T>;
        constexpr std::int64_t n = lanes::lanes;
        if (width < n) {
            for (std::int64_t r = 0; r < rows; ++r)
                for (std::int64_t c = 0; c < width; ++c) combine<R>(partial[c], x[r * stride + c]);
            return;
        }
        std::int64_t r = 0;
        for (; r + 4 <= rows; r += 4) fold_rows<Isa, 4>(x + r * stride, stride, width, partial);
        for (; r < rows; ++r) fold_rows<Isa, 1>(x + r * stride, stride, width, partial);
    }

private:
    // In memory order, several rows per access to `partial`.
    template <class Isa, int Rows>
    TG_INLINE static void fold_rows(const T* x, std::int64_t stride, std::int64_t width, T* partial) {
        constexpr std::int64_t n = unit<Isa, T>::lanes;
        std::int64_t c = 0;
        for (; c + n <= width; c += n) fold_unit<Isa, Rows>(x + c, stride, partial + c, n);
        if (c < width) fold_unit<Isa, Rows>(x + width - n, stride, partial + c, width - c);
    }
    template <class Isa, int Rows>
    TG_INLINE static void fold_unit(const T* x, std::int64_t stride, T* partial, std::int64_t kept) {
        using lanes = unit<Isa, T>;
        lanes a;
        a.load(partial);
        a.template fold<R>(x);
        if constexpr (Rows == 4) {
            a.template fold<R>(x + stride);
            a.template fold<R>(x + 2 * stride);
            a.template fold<R>(x + 3 * stride);
            for (int row = 4; row < 8; ++row) __builtin_prefetch(x + row * stride);
        }
        if (kept < lanes::lanes) a.template keep_last<R>(kept);
        a.store(partial);
    }
};
template <class T>
inline constexpr std::int64_t lanes_of = 64 / static_cast<std::int64_t>(sizeof(T));
template <class T>
constexpr std::int64_t column_place(std::int64_t c, std::int64_t width) {
    const std::int64_t whole = width - width % lanes_of<T>;
    return whole == 0 || c < whole ? c : whole + lanes_of<T> - (width - c);
}

// Joins the folds of `columns_body` to total[0, width) and resets them.
template <reduction R, class T>
struct join_columns_body {
    template <class Isa>
    TG_INLINE static void run(T* partial, std::int64_t width, accumulator<T>* total) {
        const std::int64_t whole = width < lanes_of<T> ? width : width - width % lanes_of<T>;
        TG_SIMD
        for (std::int64_t i = 0; i < whole; ++i) {
            accumulator<T> value = total[i];
            combine<R>(value, static_cast<accumulator<T>>(partial[i]));
            total[i] = value;
            partial[i] = identity<R, T>;
        }
        for (std::int64_t i = whole; i < width; ++i) {
            T& value = partial[column_place<T>(i, width)];
            combine<R>(total[i], static_cast<accumulator<T>>(value));
            value = identity<R, T>;
        }
    }
};

// out[u, c] = fold of column c of x[u], for consecutive small blocks x[units, rows, width].
template <reduction R, class T>
struct blocks_body {
    template <class Isa>
    TG_INLINE static void run(const T* x, std::int64_t units, std::int64_t rows, std::int64_t width, T* out) {
        using lanes = unit<Isa, T>;
        constexpr std::int64_t n = lanes::lanes;
        const T* const end = x + units * rows * width;
        for (std::int64_t u = 0; u < units; ++u, x += rows * width, out += width) {
            for (std::int64_t c = 0; c < width; c += n) {
                const std::int64_t at = c == 0 || c + n <= width ? c : width - n;
                // Loads of narrow rows reach into the memory after them; the last rows are read
                // from a copy.
                std::int64_t whole = rows;
                if (width < n) {
                    const std::int64_t room = end - x - n;
                    const std::int64_t fit = room < 0 ? 0 : room / width + 1;
                    whole = fit < rows ? fit : rows;
                }
                T neutral[n];
                for (std::int64_t i = 0; i < n; ++i) neutral[i] = identity<R, T>;
                lanes a, b;
                a.load(neutral);
                b.load(neutral);
                std::int64_t r = 0;
                for (; r + 2 <= whole; r += 2) {
                    a.template fold<R>(x + r * width + at);
                    b.template fold<R>(x + (r + 1) * width + at);
                    __builtin_prefetch(x + r * width + at + prefetch_bytes / static_cast<std::int64_t>(sizeof(T)));
                    __builtin_prefetch(x + (r + 1) * width + at + prefetch_bytes / static_cast<std::int64_t>(sizeof(T)));
                }
                if (r < whole) a.template fold<R>(x + r++ * width + at);
                for (; r < rows; ++r) {
                    T padded[n] = {};
                    for (std::int64_t i = 0; i < width; ++i) padded[i] = x[r * width + i];
                    a.template fold<R>(padded);
                }
                a.template fold<R>(b);
                T folded[n];
                a.store(folded);
                const std::int64_t count = width - at < n ? width - at : n;
                if (count == n) __builtin_memcpy(out + at, folded, sizeof(folded));
                else
                    for (std::int64_t i = 0; i < count; ++i) out[at + i] = folded[i];
            }
        }
    }
};

// The drivers below take the kind of reduction at run time, so that they are compiled once for each
// T.
template <class T>
struct leaves {
    reduction kind;
    void (*rows)(const T*, std::int64_t, std::int64_t, accumulator<T>*);
    void (*columns)(const T*, std::int64_t, std::int64_t, std::int64_t, T*);
    void (*join_columns)(T*, std::int64_t, accumulator<T>*);
    void (*blocks)(const T*, std::int64_t, std::int64_t, std::int64_t, T*);
};
template <reduction R, class T>
void run_columns(const T* x, std::int64_t stride, std::int64_t rows, std::int64_t width, T* partial) {
    dispatch<columns_body<R, T>>(x, stride, rows, width, partial);
}
template <reduction R, class T>
void run_join_columns(T* partial, std::int64_t width, accumulator<T>* total) {
    dispatch<join_columns_body<R, T>>(partial, width, total);
}
template <reduction R, class T>
void run_blocks(const T* x, std::int64_t units, std::int64_t rows, std::int64_t width, T* out) {
    dispatch<blocks_body<R, T>>(x, units, rows, width, out);
}

template <class A>
A identity_of(reduction kind) {
    return kind == reduction::sum       ? A(0)
           : kind == reduction::product ? A(1)
           : kind == reduction::maximum ? smallest_value<A>
                                        : largest_value<A>;
}
template <class A>
A combined(reduction kind, A a, A b) {
    switch (kind) {
    case reduction::sum: return a + b;
    case reduction::product: return a * b;
    case reduction::maximum: combine<reduction::maximum>(a, b); return a;
    case reduction::minimum: combine<reduction::minimum>(a, b); return a;
    }
    return a;
}

} // namespace reduce_detail

} // namespace tapegraph::cpu
