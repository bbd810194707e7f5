#pragma once

#include <tapegraph/ops/cumulative/cpu.hpp>
#include <tapegraph/ops/cumulative/cumulative.hpp>
#include <tapegraph/runtime/kernel.hpp>

/// Kernels of running sums and products.

namespace tapegraph::runtime {

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

TG_COMPILED_KERNELS(cumulative, number_types, cumulative_sum_op)
TG_COMPILED_KERNELS(cumulative, number_types, cumulative_product_op)

} // namespace tapegraph::runtime
