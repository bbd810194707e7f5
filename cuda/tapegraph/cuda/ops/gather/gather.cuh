#pragma once

#include <tapegraph/cuda/ops/movement/boxes.cuh>
#include <tapegraph/cuda/fault.cuh>
#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/cuda/kernels/gather.cuh>
#include <tapegraph/cuda/words.cuh>
#include <tapegraph/ops/gather/kernel.hpp>

#include <bit>

/// Kernels of gather, gather_nd, take_along and one_hot. An index outside its axis becomes the
/// call's fault, with the text that the CPU would throw; the result is zero (of one_hot: `off`) at
/// its place.

namespace tapegraph::cuda {

namespace detail {

inline kernels::index_view indices_of(const buffer_view& v) { return {v.data, v.type == dtype::i64}; }

/// Gathers in the widest words that slices and addresses allow.
inline void gather(const kernel_call& c, const char* operation, std::int64_t batches, kernels::gathering g,
                   std::size_t size, kernels::index_view indices) {
    const void *const table = c.in[0].data, *const out = c.out[0].data;
    const auto address = reinterpret_cast<std::uintptr_t>(table) | reinterpret_cast<std::uintptr_t>(out);
    while (size < sizeof(kernels::wide_word) && g.width % 2 == 0 && address % (2 * size) == 0) size *= 2, g.width /= 2;
    const std::int64_t counts[]{batches, g.outer, g.count, g.width};
    if (g.outer * g.width == 0 && !g.checked)
        return for_pieces(batches * g.count, [&](std::int64_t first, std::int64_t count) {
            launch(c, operation, over(count), kernels::check_indices<>, first, first + count, g.rows, indices,
                   report_indices(c, operation));
        });
    with_word(size, [&](auto word) {
        using element = decltype(word);
        for_boxes(4, counts, [&](const std::int64_t* first, const std::int64_t* count, std::int64_t elements) {
            launch(c, operation, over(elements), kernels::gather<element>, kernels::box<4>(first, count, elements), g,
                   indices, static_cast<const element*>(table), c.out[0].as<element>(), report_indices(c, operation));
        });
    });
}

/// Converts tuples of indices into `table` to row numbers in the call's workspace, -1 for those
/// outside.
inline kernels::index_view flat_rows(const kernel_call& c, const char* operation, const buffer_view& table) {
    auto* const flat = static_cast<std::int64_t*>(c.workspace);
    kernels::tuple_shape t;
    t.depth = static_cast<int>(runtime::detail::last_extent(c.in[1]));
    for (int i = 0; i < t.depth; ++i) t.extents[i] = table.extents[i];
    for_pieces(runtime::detail::leading_extent(c.in[1]), [&](std::int64_t first, std::int64_t count) {
        launch(c, operation, over(count), kernels::flatten_tuples<>, t, first, first + count, indices_of(c.in[1]), flat,
               report_indices(c, operation, t.depth));
    });
    return {flat, true};
}

} // namespace detail

template <class T>
struct kernel<gather_op, T> {
    static void run(const kernel_call& c) {
        const auto a = runtime::attributes_of<gather_op>(c);
        const buffer_view& table = c.in[0];
        using runtime::detail::span;
        const kernels::gathering g{span(table, a.batch, a.axis), table.extents[a.axis],
                                   span(c.in[1], a.batch, c.in[1].rank), span(table, a.axis + 1, table.rank), false};
        detail::gather(c, "gather", span(table, 0, a.batch), g, sizeof(T), detail::indices_of(c.in[1]));
    }
};

template <class T>
struct kernel<gather_nd_op, T> {
    static std::size_t workspace(const kernel_call& c) { return runtime::detail::flat_row_bytes(c); }
    static void run(const kernel_call& c) {
        const std::int64_t depth = runtime::detail::last_extent(c.in[1]);
        using runtime::detail::span;
        const kernels::gathering g{1, span(c.in[0], 0, depth), runtime::detail::leading_extent(c.in[1]),
                                   span(c.in[0], depth, c.in[0].rank), true};
        detail::gather(c, "gather_nd", 1, g, sizeof(T), detail::flat_rows(c, "gather_nd", c.in[0]));
    }
};

template <class T>
struct kernel<take_along_op, T> {
    static void run(const kernel_call& c) {
        const std::int64_t axis = runtime::attributes_of<take_along_op>(c).axis;
        const buffer_view& x = c.in[0];
        const std::int64_t counts[]{runtime::detail::span(x, 0, axis), c.in[1].extents[axis],
                                    runtime::detail::span(x, axis + 1, x.rank)};
        using element = detail::word<sizeof(T)>;
        detail::for_boxes(3, counts, [&](const std::int64_t* first, const std::int64_t* count, std::int64_t elements) {
            launch(c, "take_along", detail::over(elements), kernels::take_along<element>,
                   kernels::box<3>(first, count, elements), x.extents[axis], counts[1], counts[2],
                   detail::indices_of(c.in[1]), x.as<const element>(), c.out[0].as<element>(),
                   report_indices(c, "take_along"));
        });
    }
};

// Here T is the type of the indices.
template <class Element, class T>
struct kernel<one_hot_op<Element>, T> {
    static void run(const kernel_call& c) {
        const auto a = runtime::attributes_of<one_hot_op<Element>>(c);
        const std::int64_t counts[]{runtime::detail::span(c.in[0], 0, a.axis), a.depth,
                                    runtime::detail::span(c.in[0], a.axis, c.in[0].rank)};
        using element = detail::word<sizeof(Element)>;
        const auto on = std::bit_cast<element>(static_cast<Element>(a.on));
        const auto off = std::bit_cast<element>(static_cast<Element>(a.off));
        detail::for_boxes(3, counts, [&](const std::int64_t* first, const std::int64_t* count, std::int64_t elements) {
            launch(c, "one_hot", detail::over(elements), kernels::one_hot<element>,
                   kernels::box<3>(first, count, elements), counts[1], counts[2], detail::indices_of(c.in[0]), on, off,
                   c.out[0].as<element>(), report_indices(c, "one_hot"));
        });
    }
};

} // namespace tapegraph::cuda
