#pragma once

#include <tapegraph/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

/// Treats elements that are only moved as integers of their size: one instantiation serves all
/// types of a size.

namespace tapegraph::cuda {

namespace kernels {
/// A word of 16 bytes, moved in one access.
struct alignas(16) wide_word {
    std::uint64_t low, high;
};
} // namespace kernels

namespace detail {

template <std::size_t Size>
using word = std::conditional_t<
    Size == 1, std::uint8_t,
    std::conditional_t<Size == 2, std::uint16_t, std::conditional_t<Size == 4, std::uint32_t, std::uint64_t>>>;

/// Calls f with a word of the given size.
template <class F>
void with_word(std::size_t size, const F& f) {
    switch (size) {
    case 1: return f(word<1>{});
    case 2: return f(word<2>{});
    case 4: return f(word<4>{});
    case 8: return f(word<8>{});
    case sizeof(kernels::wide_word): return f(kernels::wide_word{});
    default: throw dtype_error("elements of " + std::to_string(size) + " bytes are not supported on devices");
    }
}

} // namespace detail
} // namespace tapegraph::cuda
