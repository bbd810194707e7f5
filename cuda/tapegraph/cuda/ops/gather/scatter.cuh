#pragma once

#include <tapegraph/cuda/kernels/scatter.cuh>
#include <tapegraph/cuda/kernels/scatter_integers.cuh>
#include <tapegraph/cuda/ops/gather/gather.cuh>
#include <tapegraph/cuda/ops/ordering/sort.cuh>

/// Kernels of scatter_add, scatter_nd and put_along, the adjoints of gather, gather_nd and
/// take_along. An index outside its axis becomes the call's fault, and its update is dropped.
/// Integers are added in any order, everything else in the order of the indices.

namespace tapegraph::cuda {

namespace detail {

/// Types whose sums do not depend on the order and that atomics can add.
template <class T>
inline constexpr bool any_order = std::is_integral_v<T> && sizeof(T) >= 4;

// Keys have 32 bits unless an axis is longer than they can count.
inline bool narrow_keys(const kernels::scattering& s) { return s.rows < std::int64_t{0xFFFFFFFF}; }

template <class Key>
row_sort<Key> sort_of(const kernel_call& c, std::int64_t batches, const kernels::scattering& s) {
    return {c,       s.by_column ? batches * s.width : batches, s.count,
            s.count, kernels::index_source<Key>::bits(s.rows),  true};
}
inline std::size_t sort_bytes(const kernel_call& c, std::int64_t batches, const kernels::scattering& s) {
    return narrow_keys(s) ? sort_of<std::uint32_t>(c, batches, s).workspace()
                          : sort_of<std::uint64_t>(c, batches, s).workspace();
}
template <class T>
std::size_t scatter_bytes(const kernel_call& c, std::int64_t batches, const kernels::scattering& s) {
    return any_order<T> ? 0 : sort_bytes(c, batches, s);
}

/// The number of columns, a power of two, for which a block of scatter_runs sums one long run.
inline int run_columns(const kernels::scattering& s) {
    int columns = 1;
    while (!s.by_column && columns < 32 && columns < s.width) columns *= 2;
    return columns;
}
/// Launches a block per long run of sorted indices.
template <class Key, class T, class Updates>
void scatter_long_runs(const kernel_call& c, const char* operation, std::int64_t batches, const kernels::scattering& s,
                       const kernels::sort_pair<Key>* sorted, const Updates& updates, T* out) {
    const int columns = run_columns(s);
    const std::int64_t tiles = batches * s.outer * divide_up(s.width, columns);
    constexpr std::int64_t most = 65535; // limit of a grid's second axis
    for (std::int64_t first = 0; first < tiles; first += most)
        launch(c, operation,
               {{static_cast<unsigned>(divide_up(s.count, kernels::long_run)),
                 static_cast<unsigned>(std::min(most, tiles - first))},
                kernels::run_threads},
               kernels::scatter_runs<T, Key, Updates>, s, columns, first, sorted, updates, out);
}

/// `checked`: the indices are row numbers, or -1 where a fault has been reported.
template <class Key, class T, class Updates>
void scatter_keyed(const kernel_call& c, const char* operation, std::int64_t batches, kernels::scattering s,
                   kernels::index_view indices, bool checked, const Updates& updates, void* workspace) {
    const std::int64_t inner = s.by_column ? s.width : 1;
    const kernels::index_source<Key> source{indices, s.count, inner, s.rows, checked, report_indices(c, operation)};
    const auto* const sorted =
        sort_of<Key>(c, batches, s).run(c, operation, source, batches * inner, nullptr, workspace);
    // Long runs get blocks, unless there would be a block for every few updates; then there are
    // enough threads without them.
    const std::int64_t tiles = batches * s.outer * divide_up(s.width, run_columns(s));
    s.leave_long = s.count > kernels::long_run && (!s.by_column || tiles <= 1024);
    const std::int64_t counts[]{batches, s.outer, s.rows, s.width};
    for_boxes(4, counts, [&](const std::int64_t* first, const std::int64_t* count, std::int64_t elements) {
        launch(c, operation, over(elements), kernels::scatter_add<T, Key, Updates>,
               kernels::box<4>(first, count, elements), s, sorted, updates, c.out[0].as<T>());
    });
    if (s.leave_long) scatter_long_runs(c, operation, batches, s, sorted, updates, c.out[0].as<T>());
}
template <class T>
void scatter_integers(const kernel_call& c, const char* operation, std::int64_t batches, const kernels::scattering& s,
                      kernels::index_view indices, bool checked) {
    using word = std::conditional_t<sizeof(T) == 4, unsigned, unsigned long long>;
    const std::int64_t slabs = batches * s.outer, elements = s.count * s.width, cells = s.rows * s.width;
    if (c.out[0].bytes() > 0) driver::fill(c.out[0].data, 0, c.out[0].bytes(), static_cast<driver::stream>(c.stream));
    if (slabs * s.width == 0 && !checked)
        return for_pieces(batches * s.count * (s.by_column ? s.width : 1), [&](std::int64_t first, std::int64_t count) {
            launch(c, operation, over(count), kernels::check_indices<>, first, first + count, s.rows, indices,
                   report_indices(c, operation));
        });
    const int shared = cells <= kernels::integer_cells<word> ? static_cast<int>(cells) : 0;
    const std::int64_t in_block = kernels::integers_in_block(shared);
    constexpr std::int64_t most = 65535; // limit of a grid's second axis
    for (std::int64_t first = 0; elements > 0 && first < slabs; first += most)
        launch(c, operation,
               {{static_cast<unsigned>(divide_up(elements, in_block)),
                 static_cast<unsigned>(std::min(most, slabs - first))},
                kernels::integer_threads},
               kernels::add_integers<word>, s, shared, in_block, first, indices, checked, report_indices(c, operation),
               c.in[0].as<const word>(), c.out[0].as<word>());
}
template <class T, class Updates>
void scatter_in_order(const kernel_call& c, const char* operation, std::int64_t batches, const kernels::scattering& s,
                      kernels::index_view indices, bool checked, const Updates& updates, void* workspace) {
    if (s.count > std::numeric_limits<std::int32_t>::max())
        throw argument_error(std::string(operation) + ": " + std::to_string(s.count) +
                             " indices in a row, more than 2^31 - 1");
    narrow_keys(s) ? scatter_keyed<std::uint32_t, T>(c, operation, batches, s, indices, checked, updates, workspace)
                   : scatter_keyed<std::uint64_t, T>(c, operation, batches, s, indices, checked, updates, workspace);
}
template <class T>
void scatter(const kernel_call& c, const char* operation, std::int64_t batches, const kernels::scattering& s,
             kernels::index_view indices, bool checked, void* workspace) {
    if constexpr (any_order<T>)
        scatter_integers<T>(c, operation, batches, s, indices, checked);
    else
        scatter_in_order<T>(c, operation, batches, s, indices, checked, c.in[0].as<const T>(), workspace);
}

} // namespace detail

template <class T>
struct kernel<scatter_add_op, T> {
    static std::size_t workspace(const kernel_call& c) { return detail::scatter_bytes<T>(c, batches(c), shape(c)); }
    static void run(const kernel_call& c) {
        detail::scatter<T>(c, "scatter_add", batches(c), shape(c), detail::indices_of(c.in[1]), false, c.workspace);
    }

private:
    static std::int64_t batches(const kernel_call& c) {
        return runtime::detail::span(c.out[0], 0, runtime::attributes_of<scatter_add_op>(c).batch);
    }
    static kernels::scattering shape(const kernel_call& c) {
        const auto a = runtime::attributes_of<scatter_add_op>(c);
        const buffer_view& table = c.out[0];
        using runtime::detail::span;
        return {span(table, a.batch, a.axis), table.extents[a.axis], span(c.in[1], a.batch, c.in[1].rank),
                span(table, a.axis + 1, table.rank), false};
    }
};

// Sorts in every type: atomics would need the messages' rows once more.
template <bool Weighted, class T>
struct kernel<gather_scatter_add_op<Weighted>, T> {
    static std::size_t workspace(const kernel_call& c) { return detail::sort_bytes(c, batches(c), shape(c)); }
    static void run(const kernel_call& c) {
        const std::int64_t sources = c.in[0].extents[attributes(c).axis];
        const kernels::index_view from = detail::indices_of(c.in[1]);
        detail::for_pieces(c.in[1].elements(), [&](std::int64_t first, std::int64_t count) {
            launch(c, "gather", detail::over(count), kernels::check_indices<>, first, first + count, sources, from,
                   report_indices(c, "gather"));
        });
        const kernels::messages<T> updates{c.in[0].as<const T>(), Weighted ? c.in[c.inputs - 1].as<const T>() : nullptr,
                                           from, sources};
        detail::scatter_in_order<T>(c, "scatter_add", batches(c), shape(c), detail::indices_of(c.in[2]), false, updates,
                                    c.workspace);
    }

private:
    static gather_op::attributes attributes(const kernel_call& c) {
        return runtime::attributes_of<gather_scatter_add_op<Weighted>>(c);
    }
    static std::int64_t batches(const kernel_call& c) {
        return runtime::detail::span(c.out[0], 0, attributes(c).batch);
    }
    static kernels::scattering shape(const kernel_call& c) {
        const auto a = attributes(c);
        const buffer_view& sums = c.out[0];
        using runtime::detail::span;
        return {span(sums, a.batch, a.axis), sums.extents[a.axis], span(c.in[1], a.batch, c.in[1].rank),
                span(sums, a.axis + 1, sums.rank), false};
    }
};

template <class T>
struct kernel<scatter_nd_op, T> {
    static std::size_t workspace(const kernel_call& c) {
        return rows_bytes(c) + detail::scatter_bytes<T>(c, 1, shape(c));
    }
    static void run(const kernel_call& c) {
        const auto rows = detail::flat_rows(c, "scatter_nd", c.out[0]);
        detail::scatter<T>(c, "scatter_nd", 1, shape(c), rows, true,
                           static_cast<std::byte*>(c.workspace) + rows_bytes(c));
    }

private:
    static std::size_t rows_bytes(const kernel_call& c) { // the pairs after them are aligned
        return (runtime::detail::flat_row_bytes(c) + 15) / 16 * 16;
    }
    static kernels::scattering shape(const kernel_call& c) {
        const std::int64_t depth = runtime::detail::last_extent(c.in[1]);
        using runtime::detail::span;
        return {1, span(c.out[0], 0, depth), runtime::detail::leading_extent(c.in[1]),
                span(c.out[0], depth, c.out[0].rank), false};
    }
};

template <class T>
struct kernel<put_along_op, T> {
    static std::size_t workspace(const kernel_call& c) { return detail::scatter_bytes<T>(c, batches(c), shape(c)); }
    static void run(const kernel_call& c) {
        detail::scatter<T>(c, "put_along", batches(c), shape(c), detail::indices_of(c.in[1]), false, c.workspace);
    }

private:
    static std::int64_t batches(const kernel_call& c) {
        return runtime::detail::span(c.out[0], 0, runtime::attributes_of<put_along_op>(c).axis);
    }
    static kernels::scattering shape(const kernel_call& c) {
        const std::int64_t axis = runtime::attributes_of<put_along_op>(c).axis;
        return {1, c.out[0].extents[axis], c.in[1].extents[axis],
                runtime::detail::span(c.out[0], axis + 1, c.out[0].rank), true};
    }
};

} // namespace tapegraph::cuda
