#include "routine/simulation.hpp"

#include <tapegraph/real.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

/// 500 lines of plain C++ (routine/) with branches, loops, recursion, pivots, a controlled step and root finding are
/// differentiated by changing the type of their numbers alone.

namespace routine_test {

namespace tg = tapegraph;

const std::vector<double> parameters{1.2, 0.8, 0.5,  0.3, 0.9, 0.7, 0.5, 0.4, 0.3,
                                     0.2, 0.1, 4000, 300, 2,   5,   -3,  1,   0.5};
constexpr double duration = 0.8;

template <class Number>
Number summed(const routine::report<Number>& r) {
    return r.energy + 0.5 * r.work + r.highest * r.tip.x + r.tip.y + 3 * r.crossing + r.length - 2 * r.mean_height +
           r.sway;
}

TEST_CASE("a routine of 500 lines: the same values, and derivatives by tape, jets and differences") {
    const auto plain = routine::simulate(parameters, duration);
    CHECK(plain.crossing > 0.1);
    CHECK(plain.crossing < duration);
    CHECK(plain.steps > 20);

    tg::real_tape<> tape;
    std::vector<tg::real<>> p(parameters.begin(), parameters.end());
    tape.watch(p);
    const auto recorded = routine::simulate(p, duration);
    CHECK(recorded.steps == plain.steps);
    CHECK(recorded.energy.value() == plain.energy);
    CHECK(recorded.work.value() == plain.work);
    CHECK(recorded.crossing.value() == plain.crossing);
    CHECK(recorded.sway.value() == plain.sway);
    const std::vector<double> gradient = tape.gradient(summed(recorded), p);

    for (double each : gradient) CHECK(each != 0); // the floor was touched, every part moved
    using jet = tg::jet<double, 18>;
    std::vector<jet> directions;
    for (std::size_t i = 0; i < parameters.size(); ++i) directions.emplace_back(parameters[i], static_cast<int>(i));
    const jet forward = summed(routine::simulate(directions, duration));
    CHECK(forward.value == summed(plain));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        INFO("parameter ", i);
        CHECK(gradient[i] == doctest::Approx(forward.derivative[i]).epsilon(1e-9));
        // Differences of runs that take the same steps.
        const auto moved = [&](long double by) {
            std::vector<long double> q(parameters.begin(), parameters.end());
            q[i] += by;
            const auto r = routine::simulate(q, duration);
            CHECK(r.steps == plain.steps);
            return summed(r);
        };
        const long double step = 1e-7L * (1 + std::fabs(static_cast<long double>(parameters[i])));
        const auto difference = static_cast<double>((moved(step) - moved(-step)) / (2 * step));
        CHECK(gradient[i] == doctest::Approx(difference).epsilon(1e-5));
    }
}

} // namespace routine_test
