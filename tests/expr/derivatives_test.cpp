#include <tapegraph/expr/derivatives.hpp>
#include <tapegraph/ops/elementwise/activation.hpp>
#include <tapegraph/ops/elementwise/power.hpp>
#include <tapegraph/ops/elementwise/trigonometric.hpp>

#include <doctest/doctest.h>

#include <cmath>

/// vjp, jvp, hvp, jacobian and hessian of functions of plain scalars, by the compiler.

namespace tg = tapegraph;

namespace {

constexpr auto cube = [](auto x) { return x * x * x; };
constexpr auto rosenbrock = [](auto x, auto y) { return (1 - x) * (1 - x) + 100 * (y - x * x) * (y - x * x); };
constexpr auto pair = [](auto r, auto a) { return std::tuple{r * a, r + a * a, 5.0}; };

// 3 x^2 along 2, 6 x along 2; of two results and a constant
static_assert(tg::jvp(cube)(2.0, 2.0).value == 8 && tg::jvp(cube)(2.0, 2.0).tangent == 24);
static_assert(std::get<0>(tg::jvp(pair)(2.0, 3.0, 1.0, 10.0).tangent) == 23);
static_assert(std::get<1>(tg::jvp(pair)(std::tuple{2.0, 3.0}, std::tuple{1.0, 10.0}).tangent) == 61);
static_assert(std::get<2>(tg::jvp(pair)(2.0, 3.0, 1.0, 10.0).tangent) == 0);
static_assert(std::is_same_v<decltype(tg::jvp(cube)(2, 1).tangent), float>);

static_assert(tg::vjp(cube)(2.0, 2.0).gradient == 24);
static_assert(tg::vjp(pair)(std::tuple{1.0, 10.0, 7.0}, 2.0, 3.0).gradient[0] == 13);
static_assert(tg::vjp(pair)(std::tuple{1.0, 10.0, 7.0}, 2.0, 3.0).gradient[1] == 62);

static_assert(tg::jacobian(cube)(2.0) == 12);
static_assert(std::get<0>(tg::jacobian(pair)(2.0, 3.0))[0] == 3 && std::get<0>(tg::jacobian(pair)(2.0, 3.0))[1] == 2);
static_assert(std::get<1>(tg::jacobian_forward(pair)(2.0, 3.0))[1] == 6);
static_assert(std::get<2>(tg::jacobian_reverse(pair)(2.0, 3.0))[1] == 0);

// At its minimum (1, 1): [[802, -400], [-400, 200]]
static_assert(tg::hessian(rosenbrock)(1.0, 1.0)[0][0] == 802 && tg::hessian(rosenbrock)(1.0, 1.0)[0][1] == -400);
static_assert(tg::hessian(rosenbrock)(1.0, 1.0)[1][0] == -400 && tg::hessian(rosenbrock)(1.0, 1.0)[1][1] == 200);
static_assert(tg::hessian(cube)(2.0) == 12);
static_assert(tg::hvp(rosenbrock)(1.0, 1.0, 1.0, 3.0).product[0] == -398);
static_assert(tg::hvp(rosenbrock)(1.0, 1.0, 1.0, 3.0).product[1] == 200);
static_assert(tg::hvp(rosenbrock)(2.0, 1.0, 1.0, 0.0).value == 901);
static_assert(tg::hvp(rosenbrock)(2.0, 1.0, 1.0, 0.0).gradient[1] == -600);
static_assert(tg::hvp(cube)(2.0, 3.0).product == 36);

// In each other: 6 x, 6
static_assert(tg::jvp(tg::jvp(cube))(2.0, 1.0, 1.0, 0.0).tangent.tangent == 12);
static_assert(tg::gradient([](auto x) { return tg::jvp(cube)(x, 1.0).tangent; })(2.0) == 12);
static_assert(tg::jvp(tg::hessian(cube))(2.0, 1.0).tangent == 6);
static_assert(tg::hessian([](auto x) { return tg::gradient(cube)(x); })(2.0) == 6);

} // namespace

TEST_CASE("scalars: an array of results, and a direction through a loop") {
    const auto turn = [](auto x, auto angle) { return std::array{x * cos(angle), x * sin(angle)}; };
    const auto rows = tg::jacobian(turn)(2.0, 0.5);
    CHECK(rows[0][0] == doctest::Approx(std::cos(0.5)).epsilon(1e-15));
    CHECK(rows[0][1] == doctest::Approx(-2 * std::sin(0.5)).epsilon(1e-15));
    CHECK(rows[1][1] == doctest::Approx(2 * std::cos(0.5)).epsilon(1e-15));
    const auto newton = [](auto x) {
        auto y = x;
        for (int i = 0; i < 30; ++i) y = 0.5 * (y + x / y);
        return y;
    };
    CHECK(tg::jvp(newton)(2.0, 4.0).tangent == doctest::Approx(2 / std::sqrt(2.0)).epsilon(1e-15));
    // -1/4 x^(-3/2)
    CHECK(tg::hvp(newton)(2.0, 1.0).product == doctest::Approx(-0.25 / (2 * std::sqrt(2.0))).epsilon(1e-14));
}
