#pragma once

#include <tapegraph/core/config.hpp>

#include <limits>
#include <type_traits>

/// What reductions fold values with, on every backend.

namespace tapegraph {

enum class reduction { sum, product, maximum, minimum };

namespace detail {

template <class T>
inline constexpr T largest_value = std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity()
                                                               : std::numeric_limits<T>::max();
template <class T>
inline constexpr T smallest_value = std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity()
                                                                : std::numeric_limits<T>::lowest();
template <reduction R, class T>
inline constexpr T identity = R == reduction::sum       ? T(0)
                              : R == reduction::product ? T(1)
                              : R == reduction::maximum ? smallest_value<T>
                                                        : largest_value<T>;

// `a` is what has been folded. A NaN in it fails the first comparison and stays; one in `b` is taken by the second, which
// does not wait for `a`: that chain is what the loops are as fast as.
template <reduction R, class V>
TG_HD constexpr void combine(V& a, const V& b) {
    if constexpr (R == reduction::sum)
        a = static_cast<V>(a + b);
    else if constexpr (R == reduction::product)
        a = static_cast<V>(a * b);
    else {
        const V best = (R == reduction::maximum ? b > a : b < a) ? b : a;
        a = b != b ? b : best;
    }
}

} // namespace detail

} // namespace tapegraph
