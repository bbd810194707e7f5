#pragma once

#include <tapegraph/ops/gather/kernel.hpp>
#include <tapegraph/ops/reduction/cpu_softmax_cross_entropy.hpp>
#include <tapegraph/ops/reduction/softmax_cross_entropy.hpp>

/// Kernels of sparse_softmax_cross_entropy_with_logits and its gradient.

namespace tapegraph::runtime {

namespace detail {
/// Calls f(rows, classes, labels, scratch) once all labels are found to be classes.
template <class F>
void with_labels(const kernel_call& c, const buffer_view& x, const buffer_view& z, const F& f) {
    const std::int64_t rows = leading_extent(x), classes = last_extent(x);
    with_indices(z, [&](const auto* labels) {
        cpu::gather_detail::check("sparse_softmax_cross_entropy_with_logits", labels, rows, classes);
        f(rows, classes, labels, static_cast<double*>(c.workspace));
    });
}
inline std::size_t cross_entropy_bytes(const buffer_view& x) {
    return static_cast<std::size_t>(cpu::cross_entropy_scratch(leading_extent(x), last_extent(x))) * sizeof(double);
}
} // namespace detail

template <std::floating_point T>
struct kernel<sparse_softmax_cross_entropy_op, T> {
    static void run(const kernel_call& c) {
        detail::with_labels(c, c.in[0], c.in[1], [&](auto rows, auto classes, const auto* labels, double* scratch) {
            cpu::sparse_cross_entropy(rows, classes, c.in[0].as<const T>(), labels, c.out[0].as<T>(), scratch);
        });
    }
    static std::size_t workspace(const kernel_call& c) { return detail::cross_entropy_bytes(c.in[0]); }
};
template <std::floating_point T>
struct kernel<sparse_softmax_cross_entropy_gradient_op, T> {
    static void run(const kernel_call& c) {
        detail::with_labels(c, c.in[1], c.in[2], [&](auto rows, auto classes, const auto* labels, double* scratch) {
            cpu::sparse_cross_entropy_gradient(rows, classes, c.in[0].as<const T>(), c.in[1].as<const T>(), labels,
                                               c.out[0].as<T>(), scratch);
        });
    }
    static std::size_t workspace(const kernel_call& c) { return detail::cross_entropy_bytes(c.in[1]); }
};

} // namespace tapegraph::runtime

#include <tapegraph/ops/compiled_kernels.hpp>
