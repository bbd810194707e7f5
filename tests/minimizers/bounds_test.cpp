#include "problems.hpp"

#include <support/messages.hpp>

#include <tapegraph/minimize.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

/// Minimization within bounds by every method, with solutions in closed form or published.

namespace bounds_test {

namespace tg = tapegraph;
using vector = std::vector<double>;
using support::contains;
using support::message_of;
constexpr double infinity = std::numeric_limits<double>::infinity();

template <class X>
using number_in = minimizer_problems::number_in<X>;

// Runs the same problem as residuals and as their sum of squares.
template <class Residuals, class Check>
void by_every_method(const Residuals& residuals, const vector& start, const tg::minimization_options& options,
                     const Check& check) {
    const auto sum = [&](const auto& x) {
        number_in<std::remove_cvref_t<decltype(x)>> s = 0;
        for (const auto& r : residuals(x)) s += r * r;
        return s;
    };
    const auto run = [&](const char* name, const auto& r, double factor) {
        CAPTURE(std::string(name));
        CAPTURE(r.message());
        CHECK(r.converged());
        for (std::size_t i = 0; i < r.x.size(); ++i) {
            if (!options.lower.empty()) CHECK(r.x[i] >= options.lower[options.lower.size() == 1 ? 0 : i]);
            if (!options.upper.empty()) CHECK(r.x[i] <= options.upper[options.upper.size() == 1 ? 0 : i]);
        }
        check(r.x, factor * r.value);
    };
    run("lbfgs", tg::minimize(sum, start, tg::lbfgs{}, options), 1);
    run("newton_cg", tg::minimize(sum, start, tg::newton_cg{}, options), 1);
    run("levenberg_marquardt", tg::minimize(residuals, start, tg::levenberg_marquardt{}, options), 2);
    run("gauss_newton", tg::minimize(residuals, start, tg::gauss_newton{}, options), 2);
}
constexpr auto rosenbrock = [](const auto& x) {
    return std::vector<number_in<std::remove_cvref_t<decltype(x)>>>{10 * (x[1] - x[0] * x[0]), 1 - x[0]};
};
constexpr auto distances = [](const auto& x) { // to (1, 2, 3, ...)
    std::vector<number_in<std::remove_cvref_t<decltype(x)>>> r;
    for (std::size_t i = 0; i < x.size(); ++i) r.push_back(x[i] - static_cast<double>(i + 1));
    return r;
};

TEST_CASE("bounds: the nearest point of a box") {
    for (const double at : {-7.0, 0.5, 30.0})
        by_every_method(distances, vector(5, at),
                        {.lower = {-1, 2.5, -infinity, 0, 5.5}, .upper = {0, 3, infinity, 10, 6}},
                        [](const vector& x, double) {
                            CHECK(x[0] == 0);
                            CHECK(x[1] == 2.5);
                            CHECK(x[2] == doctest::Approx(3).epsilon(1e-7));
                            CHECK(x[3] == doctest::Approx(4).epsilon(1e-7));
                            CHECK(x[4] == 5.5);
                        });
}

TEST_CASE("bounds: Hock and Schittkowski's problems 1 to 5 with bounds alone") {
    // W. Hock and K. Schittkowski, "Test Examples for Nonlinear Programming Codes" (1981). 1: the bound is not active.
    by_every_method(rosenbrock, {-2, 1}, {.lower = {-infinity, -1.5}}, [](const vector& x, double value) {
        CHECK(x[0] == doctest::Approx(1).epsilon(1e-7));
        CHECK(value < 1e-14);
    });
    // 2: x1 >= 1.5 is active; a = (598 / 1200)^(1/2), x0 = 2 a cos(acos(1 / (400 a^3)) / 3). There is a local minimum,
    // too.
    by_every_method(rosenbrock, {-2, 1}, {.lower = {-infinity, 1.5}}, [](const vector& x, double value) {
        const double a = std::sqrt(598.0 / 1200), best = 2 * a * std::cos(std::acos(1 / (400 * a * a * a)) / 3);
        CHECK(x[1] == 1.5);
        if (x[0] > 0) {
            CHECK(x[0] == doctest::Approx(best).epsilon(1e-7));
            CHECK(value == doctest::Approx(0.0504261879).epsilon(1e-8));
        } else { // its stationary point of the other sign
            CHECK(std::abs(400 * x[0] * (x[0] * x[0] - 1.5) + 2 * (x[0] - 1)) < 1e-5);
        }
    });
    const auto third = [](const auto& x) { return x[1] + 1e-5 * (x[1] - x[0]) * (x[1] - x[0]); };
    const auto fourth = [](const auto& x) {
        const auto a = x[0] + 1;
        return a * a * a / 3 + x[1];
    };
    const auto fifth = [](const auto& x) {
        const auto d = x[0] - x[1];
        return sin(x[0] + x[1]) + d * d - 1.5 * x[0] + 2.5 * x[1] + 1;
    };
    const auto both = [](const auto& check) {
        check(tg::lbfgs{});
        check(tg::newton_cg{});
    };
    both([&](const auto& method) {
        const auto a =
            tg::minimize(third, vector{10, 1}, method, {.gradient_tolerance = 1e-12, .lower = {-infinity, 0}});
        CHECK(a.x[1] == 0);
        CHECK(a.value < 1e-15); // x0^2 / 1e5
        const auto b = tg::minimize(fourth, vector{1.125, 0.125}, method, {.lower = {1, 0}});
        CHECK(b.x == vector{1, 0});
        CHECK(b.value == doctest::Approx(8.0 / 3));
        const auto c = tg::minimize(fifth, vector{0, 0}, method, {.lower = {-1.5, -3}, .upper = {4, 3}});
        CHECK(c.value == doctest::Approx(-std::sqrt(3.0) / 2 - std::acos(-1) / 3).epsilon(1e-12));
        CHECK(c.x[0] == doctest::Approx(0.5 - std::acos(-1) / 3).epsilon(1e-7));
    });
}

TEST_CASE("bounds: many numbers, of which half end on bounds") {
    const std::size_t n = 1000;
    vector lower(n, -infinity), upper(n, infinity);
    for (std::size_t i = 0; i < n; i += 2)
        (i % 4 == 0 ? lower : upper)[i] = static_cast<double>(i + 1) + (i % 4 == 0 ? 1 : -1);
    const auto sum = [](const auto& x) {
        number_in<std::remove_cvref_t<decltype(x)>> s = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const auto d = x[i] - static_cast<double>(i + 1);
            s += (1 + static_cast<double>(i % 7)) * d * d;
        }
        return s;
    };
    const auto check = [&](const auto& r) {
        CAPTURE(r.message());
        CHECK(r.converged());
        CHECK(r.iterations < 60);
        for (std::size_t i = 0; i < n; ++i) {
            const double best = static_cast<double>(i + 1) + (i % 2 == 1 ? 0 : i % 4 == 0 ? 1 : -1);
            if (i % 2 == 0)
                REQUIRE(r.x[i] == best);
            else
                REQUIRE(r.x[i] == doctest::Approx(best).epsilon(1e-7));
        }
    };
    check(tg::minimize(sum, vector(n, 0.0), tg::lbfgs{}, {.lower = lower, .upper = upper}));
    check(tg::minimize(sum, vector(n, 0.0), tg::newton_cg{}, {.lower = lower, .upper = upper}));
}

