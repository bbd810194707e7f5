#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/config.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/cpu/vector.hpp>
#include <tapegraph/ops/movement/cpu_transpose.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

/// Data movement: transpose, slice, concat, broadcast, copy. Everything is one strided copy;
/// elements are moved as integers of their size (1, 2, 4 or 8 bytes), so that one instantiation
/// serves all types of a size. Functions that need no type are templates, too, so that programs
/// that move nothing do not compile them.

namespace tapegraph::cpu {

namespace layout_detail {

inline constexpr std::int64_t piece_elements = 16384; // the size of one memcpy or strided run
inline constexpr std::int64_t parallel_elements = 65536;
inline constexpr std::int64_t block_elements = 4096; // of a plane with a short side

struct axis {
    std::int64_t extent, in, out; ///< strides in elements
};

// The axes of a copy, outermost first, without those of extent 1, and with axes merged that are one
// run on both sides.
struct axes_list {
    int rank = 0;
    std::int64_t elements = 1;
    axis at[8];

    void add(axis a) {
        elements *= a.extent;
        if (a.extent == 1) return;
        if (rank > 0 && at[rank - 1].in == a.in * a.extent && at[rank - 1].out == a.out * a.extent)
            at[rank - 1] = {at[rank - 1].extent * a.extent, a.in, a.out};
        else
            at[rank++] = a;
    }
    axis take(int i) {
        const axis taken = at[i];
        for (--rank; i < rank; ++i) at[i] = at[i + 1];
        return taken;
    }
};

// Iterates over the outer axes without a division per step.
struct odometer {
    const axes_list& axes;
    std::int64_t position[8], in = 0, out = 0;

