#include <tapegraph/expr/differentiate.hpp>
#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

/// Elementwise functions of plain numbers: values, first and second derivatives by the compiler, and the same bits when
/// the program runs.

namespace tg = tapegraph;

namespace {

// Twice the rounding of a double: what a handful of operations and functions of 1 to 2 ulp may add up to.
constexpr bool near(double a, double b, double ulps = 8) {
    const double scale = b < 0 ? -b : b;
    return (a > b ? a - b : b - a) <= ulps * 0x1p-53 * (scale > 0 ? scale : 1);
}

#define FIRST(x, formula) tg::gradient([](auto v) { return formula; })(x)
#define SECOND(x, formula) tg::gradient(tg::gradient([](auto v) { return formula; }))(x)

// Values. The references are rounded from more digits.
static_assert(near(tg::exp(1.0), 2.718281828459045235) && near(tg::log(3.0), 1.098612288668109691));
static_assert(tg::exp2(10.0) == 1024 && tg::log2(8.0) == 3 && near(tg::log10(1000.0), 3));
static_assert(near(tg::sin(1.0), 0.841470984807896507) && near(tg::tan(1.0), 1.557407724654902231));
static_assert(near(tg::asin(0.5), 0.523598775598298873) && near(tg::acos(-0.5), 2.094395102393195492));
static_assert(near(tg::atan2(1.0, -1.0), 2.356194490192344929) && tg::hypot(3.0, 4.0) == 5);
static_assert(near(tg::sinh(1.0), 1.175201193643801457) && near(tg::asinh(1.0), 0.881373587019543025));
static_assert(near(tg::acosh(2.0), 1.316957896924816709) && near(tg::atanh(0.5), 0.549306144334054846));
static_assert(near(tg::erf(1.0), 0.842700792949714869) && near(tg::erfc(2.0), 0.004677734981047266));
static_assert(tg::sqrt(9) == 3 && tg::cbrt(27.0) == 3 && tg::pow(2.0, 10) == 1024 && tg::pow<3>(2) == 8);
static_assert(near(tg::gelu(1.0), 0.841344746068542949) && near(tg::swish(1.0), 0.731058578630004879));
static_assert(near(tg::mish(1.0), 0.865098388267310346) && near(tg::elu(-1.0), -0.632120558828557678));
static_assert(tg::relu6(7.0) == 6 && tg::hard_swish(3.0) == 3 && tg::hard_sigmoid(0.0) == 0.5 &&
              tg::clip(5, 0, 3) == 3);
static_assert(near(tg::log_sigmoid(-1000.0), -1000) && near(tg::softplus(0.0), 0.693147180559945309));
static_assert(tg::floor(-0.5) == -1 && tg::round(2.5) == 2 && tg::trunc(-1.5f) == -1 && tg::ceil(3) == 3);
static_assert(tg::remainder(-7, 3) == 2 && tg::floor_divide(-7, 3) == -3 && tg::remainder(-7.5, 2.0) == 0.5);
static_assert(tg::remainder(1e300, 7.0) == 1.0 && tg::floor_divide(7.0, 2.0) == 3); // exact for any quotient
static_assert(tg::divide(5, 0) == 0 && tg::remainder(5, 0) == 0 && tg::floor_divide(5, 0) == 0);
static_assert(tg::less(1, 2) && tg::logical_xor(true, false) && !tg::is_nan(1.0) && tg::is_finite(3));
static_assert(!tg::isnan(1.0) && tg::isinf(std::numeric_limits<double>::infinity()) && tg::isfinite(3));
static_assert(std::is_same_v<decltype(tg::exp(1.0f)), float> && std::is_same_v<decltype(tg::exp(1)), double>);
static_assert(std::is_same_v<decltype(tg::maximum(1, 2)), int>);

// First and second derivatives.
static_assert(near(FIRST(1.0, exp(v)), 2.718281828459045235) && near(SECOND(1.0, exp(v)), 2.718281828459045235));
static_assert(FIRST(4.0, log(v)) == 0.25 && SECOND(4.0, log(v)) == -0.0625);
static_assert(near(SECOND(1.0, cos(v)), -0.540302305868139717));
static_assert(near(FIRST(0.5, tanh(v)), 0.786447732965927410) && near(SECOND(0.5, tanh(v)), -0.726861981383587276));
static_assert(FIRST(4.0, sqrt(v)) == 0.25 && SECOND(4.0, sqrt(v)) == -1.0 / 32);
static_assert(FIRST(2.0, pow(v, 3.0)) == 12 && SECOND(2.0, pow(v, 3.0)) == 12);
static_assert(FIRST(2.0, tg::pow<4>(v)) == 32 && SECOND(2.0, tg::pow<4>(v)) == 48 &&
              SECOND(2.0, tg::pow<-1>(v)) == 0.25);
static_assert(near(FIRST(0.0, erf(v)), 1.128379167095512574) && SECOND(0.0, erf(v)) == 0);
static_assert(FIRST(1.0, atan(v)) == 0.5 && SECOND(1.0, atan(v)) == -0.5);
static_assert(near(FIRST(0.5, atanh(v)), 4.0 / 3) && near(SECOND(0.5, atanh(v)), 16.0 / 9));
static_assert(near(FIRST(1e-9, log1p(v)), 1 - 1e-9) && near(FIRST(1e-9, atanh(v)), 1));
static_assert(near(FIRST(1.0, sigmoid(v)), 0.196611933241481852) &&
              near(SECOND(1.0, sigmoid(v)), -0.090857747672948409));
static_assert(near(FIRST(0.0, gelu(v)), 0.5) && near(SECOND(0.0, gelu(v)), 0.797884560802865356));
static_assert(near(FIRST(1.0, swish(v)), 0.927670511871486731) && near(FIRST(1.0, mish(v)), 1.049036220099792159, 16));
static_assert(FIRST(3.0, remainder(v, 2.0)) == 1 && FIRST(2.5, floor(v)) == 0 && FIRST(-2.0, sign(v)) == 0);
static_assert(tg::gradient([](auto x, auto y) { return x * x * y - 3 * y + 1; })(2.0, 3.0) == std::array{12.0, 1.0});

// Both branches of a condition exist for scalars, too; only the chosen one counts, though the other is not a number.
constexpr auto root_or_line = [](auto v) { return where(v > 0, v * 2, 1 - v); };
static_assert(tg::gradient(root_or_line)(-1.0) == -1 && tg::gradient(root_or_line)(1.0) == 2);

} // namespace

