#include "problems.hpp"

#include <tapegraph/minimize.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

/// Every method on functions with published minima, and larger ones.

namespace problems_test {

namespace tg = tapegraph;
using vector = std::vector<double>;

// Published minima have six digits or more; where they are 0, rounding leaves the square of it times the residuals'
// scale. Powell's singular function has a singular Hessian, so that a gradient of 1e-8 is reached at values of 1e-11.
void check_minimum(double found, const std::vector<double>& minima) {
    double nearest = 1e300;
    for (const double each : minima) nearest = std::min(nearest, std::abs(found - each) / (each == 0 ? 1e-5 : each));
    CHECK(nearest < 2e-6);
}

TEST_CASE("minimize: published minima of Moré, Garbow and Hillstrom by every method") {
    minimizer_problems::for_each_problem(
        [](const char* name, const auto& residuals, const vector& start, const std::vector<double>& minima) {
            CAPTURE(std::string(name));
            const auto sum = [&](const auto& x) {
                minimizer_problems::number_in<std::remove_cvref_t<decltype(x)>> s = 0;
                for (const auto& r : residuals(x)) s += r * r;
                return s;
            };
            const auto check = [&](const auto& r, double factor) {
                CAPTURE(r.message());
                CHECK(r.converged());
                CHECK(factor * r.value == doctest::Approx(sum(r.x)).epsilon(1e-14));
                check_minimum(factor * r.value, minima);
            };
            check(tg::minimize(sum, start), 1);
            check(tg::minimize(sum, start, tg::newton_cg{}), 1);
            check(tg::minimize(residuals, start, tg::levenberg_marquardt{}), 2);
        });
}

TEST_CASE("minimize: Gauss-Newton finds these minima, or says that it has failed") {
    minimizer_problems::for_each_problem(
        [](const char* name, const auto& residuals, const vector& start, const std::vector<double>& minima) {
            CAPTURE(std::string(name));
            const auto r = tg::minimize(residuals, start, tg::gauss_newton{});
            CAPTURE(r.message());
            // Its directions are nearly orthogonal to the gradient on the way to these minima; it must say that it has
            // failed.
            if (std::string(name) == "Freudenstein and Roth" || std::string(name) == "Chebyquad") {
                CHECK(r.reason == tg::stop_reason::no_descent);
                return;
            }
            CHECK(r.converged());
            check_minimum(2 * r.value, minima);
        });
}

// Rosenbrock's function in its chained form, whose minimum is 0 at (1, ..., 1).
constexpr auto chained = [](const auto& x) {
    minimizer_problems::number_in<std::remove_cvref_t<decltype(x)>> sum = 0;
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
        const auto b = x[i + 1] - x[i] * x[i];
        sum += 100 * b * b + (1 - x[i]) * (1 - x[i]);
    }
    return sum;
};

TEST_CASE("minimize: Rosenbrock's function of 1000 numbers") {
    const vector start(1000, 1.5);
    for (const auto& r : {tg::minimize(chained, start), tg::minimize(chained, start, tg::newton_cg{})}) {
        CAPTURE(r.message());
        CHECK(r.reason == tg::stop_reason::gradient);
        CHECK(r.value < 1e-12);
        for (const double each : r.x) REQUIRE(each == doctest::Approx(1).epsilon(1e-6));
    }
}

TEST_CASE("minimize: Booth's function, a quadratic one, in few iterations") {
    const auto booth = [](const auto& x) {
        const auto a = x[0] + 2 * x[1] - 7;
        const auto b = 2 * x[0] + x[1] - 5;
        return a * a + b * b;
    };
    const auto newton = tg::minimize(booth, vector{-10, 10}, tg::newton_cg{.initial_radius = 100});
    CHECK(newton.iterations <= 3);
    CHECK(newton.x[0] == doctest::Approx(1).epsilon(1e-9));
    CHECK(newton.x[1] == doctest::Approx(3).epsilon(1e-9));
    const auto quasi = tg::minimize(booth, vector{-10, 10});
    CHECK(quasi.iterations < 15);
    CHECK(quasi.x[0] == doctest::Approx(1).epsilon(1e-7));
}

TEST_CASE("minimize: float reaches what float has") {
    const std::vector<float> start{-1.2f, 1};
    for (const auto& r : {tg::minimize(chained, start), tg::minimize(chained, start, tg::newton_cg{})}) {
        CAPTURE(r.message());
        CHECK(r.converged());
        CHECK(r.x[0] ==
              doctest::Approx(1).epsilon(2e-3)); // the square root of float's precision times the condition of 50
        CHECK(r.iterations < 100);
    }
}

} // namespace problems_test
