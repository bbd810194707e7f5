#include <support/messages.hpp>

#include <tapegraph/real.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <numbers>
#include <span>
#include <tuple>
#include <vector>

/// gradient, jacobian, hessian, vjp, jvp and hvp of functions of vectors, arrays and spans of numbers, with formulas.

namespace transforms_test {

namespace tg = tapegraph;
using support::contains;
using support::message_of;
using vector = std::vector<double>;

// sum over i of 100 (x[i+1] - x[i]^2)^2 + (1 - x[i])^2
constexpr auto rosenbrock = [](const auto& x) {
    std::remove_cvref_t<decltype(x[0])> sum = 0;
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
        const auto b = x[i + 1] - x[i] * x[i];
        sum += 100 * b * b + (1 - x[i]) * (1 - x[i]);
    }
    return sum;
};
vector rosenbrock_gradient(const vector& x) {
    vector g(x.size());
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
        const double b = x[i + 1] - x[i] * x[i];
        g[i] += -400 * b * x[i] - 2 * (1 - x[i]);
        g[i + 1] += 200 * b;
    }
    return g;
}
std::vector<vector> rosenbrock_hessian(const vector& x) {
    std::vector<vector> h(x.size(), vector(x.size()));
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
        h[i][i] += 1200 * x[i] * x[i] - 400 * x[i + 1] + 2;
        h[i + 1][i + 1] += 200;
        h[i][i + 1] = h[i + 1][i] = -400 * x[i];
    }
    return h;
}
void near(const vector& a, const vector& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-12));
}
vector at(std::size_t n) {
    vector x;
    for (std::size_t i = 0; i < n; ++i) x.push_back(std::sin(1.0 + static_cast<double>(i * i)));
    return x;
}

TEST_CASE("gradient of a function of a vector, of one number to many") {
    for (std::size_t n : {1, 2, 3, 9, 50}) {
        const vector x = at(n);
        const auto r = tg::value_and_gradient(rosenbrock)(x);
        CHECK(r.value == rosenbrock(x));
        near(r.gradient, rosenbrock_gradient(x));
        near(tg::gradient(rosenbrock)(std::span<const double>(x)), rosenbrock_gradient(x));
    }
    const std::array<double, 3> a{0.3, -0.2, 0.7};
    const std::array<double, 3> g = tg::gradient(rosenbrock)(a);
    near({g.begin(), g.end()}, rosenbrock_gradient({0.3, -0.2, 0.7}));
    CHECK(tg::gradient([](const auto&) { return 1.0; })(vector{1, 2}) == vector{0, 0}); // a constant
    CHECK(tg::gradient([](const auto& x) { return x[0] * x[1]; })(std::vector<float>{2, 3}) ==
          std::vector<float>{3, 2});
    CHECK(tg::gradient(rosenbrock)(vector{}).empty());
}

TEST_CASE("gradient of a function of several arguments") {
    const auto f = [](const auto& x, const auto& w, const auto& scale) {
        std::remove_cvref_t<decltype(x[0])> sum = 0;
        for (std::size_t i = 0; i < x.size(); ++i) sum += w[i] * x[i];
        return scale * tanh(sum);
    };
    const vector x{0.5, -1};
    const std::array<double, 2> w{2, 0.25};
    const auto [dx, dw, ds] = tg::gradient(f)(x, w, 3.0);
    const double t = std::tanh(0.75), slope = 3 * (1 - t * t);
    near(dx, {2 * slope, 0.25 * slope});
    CHECK(dw[1] == doctest::Approx(-slope));
    CHECK(ds == doctest::Approx(t));
}

TEST_CASE("hessian, and products with it") {
    for (std::size_t n : {1, 2, 9, 20}) {
        const vector x = at(n);
        const auto h = tg::hessian(rosenbrock)(x);
        const auto expected = rosenbrock_hessian(x);
        REQUIRE(h.size() == n);
        for (std::size_t i = 0; i < n; ++i) near(h[i], expected[i]);
        vector v, product;
        for (std::size_t i = 0; i < n; ++i) v.push_back(0.1 * static_cast<double>(i) - 0.3);
        for (std::size_t i = 0; i < n; ++i) {
            product.push_back(0);
            for (std::size_t k = 0; k < n; ++k) product[i] += expected[i][k] * v[k];
        }
        const auto r = tg::hvp(rosenbrock)(x, v);
        CHECK(r.value == rosenbrock(x));
        near(r.gradient, rosenbrock_gradient(x));
        near(r.product, product);
    }
    const auto h = tg::hessian([](const auto& x) { return x[0] * x[0] * x[1]; })(std::array<double, 2>{3, 5});
    CHECK(h == std::array<std::array<double, 2>, 2>{std::array<double, 2>{10, 6}, std::array<double, 2>{6, 0}});
}

// m results of n numbers: y[j] = sum_i sin(a_ij x[i])
struct mixed {
    std::size_t results;
    template <class X>
    auto operator()(const X& x) const {
        using number = std::remove_cvref_t<decltype(x[0])>;
        std::vector<number> y(results, number(0));
        for (std::size_t j = 0; j < results; ++j)
            for (std::size_t i = 0; i < x.size(); ++i)
                y[j] += sin((0.3 + 0.1 * static_cast<double>(i) - 0.2 * static_cast<double>(j)) * x[i]);
        return y;
    }
    double slope(std::size_t j, std::size_t i, double x) const {
        const double a = 0.3 + 0.1 * static_cast<double>(i) - 0.2 * static_cast<double>(j);
        return a * std::cos(a * x);
    }
};

