#pragma once

#include <tapegraph/ops/ordering/cpu_arg_reduce.hpp>
#include <tapegraph/ops/movement/cpu_embed.hpp>
#include <tapegraph/ops/gather/cpu.hpp>
#include <tapegraph/ops/movement/cpu.hpp>
#include <tapegraph/ops/movement/cpu_index_map.hpp>
#include <tapegraph/ops/cumulative/cpu.hpp>
#include <tapegraph/ops/ordering/cpu.hpp>
#include <tapegraph/ops/movement/concat.hpp>
#include <tapegraph/ops/movement/fill.hpp>
#include <tapegraph/ops/gather/gather.hpp>
#include <tapegraph/ops/movement/layout.hpp>
#include <tapegraph/ops/ordering/ordering.hpp>
#include <tapegraph/ops/movement/padding.hpp>
#include <tapegraph/runtime/kernel.hpp>

/// Elements moved, chosen, summed up and put in order.

namespace tapegraph::runtime {

// Movement depends on the size of an element only; T is ignored beyond that.
template <class T>
struct kernel<transpose_op, T> {
    static void run(const kernel_call& c) {
        cpu::transpose(c.in[0].rank, c.in[0].extents, attributes_of<transpose_op>(c).permutation, sizeof(T), c.in[0].data,
                       c.out[0].data);
    }
};
namespace detail {
/// The attributes with every begin a number: `larger` is the tensor that holds the other. Graphs leave bounds of symbolic axes
/// to requirements; whatever slips through them stops here.
inline slice_op::attributes with_begins(const kernel_call& c, const buffer_view& larger, const buffer_view& smaller) {
    auto a = attributes_of<slice_op>(c);
    for (int i = 0; i < larger.rank; ++i) {
        const std::int64_t size = larger.extents[i], count = smaller.extents[i];
        a.begin[i] = count == 0 ? 0 : slice_op::first(a.begin[i], a.step[i], size, count);
        const std::int64_t last = a.begin[i] + a.step[i] * (count - 1);
        if (count > 0 && (a.begin[i] < 0 || a.begin[i] >= size || last < 0 || last >= size))
            throw shape_error("slice, pad: elements " + std::to_string(a.begin[i]) + " to " + std::to_string(last) +
                              " of axis " + std::to_string(i) + ", which has " + std::to_string(size));
    }
    return a;
}
} // namespace detail
template <class T>
struct kernel<slice_op, T> {
    static void run(const kernel_call& c) {
        const auto a = detail::with_begins(c, c.in[0], c.out[0]);
        cpu::slice(c.in[0].rank, c.in[0].extents, a.begin, a.step, c.out[0].extents, sizeof(T), c.in[0].data,
                   c.out[0].data);
    }
};
template <class T>
struct kernel<pad_op, T> {
    static void run(const kernel_call& c) {
        const auto a = detail::with_begins(c, c.out[0], c.in[0]);
        const T fill = static_cast<T>(a.fill);
        cpu::pad(c.in[0].rank, c.in[0].extents, a.begin, a.step, c.out[0].extents, sizeof(T), c.in[0].data,
                   c.out[0].data, &fill);
    }
};
template <class T>
struct kernel<index_map_op, T> {
    static void run(const kernel_call& c) {
        const auto a = attributes_of<index_map_op>(c);
        cpu::apply_index_map(c.in[0].rank, c.in[0].extents, a.map, a.amount, c.out[0].extents, sizeof(T), c.in[0].data, c.out[0].data);
    }
};
template <class T>
struct kernel<index_map_adjoint_op, T> {
    static void run(const kernel_call& c) {
        const auto a = attributes_of<index_map_adjoint_op>(c);
        cpu::index_map_adjoint(c.out[0].rank, c.out[0].extents, a.map, a.amount, c.in[0].extents, c.in[0].as<const T>(),
                  c.out[0].as<T>());
    }
};
template <class T>
struct kernel<concat_op, T> {
    static void run(const kernel_call& c) {
        const auto axis = static_cast<int>(attributes_of<concat_op>(c).axis);
        std::int64_t begin = 0;
        for (int k = 0; k < c.inputs; ++k) {
            cpu::concat_part(c.in[k].data, c.in[k].extents[axis], begin, c.out[0].rank, c.out[0].extents, axis, sizeof(T),
                             c.out[0].data);
            begin += c.in[k].extents[axis];
        }
    }
};
// Here T is the type of the operand that shows the mode.
template <class Element, class T>
struct kernel<arange_op<Element>, T> {
    static void run(const kernel_call& c) {
        const auto a = attributes_of<arange_op<Element>>(c);
        const std::int64_t count = c.out[0].elements();
        Element* const to = c.out[0].as<Element>();
        if (a.step == 0) {
            const Element value = static_cast<Element>(a.begin);
            cpu::fill(count, sizeof(Element), &value, to);
        } else if constexpr (is_floating_type<Element>) {
            for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<Element>(a.begin + a.step * static_cast<double>(i));
        } else {
            for (std::int64_t i = 0; i < count; ++i)
                to[i] = static_cast<Element>(static_cast<std::int64_t>(a.begin) + static_cast<std::int64_t>(a.step) * i);
        }
        if (a.ends != 0) to[count - 1] = static_cast<Element>(a.last);
    }
};

namespace detail {
/// Calls f with the indices as std::int32_t or std::int64_t.
template <class F>
void with_indices(const buffer_view& indices, const F& f) {
    if (indices.type == dtype::i32)
        f(indices.as<const std::int32_t>());
    else
        f(indices.as<const std::int64_t>());
}
/// Product of the extents of axes [first, last).
inline std::int64_t span(const buffer_view& v, std::int64_t first, std::int64_t last) {
    std::int64_t product = 1;
    for (std::int64_t i = first; i < last; ++i) product *= v.extents[i];
    return product;
}
inline std::int64_t last_extent(const buffer_view& v) { return v.extents[v.rank - 1]; }
inline std::int64_t leading_extent(const buffer_view& v) { return span(v, 0, v.rank - 1); }
} // namespace detail

template <class T>
struct kernel<gather_op, T> {
    static void run(const kernel_call& c) {
        const auto a = attributes_of<gather_op>(c);
        const buffer_view& table = c.in[0];
        detail::with_indices(c.in[1], [&](const auto* indices) {
            cpu::gather_slices(detail::span(table, 0, a.batch), detail::span(table, a.batch, a.axis), table.extents[a.axis],
                               detail::span(table, a.axis + 1, table.rank), sizeof(T), table.data,
                               detail::span(c.in[1], a.batch, c.in[1].rank), indices, c.out[0].data);
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
namespace detail {
/// Tuples of indices into `table` as row numbers in the call's workspace.
template <class = void> // as in ops/movement/cpu.hpp
const std::int64_t* flat_rows(const kernel_call& c, const char* operation, const buffer_view& table) {
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
            cpu::take_along(detail::span(x, 0, axis), x.extents[axis], detail::span(x, axis + 1, x.rank), sizeof(T), x.data,
                            c.in[1].extents[axis], indices, c.out[0].data);
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
// Here T is the type of the indices.
template <class Element, class T>
struct kernel<one_hot_op<Element>, T> {
    static void run(const kernel_call& c) {
        const auto a = attributes_of<one_hot_op<Element>>(c);
        cpu::one_hot(detail::span(c.in[0], 0, a.axis), detail::span(c.in[0], a.axis, c.in[0].rank), c.in[0].as<const T>(),
                     a.depth, static_cast<Element>(a.on), static_cast<Element>(a.off), c.out[0].as<Element>());
    }
};

namespace detail {
// Integers are added and multiplied as unsigned ones: they wrap around.
template <cpu::scanning S, class T>
void run_scan(const kernel_call& c) {
    using element = typename reduced_element<sum_op, T>::type;
    const auto a = attributes_of<cumulative_sum_op>(c);
    cpu::scan<S>(c.in[0].rank, c.in[0].extents, static_cast<int>(a.axis), a.exclusive != 0, a.reverse != 0,
                 c.in[0].as<const element>(), c.out[0].as<element>());
}
} // namespace detail
template <class T>
struct kernel<cumulative_sum_op, T> {
    static void run(const kernel_call& c) { detail::run_scan<cpu::scanning::sum, T>(c); }
};
template <class T>
struct kernel<cumulative_product_op, T> {
    static void run(const kernel_call& c) { detail::run_scan<cpu::scanning::product, T>(c); }
};
template <class T>
struct kernel<argsort_op, T> {
    static std::size_t workspace(const kernel_call& c) {
        return cpu::sort_workspace_bytes<element>(detail::leading_extent(c.in[0]), detail::last_extent(c.in[0]));
    }
    static void run(const kernel_call& c) {
        cpu::argsort_last(detail::leading_extent(c.in[0]), detail::last_extent(c.in[0]),
                          attributes_of<argsort_op>(c).descending != 0, c.in[0].as<const element>(),
                          c.out[0].as<std::int32_t>(), c.workspace, detail::last_extent(c.out[0]));
    }
    using element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
};
template <class T>
struct kernel<arg_reduce_op, T> {
    static void run(const kernel_call& c) {
        const auto a = attributes_of<arg_reduce_op>(c);
        using element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
        const auto reduce = a.maximum != 0 ? &cpu::arg_reduce<true, element, std::int32_t>
                                           : &cpu::arg_reduce<false, element, std::int32_t>;
        reduce(c.in[0].rank, c.in[0].extents, static_cast<int>(a.axis), c.in[0].as<const element>(),
               c.out[0].as<std::int32_t>());
    }
};

} // namespace tapegraph::runtime
