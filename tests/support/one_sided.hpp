#pragma once

#include <support/finite_differences.hpp>

#include <array>
#include <cmath>
#include <functional>
#include <vector>

/// Derivatives at one point from values on one side of it. If both sides give the same number up to
/// a certain derivative, the function is smooth there to that order and this is the derivative,
/// however the function is written. Where they do not agree there is a kink.

namespace tapegraph::testing {

inline constexpr int orders = 3, nodes = 12;
using derivatives = std::array<real, orders + 1>; ///< the value and those of order 1 and more

// The derivatives at 0 of the polynomial through (x[j], y[j]), by Newton's divided differences.
inline derivatives of_polynomial(const std::array<real, nodes>& x, std::array<real, nodes> y) {
    for (int level = 1; level < nodes; ++level)
        for (int j = nodes - 1; j >= level; --j)
            y[static_cast<std::size_t>(j)] = (y[static_cast<std::size_t>(j)] - y[static_cast<std::size_t>(j - 1)]) /
                                             (x[static_cast<std::size_t>(j)] - x[static_cast<std::size_t>(j - level)]);
    derivatives at{}; // Horner's rule for the polynomial and its derivatives
    for (int j = nodes - 1; j >= 0; --j) {
        for (int k = orders; k > 0; --k)
            at[static_cast<std::size_t>(k)] =
                at[static_cast<std::size_t>(k)] * -x[static_cast<std::size_t>(j)] + at[static_cast<std::size_t>(k - 1)];
        at[0] = at[0] * -x[static_cast<std::size_t>(j)] + y[static_cast<std::size_t>(j)];
    }
    real factorial = 1;
    for (int k = 1; k <= orders; ++k) at[static_cast<std::size_t>(k)] *= factorial *= k;
    return at;
}

/// Numbers f_i(t), each a function of t alone, at several points at once.
using lines = std::function<std::vector<real>(real t)>;

// All derivatives at 0 from values on one side, at -h j or h j, j = 0, ..., 11.
inline std::vector<derivatives> one_sided(const lines& f, real h) {
    std::array<real, nodes> x{};
    std::array<std::vector<real>, nodes> y;
    for (std::size_t j = 0; j < nodes; ++j) y[j] = f(x[j] = h * static_cast<real>(j));
    std::vector<derivatives> result;
    for (std::size_t i = 0; i < y[0].size(); ++i) {
        std::array<real, nodes> each{};
        for (std::size_t j = 0; j < nodes; ++j) each[j] = y[j][i];
        result.push_back(of_polynomial(x, each));
    }
    return result;
}

/// The reference's verdict on derivative k at a point: its value, or that there is none, or none
/// that differences can resolve.
struct verdict {
    bool smooth = false;
    real value = 0;
};

/// Both sides, with two steps each; the difference between the steps is the error. Rounding grows
/// by some 1e4 / h^3, truncation falls with h^9. For values in long double both stay below 1e-7 at
/// steps of 1/64 and 1/32, for values in double at 1/24 and 1/12, for functions of order one whose
/// singularities are not nearer than 1 and 2.
struct sides {
    std::vector<derivatives> right, left, right_again, left_again;
    explicit sides(const lines& f, real h = 1.0L / 64)
        : right(one_sided(f, h)),
          left(one_sided(f, -h)),
          right_again(one_sided(f, 2 * h)),
          left_again(one_sided(f, -2 * h)) {}

    verdict of(std::size_t i, std::size_t k) const {
        const real r = right[i][k], l = left[i][k];
        const real error = std::abs(r - right_again[i][k]) + std::abs(l - left_again[i][k]);
        const real scale = 1 + std::abs(r);
        if (!(std::abs(r) < 1e300L) || !(std::abs(l) < 1e300L) || !(error <= 1e-6L * scale))
            return {}; // double is not precise enough for more
        if (std::abs(r - l) > 1e-6L * scale) return {};
        return {true, (r + l) / 2};
    }
};

/// The derivatives of the tape's f_i(t) at 0, orders 1, ..., by nested gradients.
template <class F>
std::vector<std::vector<double>> nested_derivatives(const F& f, tensor<double> t) {
    gradient_tape tape({.persistent = true});
    tape.watch(t);
    tensor<double> y = f(t);
    std::vector<std::vector<double>> result;
    for (int k = 1; k <= orders; ++k) {
        y = tape.gradient(y, t);
        result.push_back(y.to_vector());
    }
    return result;
}

} // namespace tapegraph::testing
