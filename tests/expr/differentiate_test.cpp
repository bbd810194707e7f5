#include <tapegraph/expr/differentiate.hpp>
#include <tapegraph/ops/elementwise/activation.hpp>
#include <tapegraph/ops/elementwise/power.hpp>
#include <tapegraph/ops/elementwise/trigonometric.hpp>

#include <doctest/doctest.h>

#include <cmath>

/// Derivatives of functions of plain scalars, by the compiler where that is possible.

namespace tg = tapegraph;

namespace {

constexpr auto polynomial = [](auto x, auto y) { return x * x * y - 3 * y + 1; };
constexpr auto cube = [](auto x) { return x * x * x; };
constexpr auto power = [](auto x) { // a loop
    auto y = x;
    for (int i = 1; i < 5; ++i) y *= x;
    return y;
};
constexpr auto hinge = [](auto x) -> decltype(x) { // a branch
    if (x < 1) return 2 * x;
    return x * x;
};
constexpr auto newton = [](auto x) { // sqrt by a loop that looks at values
    auto y = x;
    for (int i = 0; i < 30 && (y * y - x > 1e-15 || x - y * y > 1e-15); ++i) y = 0.5 * (y + x / y);
    return y;
};
constexpr bool near(double a, double b) { return (a > b ? a - b : b - a) <= 4e-16 * (b > 0 ? b : -b); }

// d/dx = 2 x y, d/dy = x^2 - 3
static_assert(tg::gradient(polynomial)(2.0, 3.0)[0] == 12.0);
static_assert(tg::gradient(polynomial)(2.0, 3.0)[1] == 1.0);
static_assert(tg::value_and_gradient(polynomial)(2.0, 3.0).value == 4.0);
static_assert(tg::gradient(power)(2.0) == 80.0);
static_assert(tg::gradient(hinge)(0.5) == 2.0 && tg::gradient(hinge)(3.0) == 6.0);
static_assert(near(tg::gradient(newton)(2.0), 0.35355339059327373));

// Of derivatives: 6 x, 6, 0
static_assert(tg::gradient(tg::gradient(cube))(2.0) == 12.0);
static_assert(tg::gradient(tg::gradient(tg::gradient(cube)))(2.0) == 6.0);
static_assert(tg::gradient(tg::gradient(tg::gradient(tg::gradient(cube))))(2.0) == 0.0);

// The library's own functions are constexpr.
static_assert(near(tg::gradient([](auto x) { return exp(x); })(1.0), 2.718281828459045));
static_assert(near(tg::gradient([](auto x) { return sin(x); })(1.0), 0.5403023058681398));
static_assert(near(tg::gradient([](auto x) { return tanh(x); })(0.5), 0.7864477329659274));
static_assert(near(tg::gradient(tg::gradient([](auto x) { return sin(x); }))(1.0), -0.8414709848078965));
static_assert(near(tg::gradient([](auto x, auto y) { return x * sin(y) + y; })(2.0, 3.0)[1],
                   1 - 2 * 0.9899924966004454));

// Numbers of other types join; the result is a floating type.
static_assert(tg::gradient([](auto x) { return 2 * x + 1; })(3) == 2);
static_assert(std::is_same_v<decltype(tg::gradient(cube)(2.0f)), float>);
static_assert(std::is_same_v<decltype(tg::gradient(cube)(2)), float>);
static_assert(tg::gradient([](auto x) { return 5 + 0 * x; })(2.0) == 0.0);

} // namespace

TEST_CASE("scalars: every elementary function against its derivative") {
    const double x = 0.7, y = 1.3;
    const auto check = [&](double got, double want) { CHECK(std::abs(got - want) <= 1e-14 * (1 + std::abs(want))); };
    check(tg::gradient([](auto v) { return exp(v); })(x), std::exp(x));
    check(tg::gradient([](auto v) { return expm1(v); })(x), std::exp(x));
    check(tg::gradient([](auto v) { return log(v); })(x), 1 / x);
    check(tg::gradient([](auto v) { return log1p(v); })(x), 1 / (1 + x));
    check(tg::gradient([](auto v) { return sqrt(v); })(x), 0.5 / std::sqrt(x));
    check(tg::gradient([](auto v) { return rsqrt(v); })(x), -0.5 / (x * std::sqrt(x)));
    check(tg::gradient([](auto v) { return square(v); })(x), 2 * x);
    check(tg::gradient([](auto v) { return sin(v); })(x), std::cos(x));
    check(tg::gradient([](auto v) { return cos(v); })(x), -std::sin(x));
    check(tg::gradient([](auto v) { return tanh(v); })(x), 1 - std::tanh(x) * std::tanh(x));
    const double s = 1 / (1 + std::exp(-x));
    check(tg::gradient([](auto v) { return sigmoid(v); })(x), s * (1 - s));
    check(tg::gradient([](auto v) { return softplus(v); })(x), s);
    check(tg::gradient([](auto v) { return erf(v); })(x), 2 / std::sqrt(M_PI) * std::exp(-x * x));
    check(tg::gradient([](auto v) { return relu(v); })(x), 1);
    check(tg::gradient([](auto v) { return abs(v); })(-x), -1);
    const auto p = tg::gradient([](auto a, auto b) { return pow(a, b); })(x, y);
    check(p[0], y * std::pow(x, y - 1));
    check(p[1], std::log(x) * std::pow(x, y));
    const auto m = tg::gradient([](auto a, auto b) { return maximum(a, b) + 10 * minimum(a, b); })(x, y);
    check(m[0], 10);
    check(m[1], 1);
    check(tg::gradient([](auto v) { return v * stop_gradient(v); })(x), x);
    check(tg::gradient([](auto v) { return v / (1 + v); })(x), 1 / ((1 + x) * (1 + x)));
}

TEST_CASE("scalars: mixed second derivatives") {
    // f = x^2 sin(y): fxx = 2 sin y, fxy = 2 x cos y, fyy = -x^2 sin y
    const auto f = [](auto x, auto y) { return x * x * sin(y); };
    const auto hessian = [&](double x, double y) {
        const auto row = [&](int i) {
            return tg::gradient([&, i](auto a, auto b) { return tg::gradient(f)(a, b)[static_cast<std::size_t>(i)]; })(
                x, y);
        };
        return std::array{row(0)[0], row(0)[1], row(1)[0], row(1)[1]};
    };
    const auto h = hessian(1.5, 0.4);
    CHECK(h[0] == doctest::Approx(2 * std::sin(0.4)).epsilon(1e-14));
    CHECK(h[1] == doctest::Approx(3 * std::cos(0.4)).epsilon(1e-14));
    CHECK(h[2] == h[1]);
    CHECK(h[3] == doctest::Approx(-2.25 * std::sin(0.4)).epsilon(1e-14));
}

TEST_CASE("scalars: the functions users call on plain numbers") {
    CHECK(tg::relu(-2.0) == 0);
    CHECK(tg::sigmoid(0.0) == 0.5);
    CHECK(tg::maximum(2, 3.5) == 3.5);
    CHECK(tg::sign(-4.0) == -1);
    CHECK(tg::where(true, 1, 2.5) == 1.0);
    static_assert(std::is_same_v<decltype(tg::maximum(1.0f, 2.0)), double>);
}
