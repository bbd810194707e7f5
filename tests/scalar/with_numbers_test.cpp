#include <support/messages.hpp>

#include <tapegraph/number_tensor.hpp>
#include <tapegraph/tensor.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <tuple>
#include <vector>

/// Functions of numbers in code of tensors, with differences, and with the same functions of numbers alone.

namespace with_numbers_test {

namespace tg = tapegraph;
using support::contains;
using support::message_of;

tg::tensor<double> matrix(std::int64_t rows, std::int64_t columns, double phase) {
    auto t = tg::tensor<double>::uninitialized({rows, columns});
    double* to = t.mutable_data();
    for (std::int64_t i = 0; i < rows * columns; ++i) to[i] = std::sin(1.7 * static_cast<double>(i) + phase);
    return t;
}
// Sums of products in another order, of at most 17 numbers below 10, then a few operations.
constexpr double rounding = 1e-12;

template <class X, class Y>
void check_near(const X& x, const Y& y) {
    REQUIRE(x.size() == y.size());
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(x[i] == doctest::Approx(y[i]).epsilon(rounding).scale(10));
}

// Numbers in code of tensors: a chain of steps with a branch.
const auto chain = [](const auto& x, const auto& p) {
    auto y = x;
    for (std::size_t i = 1; i < y.size(); ++i) {
        if (y[i - 1] > 0.2)
            y[i] = y[i] * sin(y[i - 1]) * p[0];
        else
            y[i] = y[i] + p[1] * y[i - 1] * y[i - 1];
    }
    return y;
};
double chained(const tg::tensor<double>& x, const tg::tensor<double>& p, const tg::tensor<double>& weights) {
    const auto y = chain(tg::number_tensor(x), tg::number_tensor(p));
    double loss = 0;
    for (std::size_t i = 0; i < y.size(); ++i) loss += weights.data()[i] * y[i] * y[i];
    return loss;
}

TEST_CASE("with_numbers: loops of numbers amid tensors, first and second derivatives") {
    const tg::tensor<double> x = matrix(2, 3, 0.7), p{1.3, 0.6}, weights = matrix(2, 3, 5), s = matrix(2, 3, 3),
                             t{0.2, -1};
    const auto f = [&](const auto& a, const auto& b) {
        const auto y = tg::with_numbers(chain)(a * 1.0, b);
        return sum(weights * y * y);
    };
    CHECK(f(x, p).item() == doctest::Approx(chained(x, p, weights)).epsilon(rounding));
    const auto [dx, dp] = tg::gradient(f)(x, p);
    const double tangent = tg::jvp(f)(x, p, s, t).tangent.item();
    const auto curvature = tg::hvp(f)(x, p, s, t).product;
    // Central differences of step h: errors of h^2 = 1e-10 and of 1e-16 / h = 1e-11.
    constexpr double h = 1e-5, tolerance = 1e-8;
    const auto moved = [&](const tg::tensor<double>& at, const tg::tensor<double>& along, double by) {
        return tg::tensor<double>(at + by * along);
    };
    CHECK(tangent == doctest::Approx((chained(moved(x, s, h), moved(p, t, h), weights) -
                                      chained(moved(x, s, -h), moved(p, t, -h), weights)) /
                                     (2 * h))
                         .epsilon(tolerance));
    for (std::int64_t i = 0; i < x.size(); ++i) {
        auto one = tg::zeros<double>({2, 3});
        one.mutable_data()[i] = 1;
        CHECK(
            dx.data()[i] ==
            doctest::Approx((chained(moved(x, one, h), p, weights) - chained(moved(x, one, -h), p, weights)) / (2 * h))
                .epsilon(tolerance)
                .scale(1));
    }
    for (std::int64_t i = 0; i < 2; ++i) {
        auto one = tg::zeros<double>({2});
        one.mutable_data()[i] = 1;
        CHECK(
            dp.data()[i] ==
            doctest::Approx((chained(x, moved(p, one, h), weights) - chained(x, moved(p, one, -h), weights)) / (2 * h))
                .epsilon(tolerance)
                .scale(1));
    }
    const auto [up_x, up_p] = tg::gradient(f)(moved(x, s, h), moved(p, t, h));
    const auto [down_x, down_p] = tg::gradient(f)(moved(x, s, -h), moved(p, t, -h));
    for (std::int64_t i = 0; i < x.size(); ++i)
        CHECK(std::get<0>(curvature).data()[i] ==
              doctest::Approx((up_x.data()[i] - down_x.data()[i]) / (2 * h)).epsilon(tolerance).scale(1));
    for (std::int64_t i = 0; i < 2; ++i)
        CHECK(std::get<1>(curvature).data()[i] ==
              doctest::Approx((up_p.data()[i] - down_p.data()[i]) / (2 * h)).epsilon(tolerance).scale(1));
    // Reverse over reverse, on tapes of tensors
    {
        tg::tensor<double> a = x, b = p;
        tg::gradient_tape outer;
        outer.watch(a, b);
        tg::tensor<double> inner_slope;
        {
            tg::gradient_tape inner;
            inner.watch(a, b);
            const auto [da, db] = inner.gradient(f(a, b), a, b);
            inner_slope = sum(da * s) + sum(db * t);
        }
        const auto [ha, hb] = outer.gradient(inner_slope, a, b);
        for (std::int64_t i = 0; i < x.size(); ++i)
            CHECK(ha.data()[i] == doctest::Approx(std::get<0>(curvature).data()[i]).epsilon(rounding).scale(1));
        for (std::int64_t i = 0; i < 2; ++i)
            CHECK(hb.data()[i] == doctest::Approx(std::get<1>(curvature).data()[i]).epsilon(rounding).scale(1));
    }
    const auto third = tg::hessian(tg::gradient([&](const auto& a) { return f(a, p); }));
    CHECK(contains(message_of([&] { (void)third(x); }), "with_numbers: third derivatives"));
}

TEST_CASE("with_numbers: a number of one tensor, and errors") {
    const auto f = [](const auto& v) { return tg::with_numbers([](const auto& x) { return x[0] * x[1]; })(v) * 2; };
    const tg::tensor<float> x{3, 5}, dx = tg::gradient(f)(x);
    CHECK(tg::eval(f(x)).rank() == 0);
    CHECK(tg::eval(f(x)).item() == 30.0f);
    CHECK(dx.to_vector() == std::vector<float>{10, 6});
    CHECK(tg::jacobian(f)(x).to_vector() == std::vector<float>{10, 6});
    CHECK(tg::hessian(f)(x).to_vector() == std::vector<float>{0, 2, 2, 0});
    const auto throwing = tg::with_numbers([](const auto& v) {
        if (v.size() > 1) throw std::runtime_error("too many");
        return v[0];
    });
    CHECK_THROWS_WITH_AS((void)throwing(x), "too many", std::runtime_error);
}

TEST_CASE("both: numbers in tensors in numbers") {
    const auto inner = tg::with_numbers([](const auto& x) { return x[0] * x[1] + sin(x[1]); });
    const auto f = [&](const auto& v) {
        const auto y = tg::with_tensors([&](const auto& t) { return inner(t * t) + sum(t); })(v);
        return y.item() * v[0];
    };
    const auto g = [](const auto& v) {
        const auto a = v[0] * v[0], b = v[1] * v[1];
        return (a * b + sin(b) + v[0] + v[1]) * v[0];
    };
    const std::vector<double> x{0.7, 1.2}, v{1, -2};
    check_near(tg::gradient(f)(x), tg::gradient(g)(x));
    check_near(tg::hvp(f)(x, v).product, tg::hvp(g)(x, v).product);
    CHECK(tg::jvp(f)(x, v).tangent == doctest::Approx(tg::jvp(g)(x, v).tangent).epsilon(rounding));
}

} // namespace with_numbers_test
