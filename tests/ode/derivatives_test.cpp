#include <tapegraph/ode.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

/// Derivatives of solutions by initial states and parameters: by jets, the tape, checkpoints and the adjoint equation.

namespace derivatives_test {

namespace tg = tapegraph;
namespace ode = tapegraph::ode;
using real = tg::real<>;
using vector = std::vector<double>;

// Lotka and Volterra's equations, by any numbers.
constexpr auto hunters = [](double, const auto& y, const auto& p) {
    auto d = y;
    d[0] = p[0] * y[0] - p[1] * y[0] * y[1];
    d[1] = p[3] * y[0] * y[1] - p[2] * y[1];
    return d;
};
const vector animals{10, 5}, rates{1.5, 1, 3, 1};
constexpr double end = 3;

// The derivatives of the first number at the end by animals and rates, by central differences of accurate solutions.
vector differences() {
    const auto at = [](vector y, vector p) {
        return ode::integrate([&](double t, const vector& s) { return hunters(t, s, p); }, y, 0, end,
                              ode::dormand_prince{.relative_tolerance = 1e-13, .absolute_tolerance = 1e-13})[0];
    };
    vector result;
    for (std::size_t i = 0; i < 6; ++i) {
        const double step = 1e-5;
        vector up[]{animals, rates}, down[]{animals, rates};
        up[i < 2 ? 0 : 1][i < 2 ? i : i - 2] += step;
        down[i < 2 ? 0 : 1][i < 2 ? i : i - 2] -= step;
        result.push_back((at(up[0], up[1]) - at(down[0], down[1])) / (2 * step));
    }
    return result;
}
// Solves on a tape, and gives the derivatives in the same order.
template <class Solve>
vector by_tape(const Solve& solve) {
    tg::real_tape<> tape;
    std::vector<real> y(animals.begin(), animals.end()), p(rates.begin(), rates.end());
    tape.watch(y);
    tape.watch(p);
    const std::vector<real> last = solve(tape, y, p);
    vector g = tape.gradient(last[0], y);
    for (const double each : tape.gradient(last[0], p)) g.push_back(each);
    return g;
}
void near(const vector& a, const vector& b, double tolerance) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(tolerance));
}

TEST_CASE("ode: derivatives of Lotka and Volterra's equations against differences, by four ways") {
    const vector expected = differences(); // errors of 1e-8: step^2, and the tolerance over the step
    const ode::dormand_prince method{.relative_tolerance = 1e-9, .absolute_tolerance = 1e-9};
    const vector taped = by_tape([&](auto&, const auto& y, const auto& p) {
        return ode::integrate([&](double t, const auto& s) { return hunters(t, s, p); }, y, 0, end, method);
    });
    near(taped, expected, 1e-6);
    for (const std::size_t kept : {1u, 3u, 50u})
        near(by_tape([&](auto& tape, const auto& y, const auto& p) {
                 return ode::checkpointed(tape, hunters, y, p, 0.0, end, kept, method);
             }),
             taped, 1e-11); // the same steps: rounding alone
    near(by_tape([&](auto& tape, const auto& y, const auto& p) {
             return ode::adjoint(tape, hunters, y, p, 0.0, end, method);
         }),
         expected, 1e-6);
    using jet = tg::jet<double, 6>;
    std::array<jet, 2> y{jet(animals[0], 0), jet(animals[1], 1)};
    std::array<jet, 4> p;
    for (std::size_t i = 0; i < 4; ++i) p[i] = jet(rates[i], 2 + static_cast<int>(i));
    const auto last = ode::integrate([&](double t, const auto& s) { return hunters(t, s, p); }, y, 0, end, method);
    near(vector(last[0].derivative, last[0].derivative + 6), taped, 1e-11);
    CHECK(last[0].value ==
          ode::integrate([](double t, const vector& s) { return hunters(t, s, rates); }, animals, 0, end, method)[0]);
}

TEST_CASE("ode: the same by runge_kutta4") {
    const vector expected = differences();
    const ode::runge_kutta4 method{3000};
    const vector taped = by_tape([&](auto&, const auto& y, const auto& p) {
        return ode::integrate([&](double t, const auto& s) { return hunters(t, s, p); }, y, 0, end, method);
    });
    near(taped, expected, 1e-6);
    near(by_tape([&](auto& tape, const auto& y, const auto& p) {
             return ode::checkpointed(tape, hunters, y, p, 0.0, end, 10, method);
         }),
         taped, 1e-10);
    near(by_tape([&](auto& tape, const auto& y, const auto& p) {
             return ode::adjoint(tape, hunters, y, p, 0.0, end, method);
         }),
         expected, 1e-6);
}

TEST_CASE("ode: a linear system, whose derivative by the start is the exponential of its matrix") {
    // y' = A y with A = [[0, w], [-w, 0]]: the end is a rotation by w t, and dy0/dw = t (-sin(w t) y0 + cos(w t) y1)
    const auto turn = [](double, const auto& y, const auto& p, auto& dy) {
        dy[0] = p[0] * y[1];
        dy[1] = -p[0] * y[0];
    };
    const double w = 0.7, t = 4, c = std::cos(w * t), s = std::sin(w * t);
    const ode::dormand_prince method{.relative_tolerance = 1e-11, .absolute_tolerance = 1e-11};
    for (const bool backward : {false, true}) {
        const double from = backward ? t : 0, to = backward ? 0 : t, sign = backward ? -1 : 1;
        const auto check = [&](const auto& solve) {
            tg::real_tape<> tape;
            std::vector<real> y{2, -1}, p{w};
            tape.watch(y);
            tape.watch(p);
            const std::vector<real> last = solve(tape, y, p);
            near(tape.gradient(last[0], y), {c, sign * s}, 1e-8);
            near(tape.gradient(last[1], y), {-sign * s, c}, 1e-8);
            CHECK(tape.gradient(last[0], p[0]) == doctest::Approx(t * (-s * 2 - sign * c)).epsilon(1e-8));
        };
        check(
            [&](auto& tape, const auto& y, const auto& p) { return ode::adjoint(tape, turn, y, p, from, to, method); });
        check([&](auto& tape, const auto& y, const auto& p) {
            return ode::checkpointed(tape, turn, y, p, from, to, 5, method);
        });
    }
}

TEST_CASE("ode: rejected steps leave nothing on the tape, and states between steps are differentiated") {
    tg::real_tape<> tape;
    std::vector<real> y{1.0};
    tape.watch(y);
    // The first step is much too long.
    const auto fall = [](double, const auto& s) {
        auto d = s;
        d[0] = -50 * s[0];
        return d;
    };
    const auto whole = ode::solve(fall, y, 0, 1, ode::dormand_prince{.relative_tolerance = 1e-8, .initial_step = 1});
    CHECK(whole.counts().rejected > 0);
    // A step: six rates, six stages and the four parts of its dense output, of one number.
    CHECK(tape.statements() == 2 + static_cast<std::size_t>(whole.counts().steps) * (6 + 6 + 4));
    const real middle = whole(0.03)[0];
    CHECK(tape.gradient(middle, y[0]) == doctest::Approx(std::exp(-1.5)).epsilon(1e-5));
}

} // namespace derivatives_test
