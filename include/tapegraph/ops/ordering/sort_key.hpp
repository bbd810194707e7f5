#pragma once

#include <tapegraph/core/config.hpp>

#include <bit>
#include <cstdint>
#include <type_traits>

/// Unsigned integers whose order is the order of numbers.

namespace tapegraph::detail {

template <class T>
using sort_key = std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>;

/// Negative numbers have all bits flipped and positive ones the sign. Zeros are equal; NaN comes last in either direction.
template <class T>
TG_HD constexpr sort_key<T> sort_key_of(T x, bool descending) {
    using bits = sort_key<T>;
    constexpr bits sign = bits{1} << (8 * sizeof(bits) - 1);
    bits b{};
    if constexpr (std::is_integral_v<T>) {
        b = std::is_signed_v<T> ? static_cast<bits>(x) ^ sign : static_cast<bits>(x);
    } else {
        if (x != x) return static_cast<bits>(-1);
        b = std::bit_cast<bits>(x == T(0) ? T(0) : x);
        b = (b & sign) != 0 ? ~b : b | sign;
    }
    return descending ? ~b : b;
}

} // namespace tapegraph::detail
