#include <tapegraph/expr/derivatives.hpp>
#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

/// Derivatives of third and higher order of functions of one plain number.

namespace series_test {

namespace tg = tapegraph;

template <int Order, class F>
constexpr auto derivative(F f) {
    if constexpr (Order == 1)
        return tg::gradient(f);
    else
        return tg::gradient(derivative<Order - 1>(f));
}
/// The same derivatives by duals of duals: a lambda in between hides that gradients are nested.
template <class F>
constexpr auto hidden(F f) {
    return [f](auto x) { return tg::gradient(f)(x); };
}

constexpr auto power = [](auto x) { return x * x * x * x * x - 3 * (x * x) + 7; };
static_assert(derivative<3>(power)(2.0) == 240.0);
static_assert(derivative<4>(power)(2.0) == 240.0);
static_assert(derivative<5>(power)(2.0) == 120.0);
static_assert(derivative<6>(power)(2.0) == 0.0);
static_assert(derivative<9>(power)(2.0) == 0.0);
static_assert(tg::value_and_gradient(derivative<3>(power))(2.0).value == 240.0);
static_assert(std::is_same_v<decltype(derivative<3>(power)(2.0f)), float>);
static_assert(derivative<3>(power)(2.0f) == 240.0f);
static_assert(derivative<3>(power)(2) == 240.0f);
// 1 / x: -6 / x^4, -120 / x^6
static_assert(derivative<3>([](auto x) { return 1 / x; })(2.0) == -0.375);
static_assert(derivative<5>([](auto x) { return 1 / x; })(2.0) == -1.875);
static_assert(derivative<3>([](auto) { return 5; })(2.0) == 0.0);
static_assert(derivative<4>([](auto x) { return floor(x) * x; })(2.5) == 0.0);

// A loop and a branch that look at values.
constexpr auto newton = [](auto x) {
    auto y = x;
    for (int i = 0; i < 40; ++i) y = 0.5 * (y + x / y);
    return y < 1 ? -y : y;
};

TEST_CASE("exact derivatives") {
    const double x = 0.7;
    const auto close = [](double got, double want) { CHECK(std::abs(got - want) <= 1e-13 * (1 + std::abs(want))); };
    close(derivative<5>([](auto v) { return exp(v); })(x), std::exp(x));
    close(derivative<5>([](auto v) { return exp(2 * v); })(x), 32 * std::exp(2 * x));
    close(derivative<5>([](auto v) { return sin(v); })(x), std::cos(x));
    close(derivative<6>([](auto v) { return cos(v); })(x), -std::cos(x));
    close(derivative<5>([](auto v) { return log(v); })(x), 24 / std::pow(x, 5));
    close(derivative<4>([](auto v) { return sqrt(v); })(x), -15.0 / 16 * std::pow(x, -3.5));
    close(derivative<3>([](auto v) { return pow(v, 4.5); })(x), 4.5 * 3.5 * 2.5 * std::pow(x, 1.5));
    close(derivative<3>([](auto v) { return pow(2.0, v); })(x), std::pow(std::log(2.0), 3) * std::pow(2.0, x));
    close(derivative<4>([](auto v) { return v * exp(v); })(x), (x + 4) * std::exp(x));
    // The loop's error is squared in each round, and its derivatives' with it.
    close(derivative<3>(newton)(4.0), 0.375 * std::pow(4.0, -2.5));
    close(derivative<3>(newton)(0.25), -0.375 * std::pow(0.25, -2.5));
}

/// f's derivatives of orders 3 to 5 at x by central differences of those one order below, which at order 2 are duals'.
/// The formula of four points has an error of h^4 / 30 times a derivative four orders higher, relative to rounding over h.
template <class F>
void compare(const std::string& name, F f, double x) {
    CAPTURE(name);
    CAPTURE(x);
    const double h = 1e-3;
    const auto difference = [&](const auto& g) {
        return (8 * (g(x + h) - g(x - h)) - (g(x + 2 * h) - g(x - 2 * h))) / (12 * h);
    };
    const auto check = [](double got, double want) { CHECK(std::abs(got - want) <= 1e-7 * (1 + std::abs(want))); };
    check(derivative<3>(f)(x), difference(derivative<2>(f)));
    check(derivative<4>(f)(x), difference(derivative<3>(f)));
    check(derivative<5>(f)(x), difference(derivative<4>(f)));
}
#define TG_COMPARE(formula, at)                                                                                        \
    compare(                                                                                                           \
        #formula, [](auto x) { return formula; }, at)

TEST_CASE("every elementwise function that has a third derivative") {
    for (double at : {0.45, 0.7}) {
        TG_COMPARE(exp(x), at);
        TG_COMPARE(exp2(x), at);
        TG_COMPARE(expm1(x), at);
        TG_COMPARE(log(x + 2), at);
        TG_COMPARE(log2(x + 2), at);
        TG_COMPARE(log10(x + 2), at);
        TG_COMPARE(log1p(x), at);
        TG_COMPARE(sqrt(x + 1), at);
        TG_COMPARE(rsqrt(x + 1), at);
        TG_COMPARE(cbrt(x + 1), at);
        TG_COMPARE(square(x) * x, at);
        TG_COMPARE(sin(x), at);
        TG_COMPARE(cos(x), at);
        TG_COMPARE(tan(x), at);
        TG_COMPARE(asin(0.5 * x), at);
        TG_COMPARE(acos(0.5 * x), at);
        TG_COMPARE(atan(x), at);
        TG_COMPARE(sinh(x), at);
        TG_COMPARE(cosh(x), at);
        TG_COMPARE(tanh(x), at);
        TG_COMPARE(asinh(x), at);
        TG_COMPARE(acosh(x + 2), at);
        TG_COMPARE(atanh(0.5 * x), at);
        TG_COMPARE(erf(x), at);
        TG_COMPARE(erfc(x), at);
        TG_COMPARE(sigmoid(x), at);
        TG_COMPARE(log_sigmoid(x), at);
        TG_COMPARE(softplus(x), at);
        TG_COMPARE(softsign(x), at);
        TG_COMPARE(silu(x), at);
        TG_COMPARE(gelu(x), at);
        TG_COMPARE(mish(x), at);
        TG_COMPARE(elu(-x), at);
        TG_COMPARE(selu(-x), at);
        TG_COMPARE(tg::pow<3>(sin(x)), at);
        TG_COMPARE(pow(x, 2.5), at);
        TG_COMPARE(pow(1.5, x), at);
        TG_COMPARE(pow(x, x), at);
        TG_COMPARE(atan2(x, 1 + x * x), at);
        TG_COMPARE(hypot(x, 1 + x), at);
        TG_COMPARE(exp(x) / (1 + x * x), at);
        TG_COMPARE(1 / (1 + x * x), at);
        TG_COMPARE((x + 1) / 3, at);
        TG_COMPARE(-x * (2 - sin(x)), at);
        TG_COMPARE(squared_difference(sin(x), x * x), at);
        TG_COMPARE(lerp(sin(x), x * x, exp(x)), at);
        TG_COMPARE(maximum(exp(x), 0.5 * x), at);
        TG_COMPARE(minimum(exp(x), 0.5 * sin(x)), at);
        TG_COMPARE(where(x > 0.5, exp(x), sin(x)), at);
        TG_COMPARE(relu(sin(x)) + abs(-exp(x)), at);
        TG_COMPARE(clip(exp(x), 0.0, 10.0), at);
    }
}
#undef TG_COMPARE

TEST_CASE("gradients with other code in between, and of functions that take gradients") {
    const auto f = [](auto x) { return exp(sin(x) * x) / (1 + tanh(x)); };
    for (double x : {-1.5, 0.3, 2.0}) {
        const double third = derivative<3>(f)(x);
        // Both are sums of some 100 products in another order.
        CHECK(hidden(hidden(hidden(f)))(x) == doctest::Approx(third).epsilon(1e-12));
        CHECK(tg::gradient(hidden(tg::gradient(f)))(x) == doctest::Approx(third).epsilon(1e-12));
        CHECK(hidden(hidden(hidden(hidden(f))))(x) == doctest::Approx(derivative<4>(f)(x)).epsilon(1e-12));
        // (x f''')' = f''' + x f''''
        const auto weighted = [f](auto v) { return v * derivative<3>(f)(v); };
        CHECK(tg::gradient(weighted)(x) == doctest::Approx(third + x * derivative<4>(f)(x)).epsilon(1e-12));
        // (x f')''' = 3 f''' + x f''''
        const auto inside = [f](auto v) { return v * tg::gradient(f)(v); };
        CHECK(derivative<3>(inside)(x) == doctest::Approx(3 * third + x * derivative<4>(f)(x)).epsilon(1e-12));
        // and d/dx of (f(x + y) at y = 1)''' where the inside sees the outer variable
        const auto shifted = [f](auto v) { return derivative<3>([f, v](auto w) { return f(v * w); })(1.0 + 0 * v); };
        const double h = 1e-4; // the error of differences is h^2 times a derivative below 1e4
        CHECK(tg::gradient(shifted)(x) == doctest::Approx((shifted(x + h) - shifted(x - h)) / (2 * h)).epsilon(1e-4));
    }
}

TEST_CASE("slopes that are infinite or no numbers") {
    const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
    CHECK(derivative<3>([](auto x) { return where(x > 0, log(x), 0); })(0.0) == 0);
    CHECK(derivative<3>([](auto x) { return where(x > 0, log(x), x * x * x); })(-1.0) == 6);
    CHECK(derivative<3>([](auto x) { return x * x * x + log(0.0 * stop_gradient(x)); })(1.0) == 6);
    CHECK(derivative<3>([](auto x) { return log(x); })(0.0) == inf);
    CHECK(derivative<4>([](auto x) { return log(x); })(0.0) == -inf);
    CHECK(derivative<3>([](auto x) { return x * x * x * stop_gradient(x); })(2.0) == 12);
    CHECK(std::isnan(derivative<3>([](auto x) { return sin(x); })(inf)));
    CHECK(std::isnan(derivative<4>([](auto x) { return x * x; })(nan) - nan));
}

} // namespace series_test
