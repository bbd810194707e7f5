#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/cpu/parallel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

/// Elements moved: transpose, slice, embed, concat, broadcast, copy. Everything is one strided copy; elements are moved as
/// integers of their size (1, 2, 4 or 8 bytes), so that one instantiation serves all types of a size.

namespace tapegraph::cpu {

namespace layout_detail {

inline constexpr std::int64_t piece_elements = 16384; // what one memcpy or strided run is cut into
inline constexpr std::int64_t parallel_elements = 65536;
inline constexpr std::int64_t block_elements = 1024;

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

struct axis {
    std::int64_t extent, in, out; ///< strides in elements
};

// The axes of a copy, outermost first, without those of extent 1 and with those merged that are one run on both sides.
struct axes_list {
    int rank = 0;
    std::int64_t elements = 1;
    axis at[8];

    void add(axis a) {
        elements *= a.extent;
        if (a.extent == 1) return;
        if (rank > 0 && at[rank - 1].in == a.in * a.extent && at[rank - 1].out == a.out * a.extent)
            at[rank - 1] = {at[rank - 1].extent * a.extent, a.in, a.out};
        else at[rank++] = a;
    }
    axis take(int i) {
        const axis taken = at[i];
        for (--rank; i < rank; ++i) at[i] = at[i + 1];
        return taken;
    }
};

// Counts through the outer axes without a division for each step.
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

template <int Size>
void run(const void* from, void* to, axis a) {
    using element = typename word<Size>::type;
    const element* x = static_cast<const element*>(from);
    element* y = static_cast<element*>(to);
    if (a.out == 1 && a.in == 1) {
        if (a.extent > 8) std::memcpy(to, from, static_cast<std::size_t>(a.extent) * Size);
        else
            for (std::int64_t i = 0; i < a.extent; ++i) y[i] = x[i];
    } else if (a.out == 1 && a.in == 0) {
        const element value = *x;
#pragma omp simd
        for (std::int64_t i = 0; i < a.extent; ++i) y[i] = value;
    } else {
        for (std::int64_t i = 0; i < a.extent; ++i) y[i * a.out] = x[i * a.in];
    }
}

// A square of 4 x 4 elements (2 x 2 of 8 bytes) in 16-byte registers, which every processor has; bytes go one by one.
template <int Size>
struct square {
    static constexpr std::int64_t side = 4;
    static void move(const void* from, std::int64_t in, void* to, std::int64_t out) {
        const auto* x = static_cast<const typename word<Size>::type*>(from);
        auto* y = static_cast<typename word<Size>::type*>(to);
        for (std::int64_t r = 0; r < side; ++r)
            for (std::int64_t c = 0; c < side; ++c) y[r * out + c] = x[c * in + r];
    }
};
template <>
struct square<4> {
    static constexpr std::int64_t side = 4;
    TG_INLINE static void move(const void* from, std::int64_t in, void* to, std::int64_t out) {
        typedef std::uint32_t vector __attribute__((vector_size(16)));
        const char* x = static_cast<const char*>(from);
        char* y = static_cast<char*>(to);
        vector a, b, c, d;
        std::memcpy(&a, x, 16);
        std::memcpy(&b, x + 4 * in, 16);
        std::memcpy(&c, x + 8 * in, 16);
        std::memcpy(&d, x + 12 * in, 16);
        const vector ac = __builtin_shufflevector(a, c, 0, 4, 1, 5), bd = __builtin_shufflevector(b, d, 0, 4, 1, 5);
        const vector ca = __builtin_shufflevector(a, c, 2, 6, 3, 7), db = __builtin_shufflevector(b, d, 2, 6, 3, 7);
        a = __builtin_shufflevector(ac, bd, 0, 4, 1, 5);
        b = __builtin_shufflevector(ac, bd, 2, 6, 3, 7);
        c = __builtin_shufflevector(ca, db, 0, 4, 1, 5);
        d = __builtin_shufflevector(ca, db, 2, 6, 3, 7);
        std::memcpy(y, &a, 16);
        std::memcpy(y + 4 * out, &b, 16);
        std::memcpy(y + 8 * out, &c, 16);
        std::memcpy(y + 12 * out, &d, 16);
    }
};
template <>
struct square<8> {
    static constexpr std::int64_t side = 2;
    TG_INLINE static void move(const void* from, std::int64_t in, void* to, std::int64_t out) {
        typedef std::uint64_t vector __attribute__((vector_size(16)));
        const char* x = static_cast<const char*>(from);
        char* y = static_cast<char*>(to);
        vector a, b;
        std::memcpy(&a, x, 16);
        std::memcpy(&b, x + 8 * in, 16);
        const vector low = __builtin_shufflevector(a, b, 0, 2), high = __builtin_shufflevector(a, b, 1, 3);
        std::memcpy(y, &low, 16);
        std::memcpy(y + 8 * out, &high, 16);
    }
};

// y[r * rows.out + c] = x[r + c * columns.in]: `rows` run contiguously through x, `columns` through y. Squares are taken so
// that a cache line of either side is finished while it is in L1.
template <int Size>
void transpose_block(const void* from, void* to, axis rows, axis columns) {
    using element = typename word<Size>::type;
    const element* x = static_cast<const element*>(from);
    element* y = static_cast<element*>(to);
    if (columns.extent < 8) {
        for (std::int64_t c = 0; c < columns.extent; ++c)
            for (std::int64_t r = 0; r < rows.extent; ++r) y[r * rows.out + c] = x[r + c * columns.in];
        return;
    }
    constexpr std::int64_t side = square<Size>::side, line = 64 / Size > 16 ? 16 : 64 / Size;
    const std::int64_t high = rows.extent < 8 ? 0 : rows.extent / side * side, wide = columns.extent / side * side;
    for (std::int64_t c = 0; c < wide; c += line)
        for (std::int64_t r = 0; r < high; r += side)
            for (std::int64_t k = c; k < std::min(wide, c + line); k += side)
                square<Size>::move(x + r + k * columns.in, columns.in, y + r * rows.out + k, rows.out);
    for (std::int64_t r = 0; r < high; ++r)
        for (std::int64_t c = wide; c < columns.extent; ++c) y[r * rows.out + c] = x[r + c * columns.in];
    for (std::int64_t r = high; r < rows.extent; ++r)
        for (std::int64_t c = 0; c < columns.extent; ++c) y[r * rows.out + c] = x[r + c * columns.in];
}

// What depends on the size of an element; the driver is compiled once.
struct mover {
    std::int64_t size;
    void (*run)(const void*, void*, axis);
    void (*transpose)(const void*, void*, axis, axis);
};

inline void strided_copy(axes_list axes, const mover& move, const void* from, void* to) {
    const bool parallel = axes.elements >= parallel_elements;
    const char* in = static_cast<const char*>(from);
    char* out = static_cast<char*>(to);
    const axis last = axes.rank > 0 ? axes.take(axes.rank - 1) : axis{1, 1, 1};
    int across = -1; // the axis that is contiguous in the input where the last one is not
    if (last.in != 1 && last.in != 0 && last.out == 1)
        for (int i = 0; i < axes.rank; ++i)
            if (axes.at[i].in == 1) across = i;
    const axis rows = across >= 0 ? axes.take(across) : axis{1, 1, 1};

    // Pieces: bounded runs of the last axis, or blocks of rows by columns.
    std::int64_t wide = piece_elements, high = 1;
    if (across >= 0) {
        wide = rows.extent < 8 ? block_elements : 64;
        high = last.extent < 8 ? block_elements : 64;
    }
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
            const char* x = in + (at.in + r * rows.in + c * last.in) * move.size;
            char* y = out + (at.out + r * rows.out + c * last.out) * move.size;
            if (across >= 0)
                move.transpose(x, y, {std::min(high, rows.extent - r), rows.in, rows.out}, columns);
            else move.run(x, y, columns);
            if (++piece == pieces) {
                piece = 0;
                at.next();
            }
        }
    });
}