    odometer(const axes_list& a, std::int64_t index) : axes(a) {
        for (int i = axes.rank; i-- > 0;) {
            position[i] = index % axes.at[i].extent;
            index /= axes.at[i].extent;
            in += position[i] * axes.at[i].in;
            out += position[i] * axes.at[i].out;
        }
    }
    void next() {
        for (int i = axes.rank; i-- > 0;) {
            in += axes.at[i].in;
            out += axes.at[i].out;
            if (++position[i] < axes.at[i].extent) return;
            in -= axes.at[i].in * axes.at[i].extent;
            out -= axes.at[i].out * axes.at[i].extent;
            position[i] = 0;
        }
    }
};

// y[i] = x[-i], read forwards, because processors do not prefetch memory that is read backwards.
template <int Size>
void run_backwards(const typename word<Size>::type* x, typename word<Size>::type* y, std::int64_t count) {
    typedef plain_word<Size> vector __attribute__((vector_size(16)));
    constexpr std::int64_t lanes = 16 / Size;
    const auto* low = x - (count - 1);
    std::int64_t left = count;
    for (; left >= lanes; left -= lanes, low += lanes) {
        vector v, reversed;
        std::memcpy(&v, low, 16);
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            shuffle<(static_cast<int>(lanes) - 1 - static_cast<int>(I))...>(reversed, v, v);
        }
        (std::make_index_sequence<static_cast<std::size_t>(lanes)>{});
        std::memcpy(y + left - lanes, &reversed, 16);
    }
    while (left > 0) y[--left] = *low++;
}

// `rows` runs of `a.extent` elements. Strides are in elements.
template <int Size>
void run(const void* from, void* to, axis rows, axis a) {
    using element = typename word<Size>::type;
    const element* x = static_cast<const element*>(from);
    element* y = static_cast<element*>(to);
    if (a.out == 1 && a.in == 1) {
        const std::int64_t bytes = a.extent * Size;
        for (std::int64_t r = 0; r < rows.extent; ++r, x += rows.in, y += rows.out)
            move_bytes(reinterpret_cast<char*>(y), reinterpret_cast<const char*>(x), bytes);
    } else if (a.out == 1 && a.in == 0) {
        for (std::int64_t r = 0; r < rows.extent; ++r, x += rows.in, y += rows.out) {
            const element value = *x;
            TG_SIMD
            for (std::int64_t i = 0; i < a.extent; ++i) y[i] = value;
        }
    } else if (a.out == 1 && a.in == -1) {
        for (std::int64_t r = 0; r < rows.extent; ++r, x += rows.in, y += rows.out) run_backwards<Size>(x, y, a.extent);
    } else if (a.out == -1 && a.in == 1) {
        for (std::int64_t r = 0; r < rows.extent; ++r, x += rows.in, y += rows.out)
            run_backwards<Size>(x + (a.extent - 1), y - (a.extent - 1), a.extent);
    } else if (a.out == 1) {
        for (std::int64_t r = 0; r < rows.extent; ++r, x += rows.in, y += rows.out)
            for (std::int64_t i = 0; i < a.extent; ++i) y[i] = x[i * a.in];
    } else {
        for (std::int64_t r = 0; r < rows.extent; ++r, x += rows.in, y += rows.out)
            for (std::int64_t i = 0; i < a.extent; ++i) y[i * a.out] = x[i * a.in];
    }
}

// The functions that depend on the size of an element; the driver is compiled once.
struct mover {
    std::int64_t size;
    void (*run)(const void*, void*, axis rows, axis last);
    void (*transpose)(const char*, std::int64_t, char*, std::int64_t, std::int64_t, std::int64_t, bool);
};

// Results of more bytes than this do not stay in the caches until they are read, so they bypass the
// caches. It is a variable, so that tests can stream small results.
inline std::int64_t streaming_bytes = std::int64_t{1} << 25;

// Writes rows of a result that is not read again soon, by whole cache lines, through a buffer where
// elements must be reordered first.
void move_past_caches(const mover& move, const char* x, char* y, axis rows, axis last);

void strided_copy(axes_list axes, const mover& move, const void* from, void* to);

template <int Size>
mover mover_of() {
    return {Size, run<Size>, transpose_block<Size>};
}

void strided_copy(const axes_list& axes, std::size_t size, const void* in, void* out);

// The strides of a row-major tensor.
inline void strides_of(int rank, const std::int64_t* extents, std::int64_t* strides) {
    std::int64_t stride = 1;
    for (int i = rank; i-- > 0;) {
        strides[i] = stride;
        stride *= extents[i];
    }
}

#if TG_DEFINES(movement)

TG_DEFINITION void strided_copy(axes_list axes, const mover& move, const void* from, void* to) {
    const bool parallel = axes.elements >= parallel_elements;
    const bool streaming = axes.elements * move.size >= streaming_bytes;
    const char* in = static_cast<const char*>(from);
    char* out = static_cast<char*>(to);
    const axis last = axes.rank > 0 ? axes.take(axes.rank - 1) : axis{1, 1, 1};
    int across = -1; // the axis that is contiguous in the input where the last one is not
    if (last.in != 1 && last.in != 0 && last.out == 1)
        for (int i = 0; i < axes.rank; ++i)
            if (axes.at[i].in == 1) across = i;
    const bool turned = across >= 0;
    axis rows{1, 1, 1};
    if (turned)
        rows = axes.take(across);
    else if (axes.rank > 0)
        rows = axes.take(axes.rank - 1);

    // The extents of pieces: rows by columns.
    std::int64_t wide = std::min(piece_elements, last.extent), high = std::max<std::int64_t>(1, piece_elements / wide);
    if (turned) {
        wide = rows.extent < 16 ? block_elements : columns_at_once(move.size);
        high = last.extent < 16 ? block_elements : std::max<std::int64_t>(256, 1024 / move.size);
    }
    const bool past_caches =
        streaming && !turned && last.out == 1 && (last.extent * move.size >= 256 || rows.out == last.extent);
    const std::int64_t row_pieces = (rows.extent + high - 1) / high, column_pieces = (last.extent + wide - 1) / wide;
    const std::int64_t pieces = row_pieces * column_pieces;
    std::int64_t outer = 1;
    for (int i = 0; i < axes.rank; ++i) outer *= axes.at[i].extent;
    const std::int64_t in_piece = std::min(wide, last.extent) * std::min(high, rows.extent);
    const std::int64_t in_task = std::max<std::int64_t>(1, 2 * piece_elements / in_piece);
    const std::int64_t units = outer * pieces;
    parallel_for((units + in_task - 1) / in_task, parallel, [&](std::int64_t task) {
        std::int64_t unit = task * in_task;
        const std::int64_t end = std::min(units, unit + in_task);
        odometer at(axes, unit / pieces);
        for (std::int64_t piece = unit % pieces; unit < end; ++unit) {
            const std::int64_t r = piece / column_pieces * high, c = piece % column_pieces * wide;
            const axis columns{std::min(wide, last.extent - c), last.in, last.out};
            const axis lines{std::min(high, rows.extent - r), rows.in, rows.out};
            const char* x = in + (at.in + r * rows.in + c * last.in) * move.size;
            char* y = out + (at.out + r * rows.out + c * last.out) * move.size;
            if (turned)
                move.transpose(x, last.in * move.size, y, rows.out * move.size, lines.extent, columns.extent,
                               streaming);
            else if (past_caches)
                move_past_caches(move, x, y, lines, columns);
            else
                move.run(x, y, lines, columns);
            if (++piece == pieces) {
                piece = 0;
                at.next();
            }
        }
        if (streaming) finish_streaming();
    });
}

TG_DEFINITION void strided_copy(const axes_list& axes, std::size_t size, const void* in, void* out) {
    if (axes.elements == 0) return;
    switch (size) {
    case 1: return strided_copy(axes, mover_of<1>(), in, out);
    case 2: return strided_copy(axes, mover_of<2>(), in, out);
    case 4: return strided_copy(axes, mover_of<4>(), in, out);
    case 8: return strided_copy(axes, mover_of<8>(), in, out);
    default: throw dtype_error("copy: elements of " + std::to_string(size) + " bytes are not supported");
    }
}

#endif

} // namespace layout_detail

