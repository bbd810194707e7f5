#include <support/messages.hpp>

#include <tapegraph/ode.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>
#include <string>
#include <vector>

/// Solutions against exact and published ones, measured orders, dense output, and errors.

namespace solve_test {

namespace tg = tapegraph;
namespace ode = tapegraph::ode;
using support::contains;
using support::message_of;
using vector = std::vector<double>;

// y'' = -y: y = (cos t, -sin t) from (1, 0)
constexpr auto oscillator = [](double, const auto& y) {
    auto d = y;
    d[0] = y[1];
    d[1] = -y[0];
    return d;
};
double error_at(const auto& y, double t) { return std::hypot(y[0] - std::cos(t), y[1] + std::sin(t)); }

TEST_CASE("ode: runge_kutta4 has order 4, and its dense output order 4 in the error of the solution") {
    const std::array<double, 2> start{1, 0};
    double before = 0, dense_before = 0;
    for (const int steps : {20, 40, 80, 160}) {
        const auto whole = ode::solve(oscillator, start, 0, 5, ode::runge_kutta4{steps});
        const double now = error_at(whole.states().back(), 5);
        double dense = 0;
        for (int i = 0; i <= 777; ++i) dense = std::max(dense, error_at(whole(5.0 * i / 777), 5.0 * i / 777));
        if (before > 0) {
            CHECK(std::log2(before / now) == doctest::Approx(4).epsilon(0.05));
            CHECK(std::log2(dense_before / dense) == doctest::Approx(4).epsilon(0.05));
        }
        before = now, dense_before = dense;
        CHECK(ode::integrate(oscillator, start, 0, 5, ode::runge_kutta4{steps}) == whole.states().back());
        CHECK(whole.counts().steps == steps);
        CHECK(whole.counts().evaluations == 5 * steps);
    }
}

TEST_CASE("ode: dormand_prince has order 5, and dense output of order 4") {
    // Steps of one length: tolerances that accept everything.
    double before = 0, dense_before = 0;
    for (const int steps : {10, 20, 40}) {
        const double h = 5.0 / steps;
        const auto whole = ode::solve(oscillator, vector{1, 0}, 0, 5,
                                      ode::dormand_prince{.absolute_tolerance = 1e6, .initial_step = h, .max_step = h});
        CHECK(whole.counts().steps == steps);
        const double now = error_at(whole.states().back(), 5);
        double dense = 0; // within the first step, whose beginning is exact
        for (int i = 0; i <= 50; ++i) dense = std::max(dense, error_at(whole(h * i / 50), h * i / 50));
        if (before > 0) {
            CHECK(std::log2(before / now) == doctest::Approx(5).epsilon(0.06));
            CHECK(std::log2(dense_before / dense) == doctest::Approx(5).epsilon(0.06)); // of one step
        }
        before = now, dense_before = dense;
    }
}

TEST_CASE("ode: the error follows the tolerance, forward and backward") {
    for (const double tolerance : {1e-4, 1e-6, 1e-8, 1e-10}) {
        const ode::dormand_prince method{.relative_tolerance = tolerance, .absolute_tolerance = tolerance};
        const auto forward = ode::solve(oscillator, vector{1, 0}, 0, 20, method);
        CHECK(error_at(forward.states().back(), 20) < 100 * tolerance);
        for (int i = 0; i <= 100; ++i) CHECK(error_at(forward(0.2 * i), 0.2 * i) < 100 * tolerance);
        const vector back = ode::integrate(oscillator, forward.states().back(), 20, 0, method);
        CHECK(error_at(back, 0) < 200 * tolerance);
        CHECK(forward.times().back() == 20);
        CHECK(forward.counts().evaluations == 2 + 6 * (forward.counts().steps + forward.counts().rejected));
    }
}

TEST_CASE("ode: equations that depend on time, f that writes, spans, float, one and no numbers") {
    const auto writes = [](double t, const vector& y, vector& dy) { dy[0] = -2 * t * y[0]; }; // y = exp(-t^2)
    CHECK(ode::integrate(writes, vector{1}, 0, 2, ode::dormand_prince{.relative_tolerance = 1e-10})[0] ==
          doctest::Approx(std::exp(-4)).epsilon(1e-7));
    const std::array<double, 1> one{1};
    CHECK(ode::integrate([](double t, const vector& y) { return vector{-2 * t * y[0]}; }, std::span<const double>(one),
                         0, 2, ode::runge_kutta4{400})[0] == doctest::Approx(std::exp(-4)).epsilon(1e-8));
    const auto narrow = ode::integrate([](float, const std::vector<float>& y) { return y; }, std::vector<float>{1}, 0,
                                       1, ode::dormand_prince{.relative_tolerance = 1e-4, .absolute_tolerance = 1e-4});
    CHECK(narrow[0] == doctest::Approx(std::numbers::e).epsilon(1e-3));
    CHECK(ode::integrate([](double, const vector& y) { return y; }, vector{}, 0, 1).empty());
    CHECK(ode::integrate(oscillator, vector{1, 0}, 3, 3) == vector{1, 0});
    CHECK(ode::solve(oscillator, vector{1, 0}, 3, 3)(3) == vector{1, 0});
}

TEST_CASE("ode: Arenstorf's orbit closes after its published period") {
    // Hairer, Norsett and Wanner I, section II.0: three bodies, mu = 0.012277471.
    const double mu = 0.012277471, other = 1 - mu;
    const auto orbit = [&](double, const std::array<double, 4>& y) {
        const double a = std::pow((y[0] + mu) * (y[0] + mu) + y[1] * y[1], 1.5);
        const double b = std::pow((y[0] - other) * (y[0] - other) + y[1] * y[1], 1.5);
        return std::array{y[2], y[3], y[0] + 2 * y[3] - other * (y[0] + mu) / a - mu * (y[0] - other) / b,
                          y[1] - 2 * y[2] - other * y[1] / a - mu * y[1] / b};
    };
    const std::array<double, 4> start{0.994, 0, 0, -2.00158510637908252240537862224};
    const double period = 17.0652165601579625588917206249;
    const auto whole = ode::solve(orbit, start, 0, period,
                                  ode::dormand_prince{.relative_tolerance = 1e-12, .absolute_tolerance = 1e-12});
    // The flow multiplies errors by about a million on the way.
    CHECK(std::abs(whole.states().back()[0] - start[0]) < 1e-4);
    CHECK(std::abs(whole.states().back()[1]) < 1e-4);
    CHECK(whole.counts().steps < 3000);
    CHECK(whole.counts().rejected > 0);
    double shortest = 1e9, longest = 0;
    for (std::size_t i = 1; i < whole.times().size(); ++i) {
        shortest = std::min(shortest, whole.times()[i] - whole.times()[i - 1]);
        longest = std::max(longest, whole.times()[i] - whole.times()[i - 1]);
    }
    CHECK(longest > 100 * shortest); // the steps follow the encounters
}

TEST_CASE("ode: the Lorenz system: both methods find the same, before its chaos parts them") {
    const auto lorenz = [](double, const std::array<double, 3>& y) {
        return std::array{10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8.0 / 3 * y[2]};
    };
    const std::array<double, 3> start{1, 1, 1};
    const auto fine = ode::integrate(lorenz, start, 0, 5, ode::runge_kutta4{100000});
    const auto chosen = ode::integrate(lorenz, start, 0, 5,
                                       ode::dormand_prince{.relative_tolerance = 1e-12, .absolute_tolerance = 1e-12});
    for (std::size_t i = 0; i < 3; ++i) CHECK(chosen[i] == doctest::Approx(fine[i]).epsilon(1e-7));
}

TEST_CASE("ode: errors name the time") {
    const auto blows_up = [](double, const vector& y) { return vector{y[0] * y[0]}; }; // 1 / (1 - t)
    const std::string singular =
        message_of<tg::numeric_error>([&] { (void)ode::integrate(blows_up, vector{1}, 0, 2); });
    CHECK(contains(singular, "step size"));
    CHECK(contains(singular, "at t = 1"));
    const auto undefined = [](double t, const vector&) { return vector{std::sqrt(1 - t)}; };
    CHECK(contains(message_of<tg::numeric_error>([&] { (void)ode::integrate(undefined, vector{0}, 0, 2); }),
                   "the derivative of the state is not finite at t = 1"));
    CHECK(contains(message_of<tg::numeric_error>([&] { (void)ode::integrate(undefined, vector{0}, 1.5, 2); }),
                   "is not finite at t = 1.5"));
    CHECK(contains(
        message_of<tg::numeric_error>([&] { (void)ode::integrate(undefined, vector{0}, 0, 2, ode::runge_kutta4{10}); }),
        "is not finite at t = 1"));
    CHECK(contains(message_of<tg::numeric_error>([&] {
                       (void)ode::integrate(oscillator, vector{1, 0}, 0, 1e6, ode::dormand_prince{.max_steps = 50});
                   }),
                   "50 steps have led to t = "));
    CHECK(contains(message_of<tg::shape_error>([&] {
                       (void)ode::integrate([](double, const vector&) { return vector{1}; }, vector{1, 0}, 0, 1);
                   }),
                   "has 2 numbers, and its derivative 1"));
    CHECK(contains(message_of<tg::argument_error>([&] {
                       (void)ode::integrate(oscillator, vector{1, 0}, 0, 1, ode::runge_kutta4{0});
                   }),
                   "0 steps"));
    CHECK(contains(message_of<tg::argument_error>([&] {
                       (void)ode::integrate(oscillator, vector{1, 0}, 0, 1,
                                            ode::dormand_prince{.relative_tolerance = 0, .absolute_tolerance = 0});
                   }),
                   "tolerances are 0 (relative) and 0 (absolute)"));
    CHECK(contains(message_of<tg::argument_error>([&] {
                       (void)ode::integrate(oscillator, vector{1, 0}, 0, std::numeric_limits<double>::infinity());
                   }),
                   "to t = inf"));
    const auto whole = ode::solve(oscillator, vector{1, 0}, 0, 1);
    CHECK(contains(message_of<tg::range_error>([&] { (void)whole(1.5); }), "t = 1.5 is outside of [0, 1]"));
}

} // namespace solve_test
