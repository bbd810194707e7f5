#pragma once

#include <tapegraph/core/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

/// Small moves: words of 1, 2, 4 and 8 bytes, short runs of bytes, and squares of elements turned over in registers. Only
/// 16-byte vectors are used, which every processor has: what a move costs is memory.

namespace tapegraph::cpu::layout_detail {

template <int Size>
struct word;
template <>
struct word<1> {
    typedef std::uint8_t type __attribute__((may_alias));
};
template <>
struct word<2> {
    typedef std::uint16_t type __attribute__((may_alias));
};
template <>
struct word<4> {
    typedef std::uint32_t type __attribute__((may_alias));
};
template <>
struct word<8> {
    typedef std::uint64_t type __attribute__((may_alias));
};

/// The word of a size by another name for vectors, whose elements must not carry attributes.
template <int Size>
using plain_word = std::conditional_t<Size == 1, std::uint8_t,
                                      std::conditional_t<Size == 2, std::uint16_t,
                                                         std::conditional_t<Size == 4, std::uint32_t, std::uint64_t>>>;

/// A store past the caches, for results too large to be read from them again. `to` lies on 16 bytes.
TG_INLINE void store_streaming(void* to, const void* from) {
    typedef long long vector __attribute__((vector_size(16)));
    vector v;
    std::memcpy(&v, from, 16);
#if defined(__clang__)
    __builtin_nontemporal_store(v, static_cast<vector*>(to));
#elif defined(__SSE2__)
    __builtin_ia32_movntdq(static_cast<vector*>(to), v);
#else
    std::memcpy(to, &v, 16);
#endif
}
/// After streaming stores, before another thread may read what they wrote.
TG_INLINE void finish_streaming() {
#if defined(__SSE2__)
    __builtin_ia32_sfence();
#endif
}

/// memcpy without a call where runs are short: two overlapping moves for every length.
TG_INLINE void move_bytes(char* to, const char* from, std::size_t count) {
    typedef long long vector __attribute__((vector_size(16), aligned(1), may_alias));
    if (count > 256) {
        std::memcpy(to, from, count);
    } else if (count >= 16) {
        std::size_t i = 0;
        for (; i + 16 < count; i += 16)
            *reinterpret_cast<vector*>(to + i) = *reinterpret_cast<const vector*>(from + i);
        *reinterpret_cast<vector*>(to + count - 16) = *reinterpret_cast<const vector*>(from + count - 16);
    } else if (count >= 8) {
        std::uint64_t a, b;
        std::memcpy(&a, from, 8);
        std::memcpy(&b, from + count - 8, 8);
        std::memcpy(to, &a, 8);
        std::memcpy(to + count - 8, &b, 8);
    } else if (count >= 4) {
        std::uint32_t a, b;
        std::memcpy(&a, from, 4);
        std::memcpy(&b, from + count - 4, 4);
        std::memcpy(to, &a, 4);
        std::memcpy(to + count - 4, &b, 4);
    } else {
        for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
    }
}

/// As many elements of each side as a 16-byte vector holds. Stage by stage the vectors of the two halves are interleaved; after
/// log2(side) stages row and column have changed places.
template <int Size>
struct square {
    static constexpr int side = 16 / Size;
    typedef plain_word<Size> vector __attribute__((vector_size(16)));

    template <int First, std::size_t... I>
    TG_INLINE static vector interleave(vector a, vector b, std::index_sequence<I...>) {
        return __builtin_shufflevector(a, b, (static_cast<int>(I) % 2 * side + First + static_cast<int>(I) / 2)...);
    }
    template <std::size_t... I, std::size_t... Half>
    TG_INLINE static void stage(vector (&rows)[side], std::index_sequence<I...> lanes, std::index_sequence<Half...>) {
        vector next[side];
        ((next[2 * Half] = interleave<0>(rows[Half], rows[Half + side / 2], lanes),
          next[2 * Half + 1] = interleave<side / 2>(rows[Half], rows[Half + side / 2], lanes)),
         ...);
        ((rows[I] = next[I]), ...);
    }
    template <std::size_t... I>
    TG_INLINE static void turn(const char* from, std::int64_t in, char* to, std::int64_t out, std::index_sequence<I...> lanes) {
        constexpr auto half = std::make_index_sequence<sizeof...(I) / 2>{};
        vector rows[side];
        (std::memcpy(&rows[I], from + static_cast<std::int64_t>(I) * in, 16), ...);
        stage(rows, lanes, half);
        if constexpr (side > 2) stage(rows, lanes, half);
        if constexpr (side > 4) stage(rows, lanes, half);
        if constexpr (side > 8) stage(rows, lanes, half);
        (std::memcpy(to + static_cast<std::int64_t>(I) * out, &rows[I], 16), ...);
    }
    /// `in` and `out`: bytes from row to row.
    TG_INLINE static void turn(const char* from, std::int64_t in, char* to, std::int64_t out) {
        turn(from, in, to, out, std::make_index_sequence<static_cast<std::size_t>(side)>{});
    }
};

/// y[r][c] = x[c][r] for rows by columns elements; `in` and `out` are bytes from one column of x, one row of y to the next.
/// Tiles whose sides are one cache line are turned over by way of a buffer, so that a line of either tensor is touched once:
/// where extents are powers of two, lines that wait for one another would push each other out of the cache.
template <int Size>
void transpose_block(const char* from, std::int64_t in, char* to, std::int64_t out, std::int64_t rows, std::int64_t columns,
                     bool streaming) {
    using element = typename word<Size>::type;
    constexpr std::int64_t line = 64 / Size, side = square<Size>::side;
    if (rows >= line && columns >= line) {
        alignas(64) char buffer[64 * line];
        for (std::int64_t c = 0; c < columns; c += line) {
            const std::int64_t column = std::min(c, columns - line); // the last tile overlaps the one before
            for (std::int64_t r = 0; r < rows; r += line) {
                const std::int64_t row = std::min(r, rows - line);
                const char* const x = from + column * in + row * Size;
                for (std::int64_t k = 0; k < line; k += side)
                    for (std::int64_t i = 0; i < line; i += side)
                        square<Size>::turn(x + k * in + i * Size, in, buffer + i * 64 + k * Size, 64);
                char* const y = to + row * out + column * Size;
                if (streaming && (reinterpret_cast<std::uintptr_t>(y) | static_cast<std::uintptr_t>(out)) % 64 == 0) {
                    for (std::int64_t i = 0; i < line; ++i)
                        for (int b = 0; b < 64; b += 16) store_streaming(y + i * out + b, buffer + i * 64 + b);
                } else {
                    for (std::int64_t i = 0; i < line; ++i) std::memcpy(y + i * out, buffer + i * 64, 64);
                }
            }
        }
        return;
    }
    if (rows >= side && columns >= side) {
        for (std::int64_t c = 0; c < columns; c += side) {
            const std::int64_t column = std::min(c, columns - side);
            for (std::int64_t r = 0; r < rows; r += side) {
                const std::int64_t row = std::min(r, rows - side);
                square<Size>::turn(from + column * in + row * Size, in, to + row * out + column * Size, out);
            }
        }
        return;
    }
    const auto at = [&](std::int64_t r, std::int64_t c) {
        *reinterpret_cast<element*>(to + r * out + c * Size) = *reinterpret_cast<const element*>(from + c * in + r * Size);
    };
    if (columns < rows) {
        for (std::int64_t c = 0; c < columns; ++c)
            for (std::int64_t r = 0; r < rows; ++r) at(r, c);
    } else {
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = 0; c < columns; ++c) at(r, c);
    }
}

} // namespace tapegraph::cpu::layout_detail
