#pragma once

#include <tapegraph/cpu/arg_reduce.hpp>
#include <tapegraph/cpu/gather.hpp>
#include <tapegraph/cpu/layout.hpp>
#include <tapegraph/cpu/scan.hpp>
#include <tapegraph/cpu/sort.hpp>
#include <tapegraph/ops/gather.hpp>
#include <tapegraph/ops/layout.hpp>
#include <tapegraph/ops/ordering.hpp>
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
/// The attributes with every begin a number: `larger` is the tensor that holds the other.
inline slice_op::attributes with_begins(const kernel_call& c, const buffer_view& larger, const buffer_view& smaller) {
    auto a = attributes_of<slice_op>(c);
    for (int i = 0; i < larger.rank; ++i)
        if (a.begin[i] == at_the_end) a.begin[i] = larger.extents[i] - smaller.extents[i];
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
struct kernel<embed_op, T> {
    static void run(const kernel_call& c) {
        const auto a = detail::with_begins(c, c.out[0], c.in[0]);
        cpu::embed(c.in[0].rank, c.in[0].extents, a.begin, a.step, c.out[0].extents, sizeof(T), c.in[0].data,
                   c.out[0].data);
    }
};
template <class T>
struct kernel<concat_op, T> {
    static void run(const kernel_call& c) {
        const auto axis = static_cast<int>(attributes_of<concat_op>(c).axis);
        const void* inputs[2]{c.in[0].data, c.in[1].data};
        const std::int64_t lengths[2]{c.in[0].extents[axis], c.in[1].extents[axis]};
        cpu::concat(2, inputs, lengths, c.out[0].rank, c.out[0].extents, axis, sizeof(T), c.out[0].data);
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
inline std::int64_t row_width(const buffer_view& table) {
    std::int64_t width = 1;
    for (int i = 1; i < table.rank; ++i) width *= table.extents[i];
    return width;
}
inline std::int64_t last_extent(const buffer_view& v) { return v.extents[v.rank - 1]; }
inline std::int64_t leading_extent(const buffer_view& v) {
    std::int64_t outer = 1;
    for (int i = 0; i + 1 < v.rank; ++i) outer *= v.extents[i];
    return outer;
}
} // namespace detail

template <class T>
struct kernel<gather_op, T> {
    static void run(const kernel_call& c) {
        detail::with_indices(c.in[1], [&](const auto* indices) {
            cpu::gather_rows(c.in[0].extents[0], detail::row_width(c.in[0]), sizeof(T), c.in[0].data, c.in[1].elements(),
                             indices, c.out[0].data);
        });
    }
};
template <class T>
struct kernel<scatter_add_op, T> {
    static void run(const kernel_call& c) {
        detail::with_indices(c.in[1], [&](const auto* indices) {
            cpu::scatter_add_rows(c.out[0].extents[0], detail::row_width(c.out[0]), c.in[0].as<const T>(),
                                  c.in[1].elements(), indices, c.out[0].as<T>());
        });
    }
};
template <class T>
struct kernel<take_along_op, T> {
    static void run(const kernel_call& c) {
        detail::with_indices(c.in[1], [&](const auto* indices) {
            cpu::take_along_last(detail::leading_extent(c.in[0]), detail::last_extent(c.in[0]), sizeof(T), c.in[0].data,
                                 detail::last_extent(c.in[1]), indices, c.out[0].data);
        });
    }
};
template <class T>
struct kernel<put_along_op, T> {
    static void run(const kernel_call& c) {
        detail::with_indices(c.in[1], [&](const auto* indices) {
            cpu::put_along_last(detail::leading_extent(c.out[0]), detail::last_extent(c.out[0]), c.in[0].as<const T>(),
                                detail::last_extent(c.in[1]), indices, c.out[0].as<T>());
        });
    }
};
// Here T is the type of the indices.
template <class Element, class T>
struct kernel<one_hot_op<Element>, T> {
    static void run(const kernel_call& c) {
        cpu::one_hot(c.in[0].elements(), c.in[0].as<const T>(), attributes_of<one_hot_op<Element>>(c).depth, Element(1),
                     Element(0), c.out[0].as<Element>());
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
