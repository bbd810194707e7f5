#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/cpu/vector.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

/// Small moves: words of 1, 2, 4 and 8 bytes, short runs of bytes, and square blocks transposed in
/// registers. Only 16-byte vectors are used, which every processor has: moves are bound by memory,
/// and wider vectors were no faster.

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

/// The word of a size under another name, for vectors, whose elements must not carry attributes.
template <int Size>
using plain_word = std::conditional_t<
    Size == 1, std::uint8_t,
    std::conditional_t<Size == 2, std::uint16_t, std::conditional_t<Size == 4, std::uint32_t, std::uint64_t>>>;

/// A store that bypasses the caches, for results too large to be read from them again. `to` is
/// aligned to 16 bytes.
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
/// A fence after streaming stores, before another thread may read the written memory.
TG_INLINE void finish_streaming() {
#if defined(__SSE2__)
    __builtin_ia32_sfence();
#endif
}

/// memcpy that is inlined for short runs: two overlapping moves for every length.
TG_INLINE void move_bytes(char* to, const char* from, std::int64_t count) {
    typedef long long vector __attribute__((vector_size(16), aligned(1), may_alias));
    if (count > 256) {
        std::memcpy(to, from, static_cast<std::size_t>(count));
    } else if (count >= 16) {
        std::int64_t i = 0;
        for (; i + 16 < count; i += 16) *reinterpret_cast<vector*>(to + i) = *reinterpret_cast<const vector*>(from + i);
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
        for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
    }
}

/// A square with as many elements per side as a 16-byte vector holds. Each stage interleaves the
/// vectors of the two halves; after log2(side) stages rows and columns are exchanged.
template <int Size>
struct square {
    static constexpr int side = 16 / Size;
    typedef plain_word<Size> vector __attribute__((vector_size(16)));

    template <int First, std::size_t... I>
    TG_INLINE static vector interleave(vector a, vector b, std::index_sequence<I...>) {
        vector both;
        shuffle<(static_cast<int>(I) % 2 * side + First + static_cast<int>(I) / 2)...>(both, a, b);
        return both;
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
    TG_INLINE static void turn(const char* from, std::int64_t in, char* to, std::int64_t out,
                               std::index_sequence<I...> lanes) {
        constexpr auto half = std::make_index_sequence<sizeof...(I) / 2>{};
        vector rows[side];
        (std::memcpy(&rows[I], from + static_cast<std::int64_t>(I) * in, 16), ...);
        stage(rows, lanes, half);
        if constexpr (side > 2) stage(rows, lanes, half);
        if constexpr (side > 4) stage(rows, lanes, half);
        if constexpr (side > 8) stage(rows, lanes, half);
        (std::memcpy(to + static_cast<std::int64_t>(I) * out, &rows[I], 16), ...);
    }
    /// `in` and `out` are the bytes from row to row.
    TG_INLINE static void turn(const char* from, std::int64_t in, char* to, std::int64_t out) {
        turn(from, in, to, out, std::make_index_sequence<static_cast<std::size_t>(side)>{});
    }
};

/// Moves a run of bytes; its whole cache lines bypass the caches.
TG_INLINE void move_streaming(char* to, const char* from, std::int64_t bytes) {
    const std::int64_t lead = std::min(bytes, static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(to) & 63));
    move_bytes(to, from, lead);
    std::int64_t i = lead;
    for (; i + 64 <= bytes; i += 64)
        for (int b = 0; b < 64; b += 16) store_streaming(to + i + b, from + i + b);
    move_bytes(to + i, from + i, bytes - i);
}

/// Interleaves `Count` parallel runs into one, or the reverse: pixels of two to four channels.
/// Vectors of the result are assembled from those of one operand after another.
template <int Size, int Count>
struct channels {
    static constexpr int side = 16 / Size;
    typedef plain_word<Size> vector __attribute__((vector_size(16)));

    // Element e of vector V of the result: from operand `From` if that has it, otherwise from the
    // vector assembled so far.
    template <bool Joining, int V, int From, std::size_t... E>
    TG_INLINE static vector with(const vector& made, const vector& operand, std::index_sequence<E...>) {
        vector both;
        shuffle<index<Joining, V, From>(static_cast<int>(E))...>(both, made, operand);
        return both;
    }
    template <bool Joining, int V, int From>
    static constexpr int index(int e) {
        const int channel = Joining ? (V * side + e) % Count : V, place = Joining ? (V * side + e) / Count : e;
        const int source = Joining ? channel : (place * Count + channel) / side;
        const int at = Joining ? place : (place * Count + channel) % side;
        return source == From ? side + at : e;
    }
    template <bool Joining, int V, int... From>
    TG_INLINE static void store(const vector (&operands)[Count], char* to, std::integer_sequence<int, From...>) {
        constexpr auto all = std::make_index_sequence<static_cast<std::size_t>(side)>{};
        vector made = operands[0];
        ((made = with<Joining, V, From>(made, operands[From], all)), ...);
        std::memcpy(to, &made, 16);
    }
    /// Moves `side` pixels. `apart` is the number of bytes between the runs.
    template <bool Joining, int... V>
    TG_INLINE static void move(const char* from, char* to, std::int64_t apart, std::integer_sequence<int, V...> all) {
        vector operands[Count];
        (std::memcpy(&operands[V], from + V * (Joining ? apart : 16), 16), ...);
        (store<Joining, V>(operands, to + V * (Joining ? 16 : apart), all), ...);
    }
    template <bool Joining>
    static void run(const char* from, char* to, std::int64_t apart, std::int64_t pixels) {
        constexpr auto all = std::make_integer_sequence<int, Count>{};
        std::int64_t p = 0;
        for (; p + side <= pixels; p += side)
            move<Joining>(from + p * Size * (Joining ? 1 : Count), to + p * Size * (Joining ? Count : 1), apart, all);
        for (; p < pixels; ++p)
            for (int k = 0; k < Count; ++k)
                std::memcpy(to + (Joining ? (p * Count + k) * Size : p * Size + k * apart),
                            from + (Joining ? p * Size + k * apart : (p * Count + k) * Size), Size);
    }
    /// Moves through a buffer and past the caches.
    template <bool Joining>
    static void run_streaming(const char* from, char* to, std::int64_t apart, std::int64_t pixels) {
        constexpr std::int64_t piece = 1024 / Size;
        alignas(64) char buffer[piece * Size * Count];
        for (std::int64_t p = 0; p < pixels; p += piece) {
            const std::int64_t count = std::min(piece, pixels - p);
            if constexpr (Joining) {
                run<true>(from + p * Size, buffer, apart, count);
                move_streaming(to + p * Size * Count, buffer, count * Size * Count);
            } else {
                run<false>(from + p * Size * Count, buffer, piece * Size, count);
                for (int k = 0; k < Count; ++k)
                    move_streaming(to + p * Size + k * apart, buffer + k * piece * Size, count * Size);
            }
        }
    }
};

