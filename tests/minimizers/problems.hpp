#pragma once

#include <support/function_of_numbers.hpp>

#include <tapegraph/minimize.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numbers>
#include <type_traits>
#include <utility>
#include <vector>

/// Test functions with published minima, as residuals: J. J. Moré, B. S. Garbow and K. E. Hillstrom, "Testing
/// unconstrained optimization software", ACM Transactions on Mathematical Software 7 (1981) 17-41. Minima are of the
/// sum of squares.

namespace minimizer_problems {

template <class X>
using number_in = std::remove_cvref_t<decltype(std::declval<const X&>()[0])>;
template <class X>
using numbers_of = std::vector<number_in<X>>;

using residuals_of_problem =
    support::function_of_numbers<support::many_numbers, double, tapegraph::real<>, tapegraph::jet<double, 1>,
                                 tapegraph::jet<double, 8>, tapegraph::real<tapegraph::jet<double, 1>>>;
using start = std::vector<double>;
using minima = std::vector<double>;

/// Calls visit(name, residuals, start, minima) for each problem; a method may find any of the minima.
inline void for_each_problem(
    const std::function<void(const char*, const residuals_of_problem&, const start&, const minima&)>& visit) {
    const auto pairs = [](const auto& x) { // 1 and 21
        numbers_of<std::remove_cvref_t<decltype(x)>> r;
        for (std::size_t i = 0; i + 1 < x.size(); i += 2) {
            r.push_back(10 * (x[i + 1] - x[i] * x[i]));
            r.push_back(1 - x[i]);
        }
        return r;
    };
    visit("Rosenbrock", pairs, start{-1.2, 1}, minima{0});
    visit("extended Rosenbrock", pairs, start{-1.2, 1, -1.2, 1, -1.2, 1, -1.2, 1, -1.2, 1}, minima{0});
    visit(
        "Freudenstein and Roth",
        [](const auto& x) {
            return numbers_of<std::remove_cvref_t<decltype(x)>>{x[0] + ((5 - x[1]) * x[1] - 2) * x[1] - 13,
                                                                x[0] + ((x[1] + 1) * x[1] - 14) * x[1] - 29};
        },
        start{0.5, -2}, minima{0, 48.9842536792});
    visit(
        "Beale",
        [](const auto& x) {
            return numbers_of<std::remove_cvref_t<decltype(x)>>{
                1.5 - x[0] * (1 - x[1]), 2.25 - x[0] * (1 - x[1] * x[1]), 2.625 - x[0] * (1 - x[1] * x[1] * x[1])};
        },
        start{1, 1}, minima{0});
    visit(
        "helical valley",
        [](const auto& x) {
            using std::atan, std::sqrt;
            using number = number_in<std::remove_cvref_t<decltype(x)>>;
            const number angle = atan(x[1] / x[0]) / (2 * std::numbers::pi) + (x[0] < 0 ? 0.5 : 0.0);
            return std::vector<number>{10 * (x[2] - 10 * angle), 10 * (sqrt(x[0] * x[0] + x[1] * x[1]) - 1), x[2]};
        },
        start{-1, 0, 0}, minima{0});
    visit(
        "Bard",
        [](const auto& x) {
            constexpr std::array y{0.14, 0.18, 0.22, 0.25, 0.29, 0.32, 0.35, 0.39,
                                   0.37, 0.58, 0.73, 0.96, 1.34, 2.10, 4.39};
            numbers_of<std::remove_cvref_t<decltype(x)>> r;
            for (int i = 1; i <= 15; ++i)
                r.push_back(y[static_cast<std::size_t>(i - 1)] -
                            (x[0] + i / ((16 - i) * x[1] + std::min(i, 16 - i) * x[2])));
            return r;
        },
        start{1, 1, 1}, minima{8.21487730657e-3, 17.4286933});
    visit(
        "Gaussian",
        [](const auto& x) {
            using std::exp;
            constexpr std::array y{0.0009, 0.0044, 0.0175, 0.0540, 0.1295, 0.2420, 0.3521, 0.3989};
            numbers_of<std::remove_cvref_t<decltype(x)>> r;
            for (std::size_t i = 0; i < 15; ++i) {
                const double t = (7 - static_cast<double>(i)) / 2;
                r.push_back(x[0] * exp(-x[1] * (t - x[2]) * (t - x[2]) / 2) - y[i < 8 ? i : 14 - i]);
            }
            return r;
        },
        start{0.4, 1, 0}, minima{1.12793276962e-8});
    visit(
        "Box in three dimensions",
        [](const auto& x) {
            using std::exp;
            numbers_of<std::remove_cvref_t<decltype(x)>> r;
            for (int i = 1; i <= 10; ++i) {
                const double t = 0.1 * i;
                r.push_back(exp(-t * x[0]) - exp(-t * x[1]) - x[2] * (std::exp(-t) - std::exp(-10 * t)));
            }
            return r;
        },
        start{0, 10, 20}, minima{0});
    visit(
        "Powell singular",
        [](const auto& x) {
            const auto a = x[1] - 2 * x[2];
            const auto b = x[0] - x[3];
            return numbers_of<std::remove_cvref_t<decltype(x)>>{x[0] + 10 * x[1], std::sqrt(5.0) * (x[2] - x[3]), a * a,
                                                                std::sqrt(10.0) * b * b};
        },
        start{3, -1, 0, 1}, minima{0});
    visit(
        "Wood",
        [](const auto& x) {
            return numbers_of<std::remove_cvref_t<decltype(x)>>{10 * (x[1] - x[0] * x[0]),
                                                                1 - x[0],
                                                                std::sqrt(90.0) * (x[3] - x[2] * x[2]),
                                                                1 - x[2],
                                                                std::sqrt(10.0) * (x[1] + x[3] - 2),
                                                                (x[1] - x[3]) / std::sqrt(10.0)};
        },
        start{-3, -1, -3, -1}, minima{0});
    visit(
        "Kowalik and Osborne",
        [](const auto& x) {
            constexpr std::array y{0.1957, 0.1947, 0.1735, 0.1600, 0.0844, 0.0627,
                                   0.0456, 0.0342, 0.0323, 0.0235, 0.0246};
            constexpr std::array u{4.0, 2.0, 1.0, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625};
            numbers_of<std::remove_cvref_t<decltype(x)>> r;
            for (std::size_t i = 0; i < y.size(); ++i)
                r.push_back(y[i] - x[0] * (u[i] * u[i] + u[i] * x[1]) / (u[i] * u[i] + u[i] * x[2] + x[3]));
            return r;
        },
        start{0.25, 0.39, 0.415, 0.39}, minima{3.0750560385e-4});
    visit(
        "Brown and Dennis",
        [](const auto& x) {
            numbers_of<std::remove_cvref_t<decltype(x)>> r;
            for (int i = 1; i <= 20; ++i) {
                const double t = i / 5.0;
                const auto a = x[0] + t * x[1] - std::exp(t);
                const auto b = x[2] + x[3] * std::sin(t) - std::cos(t);
                r.push_back(a * a + b * b);
            }
            return r;
        },
        start{25, 5, -5, -1}, minima{85822.2016264});
    visit(
        "penalty function I",
        [](const auto& x) {
            numbers_of<std::remove_cvref_t<decltype(x)>> r;
            number_in<std::remove_cvref_t<decltype(x)>> sum = -0.25;
            for (const auto& each : x) {
                r.push_back(std::sqrt(1e-5) * (each - 1));
                sum += each * each;
            }
            r.push_back(sum);
            return r;
        },
        start{1, 2, 3, 4}, minima{2.24997750e-5});
    visit(
        "variably dimensioned",
        [](const auto& x) {
            numbers_of<std::remove_cvref_t<decltype(x)>> r;
            number_in<std::remove_cvref_t<decltype(x)>> sum = 0;
            for (std::size_t i = 0; i < x.size(); ++i) {
                r.push_back(x[i] - 1);
                sum += static_cast<double>(i + 1) * (x[i] - 1);
            }
            r.push_back(sum);
            r.push_back(sum * sum);
            return r;
        },
        start{0.8, 0.6, 0.4, 0.2, 0}, minima{0});
    visit(
        "Broyden tridiagonal",
        [](const auto& x) {
            numbers_of<std::remove_cvref_t<decltype(x)>> r;
            for (std::size_t i = 0; i < x.size(); ++i) {
                number_in<std::remove_cvref_t<decltype(x)>> each = (3 - 2 * x[i]) * x[i] + 1;
                if (i > 0) each -= x[i - 1];
                if (i + 1 < x.size()) each -= 2 * x[i + 1];
                r.push_back(each);
            }
            return r;
        },
        start(10, -1.0), minima{0});
    visit(
        "Chebyquad",
        [](const auto& x) {
            using number = number_in<std::remove_cvref_t<decltype(x)>>;
            const std::size_t n = x.size();
            std::vector<number> r(n, number(0));
            for (const auto& each : x) {
                number before = 1, now = 2 * each - 1; // Chebyshev polynomials shifted to [0, 1]
                for (std::size_t i = 0; i < n; ++i) {
                    r[i] += now / static_cast<double>(n);
                    const number next = 2 * (2 * each - 1) * now - before;
                    before = now, now = next;
                }
            }
            for (std::size_t i = 1; i < n; i += 2) r[i] += 1 / (static_cast<double>((i + 1) * (i + 1)) - 1);
            return r;
        },
        start{1 / 9.0, 2 / 9.0, 3 / 9.0, 4 / 9.0, 5 / 9.0, 6 / 9.0, 7 / 9.0, 8 / 9.0}, minima{3.51687372568e-3});
}

} // namespace minimizer_problems
