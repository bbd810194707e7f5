#pragma once

#include <tapegraph/ops/elementwise/arithmetic.hpp>
#include <tapegraph/scalar/statement.hpp>

#include <cmath>
#include <concepts>
#include <limits>

/// The gamma function, its logarithm, and the derivatives of that, the polygamma functions.

namespace tapegraph {

namespace scalars {

/// The N-th derivative of digamma. Asymptotic series from 16 on, with Bernoulli's numbers; below, the recurrence
/// psi(x) = psi(x + 1) - d^N (1 / x). Abramowitz and Stegun 6.4.6, 6.4.11, and for N = 0 6.3.5, 6.3.7 (reflection), 6.3.18.
template <int N>
inline double polygamma(double x) {
    if (x != x || x == std::numeric_limits<double>::infinity()) return N == 0 ? x : x != x ? x : 0;
    if (x <= 0 && x == std::floor(x)) return std::numeric_limits<double>::quiet_NaN(); // a pole
    if constexpr (N == 0) {
        constexpr double pi = 3.141592653589793238;
        if (x < 0) return polygamma<0>(1 - x) - pi / std::tan(pi * (x - std::floor(x)));
    }
    double factorial = 1; // (N - 1)!
    for (int i = 2; i < N; ++i) factorial *= i;
    const double sign = N % 2 == 0 ? -1 : 1;
    double sum = 0;
    for (; x < 16; ++x) sum += std::pow(x, -(N + 1));
    sum *= N == 0 ? -1 : sign * factorial * N;
    constexpr double bernoulli[]{1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6};
    const double step = 1 / (x * x);
    // (2k + N - 1)! / (2k)! / x^(2k + N)
    double power = N == 0 ? 1 : factorial * std::pow(x, -N);
    double series = N == 0 ? -std::log(x) + 0.5 / x : power + 0.5 * N * power / x;
    for (int k = 1; k <= 7; ++k) {
        const int even = 2 * k;
        if constexpr (N == 0)
            series += bernoulli[k - 1] / even * (power *= step);
        else
            series += bernoulli[k - 1] * (power *= step * (even + N - 1) * (even + N - 2) / (even * (even - 1.0)));
    }
    return sum + sign * series;
}

} // namespace scalars

/// digamma (N = 0), trigamma (N = 1) and further derivatives.
template <int N>
struct polygamma_op : map_op<1> {
    static constexpr std::string_view name = "polygamma";
    template <class V>
    static V value(V x) {
        return static_cast<V>(scalars::polygamma<N>(x));
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) requires(N < 8) {
        return dy * apply<polygamma_op<N + 1>>(x);
    }
};

struct lgamma_op : map_op<1> {
    static constexpr std::string_view name = "lgamma";
    template <class V>
    static V value(V x) {
        return std::lgamma(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy * apply<polygamma_op<0>>(x); }
};

struct tgamma_op : map_op<1> {
    static constexpr std::string_view name = "tgamma";
    template <class V>
    static V value(V x) {
        return std::tgamma(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto y) { return dy * (y * apply<polygamma_op<0>>(x)); }
};

} // namespace tapegraph