inline void strided_copy(const axes_list& axes, std::size_t size, const void* in, void* out) {
    if (axes.elements == 0) return;
    switch (size) {
    case 1: return strided_copy(axes, {1, run<1>, transpose_block<1>}, in, out);
    case 2: return strided_copy(axes, {2, run<2>, transpose_block<2>}, in, out);
    case 4: return strided_copy(axes, {4, run<4>, transpose_block<4>}, in, out);
    case 8: return strided_copy(axes, {8, run<8>, transpose_block<8>}, in, out);
    default: throw dtype_error("copy: elements of " + std::to_string(size) + " bytes are not supported");
    }
}

// Strides of a row-major tensor.
inline void strides_of(int rank, const std::int64_t* extents, std::int64_t* strides) {
    std::int64_t stride = 1;
    for (int i = rank; i-- > 0;) {
        strides[i] = stride;
        stride *= extents[i];
    }
}

} // namespace layout_detail

/// out = in, `bytes` of them; on several threads when it is worth it.
inline void copy(std::size_t bytes, const void* in, void* out) {
    layout_detail::axes_list axes;
    axes.add({static_cast<std::int64_t>(bytes), 1, 1});
    layout_detail::strided_copy(axes, 1, in, out);
}

/// Zeros `bytes` bytes; on several threads when it is worth it.
inline void zero(std::size_t bytes, void* out) {
    constexpr std::size_t piece = std::size_t{1} << 17;
    parallel_for(static_cast<std::int64_t>((bytes + piece - 1) / piece), bytes >= 2 * piece, [&](std::int64_t task) {
        const std::size_t begin = static_cast<std::size_t>(task) * piece;
        std::memset(static_cast<char*>(out) + begin, 0, std::min(piece, bytes - begin));
    });
}

