#pragma once

#include <tapegraph/ops/gather/cpu_gather_scatter.hpp>
#include <tapegraph/ops/gather/gather.hpp>
#include <tapegraph/ops/gather/gather_scatter.hpp>
#include <tapegraph/runtime/kernel.hpp>

/// Kernels of operations that select elements by indices, and of their adjoints, which add by
/// indices.

namespace tapegraph::runtime {

namespace detail {
/// Calls f with the indices as std::int32_t or std::int64_t.
template <class F>
void with_indices(const buffer_view& indices, const F& f) {
    if (indices.type == dtype::i32)
        f(indices.as<const std::int32_t>());
    else
        f(indices.as<const std::int64_t>());
}
} // namespace detail

template <class T>
struct kernel<gather_op, T> {
    static void run(const kernel_call& c) {
        const auto a = attributes_of<gather_op>(c);
        const buffer_view& table = c.in[0];
        detail::with_indices(c.in[1], [&](const auto* indices) {
            cpu::gather_slices(detail::span(table, 0, a.batch), detail::span(table, a.batch, a.axis),
                               table.extents[a.axis], detail::span(table, a.axis + 1, table.rank), sizeof(T),
                               table.data, detail::span(c.in[1], a.batch, c.in[1].rank), indices, c.out[0].data);
        });
    }
};
template <class T>
struct kernel<scatter_add_op, T> {
    static void run(const kernel_call& c) {
        const auto a = attributes_of<scatter_add_op>(c);
        const buffer_view& table = c.out[0];
        detail::with_indices(c.in[1], [&](const auto* indices) {
            cpu::scatter_add_slices(detail::span(table, 0, a.batch), detail::span(table, a.batch, a.axis),
                                    table.extents[a.axis], detail::span(table, a.axis + 1, table.rank),
                                    c.in[0].as<const T>(), detail::span(c.in[1], a.batch, c.in[1].rank), indices,
                                    table.as<T>());
        });
    }
};
template <bool Weighted, class T>
struct kernel<gather_scatter_add_op<Weighted>, T> {
    static std::size_t workspace(const kernel_call& c) {
        const sizes s(c);
        return cpu::gather_scatter_workspace_bytes<T>(s.batches, s.rows, s.width, s.count, Weighted);
    }
    static void run(const kernel_call& c) {
        const sizes s(c);
        const T* const weights = Weighted ? c.in[c.inputs - 1].as<const T>() : nullptr;
        detail::with_indices(c.in[1], [&](const auto* from) {
            detail::with_indices(c.in[2], [&](const auto* to) {
                cpu::gather_scatter_add(s.batches, s.outer, s.sources, s.rows, s.width, c.in[0].as<const T>(), s.count,
                                        from, to, weights, c.out[0].as<T>(), c.workspace);
            });
        });
    }

private:
    struct sizes {
        std::int64_t batches, outer, sources, rows, width, count;
        explicit sizes(const kernel_call& c) {
            const auto a = attributes_of<gather_scatter_add_op<Weighted>>(c);
            const buffer_view& table = c.in[0];
            batches = detail::span(table, 0, a.batch), outer = detail::span(table, a.batch, a.axis);
            sources = table.extents[a.axis], rows = c.out[0].extents[a.axis];
            width = detail::span(table, a.axis + 1, table.rank);
            count = detail::span(c.in[1], a.batch, c.in[1].rank);
        }
    };
};
namespace detail {
/// Converts tuples of indices into `table` to row numbers in the call's workspace.
inline const std::int64_t* flat_rows(const kernel_call& c, const char* operation, const buffer_view& table) {
    auto* const flat = static_cast<std::int64_t*>(c.workspace);
    with_indices(c.in[1], [&](const auto* indices) {
        cpu::flat_indices(operation, leading_extent(c.in[1]), last_extent(c.in[1]), table.extents, indices, flat);
    });
    return flat;
}
inline std::size_t flat_row_bytes(const kernel_call& c) {
    return static_cast<std::size_t>(leading_extent(c.in[1])) * sizeof(std::int64_t);
}
} // namespace detail
template <class T>
struct kernel<gather_nd_op, T> {
    static std::size_t workspace(const kernel_call& c) { return detail::flat_row_bytes(c); }
    static void run(const kernel_call& c) {
        const std::int64_t depth = detail::last_extent(c.in[1]);
        cpu::gather_slices(1, 1, detail::span(c.in[0], 0, depth), detail::span(c.in[0], depth, c.in[0].rank), sizeof(T),
                           c.in[0].data, detail::leading_extent(c.in[1]), detail::flat_rows(c, "gather_nd", c.in[0]),
                           c.out[0].data, "gather_nd", true);
    }
};
template <class T>
struct kernel<scatter_nd_op, T> {
    static std::size_t workspace(const kernel_call& c) { return detail::flat_row_bytes(c); }
    static void run(const kernel_call& c) {
        const std::int64_t depth = detail::last_extent(c.in[1]);
        cpu::scatter_add_slices(1, 1, detail::span(c.out[0], 0, depth), detail::span(c.out[0], depth, c.out[0].rank),
                                c.in[0].as<const T>(), detail::leading_extent(c.in[1]),
                                detail::flat_rows(c, "scatter_nd", c.out[0]), c.out[0].as<T>(), "scatter_nd", true);
    }
};
template <class T>
struct kernel<take_along_op, T> {
    static void run(const kernel_call& c) {
        const std::int64_t axis = attributes_of<take_along_op>(c).axis;
        const buffer_view& x = c.in[0];
        detail::with_indices(c.in[1], [&](const auto* indices) {
            cpu::take_along(detail::span(x, 0, axis), x.extents[axis], detail::span(x, axis + 1, x.rank), sizeof(T),
                            x.data, c.in[1].extents[axis], indices, c.out[0].data);
        });
    }
};
template <class T>
struct kernel<put_along_op, T> {
    static void run(const kernel_call& c) {
        const std::int64_t axis = attributes_of<put_along_op>(c).axis;
        const buffer_view& y = c.out[0];
        detail::with_indices(c.in[1], [&](const auto* indices) {
            cpu::put_along(detail::span(y, 0, axis), y.extents[axis], detail::span(y, axis + 1, y.rank),
                           c.in[0].as<const T>(), c.in[1].extents[axis], indices, y.as<T>());
        });
    }
};
// T is the type of the indices here.
template <class Element, class T>
struct kernel<one_hot_op<Element>, T> {
    static void run(const kernel_call& c) {
        const auto a = attributes_of<one_hot_op<Element>>(c);
        cpu::one_hot(detail::span(c.in[0], 0, a.axis), detail::span(c.in[0], a.axis, c.in[0].rank),
                     c.in[0].as<const T>(), a.depth, static_cast<Element>(a.on), static_cast<Element>(a.off),
                     c.out[0].as<Element>());
    }
};

} // namespace tapegraph::runtime

#include <tapegraph/ops/compiled_kernels.hpp>