TEST_CASE("bounds: equal ones hold a number, one bound is for all, and a start outside is projected") {
    by_every_method(distances, {9, 9, 9}, {.lower = {-5, 0.25, -5}, .upper = {5, 0.25, 5}},
                    [](const vector& x, double) {
                        CHECK(x[0] == doctest::Approx(1).epsilon(1e-7));
                        CHECK(x[1] == 0.25);
                        CHECK(x[2] == doctest::Approx(3).epsilon(1e-7));
                    });
    by_every_method(distances, {100, -100, 0}, {.upper = {1.5}}, [](const vector& x, double) {
        CHECK(x[0] == doctest::Approx(1).epsilon(1e-7));
        CHECK(x[1] == 1.5);
        CHECK(x[2] == 1.5);
    });
    const auto r = tg::minimize(distances, vector{4, 4}, tg::levenberg_marquardt{}, {.lower = {2, 3}, .upper = {2, 3}});
    CHECK(r.x == vector{2, 3}); // nothing is free
    CHECK(r.gradient_norm == 0);
    CHECK(r.iterations == 0);
}

TEST_CASE("bounds: the function is never called outside of them") {
    const auto roots = [](const auto& x) { // of numbers >= 0
        return std::vector<number_in<std::remove_cvref_t<decltype(x)>>>{sqrt(x[0]) - 3, 2 - sqrt(2 - x[1])};
    };
    by_every_method(roots, {0.5, 1}, {.lower = {1e-3, -infinity}, .upper = {infinity, 2 - 1e-3}},
                    [](const vector& x, double) {
                        CHECK(x[0] == doctest::Approx(9).epsilon(1e-6));
                        CHECK(x[1] == doctest::Approx(-2).epsilon(1e-6));
                    });
}

TEST_CASE("bounds that make no sense are refused by number") {
    const auto run = [](const tg::minimization_options& options) {
        return message_of<tg::error>([&] {
            (void)tg::minimize(distances, vector{1, 2, 3}, tg::levenberg_marquardt{}, options);
        });
    };
    CHECK(contains(run({.lower = {0, 2, 0}, .upper = {1}}), "number 1 has the lower bound 2 and"));
    CHECK(contains(run({.lower = {0, 2}}), "2 lower bounds for 3 numbers"));
    CHECK(contains(run({.upper = {0, 2, 3, 4}}), "4 upper bounds for 3 numbers"));
    CHECK(contains(run({.upper = {1, std::nan(""), 1}}), "the upper bound of number 1 is NaN"));
}

} // namespace bounds_test
