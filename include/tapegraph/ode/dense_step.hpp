#pragma once

#include <tapegraph/ode/state.hpp>

#include <array>
#include <cstddef>

namespace tapegraph::ode {

/// The solution within a step, as coefficients of Hairer, Norsett and Wanner, "Solving Ordinary Differential Equations
/// I" (1993), section II.6 (CONTD5): y + s (c0 + (1 - s) (c1 + s (c2 + (1 - s) c3))), where s goes from 0 to 1. Without
/// c3 it is the cubic with the values and derivatives of both ends.
template <class S>
struct dense_step {
    std::array<S, 4> coefficients;

    /// c0 to c2, and zeros, from the ends and h times their derivatives.
    dense_step(const S& begin, const S& end, const S& begin_rate, const S& end_rate, time_of<S> h)
        : coefficients{begin, begin, begin, begin} {
        for (std::size_t i = 0; i < scalars::length(begin); ++i) {
            coefficients[0][i] = end[i] - begin[i];
            coefficients[1][i] = h * begin_rate[i] - coefficients[0][i];
            coefficients[2][i] = coefficients[0][i] - h * end_rate[i] - coefficients[1][i];
            coefficients[3][i] = number_of<S>(0);
        }
    }
    /// The state at a share of the step, from 0 at its beginning to 1 at its end.
    S at(const S& begin, time_of<S> share) const {
        S y = begin;
        const time_of<S> rest = 1 - share;
        for (std::size_t i = 0; i < scalars::length(y); ++i)
            y[i] = begin[i] +
                   share * (coefficients[0][i] +
                            rest * (coefficients[1][i] + share * (coefficients[2][i] + rest * coefficients[3][i])));
        return y;
    }
};

} // namespace tapegraph::ode