/// Copies `bytes` bytes from in to out, on several threads when it pays.
inline void copy(std::size_t bytes, const void* in, void* out) {
    layout_detail::axes_list axes;
    axes.add({static_cast<std::int64_t>(bytes), 1, 1});
    layout_detail::strided_copy(axes, 1, in, out);
}

/// Zeros `bytes` bytes, on several threads when it pays.
inline void zero(std::size_t bytes, void* out) {
    constexpr std::size_t piece = std::size_t{1} << 17;
    parallel_for(static_cast<std::int64_t>((bytes + piece - 1) / piece), bytes >= 2 * piece, [&](std::int64_t task) {
        const std::size_t begin = static_cast<std::size_t>(task) * piece;
        std::memset(static_cast<char*>(out) + begin, 0, std::min(piece, bytes - begin));
    });
}

/// Axis i of the result is axis permutation[i] of the operand; `extents` are the operand's, rank <= 8.
/// `size`: bytes of one element, 1, 2, 4 or 8 here and below.
void transpose(int rank, const std::int64_t* extents, const std::int64_t* permutation, std::size_t size, const void* in,
               void* out);

/// out[i...] = in[begin + i * step...]; steps may be negative, `extents` and `out_extents` are those of in and out.
void slice(int rank, const std::int64_t* extents, const std::int64_t* begin, const std::int64_t* step,
           const std::int64_t* out_extents, std::size_t size, const void* in, void* out);

/// One part of a concatenation: `in` has `length` along `axis`, where it starts at `begin` of the
/// result, and otherwise the result's extents.
void concat_part(const void* in, std::int64_t length, std::int64_t begin, int rank, const std::int64_t* out_extents,
                 int axis, std::size_t size, void* out);

/// Concatenates inputs along `axis`: input k has lengths[k] there, and otherwise the result's
/// extents.
inline void concat(int count, const void* const* inputs, const std::int64_t* lengths, int rank,
                   const std::int64_t* out_extents, int axis, std::size_t size, void* out) {
    std::int64_t begin = 0;
    for (int k = 0; k < count; ++k) {
        concat_part(inputs[k], lengths[k], begin, rank, out_extents, axis, size, out);
        begin += lengths[k];
    }
}

/// NumPy broadcasting of `in` to the extents of `out`: axes of extent 1 and missing leading ones
/// are repeated.
void broadcast_copy(int rank, const std::int64_t* extents, int out_rank, const std::int64_t* out_extents,
                    std::size_t size, const void* in, void* out);

#if TG_DEFINES(movement)

