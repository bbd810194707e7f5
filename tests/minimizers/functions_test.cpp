#include <support/messages.hpp>

#include <tapegraph/minimize.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// The forms of functions and starts, options, callbacks, results, and functions that are difficult or wrong.

namespace functions_test {

namespace tg = tapegraph;
using vector = std::vector<double>;
using support::contains;
template <class X>
using numbers = std::vector<std::remove_cvref_t<decltype(std::declval<const X&>()[0])>>;
using support::message_of;

// x0^2 + 10 (x1 - 1)^4 + x0 x1, by numbers of any type.
constexpr auto bowl = [](const auto& x) {
    const auto b = x[1] - 1;
    return x[0] * x[0] + 10 * b * b * b * b + x[0] * x[1];
};
double bowl_gradient(const vector& x, std::span<double> g) {
    const double b = x[1] - 1;
    g[0] = 2 * x[0] + x[1];
    g[1] = 40 * b * b * b + x[0];
    return bowl(x);
}
void bowl_product(const vector& x, std::span<const double> v, std::span<double> product) {
    const double b = x[1] - 1;
    product[0] = 2 * v[0] + v[1];
    product[1] = v[0] + 120 * b * b * v[1];
}

TEST_CASE("minimize: a gradient and products by hand, and by the library, go the same way") {
    const vector start{3, -2};
    const auto own = tg::minimize(bowl, start), hand = tg::minimize(bowl_gradient, start),
               given = tg::minimize(tg::value_and_gradient(bowl), start);
    CHECK(own.reason == tg::stop_reason::gradient);
    CHECK(own.evaluations == hand.evaluations);
    CHECK(own.x[0] == doctest::Approx(hand.x[0]).epsilon(1e-10));
    CHECK(given.x == own.x);
    const auto newton = tg::minimize(bowl, start, tg::newton_cg{}),
               by_hand = tg::minimize(tg::with_hessian_product{bowl_gradient, bowl_product}, start, tg::newton_cg{}),
               by_jets = tg::minimize(tg::value_and_gradient(bowl), start, tg::newton_cg{}),
               differences = tg::minimize(bowl_gradient, start, tg::newton_cg{});
    CHECK(newton.products == by_hand.products);
    CHECK(newton.iterations == by_hand.iterations);
    CHECK(by_jets.products == newton.products);
    CHECK(differences.evaluations == newton.evaluations + newton.products); // one gradient each
    for (const auto& r : {own, newton, by_hand, by_jets, differences}) {
        CHECK(r.converged());
        vector g(2);
        bowl_gradient(r.x, g);
        CHECK(std::abs(g[0]) < 1e-8);
        CHECK(std::abs(g[1]) < 1e-8);
    }
}

TEST_CASE("minimize: numbers, arrays, spans, functions of numbers that record alone") {
    const auto one = tg::minimize([](const auto& x) { return exp(x) - 2 * x; }, 0.0);
    CHECK(one.x == doctest::Approx(std::log(2.0)).epsilon(1e-8));
    const auto residual =
        tg::minimize([](const auto& x) { return std::vector<std::remove_cvref_t<decltype(x)>>{x * x - 2}; }, 1.0,
                     tg::gauss_newton{});
    CHECK(residual.x == doctest::Approx(std::sqrt(2.0)).epsilon(1e-12));
    const std::array<double, 2> start{3, -2};
    const auto a = tg::minimize(bowl, start);
    static_assert(std::is_same_v<decltype(a.x), std::array<double, 2>>);
    const auto s = tg::minimize(bowl, std::span<const double>(start));
    static_assert(std::is_same_v<decltype(s.x), vector>);
    CHECK(s.x[0] == a.x[0]);
    const auto fixed = [](const std::vector<tg::real<>>& x) -> tg::real<> { return bowl(x); };
    CHECK(tg::minimize(fixed, vector{3, -2}).x == s.x);
    CHECK(tg::minimize(fixed, vector{3, -2}, tg::newton_cg{}).converged()); // products by differences
    const auto constant = tg::minimize([](const auto&) { return 4.0; }, start);
    CHECK(constant.iterations == 0);
    CHECK(constant.x == start);
}

TEST_CASE("minimize: a Jacobian by hand") {
    int jacobians = 0;
    const auto residuals = [&](const vector& x, std::span<double> jacobian) {
        if (!jacobian.empty()) {
            ++jacobians;
            const double rows[]{-20 * x[0], 10, -1, 0};
            std::copy(std::begin(rows), std::end(rows), jacobian.begin());
        }
        return std::array{10 * (x[1] - x[0] * x[0]), 1 - x[0]};
    };
    const auto r = tg::minimize(residuals, vector{-1.2, 1}, tg::levenberg_marquardt{});
    CHECK(r.x[0] == doctest::Approx(1).epsilon(1e-8));
    CHECK(r.gradients == jacobians);
    const auto own = tg::minimize(
        [](const auto& x) {
            return numbers<std::remove_cvref_t<decltype(x)>>{10 * (x[1] - x[0] * x[0]), 0 * x[1] + 1 - x[0]};
        },
        vector{-1.2, 1}, tg::levenberg_marquardt{});
    CHECK(own.evaluations == r.evaluations);
}

TEST_CASE("minimize: limits, tolerances and callbacks stop it, and say so") {
    const vector start{3, -2};
    const auto three = tg::minimize(bowl, start, tg::lbfgs{}, {.max_iterations = 3});
    CHECK(three.reason == tg::stop_reason::iteration_limit);
    CHECK(three.iterations == 3);
    CHECK_FALSE(three.converged());
    CHECK(contains(three.message(), "The limit of iterations is reached. (3 iterations, "));
    const auto few = tg::minimize(bowl, start, tg::newton_cg{}, {.max_evaluations = 4});
    CHECK(few.reason == tg::stop_reason::evaluation_limit);
    CHECK(tg::minimize(bowl, start, tg::lbfgs{}, {.max_iterations = 0}).x == start);
    const auto value = tg::minimize(bowl, start, tg::lbfgs{}, {.relative_value_tolerance = 0.5});
    CHECK(value.reason == tg::stop_reason::value);
    const auto step = tg::minimize(bowl, start, tg::newton_cg{}, {.step_tolerance = 0.05});
    CHECK(step.reason == tg::stop_reason::step);
    CHECK(step.iterations < tg::minimize(bowl, start, tg::newton_cg{}).iterations);
    const auto relative =
        tg::minimize(bowl, start, tg::lbfgs{}, {.gradient_tolerance = 0, .relative_gradient_tolerance = 0.1});
    CHECK(relative.reason == tg::stop_reason::gradient);
    CHECK(relative.gradient_norm < 0.1 * 1077); // |40 * (-3)^3 + 3|
    CHECK(relative.gradient_norm > 1e-3);

    std::vector<tg::minimization_progress> seen;
    vector last;
    const auto stopped =
        tg::minimize(bowl, start, tg::lbfgs{}, {.stop_when = [&](const tg::minimization_progress& now) {
                         seen.push_back(now);
                         last.assign(now.x.begin(), now.x.end());
                         return now.iteration == 5;
                     }});
    CHECK(stopped.reason == tg::stop_reason::stopped);
    REQUIRE(seen.size() == 5);
    for (std::size_t i = 0; i < 5; ++i) CHECK(seen[i].iteration == static_cast<int>(i + 1));
    CHECK(seen[4].value == stopped.value);
    CHECK(seen[4].value < seen[0].value);
    CHECK(seen[4].evaluations == stopped.evaluations);
    CHECK(seen[4].step_norm > 0);
    CHECK(last == stopped.x);
    std::ostringstream out;
    out << stopped.reason;
    CHECK(out.str() == "The callback has stopped the minimization.");
}

TEST_CASE("minimize: at a minimum it does nothing") {
    const auto at = tg::minimize([](const auto& x) { return x[0] * x[0] + x[1] * x[1]; }, vector{0, 0});
    CHECK(at.iterations == 0);
    CHECK(at.evaluations == 1);
    CHECK(at.reason == tg::stop_reason::gradient);
    const auto ignores = [](const auto& x) { return (x[0] - 2) * (x[0] - 2); };
    for (const auto& r : {tg::minimize(ignores, vector{0, 5}), tg::minimize(ignores, vector{0, 5}, tg::newton_cg{})}) {
        CHECK(r.x[0] == doctest::Approx(2).epsilon(1e-8));
        CHECK(r.x[1] == 5);
    }
}

TEST_CASE("minimize: where the function is NaN or infinite, steps are shortened") {
    // -log(x0) - log(1 - x0 - x1) - log(x1): the minimum is at (1/3, 1/3), beyond the triangle it is NaN
    const auto barrier = [](const auto& x) { return -log(x[0]) - log(1 - x[0] - x[1]) - log(x[1]); };
    const vector start{1e-3, 0.99};
    for (const auto& r : {tg::minimize(barrier, start), tg::minimize(barrier, start, tg::newton_cg{})}) {
        CAPTURE(r.message());
        CHECK(r.converged());
        CHECK(r.x[0] == doctest::Approx(1.0 / 3).epsilon(1e-7));
        CHECK(r.x[1] == doctest::Approx(1.0 / 3).epsilon(1e-7));
    }
    // exp overflows for the first steps from here, and sqrt has no value below 0
    const auto residuals = [](const auto& x) {
        return numbers<std::remove_cvref_t<decltype(x)>>{exp(5 * x[0]) - 1, sqrt(x[1]) - 2};
    };
    const auto check = [&](const auto& method) {
        const auto r = tg::minimize(residuals, vector{-2, 0.01}, method);
        CAPTURE(r.message());
        CHECK(r.x[0] == doctest::Approx(0).epsilon(1e-7));
        CHECK(r.x[1] == doctest::Approx(4).epsilon(1e-7));
    };
    check(tg::levenberg_marquardt{});
    check(tg::gauss_newton{});
}

TEST_CASE("minimize: saddle points, and functions without a minimum") {
    const auto saddle = [](const auto& x) { return x[0] * x[0] - x[1] * x[1] + x[1] * x[1] * x[1] * x[1] / 2; };
    const auto r = tg::minimize(saddle, vector{1, 1e-6}, tg::newton_cg{}); // negative curvature
    CHECK(std::abs(r.x[1]) == doctest::Approx(1).epsilon(1e-7));
    CHECK(r.value == doctest::Approx(-0.5));
    const auto falls = tg::minimize([](const auto& x) { return x[0] - 1; }, vector{0});
    CHECK(falls.reason == tg::stop_reason::unbounded);
    const auto kink = tg::minimize(
        [](const auto& x) {
            using std::abs;
            return abs(x[0]);
        },
        vector{1.3});
    CHECK(std::abs(kink.x[0]) < 1e-6);
}

TEST_CASE("minimize: a gradient of the wrong sign is found out") {
    const auto wrong = [](const vector& x, std::span<double> g) {
        g[0] = -2 * x[0];
        return x[0] * x[0];
    };
    CHECK(tg::minimize(wrong, vector{1}).reason == tg::stop_reason::no_descent);
    CHECK(tg::minimize(wrong, vector{1}, tg::newton_cg{}).reason == tg::stop_reason::no_descent);
}

TEST_CASE("minimize: what makes no sense is refused, by name") {
    const auto of_start = [](const vector& x) { return message_of<tg::error>([&] { (void)tg::minimize(bowl, x); }); };
    CHECK(contains(of_start({}), "the start has no numbers"));
    CHECK(contains(of_start({1, std::numeric_limits<double>::infinity()}), "number 1 of the start is inf"));
    const auto of = [](const auto& f, const vector& x, const auto& method) {
        return message_of<tg::error>([&] { (void)tg::minimize(f, x, method); });
    };
    CHECK(contains(of([](const auto& x) { return log(x[0]); }, {-1}, tg::lbfgs{}), "value at the start is"));
    CHECK(contains(of([](const auto& x) { return x[0] + sqrt(x[1]); }, {1, 0}, tg::newton_cg{}),
                   "the derivative by number 1 at the start is inf"));
    CHECK(contains(of([](const auto& x) { return numbers<std::remove_cvref_t<decltype(x)>>{log(x[0])}; }, {-1},
                      tg::levenberg_marquardt{}),
                   "value at the start is"));
    CHECK(contains(
        of([](const auto& x) { return std::vector<std::remove_cvref_t<decltype(x[0])>>{}; }, {1}, tg::gauss_newton{}),
        "has given no residuals"));
    int calls = 0;
    CHECK(contains(of(
                       [&](const auto& x) {
                           return std::vector<std::remove_cvref_t<decltype(x[0])>>(++calls > 2 ? 3 : 2, x[0] - 1);
                       },
                       {3}, tg::levenberg_marquardt{}),
                   "has given 2 residuals, and now 3"));
    CHECK(contains(of(bowl, {1, 1}, tg::lbfgs{.history = 0}), "history is 0"));
    CHECK(contains(of(bowl, {1, 1}, tg::lbfgs{.curvature = 1e-5}), "0 < decrease < curvature < 1"));
    CHECK(contains(of(bowl, {1, 1}, tg::newton_cg{.initial_radius = -1}), "0 < initial_radius"));
    CHECK(contains(of(bowl, {1, 1}, tg::newton_cg{.max_products = -1}), "max_products is -1"));
    CHECK(contains(of([](const auto& x) { return numbers<std::remove_cvref_t<decltype(x)>>{x[0]}; }, {1},
                      tg::levenberg_marquardt{.initial_damping = 0}),
                   "initial_damping is 0"));
}

} // namespace functions_test