TEST_CASE("scalars: the arm of where that is not taken contributes nothing") {
    const auto f = [](auto x, auto y) { return where(x > 0, sqrt(x) * y, y * y); };
    const auto g = tg::gradient(f)(0.0, 3.0);
    CHECK(g[0] == 0);
    CHECK(g[1] == 6);
    // A constant's own derivative is never asked for: log of a negative base would be NaN.
    CHECK(tg::gradient([](auto x) { return pow(x, 3); })(-2.0) == 12);
    CHECK(tg::gradient([](auto x, auto y) { return pow(x, 2) + y; })(-2.0, 1.0)[0] == -4);
}

TEST_CASE("scalars: derivatives at infinities and kinks") {
    constexpr double inf = std::numeric_limits<double>::infinity();
    for (const double x : {inf, -inf, 1e300, -1e300, 1000.0, -1000.0}) {
        CAPTURE(x);
        const double step = x > 0;
        CHECK(tg::gradient([](auto v) { return gelu(v); })(x) == step);
        CHECK(tg::gradient([](auto v) { return gelu(v, tg::approximate); })(x) == step);
        CHECK(tg::gradient([](auto v) { return swish(v); })(x) == step);
        CHECK(tg::gradient([](auto v) { return mish(v); })(x) == step);
        CHECK(tg::gradient([](auto v) { return hard_swish(v); })(x) == step);
        CHECK(tg::gradient([](auto v) { return elu(v); })(x) == step);
        CHECK(tg::gradient([](auto v) { return softplus(v); })(x) == step);
        CHECK(tg::gradient([](auto v) { return log_sigmoid(v); })(x) == 1 - step);
        CHECK(tg::gradient([](auto v) { return tanh(v); })(x) == 0);
        CHECK(tg::gradient([](auto v) { return atan(v); })(x) <= 1e-6);
        CHECK(tg::gradient([](auto v) { return softsign(v); })(x) <= 1e-6);
        CHECK(tg::gradient([](auto v) { return asinh(v); })(x) >= 0);
    }
    CHECK(tg::gradient([](auto v) { return asinh(v); })(1e200) * 1e200 == doctest::Approx(1));
    CHECK(tg::gradient([](auto v) { return asin(v); })(1.0) == inf);
    CHECK(tg::gradient([](auto v) { return acos(v); })(-1.0) == -inf);
    CHECK(tg::gradient([](auto v) { return atanh(v); })(1.0) == inf);
    CHECK(tg::gradient([](auto v) { return acosh(v); })(1.0) == inf);
    CHECK(tg::gradient([](auto v) { return sqrt(v); })(0.0) == inf);
    CHECK(tg::gradient([](auto v) { return cbrt(v); })(0.0) == inf);
    CHECK(tg::gradient([](auto v) { return reciprocal(v); })(0.0) == -inf);
    CHECK(tg::gradient([](auto x, auto y) { return hypot(x, y); })(0.0, 0.0) == std::array{0.0, 0.0});
    CHECK(tg::gradient([](auto y, auto x) { return atan2(y, x); })(0.0, 0.0) == std::array{0.0, 0.0});
    CHECK(tg::gradient([](auto v) { return leaky_relu(v, 0.25); })(0.0) == 0.25);
    CHECK(tg::gradient([](auto v) { return elu(v, 0.5); })(0.0) == 0.5);
    CHECK(tg::gradient([](auto v) { return relu6(v); })(6.0) == 0);
    CHECK(tg::gradient([](auto v) { return clip(v, 0, 1); })(1.0) == 1);
    CHECK(tg::gradient([](auto v) { return clip(v, 0, 1); })(2.0) == 0);
    CHECK(tg::gradient([](auto v) { return maximum(v, 1); })(0.0) == 0);
}

