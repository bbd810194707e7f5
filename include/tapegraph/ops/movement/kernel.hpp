#pragma once

#include <tapegraph/ops/movement/concat.hpp>
#include <tapegraph/ops/movement/cpu.hpp>
#include <tapegraph/ops/movement/cpu_index_map.hpp>
#include <tapegraph/ops/movement/cpu_pad.hpp>
#include <tapegraph/ops/movement/cpu_placed_sum.hpp>
#include <tapegraph/ops/movement/fill.hpp>
#include <tapegraph/ops/movement/graph_slices.hpp>
#include <tapegraph/ops/movement/layout.hpp>
#include <tapegraph/ops/movement/padding.hpp>
#include <tapegraph/runtime/kernel.hpp>

/// Kernels of operations that move elements.

namespace tapegraph::runtime {

// Movement depends only on the size of an element; otherwise T is ignored.
template <class T>
struct kernel<transpose_op, T> {
    static void run(const kernel_call& c) {
        cpu::transpose(c.in[0].rank, c.in[0].extents, attributes_of<transpose_op>(c).permutation, sizeof(T),
                       c.in[0].data, c.out[0].data);
    }
};
namespace detail {
/// The attributes with every begin as a number; `larger` is the tensor that contains the other.
/// Graphs turn bounds of symbolic axes into requirements; bounds that escape them are caught here.
inline slice_op::attributes with_begins(slice_op::attributes a, const buffer_view& larger, const buffer_view& smaller) {
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
inline slice_op::attributes with_begins(const kernel_call& c, const buffer_view& larger, const buffer_view& smaller) {
    return with_begins(attributes_of<slice_op>(c), larger, smaller);
}
/// The number of elements of `larger` before the first one of a slice.
inline std::int64_t elements_before(const slice_op::attributes& a, const buffer_view& larger,
                                    const buffer_view& smaller) {
    const slice_op::attributes known = with_begins(a, larger, smaller);
    std::int64_t before = 0;
    for (int i = 0; i < larger.rank; ++i) before = before * larger.extents[i] + known.begin[i];
    return smaller.elements() > 0 ? before : 0;
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
struct kernel<placed_sum_op, T> {
    static_assert(placed_sum_op::most == cpu::placed_detail::most_operands);
    static void run(const kernel_call& c) {
        const auto a = attributes_of<placed_sum_op>(c);
        const auto axis = static_cast<int>(a.axis);
        std::int64_t begin[placed_sum_op::most];
        for (int k = 0; k < c.inputs; ++k) {
            const std::int64_t size = c.out[0].extents[axis], count = c.in[k].extents[axis];
            begin[k] = count == 0 ? 0 : slice_op::first(a.begin[k], 1, size, count);
            if (begin[k] < 0 || begin[k] + count > size)
                throw shape_error("placed_sum: elements " + std::to_string(begin[k]) + " to " +
                                  std::to_string(begin[k] + count - 1) + " of an axis that has " +
                                  std::to_string(size));
        }
        cpu::placed_sum<T>(c.in, begin, c.inputs, axis, c.out[0]);
    }
};
template <class T>
struct kernel<index_map_op, T> {
    static void run(const kernel_call& c) {
        const auto a = attributes_of<index_map_op>(c);
        cpu::apply_index_map(c.in[0].rank, c.in[0].extents, a.map, a.amount, c.out[0].extents, sizeof(T), c.in[0].data,
                             c.out[0].data);
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
            cpu::concat_part(c.in[k].data, c.in[k].extents[axis], begin, c.out[0].rank, c.out[0].extents, axis,
                             sizeof(T), c.out[0].data);
            begin += c.in[k].extents[axis];
        }
    }
};
TG_ROUNDS_EACH_BEGIN
namespace detail {
/// begin + i * step for i in [0, count).
template <class Element>
struct arange_body {
    template <class Isa>
    TG_INLINE static void run(double begin, double step, std::int64_t count, Element* to) {
        TG_SIMD
        for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<Element>(begin + step * static_cast<double>(i));
    }
};
} // namespace detail
TG_ROUNDS_EACH_END
// T is the type of the operand that selects the mode here.
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
            cpu::dispatch<detail::arange_body<Element>>(a.begin, a.step, count, to);
        } else {
            for (std::int64_t i = 0; i < count; ++i)
                to[i] =
                    static_cast<Element>(static_cast<std::int64_t>(a.begin) + static_cast<std::int64_t>(a.step) * i);
        }
        if (a.ends != 0) to[count - 1] = static_cast<Element>(a.last);
    }
};

} // namespace tapegraph::runtime

#include <tapegraph/ops/compiled_kernels.hpp>