TEST_CASE("jacobian by jets and by lanes; vjp and jvp") {
    for (std::size_t m : {0, 1, 3, 8, 9, 20})
        for (std::size_t n : {1, 7, 8, 17, 200}) {
            const mixed f{m};
            const vector x = at(n);
            std::vector<vector> expected(m, vector(n));
            for (std::size_t j = 0; j < m; ++j)
                for (std::size_t i = 0; i < n; ++i) expected[j][i] = f.slope(j, i, x[i]);
            for (const auto& jacobian : {tg::jacobian(f)(x), tg::jacobian_forward(f)(x), tg::jacobian_reverse(f)(x)}) {
                REQUIRE(jacobian.size() == m);
                for (std::size_t j = 0; j < m; ++j) near(jacobian[j], expected[j]);
            }
            const vector u = at(m), t = at(n);
            vector pulled(n), pushed(m);
            for (std::size_t j = 0; j < m; ++j)
                for (std::size_t i = 0; i < n; ++i)
                    pulled[i] += u[j] * expected[j][i], pushed[j] += expected[j][i] * t[i];
            const auto r = tg::vjp(f)(u, x);
            near(r.value, f(x));
            near(r.gradient, pulled);
            const auto s = tg::jvp(f)(x, t);
            near(s.value, f(x));
            near(s.tangent, pushed);
        }
    CHECK(contains(message_of([] {
                       (void)tg::vjp(mixed{3})(vector{1, 2}, vector{1});
                   }),
                   "vjp: a cotangent of 2 numbers, expected 3"));
    CHECK(contains(message_of([] {
                       (void)tg::jvp(mixed{3})(vector{1, 2}, vector{1});
                   }),
                   "jvp: directions of 1 numbers, expected 2"));
}

TEST_CASE("results of several parts") {
    const auto f = [](const auto& x) { return std::tuple{x[0] * x[1], std::array{exp(x[0]) * 1.0, x[1] * x[1]}}; };
    const vector x{0.5, 2};
    const auto [value, tangent] = std::pair{tg::jvp(f)(x, vector{1, 10}).value, tg::jvp(f)(x, vector{1, 10}).tangent};
    CHECK(std::get<0>(value) == 1);
    CHECK(std::get<0>(tangent) == 7);
    CHECK(std::get<1>(tangent)[1] == 40);
}

TEST_CASE("jet: values, derivatives, kinks") {
    using jet = tg::jet<double, 2>;
    const jet x(0.7, 0), y(1.9, 1);
    const jet z = pow(x, y) * sin(x) / (y + 1) - fmod(y, 0.6) + hypot(x, y) + lgamma(y);
    const auto f = [](long double a, long double b) {
        return std::pow(a, b) * std::sin(a) / (b + 1) - std::fmod(b, 0.6L) + std::hypot(a, b) + std::lgamma(b);
    };
    const long double h = 1e-6L;
    CHECK(z.value == doctest::Approx(static_cast<double>(f(0.7, 1.9))));
    CHECK(z.derivative[0] == doctest::Approx(static_cast<double>((f(0.7 + h, 1.9) - f(0.7 - h, 1.9)) / (2 * h))));
    CHECK(z.derivative[1] == doctest::Approx(static_cast<double>((f(0.7, 1.9 + h) - f(0.7, 1.9 - h)) / (2 * h))));
    const jet zero(0.0, 0);
    CHECK(sqrt(zero).derivative[0] == std::numeric_limits<double>::infinity());
    CHECK(sqrt(zero).derivative[1] == 0); // not infinity times 0
    CHECK(sqrt(zero * zero + 1.0).derivative[0] == 0);
    CHECK((x > y || x == 0.7));
    CHECK(where(x < y, x, sqrt(zero)).derivative[0] == 1);
    CHECK(floor(x).derivative[0] == 0);
    CHECK(isfinite(x));
    CHECK(max(x, y).derivative[1] == 1);
    static_assert(jet(3.0, 0).derivative[0] == 1 && (jet(3.0, 0) * jet(2.0, 1)).derivative[1] == 3);
    jet counted = x;
    counted++, ++counted, counted *= 2, counted -= x;
    CHECK(counted.value == doctest::Approx(4.7));
    CHECK(counted.derivative[0] == 1);
}

TEST_CASE("jet: jets of jets") {
    using first = tg::jet<double, 1>;
    using second = tg::jet<first, 1>;
    using third = tg::jet<second, 1>;
    const third x(second(first(0.4, 0), 0), 0);
    const third y = exp(sin(x)) * x;
    // d3 of exp(sin x) x, from its Taylor series
    const double s = std::sin(0.4), c = std::cos(0.4), e = std::exp(s);
    const double d2 = e * (c * c - s), d3 = e * (c * c * c - 3 * s * c - c);
    CHECK(y.derivative[0].derivative[0].derivative[0] == doctest::Approx(d3 * 0.4 + 3 * d2).epsilon(1e-13));
}

TEST_CASE("in the middle of a recording a gradient is by a tape of its own") {
    tg::real_tape<> tape;
    tg::real<> x = 2;
    tape.watch(x);
    const double inner = tg::gradient(rosenbrock)(vector{x.value(), 1})[0];
    CHECK(tape.gradient(x * inner, x) == inner);
}

} // namespace transforms_test
