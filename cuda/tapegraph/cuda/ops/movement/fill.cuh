#pragma once

#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/cuda/kernels/fill.cuh>
#include <tapegraph/cuda/ops/movement/boxes.cuh>
#include <tapegraph/cuda/ops/movement/library_sequence.hpp>
#include <tapegraph/ops/movement/kernel.hpp>

#include <type_traits>

/// Kernels of fill, arange and linspace. Both ways to write equally spaced integers are one launch
/// that reads nothing; the library's is used where it is linked.

namespace tapegraph::cuda {

// Here T is the type of the operand that selects the mode.
template <class Element, class T>
struct kernel<arange_op<Element>, T> {
    static void run(const kernel_call& c) {
        const auto a = runtime::attributes_of<arange_op<Element>>(c);
        const std::int64_t count = c.out[0].elements();
        if constexpr (std::is_integral_v<Element> && sizeof(Element) >= 4) {
            using word = std::make_unsigned_t<Element>;
            const auto& library = sequence_of_library<word>;
            if (library.sequence != nullptr && a.ends == 0 && a.step != 0 && count > 0 && library.usable())
                return library.sequence("arange", c.stream, c.out[0].as<word>(), count,
                                        static_cast<word>(static_cast<std::int64_t>(a.begin)),
                                        static_cast<word>(static_cast<std::int64_t>(a.step)));
        }
        detail::for_pieces(count, [&](std::int64_t first, std::int64_t elements) {
            launch(c, "arange", detail::over(elements), kernels::arange<Element>, a.begin, a.step, a.last,
                   a.ends != 0 ? count - 1 : -1, first, first + elements, c.out[0].as<Element>());
        });
    }
};

} // namespace tapegraph::cuda