/// Axis i of the result is axis permutation[i] of the operand; `extents` are the operand's, rank <= 8.
/// `size`: bytes of one element, 1, 4 or 8 here and below.
inline void transpose(int rank, const std::int64_t* extents, const std::int64_t* permutation, std::size_t size, const void* in,
                      void* out) {
    std::int64_t in_strides[8], moved[8], out_strides[8];
    layout_detail::strides_of(rank, extents, in_strides);
    for (int i = 0; i < rank; ++i) moved[i] = extents[permutation[i]];
    layout_detail::strides_of(rank, moved, out_strides);
    layout_detail::axes_list axes;
    for (int i = 0; i < rank; ++i) axes.add({moved[i], in_strides[permutation[i]], out_strides[i]});
    layout_detail::strided_copy(axes, size, in, out);
}

/// out[i...] = in[begin + i * step...]; steps may be negative, `extents` and `out_extents` are those of in and out.
inline void slice(int rank, const std::int64_t* extents, const std::int64_t* begin, const std::int64_t* step,
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
    layout_detail::strided_copy(axes, size, static_cast<const char*>(in) + first * static_cast<std::int64_t>(size), out);
}

/// out = zeros, then out[begin + i * step...] = in[i...]: the adjoint of slice.
inline void embed(int rank, const std::int64_t* extents, const std::int64_t* begin, const std::int64_t* step,
                  const std::int64_t* out_extents, std::size_t size, const void* in, void* out) {
    std::int64_t in_strides[8], out_strides[8], first = 0, elements = 1;
    layout_detail::strides_of(rank, extents, in_strides);
    layout_detail::strides_of(rank, out_extents, out_strides);
    layout_detail::axes_list axes;
    for (int i = 0; i < rank; ++i) {
        elements *= out_extents[i];
        first += begin[i] * out_strides[i];
        axes.add({extents[i], in_strides[i], step[i] * out_strides[i]});
    }
    zero(static_cast<std::size_t>(elements) * size, out);
    if (axes.elements == 0) return;
    layout_detail::strided_copy(axes, size, in, static_cast<char*>(out) + first * static_cast<std::int64_t>(size));
}

/// Inputs behind one another along `axis`: input k has lengths[k] there and the other extents of the result.
inline void concat(int count, const void* const* inputs, const std::int64_t* lengths, int rank, const std::int64_t* out_extents,
                   int axis, std::size_t size, void* out) {
    std::int64_t outer = 1, inner = 1, from = 0;
    for (int i = 0; i < rank; ++i)
        if (i != axis) (i < axis ? outer : inner) *= out_extents[i];
    for (int k = 0; k < count; ++k) {
        const std::int64_t run = lengths[k] * inner;
        layout_detail::axes_list axes;
        axes.add({outer, run, out_extents[axis] * inner});
        axes.add({run, 1, 1});
        layout_detail::strided_copy(axes, size, inputs[k], static_cast<char*>(out) + from * static_cast<std::int64_t>(size));
        from += run;
    }
}

/// NumPy broadcasting of `in` to the extents of `out`: axes of extent 1 are repeated, missing leading ones too.
inline void broadcast_copy(int rank, const std::int64_t* extents, int out_rank, const std::int64_t* out_extents,
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

} // namespace tapegraph::cpu