TG_DEFINITION void layout_detail::move_past_caches(const mover& move, const char* x, char* y, axis rows, axis last) {
    alignas(64) char buffer[4096];
    const std::int64_t in_buffer = static_cast<std::int64_t>(sizeof buffer) / move.size;
    if (rows.out == last.extent && last.extent * 4 <= in_buffer) { // several adjacent rows
        const std::int64_t step = in_buffer / last.extent;
        for (std::int64_t r = 0; r < rows.extent; r += step) {
            const axis some{std::min(step, rows.extent - r), rows.in, rows.out};
            move.run(x + r * rows.in * move.size, buffer, some, last);
            move_streaming(y + r * rows.out * move.size, buffer, some.extent * last.extent * move.size);
        }
        return;
    }
    for (std::int64_t r = 0; r < rows.extent; ++r, x += rows.in * move.size, y += rows.out * move.size) {
        if (last.in == 1) {
            move_streaming(y, x, last.extent * move.size);
            continue;
        }
        for (std::int64_t i = 0; i < last.extent; i += in_buffer) {
            const axis some{std::min(in_buffer, last.extent - i), last.in, 1};
            move.run(x + i * last.in * move.size, buffer, {1, 1, 1}, some);
            move_streaming(y + i * move.size, buffer, some.extent * move.size);
        }
    }
}

TG_DEFINITION void concat_part(const void* in, std::int64_t length, std::int64_t begin, int rank,
                               const std::int64_t* out_extents, int axis, std::size_t size, void* out) {
    std::int64_t outer = 1, inner = 1;
    for (int i = 0; i < rank; ++i)
        if (i != axis) (i < axis ? outer : inner) *= out_extents[i];
    const std::int64_t run = length * inner;
    layout_detail::axes_list axes;
    axes.add({outer, run, out_extents[axis] * inner});
    axes.add({run, 1, 1});
    layout_detail::strided_copy(axes, size, in,
                                static_cast<char*>(out) + begin * inner * static_cast<std::int64_t>(size));
}

TG_DEFINITION void transpose(int rank, const std::int64_t* extents, const std::int64_t* permutation, std::size_t size,
                             const void* in, void* out) {
    std::int64_t in_strides[8], moved[8], out_strides[8];
    layout_detail::strides_of(rank, extents, in_strides);
    for (int i = 0; i < rank; ++i) moved[i] = extents[permutation[i]];
    layout_detail::strides_of(rank, moved, out_strides);
    layout_detail::axes_list axes;
    for (int i = 0; i < rank; ++i) axes.add({moved[i], in_strides[permutation[i]], out_strides[i]});
    layout_detail::strided_copy(axes, size, in, out);
}

TG_DEFINITION void slice(int rank, const std::int64_t* extents, const std::int64_t* begin, const std::int64_t* step,
                         const std::int64_t* out_extents, std::size_t size, const void* in, void* out) {
    std::int64_t in_strides[8], out_strides[8], first = 0;
    layout_detail::strides_of(rank, extents, in_strides);
    layout_detail::strides_of(rank, out_extents, out_strides);
    layout_detail::axes_list axes;
    for (int i = 0; i < rank; ++i) {
        first += begin[i] * in_strides[i];
        axes.add({out_extents[i], step[i] * in_strides[i], out_strides[i]});
    }
    if (axes.elements == 0) return;
    layout_detail::strided_copy(axes, size, static_cast<const char*>(in) + first * static_cast<std::int64_t>(size),
                                out);
}

TG_DEFINITION void broadcast_copy(int rank, const std::int64_t* extents, int out_rank, const std::int64_t* out_extents,
                                  std::size_t size, const void* in, void* out) {
    std::int64_t in_strides[8], out_strides[8];
    layout_detail::strides_of(rank, extents, in_strides);
    layout_detail::strides_of(out_rank, out_extents, out_strides);
    layout_detail::axes_list axes;
    for (int i = 0; i < out_rank; ++i) {
        const int k = i - (out_rank - rank);
        axes.add({out_extents[i], k < 0 || extents[k] == 1 ? 0 : in_strides[k], out_strides[i]});
    }
    layout_detail::strided_copy(axes, size, in, out);
}

#endif

} // namespace tapegraph::cpu