TEST_CASE("scalars: run time gives the bits of constant evaluation, gradients included") {
    constexpr auto f = [](auto x, auto y) {
        return tanh(x * y + exp(-square(x))) * sin(x) + gelu(y) / (1 + square(x)) + pow(x, y) + log1p(x * x * y);
    };
    constexpr auto compiled = tg::value_and_gradient(f)(0.7, 1.3);
    volatile double a = 0.7, b = 1.3;
    const auto running = tg::value_and_gradient(f)(+a, +b);
    CHECK(compiled.value == running.value);
    CHECK(compiled.gradient == running.gradient);
    constexpr auto curved = [](auto x) { return tg::gradient([](auto v) { return erfc(v) * softplus(v); })(x); };
    constexpr double second = tg::gradient(curved)(0.4);
    volatile double c = 0.4;
    CHECK(second == tg::gradient(curved)(+c));
}

TEST_CASE("scalars: directions are shared, joined and chosen between by the chain rule") {
    // Operands of one direction, of two, constants between them, and an assignment that forgets one.
    const auto f = [](auto x, auto y) {
        auto s = x * x;     // one direction
        s = s * s + 3 * s;  // still one
        auto t = s * y - s; // two
        t *= t;
        auto unused = t;
        unused = 1;
        return t * unused + y - y;
    };
    const double x = 0.8, y = 1.7, s = x * x * x * x + 3 * x * x, ds = 4 * x * x * x + 6 * x, t = s * (y - 1);
    const auto r = tg::value_and_gradient(f)(x, y);
    CHECK(r.value == doctest::Approx(t * t).epsilon(1e-14));
    CHECK(r.gradient[0] == doctest::Approx(2 * t * ds * (y - 1)).epsilon(1e-14));
    CHECK(r.gradient[1] == doctest::Approx(2 * t * s).epsilon(1e-14));
    // A loop whose length is not known, with a value that starts as a constant.
    for (int n = 0; n < 5; ++n) {
        const auto g = [n](auto u, auto v) {
            decltype(u) total = 1;
            for (int i = 0; i < n; ++i) total = total * u + v;
            return total;
        };
        const double h = 1e-6;
        const auto at = [&](double u, double v) { return tg::value_and_gradient(g)(u, v); };
        CHECK(at(0.9, 0.4).gradient[0] ==
              doctest::Approx((at(0.9 + h, 0.4).value - at(0.9 - h, 0.4).value) / (2 * h)).epsilon(1e-8));
        CHECK(at(0.9, 0.4).gradient[1] ==
              doctest::Approx((at(0.9, 0.4 + h).value - at(0.9, 0.4 - h).value) / (2 * h)).epsilon(1e-8));
    }
}
