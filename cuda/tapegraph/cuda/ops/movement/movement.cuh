#pragma once

#include <tapegraph/cuda/ops/movement/boxes.cuh>
#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/cuda/kernels/fold.cuh>
#include <tapegraph/cuda/kernels/rearrange.cuh>
#include <tapegraph/cuda/words.cuh>
#include <tapegraph/ops/movement/kernel.hpp>

#include <cstring>

/// Kernels that move elements: transpose, slice, pad, tile, repeat, roll, concat. One kernel per
/// element size serves them all.

namespace tapegraph::cuda {

namespace detail {

/// The axes of a rearrangement, outermost first. Axes of extent 1 are dropped, and axes that are
/// contiguous on both sides are merged.
struct rearranged_axes {
    int rank = 0;
    std::int64_t counts[max_rank], elements = 1;
    kernels::rearranged_axis at[max_rank];

    void add(std::int64_t count, const kernels::rearranged_axis& a) {
        elements *= count;
        const bool strided = a.rule == kernels::axis_rule::strided;
        if (strided && count == 1) return;
        if (strided && rank > 0) {
            kernels::rearranged_axis& before = at[rank - 1];
            if (before.rule == a.rule && before.in_stride == a.in_stride * count &&
                before.out_stride == a.out_stride * count) {
                counts[rank - 1] *= count;
                before = a;
                return;
            }
        }
        counts[rank] = count;
        at[rank++] = a;
    }
    void add_strided(std::int64_t count, std::int64_t in_stride, std::int64_t out_stride) {
        kernels::rearranged_axis a;
        a.in_stride = in_stride, a.out_stride = out_stride;
        add(count, a);
    }
    bool contiguous_runs() const {
        return rank > 0 && at[rank - 1].rule == kernels::axis_rule::strided && at[rank - 1].in_stride == 1 &&
               at[rank - 1].out_stride == 1;
    }
    /// Treats two elements as one, if runs and addresses allow it.
    bool widen(std::size_t size, const void* in, const void* out) {
        const auto address = reinterpret_cast<std::uintptr_t>(in) | reinterpret_cast<std::uintptr_t>(out);
        if (!contiguous_runs() || counts[rank - 1] % 2 != 0 || address % (2 * size) != 0) return false;
        for (int i = 0; i + 1 < rank; ++i)
            if (at[i].in_stride % 2 != 0 || at[i].out_stride % 2 != 0) return false;
        for (int i = 0; i + 1 < rank; ++i) at[i].in_stride /= 2, at[i].out_stride /= 2;
        counts[rank - 1] /= 2;
        elements /= 2;
        return true;
    }
};

/// Transposes in tiles, if one axis is contiguous in the operand, another in the result, and both
/// fill a good part of a tile.
inline bool turn(const kernel_call& call, const char* operation, const rearranged_axes& axes, std::size_t size,
                 const void* in, void* out) {
    constexpr std::int64_t least = 8, tile = kernels::transpose_tile;
    const int last = axes.rank - 1;
    int across = -1;
    for (int i = 0; i < axes.rank; ++i) {
        if (axes.at[i].rule != kernels::axis_rule::strided) return false;
        if (i < last && axes.at[i].in_stride == 1) across = i;
    }
    if (across < 0 || axes.at[last].out_stride != 1 || axes.counts[across] < least || axes.counts[last] < least)
        return false;
    kernels::turned_copy t;
    t.rows = axes.counts[across], t.columns = axes.counts[last];
    t.in_column = axes.at[last].in_stride, t.out_row = axes.at[across].out_stride;
    const std::int64_t row_tiles = divide_up(t.rows, tile), column_tiles = divide_up(t.columns, tile);
    std::int64_t blocks = row_tiles * column_tiles;
    for (int i = 0; i < last; ++i) {
        if (i == across) continue;
        t.count[t.rank] = kernels::divisor(static_cast<std::uint32_t>(axes.counts[i]));
        t.in[t.rank] = axes.at[i].in_stride, t.out[t.rank] = axes.at[i].out_stride;
        ++t.rank;
        blocks *= axes.counts[i];
    }
    if (blocks > most_elements) return false;
    t.row_tiles = kernels::divisor(static_cast<std::uint32_t>(row_tiles));
    t.column_tiles = kernels::divisor(static_cast<std::uint32_t>(column_tiles));
    const driver::launch_shape shape{static_cast<unsigned>(blocks),
                                     {kernels::transpose_tile, kernels::transpose_lines}};
    with_word(size, [&](auto word) {
        using element = decltype(word);
        launch(call, operation, shape, kernels::transpose_tiles<element>, t, static_cast<const element*>(in),
               static_cast<element*>(out));
    });
    return true;
}

/// `fill` is the element for positions that have no source.
inline void rearrange(const kernel_call& call, const char* operation, rearranged_axes axes, std::size_t size,
                      const void* in, void* out, const void* fill = nullptr) {
    if (axes.elements == 0) return;
    alignas(16) unsigned char filling[16] = {};
    if (fill != nullptr)
        for (std::size_t i = 0; i < sizeof filling; i += size) std::memcpy(filling + i, fill, size);
    if (turn(call, operation, axes, size, in, out)) return;
    while (size < sizeof(kernels::wide_word) && axes.widen(size, in, out)) size *= 2;
    with_word(size, [&](auto word) {
        using element = decltype(word);
        std::memcpy(&word, filling, sizeof word);
        for_boxes(axes.rank, axes.counts,
                  [&](const std::int64_t* first, const std::int64_t* count, std::int64_t elements) {
                      kernels::rearrangement r;
                      r.rank = axes.rank;
                      r.elements = static_cast<std::uint32_t>(elements);
                      for (int i = 0; i < axes.rank; ++i) {
                          r.axes[i] = axes.at[i];
                          r.axes[i].first = first[i];
                          r.axes[i].count = kernels::divisor(static_cast<std::uint32_t>(count[i]));
                      }
                      launch(call, operation, over(elements), kernels::rearrange<element>, r,
                             static_cast<const element*>(in), static_cast<element*>(out), word);
                  });
    });
}

/// The stride of axis i of a row-major tensor.
inline std::int64_t stride_of(const buffer_view& v, int i) { return runtime::detail::span(v, i + 1, v.rank); }

} // namespace detail

// Movement depends only on the size of an element; T does not matter otherwise.
template <class T>
struct kernel<transpose_op, T> {
    static void run(const kernel_call& c) {
        const auto a = runtime::attributes_of<transpose_op>(c);
        detail::rearranged_axes axes;
        for (int i = 0; i < c.out[0].rank; ++i)
            axes.add_strided(c.out[0].extents[i], detail::stride_of(c.in[0], static_cast<int>(a.permutation[i])),
                             detail::stride_of(c.out[0], i));
        detail::rearrange(c, "transpose", axes, sizeof(T), c.in[0].data, c.out[0].data);
    }
};

template <class T>
struct kernel<slice_op, T> {
    static void run(const kernel_call& c) {
        const auto a = runtime::detail::with_begins(c, c.in[0], c.out[0]);
        detail::rearranged_axes axes;
        std::int64_t begin = 0;
        for (int i = 0; i < c.out[0].rank; ++i) {
            const std::int64_t stride = detail::stride_of(c.in[0], i);
            begin += a.begin[i] * stride;
            axes.add_strided(c.out[0].extents[i], a.step[i] * stride, detail::stride_of(c.out[0], i));
        }
        if (axes.elements == 0) return;
        detail::rearrange(c, "slice", axes, sizeof(T), c.in[0].as<const T>() + begin, c.out[0].data);
    }
};

template <class T>
struct kernel<pad_op, T> {
    static void run(const kernel_call& c) {
        const auto a = runtime::detail::with_begins(c, c.out[0], c.in[0]);
        const T fill = static_cast<T>(a.fill);
        detail::rearranged_axes axes;
        for (int i = 0; i < c.out[0].rank; ++i) {
            kernels::rearranged_axis axis;
            axis.in_stride = detail::stride_of(c.in[0], i);
            axis.out_stride = detail::stride_of(c.out[0], i);
            axis.begin = a.begin[i], axis.step = a.step[i], axis.extent = c.in[0].extents[i];
            if (c.in[0].extents[i] != c.out[0].extents[i] || a.begin[i] != 0 || a.step[i] != 1)
                axis.rule = kernels::axis_rule::placed;
            axes.add(c.out[0].extents[i], axis);
        }
        detail::rearrange(c, "embed", axes, sizeof(T), c.in[0].data, c.out[0].data, &fill);
    }
};

template <class T>
struct kernel<index_map_op, T> {
    static void run(const kernel_call& c) {
        const auto a = runtime::attributes_of<index_map_op>(c);
        detail::rearranged_axes axes;
        for (int i = 0; i < c.out[0].rank; ++i) {
            kernels::rearranged_axis axis;
            axis.in_stride = detail::stride_of(c.in[0], i);
            axis.out_stride = detail::stride_of(c.out[0], i);
            axis.map = static_cast<index_map>(a.map[i]);
            axis.extent = c.in[0].extents[i], axis.limit = c.out[0].extents[i];
            axis.amount = axis.map == index_map::wrap && axis.extent > 0 ? a.amount[i] % axis.extent : a.amount[i];
            if (axis.map != index_map::keep) axis.rule = kernels::axis_rule::mapped;
            axes.add(c.out[0].extents[i], axis);
        }
        if (axes.elements == 0) return;
        if (c.in[0].elements() == 0) throw shape_error(nothing_to_repeat);
        detail::rearrange(c, "remap", axes, sizeof(T), c.in[0].data, c.out[0].data);
    }
};

template <class T>
struct kernel<index_map_adjoint_op, T> {
    static void run(const kernel_call& c) {
        const auto a = runtime::attributes_of<index_map_adjoint_op>(c);
        const buffer_view &dy = c.in[0], &out = c.out[0];
        detail::for_boxes(
            out.rank, out.extents, [&](const std::int64_t* first, const std::int64_t* count, std::int64_t n) {
                kernels::folding f;
                f.rank = out.rank;
                f.elements = static_cast<std::uint32_t>(n);
                for (int i = 0; i < out.rank; ++i) {
                    kernels::folded_axis& axis = f.axes[i];
                    axis.count = kernels::divisor(static_cast<std::uint32_t>(count[i]));
                    axis.first = first[i];
                    axis.out_stride = detail::stride_of(out, i), axis.dy_stride = detail::stride_of(dy, i);
                    axis.map = static_cast<index_map>(a.map[i]);
                    axis.amount = a.amount[i], axis.extent = out.extents[i], axis.limit = dy.extents[i];
                }
                launch(c, "fold", detail::over(n), kernels::fold<T>, f, dy.as<const T>(), out.as<T>());
            });
    }
};

template <class T>
struct kernel<concat_op, T> {
    static void run(const kernel_call& c) {
        const auto axis = static_cast<int>(runtime::attributes_of<concat_op>(c).axis);
        const std::int64_t outer = runtime::detail::span(c.out[0], 0, axis), inner = detail::stride_of(c.out[0], axis);
        std::int64_t begin = 0;
        for (int k = 0; k < c.inputs; ++k) {
            const std::int64_t run = c.in[k].extents[axis] * inner;
            detail::rearranged_axes axes;
            axes.add_strided(outer, run, c.out[0].extents[axis] * inner);
            axes.add_strided(run, 1, 1);
            detail::rearrange(c, "concat", axes, sizeof(T), c.in[k].data, c.out[0].as<T>() + begin);
            begin += run;
        }
    }
};

} // namespace tapegraph::cuda
