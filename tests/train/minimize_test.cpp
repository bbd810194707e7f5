#include <support/messages.hpp>

#include <tapegraph/compile/instance.hpp>
#include <tapegraph/tapegraph.hpp>
#include <tapegraph/train/minimize.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

/// minimize over tensors and over a model's variables.

namespace minimize_test {

namespace tg = tapegraph;
using support::contains;
using support::message_of;

// (x - a)' (x - a) + (sum x)^4 / 4, of a matrix.
constexpr auto bowl = [](const auto& x) {
    const auto s = tg::eval(sum(x));
    return tg::eval(sum(square(x - 1)) + square(square(s)) / 4);
};

TEST_CASE("minimize: a function of a tensor, by every way to its gradient") {
    const tg::tensor<double> start{{3, -2}, {0.5, 1}};
    const auto eager = tg::minimize(bowl, start);
    CAPTURE(eager.message());
    CHECK(eager.reason == tg::stop_reason::gradient);
    CHECK(eager.x.shape() == start.shape());
    // All elements are equal to z with 2 (z - 1) + (4 z)^3 = 0.
    double z = 0.1;
    for (int i = 0; i < 50; ++i) z -= (2 * (z - 1) + 64 * z * z * z) / (2 + 192 * z * z);
    for (const double each : eager.x.values()) CHECK(each == doctest::Approx(z).epsilon(1e-8));
    CHECK(eager.value == doctest::Approx(4 * (z - 1) * (z - 1) + 64 * z * z * z * z).epsilon(1e-12));

    auto compiled = tg::function<tg::graph>(tg::value_and_gradient(bowl), tg::spec<double, 2, 2>{});
    const auto graph = tg::minimize(compiled, start);
    CHECK(graph.evaluations == eager.evaluations);
    for (int i = 0; i < 4; ++i) CHECK(graph.x.data()[i] == doctest::Approx(z).epsilon(1e-8));

    const auto newton = tg::minimize(bowl, start, tg::newton_cg{});
    CHECK(newton.converged());
    CHECK(newton.x(1, 1) == doctest::Approx(z).epsilon(1e-8));
    CHECK(newton.iterations < 12);
    const auto bounded = tg::minimize(bowl, start, tg::lbfgs{}, {.lower = {0.5}});
    for (const double each : bounded.x.values()) CHECK(each == 0.5);
}

TEST_CASE("minimize: residuals that are the elements of a tensor") {
    const auto line = [](const auto& p) { // a + b t through (0, 1), (1, 3), (2, 4)
        return tg::eval(matmul(tg::tensor<double>{{1, 0}, {1, 1}, {1, 2}}, p) - tg::tensor<double>{1, 3, 4});
    };
    const auto r = tg::minimize(line, tg::tensor<double>{0, 0}, tg::gauss_newton{});
    CHECK(r.x(0) == doctest::Approx(7.0 / 6).epsilon(1e-12));
    CHECK(r.x(1) == doctest::Approx(1.5).epsilon(1e-12));
    CHECK(r.value == doctest::Approx(1.0 / 12).epsilon(1e-12)); // half of 1/6
    const auto damped = tg::minimize(line, tg::tensor<double>{0, 0}, tg::levenberg_marquardt{});
    CHECK(damped.x(1) == doctest::Approx(1.5).epsilon(1e-7));
}

TEST_CASE("minimize: a function of a tensor that gives no scalar, or is not finite") {
    const tg::tensor<double> start{1, 2};
    CHECK(contains(
        message_of<tg::shape_error>([&] { (void)tg::minimize([](const auto& x) { return tg::eval(x * x); }, start); }),
        "must give a scalar, it gave shape [2]"));
    CHECK(contains(message_of<tg::argument_error>([&] { (void)tg::minimize(bowl, tg::tensor<double>{}); }),
                   "the start has no numbers"));
    CHECK(contains(message_of<tg::numeric_error>(
                       [&] { (void)tg::minimize([](const auto& x) { return tg::eval(sum(log(x - 5))); }, start); }),
                   "value at the start"));
}

struct curve {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = tanh(tg::dense(scope / "hidden", x, {.units = 6}));
        return tg::dense(scope / "out", h, {.units = 1});
    }
};

TEST_CASE("minimize: a model's variables on all data, in graph mode and by a scalar in eager mode") {
    auto x = tg::tensor<double>::uninitialized({20, 1}), y = tg::tensor<double>::uninitialized({20, 1});
    for (int i = 0; i < 20; ++i) {
        x.set(0.2 * i - 2, i, 0);
        y.set(std::sin(1.5 * (0.2 * i - 2)), i, 0);
    }
    auto model = tg::compile<tg::graph>(curve{}, tg::spec<double, tg::dyn, 1>{}, tg::mean_squared_error{}, tg::sgd{});
    const double before = model.gradients(x, y).loss;
    std::vector<double> losses;
    const auto r = tg::minimize([&] { return model.gradients(x, y); }, model.variables(), tg::lbfgs{.history = 20},
                                {.gradient_tolerance = 1e-6, .stop_when = [&](const tg::minimization_progress& now) {
                                     losses.push_back(now.value);
                                     return false;
                                 }});
    CAPTURE(r.message());
    CHECK(r.value < 1e-4 * before);
    CHECK(model.gradients(x, y).loss == r.value); // the variables are those of the result
    REQUIRE(r.x.size() == 6 + 6 + 6 + 1);
    CHECK(r.x[0] == model.variables()["hidden/kernel"].value<double>().data()[0]);
    REQUIRE(losses.size() == static_cast<std::size_t>(r.iterations));
    for (std::size_t i = 1; i < losses.size(); ++i) CHECK(losses[i] <= losses[i - 1] * (1 + 1e-12));

    auto net = tg::instance(curve{}, tg::spec<double, tg::dyn, 1>{});
    net.variables().set_trainable("out/bias", false);
    const auto bias = net.variables()["out/bias"].value<double>();
    const auto loss = [&] { return mean(square(net(x) - y)); };
    const auto e = tg::minimize(loss, net.variables(), tg::lbfgs{}, {.max_iterations = 100});
    CHECK(e.x.size() == 18);
    CHECK(e.value < 1e-2 * before);
    CHECK(tg::eval(loss()).item() == doctest::Approx(e.value).epsilon(1e-14));
    CHECK(net.variables()["out/bias"].value<double>().item() == bias.item());
}

} // namespace minimize_test
