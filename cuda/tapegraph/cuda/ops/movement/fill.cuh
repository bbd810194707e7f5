#pragma once

#include <tapegraph/cuda/ops/movement/boxes.cuh>
#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/cuda/kernels/fill.cuh>
#include <tapegraph/ops/movement/kernel.hpp>

/// fill, arange, linspace.

namespace tapegraph::cuda {

// Here T is the type of the operand that shows the mode.
template <class Element, class T>
struct kernel<arange_op<Element>, T> {
    static void run(const kernel_call& c) {
        const auto a = runtime::attributes_of<arange_op<Element>>(c);
        const std::int64_t count = c.out[0].elements();
        detail::for_pieces(count, [&](std::int64_t first, std::int64_t elements) {
            launch(c, "arange", detail::over(elements), kernels::arange<Element>, a.begin, a.step, a.last,
                   a.ends != 0 ? count - 1 : -1, first, first + elements, c.out[0].as<Element>());
        });
    }
};

} // namespace tapegraph::cuda
