#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/config.hpp>
#include <tapegraph/core/error.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

/// The fold of each kind of reduction, on every backend.

namespace tapegraph {

/// What a reduction does with the elements of the axes that it removes.
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

// `a` is the accumulator. A NaN in it fails the first comparison and stays; a NaN in `b` is taken
// by the second, which does not wait for `a`: the chain through `a` limits the speed of these
// loops.
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

/// The number of results of a reduction over an empty domain. Throws argument_error for a maximum
/// or minimum of nothing.
std::int64_t results_of_nothing(reduction kind, int rank, const std::int64_t* extents, std::uint32_t axes);

} // namespace detail

#if TG_DEFINES(runtime)

TG_DEFINITION std::int64_t detail::results_of_nothing(reduction kind, int rank, const std::int64_t* extents,
                                                      std::uint32_t axes) {
    std::int64_t outputs = 1;
    int empty = 0;
    for (int i = rank; i-- > 0;) {
        if ((axes >> i & 1) == 0)
            outputs *= extents[i];
        else if (extents[i] == 0)
            empty = i;
    }
    if (outputs > 0 && (kind == reduction::maximum || kind == reduction::minimum))
        throw argument_error(std::string(kind == reduction::maximum ? "max" : "min") + ": axis " +
                             std::to_string(empty) + " has no elements");
    return outputs;
}

#endif

} // namespace tapegraph
