#pragma once

#include <cuda/calls.hpp>

#include <tapegraph/cuda/lines.cuh>

#include <limits>
#include <type_traits>

/// Inputs of the tests of sorts and scans, by our kernels and by a library.

namespace tapegraph::testing {

/// Lines for one thread, a warp, a block with one tile and with several, and lines in chunks. Here
/// three lines are enough blocks, and 40 enough threads.
inline constexpr cuda::detail::line_limits small_limits{64, 40, 3, 1200};

/// All numbers that are awkward to order: equal numbers, zeros of both signs, infinities, NaN of
/// both signs.
template <class T>
argument disorder(const extents& e) {
    return filled<T>(e, [](std::int64_t i) -> T {
        if constexpr (std::is_floating_point_v<T>) {
            using limits = std::numeric_limits<T>;
            const T special[]{
                limits::quiet_NaN(),  -limits::quiet_NaN(), limits::infinity(), -limits::infinity(), T(0), -T(0),
                limits::denorm_min(), limits::lowest(),     limits::max()};
            if (scattered(i, 5, 3) == 0) return special[scattered(i, 9, 4)];
            return static_cast<T>(scattered(i, 50)) - T(24.5);
        } else {
            if (scattered(i, 9, 3) == 0)
                return i % 2 == 0 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
            return static_cast<T>(static_cast<std::int64_t>(scattered(i, 50)) - (std::is_signed_v<T> ? 25 : 0));
        }
    });
}

} // namespace tapegraph::testing
