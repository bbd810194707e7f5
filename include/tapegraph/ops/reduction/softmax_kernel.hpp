#pragma once

#include <tapegraph/ops/reduction/cpu_softmax.hpp>
#include <tapegraph/ops/reduction/softmax.hpp>
#include <tapegraph/runtime/kernel.hpp>

/// Kernels of softmax, log_softmax and their gradients.

namespace tapegraph::runtime {

namespace detail {
template <class Way, class T>
void run_along_lines(const kernel_call& c) {
    static_assert(std::is_floating_point_v<T>,
                  "softmax, log_softmax: the elements are not floating; cast<float>(x) first");
    const buffer_view& x = c.in[0];
    const std::int64_t axis = attributes_of<softmax_op>(c).axis;
    cpu::along_lines<Way>(span(x, 0, axis), x.extents[axis], span(x, axis + 1, x.rank), x.as<const T>(),
                          c.in[Way::has_largest ? 0 : 1].template as<const T>(), c.out[0].as<T>());
}
} // namespace detail

template <class T>
struct kernel<softmax_op, T> {
    static void run(const kernel_call& c) { detail::run_along_lines<cpu::softmax_detail::forward<false>, T>(c); }
};
template <class T>
struct kernel<log_softmax_op, T> {
    static void run(const kernel_call& c) { detail::run_along_lines<cpu::softmax_detail::forward<true>, T>(c); }
};
template <class T>
struct kernel<softmax_gradient_op, T> {
    static void run(const kernel_call& c) { detail::run_along_lines<cpu::softmax_detail::backward<false>, T>(c); }
};
template <class T>
struct kernel<log_softmax_gradient_op, T> {
    static void run(const kernel_call& c) { detail::run_along_lines<cpu::softmax_detail::backward<true>, T>(c); }
};

} // namespace tapegraph::runtime

#include <tapegraph/ops/compiled_kernels.hpp>
