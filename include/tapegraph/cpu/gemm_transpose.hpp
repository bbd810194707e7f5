#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/config.hpp>
#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/vector.hpp>

#include <cstdint>

/// Packing what the tile kernel reads across its rows: transposed by squares of vectors in registers.

namespace tapegraph::cpu::detail {

/// to[n * to_row + k] = from[k * from_row + n], in squares of as many rows as a vector has lanes.
template <class T>
struct transpose_body {
    template <class Isa>
    TG_INLINE static void run(T* to, std::int64_t to_row, const T* from, std::int64_t from_row, std::int64_t rows,
                              std::int64_t columns) {
        // Wider shuffles than of 32 bytes have one port instead of two.
        if constexpr (Isa::vector_bytes >= 32)
            if (rows * static_cast<std::int64_t>(sizeof(T)) >= 32)
                return squares<vector<T, 32>>(to, to_row, from, from_row, rows, columns);
        squares<vector<T, 16>>(to, to_row, from, from_row, rows, columns);
    }

private:
    template <class V>
    TG_INLINE static void squares(T* to, std::int64_t to_row, const T* from, std::int64_t from_row, std::int64_t rows,
                                  std::int64_t columns) {
        constexpr std::int64_t side = V::lanes;
        static_assert(side <= 8);
        const std::int64_t whole_columns = columns / side * side;
        const std::int64_t whole_rows = rows >= side ? rows : 0; // the last block may overlap the one before
        // Copies a cache line of each row at a time: rows a power of two apart would evict each other's
        // lines.
        constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
        for (std::int64_t c0 = 0; c0 < whole_columns; c0 += line)
            for (std::int64_t first = 0; first < whole_rows; first += side) {
                const std::int64_t r = first + side <= rows ? first : rows - side;
                for (std::int64_t c = c0; c < whole_columns && c < c0 + line; c += side)
                    square<V>(to + c * to_row + r, to_row, from + r * from_row + c, from_row);
            }
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c)
                to[c * to_row + r] = from[r * from_row + c];
    }
    template <class V>
    TG_INLINE static void square(T* to, std::int64_t to_row, const T* from, std::int64_t from_row) {
        using type = typename V::type;
        type a, b;
        V::load(a, from);
        V::load(b, from + from_row);
        if constexpr (V::lanes == 2) {
            V::store(to, __builtin_shufflevector(a, b, 0, 2));
            V::store(to + to_row, __builtin_shufflevector(a, b, 1, 3));
        } else {
            type c, d;
            V::load(c, from + 2 * from_row);
            V::load(d, from + 3 * from_row);
            if constexpr (V::lanes == 4 && sizeof(T) == 4) {
                const type low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
                const type low2 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
                const type high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
                const type high2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
                V::store(to, __builtin_shufflevector(low, low2, 0, 1, 4, 5));
                V::store(to + to_row, __builtin_shufflevector(low, low2, 2, 3, 6, 7));
                V::store(to + 2 * to_row, __builtin_shufflevector(high, high2, 0, 1, 4, 5));
                V::store(to + 3 * to_row, __builtin_shufflevector(high, high2, 2, 3, 6, 7));
            } else if constexpr (V::lanes == 4) {
                const type even = __builtin_shufflevector(a, b, 0, 4, 2, 6);
                const type even2 = __builtin_shufflevector(c, d, 0, 4, 2, 6);
                const type odd = __builtin_shufflevector(a, b, 1, 5, 3, 7);
                const type odd2 = __builtin_shufflevector(c, d, 1, 5, 3, 7);
                V::store(to, __builtin_shufflevector(even, even2, 0, 1, 4, 5));
                V::store(to + to_row, __builtin_shufflevector(odd, odd2, 0, 1, 4, 5));
                V::store(to + 2 * to_row, __builtin_shufflevector(even, even2, 2, 3, 6, 7));
                V::store(to + 3 * to_row, __builtin_shufflevector(odd, odd2, 2, 3, 6, 7));
            } else {
                type e, f, g, h;
                V::load(e, from + 4 * from_row);
                V::load(f, from + 5 * from_row);
                V::load(g, from + 6 * from_row);
                V::load(h, from + 7 * from_row);
                four_columns<V>(a, b, c, d); // each half now has four numbers of a column
                four_columns<V>(e, f, g, h);
                halves<V>(to, to + 4 * to_row, a, e);
                halves<V>(to + to_row, to + 5 * to_row, b, f);
                halves<V>(to + 2 * to_row, to + 6 * to_row, c, g);
                halves<V>(to + 3 * to_row, to + 7 * to_row, d, h);
            }
        }
    }
    template <class V>
    TG_INLINE static void four_columns(typename V::type& a, typename V::type& b, typename V::type& c,
                                       typename V::type& d) {
        using type = typename V::type;
        const type low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13);
        const type high = __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
        const type low2 = __builtin_shufflevector(c, d, 0, 8, 1, 9, 4, 12, 5, 13);
        const type high2 = __builtin_shufflevector(c, d, 2, 10, 3, 11, 6, 14, 7, 15);
        a = __builtin_shufflevector(low, low2, 0, 1, 8, 9, 4, 5, 12, 13);
        b = __builtin_shufflevector(low, low2, 2, 3, 10, 11, 6, 7, 14, 15);
        c = __builtin_shufflevector(high, high2, 0, 1, 8, 9, 4, 5, 12, 13);
        d = __builtin_shufflevector(high, high2, 2, 3, 10, 11, 6, 7, 14, 15);
    }
    template <class V>
    TG_INLINE static void halves(T* to, T* to_fourth, const typename V::type& first, const typename V::type& second) {
        V::store(to, __builtin_shufflevector(first, second, 0, 1, 2, 3, 8, 9, 10, 11));
        V::store(to_fourth, __builtin_shufflevector(first, second, 4, 5, 6, 7, 12, 13, 14, 15));
    }
};

template <class T>
void transpose(T* to, std::int64_t to_row, const T* from, std::int64_t from_row, std::int64_t rows,
               std::int64_t columns) {
    dispatch<transpose_body<T>>(to, to_row, from, from_row, rows, columns);
}

TG_COMPILED(product,
            void transpose<float>(float*, std::int64_t, const float*, std::int64_t, std::int64_t, std::int64_t))
TG_COMPILED(product,
            void transpose<double>(double*, std::int64_t, const double*, std::int64_t, std::int64_t, std::int64_t))

} // namespace tapegraph::cpu::detail