/// If a plane is two to four dense channels on one side, moves it and returns true. `apart` is the
/// number of bytes between the runs of the other side.
template <int Size, bool Joining>
bool move_channels(const char* from, char* to, std::int64_t count, std::int64_t dense, std::int64_t apart,
                   std::int64_t pixels, bool streaming) {
    if (dense != count * Size || pixels < 16) return false;
    const auto move = [&]<int Count>(std::integral_constant<int, Count>) {
        if (streaming)
            channels<Size, Count>::template run_streaming<Joining>(from, to, apart, pixels);
        else
            channels<Size, Count>::template run<Joining>(from, to, apart, pixels);
        return true;
    };
    if (count == 2) return move(std::integral_constant<int, 2>{});
    if (count == 3) return move(std::integral_constant<int, 3>{});
    if (count == 4) return move(std::integral_constant<int, 4>{});
    return false;
}

/// The number of columns that `transpose_block` processes at once.
constexpr std::int64_t columns_at_once(std::int64_t size) { return size == 1 ? 256 : 512 / size; }

/// y[r][c] = x[c][r] for rows by columns elements; `in` and `out` are the bytes from one column of
/// x, or one row of y, to the next. As many rows as a cache line has elements are collected in a
/// buffer and written in runs of several lines. So a line of x is read once and whole (where
/// extents are powers of two, lines that wait for one another would evict each other from the
/// cache), and y receives partial lines only at the ends of runs.
template <int Size>
void transpose_block(const char* from, std::int64_t in, char* to, std::int64_t out, std::int64_t rows,
                     std::int64_t columns, bool streaming) {
    using element = typename word<Size>::type;
    constexpr std::int64_t line = 64 / Size, side = square<Size>::side;
    if (rows >= line && columns >= line) {
        constexpr std::int64_t most = columns_at_once(Size), pitch = most * Size;
        // Where lines of x share a set of the L1 cache and evict each other, fewer are prefetched.
        const std::int64_t wide = in % 4096 == 0 ? most / 2 : most;
        const bool aligned = ((reinterpret_cast<std::uintptr_t>(to) | static_cast<std::uintptr_t>(out)) & 63) == 0;
        alignas(64) char buffer[line * pitch];
        for (std::int64_t c = 0; c < columns; c += wide) {
            const std::int64_t first = std::min(c, columns - line); // the last block overlaps the one before
            const std::int64_t count = std::min(wide, columns - first);
            for (std::int64_t r = 0; r < rows; r += line) {
                const std::int64_t row = std::min(r, rows - line), next_row = std::min(r + line, rows - line);
                for (std::int64_t k = 0; k < count; k += line) {
                    const std::int64_t column = std::min(k, count - line);
                    const char* const x = from + (first + column) * in + row * Size;
                    char* const y = to + row * out + (first + column) * Size;
                    // The data that is read after all columns are done; its last byte is on the
                    // newest line.
                    const char* const soon = x + (next_row - row) * Size + 63;
                    for (std::int64_t j = 0; j < line; j += side) {
                        for (std::int64_t i = j; i < j + side; ++i) {
                            __builtin_prefetch(soon + i * in);
                            // Ordinary stores would wait for their line, streaming ones for the
                            // line where the run ends.
                            if (!streaming)
                                __builtin_prefetch(y + i * out + 63, 1);
                            else if (k == 0 && !aligned)
                                __builtin_prefetch(y + i * out + count * Size - 1, 1);
                        }
                        for (std::int64_t i = 0; i < line; i += side)
                            square<Size>::turn(x + j * in + i * Size, in, buffer + i * pitch + (column + j) * Size,
                                               pitch);
                    }
                }
                char* y = to + row * out + first * Size;
                if (streaming)
                    for (std::int64_t i = 0; i < line; ++i, y += out)
                        move_streaming(y, buffer + i * pitch, count * Size);
                else
                    for (std::int64_t i = 0; i < line; ++i, y += out) move_bytes(y, buffer + i * pitch, count * Size);
            }
        }
        return;
    }
    if constexpr (Size >= 4) { // smaller elements need shuffles that not every processor has
        if (move_channels<Size, true>(from, to, columns, out, in, rows, streaming) ||
            move_channels<Size, false>(from, to, rows, in, out, columns, streaming))
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
        *reinterpret_cast<element*>(to + r * out + c * Size) =
            *reinterpret_cast<const element*>(from + c * in + r * Size);
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
