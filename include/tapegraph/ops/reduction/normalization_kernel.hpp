#pragma once

#include <tapegraph/ops/reduction/cpu_normalization.hpp>
#include <tapegraph/ops/reduction/normalization.hpp>
#include <tapegraph/runtime/kernel.hpp>

/// Kernels of normalization and its derivatives.

namespace tapegraph::runtime {

namespace detail {
inline cpu::normalized_shape normalized_shape_of(const normalization_attributes& a, const buffer_view& x) {
    cpu::normalized_shape s;
    s.examples = span(x, 0, a.examples);
    s.records = span(x, a.examples, a.first);
    s.rows = span(x, a.first, a.last);
    s.groups = a.groups;
    s.in_group = span(x, a.last, x.rank) / a.groups;
    s.sharing = span(x, a.own, a.examples);
    s.centered = a.centered != 0;
    s.epsilon = a.epsilon;
    return s;
}
} // namespace detail

template <std::floating_point T>
struct kernel<normalization_op, T> {
    static void run(const kernel_call& c) {
        cpu::normalize(detail::normalized_shape_of(attributes_of<normalization_op>(c), c.in[0]), c.in[0].as<const T>(),
                       c.in[1].as<const T>(), c.in[2].as<const T>(), c.out[0].as<T>());
    }
};
template <std::floating_point T>
struct kernel<normalization_sums_op, T> {
    static void run(const kernel_call& c) {
        cpu::normalization_sums(shape(c), c.in[0].as<const T>(), c.in[1].as<const T>(), c.in[2].as<const T>(),
                                c.out[0].as<T>(), c.workspace);
    }
    static std::size_t workspace(const kernel_call& c) { return cpu::normalization_sums_bytes<T>(shape(c)); }

private:
    static cpu::normalized_shape shape(const kernel_call& c) {
        return detail::normalized_shape_of(attributes_of<normalization_op>(c), c.in[1]);
    }
};
template <std::floating_point T>
struct kernel<normalization_gradient_op, T> {
    static void run(const kernel_call& c) {
        cpu::normalization_gradient(detail::normalized_shape_of(attributes_of<normalization_op>(c), c.in[1]),
                                    c.in[0].as<const T>(), c.in[1].as<const T>(), c.in[2].as<const T>(),
                                    c.in[3].as<const T>(), c.out[0].as<T>());
    }
};

} // namespace tapegraph::runtime

#include <tapegraph/ops/compiled_kernels.hpp>
