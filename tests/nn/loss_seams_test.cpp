#include <nn/loss_seams.hpp>

#include <support/graph_runner.hpp>

namespace loss_seams_test {

/// Losses of logits at their seams, in both modes; nn/losses_seams_test.cpp has all of them.

using namespace nn_test;

namespace {

using matrix = tg::tensor<double>;

constexpr auto logistic = [](auto x, auto z) { return sum(tg::sigmoid_cross_entropy::each(x, z)); };
constexpr auto focal = [](auto x, auto z) {
    const auto binary = tg::sigmoid_focal_cross_entropy{.gamma = 2}(x, z); // sealed in this order
    const auto of_classes = tg::softmax_focal_cross_entropy{}(x, z);
    return tg::eval(binary + of_classes);
};
template <class F>
constexpr auto by_output(const F& f) { // derivatives of orders 1 and 2 by x, and the second one along x + 1
    return [f](auto x, auto z) {
        const auto of = [=](auto v) { return f(v, z); };
        const auto along = tg::eval(x + 1);
        return std::tuple{tg::value_and_gradient(tg::gradient(of))(x), tg::jvp(tg::gradient(of))(x, along).tangent};
    };
}
constexpr auto both = [](auto x, auto z) { return std::tuple{by_output(logistic)(x, z), by_output(focal)(x, z)}; };

} // namespace

TEST_CASE("the logistic loss: p - z, p (1 - p), p (1 - p) (1 - 2 p), also at 0") {
    const tg::tensor<double> t{0, 0, 0, 1, -1, 800, -800, 30}, z{0, 1, 0.3, 1, 0, 1, 0, 1};
    const auto got =
        nested_derivatives([&](const auto& v) { return tg::tensor<double>(tg::sigmoid_cross_entropy::each(v, z)); }, t);
    for (int i = 0; i < t.size(); ++i) {
        const double x = t(i), p = 1 / (1 + std::exp(-x)), rest = 1 / (1 + std::exp(x)); // of 1
        INFO(x << " for " << z(i));
        const auto at = static_cast<std::size_t>(i);
        const auto near = [](double a, double b) { return std::abs(a - b) <= 1e-15 * std::abs(b) + 1e-300; };
        CHECK(near(got[0][at], (1 - z(i)) * p - z(i) * rest));
        CHECK(near(got[1][at], p * rest));
        CHECK(std::abs(got[2][at] - p * rest * (rest - p)) <= 1e-16);
    }
}

TEST_CASE("seams: losses of logits") {
    check_seams("sigmoid_cross_entropy", tg::sigmoid_cross_entropy{});
    check_seams("sigmoid_focal_cross_entropy", tg::sigmoid_focal_cross_entropy{});
    check_seams("softmax_focal_cross_entropy", tg::softmax_focal_cross_entropy{});
}

TEST_CASE("both modes: second derivatives of losses of logits at their seams") {
    const matrix x{{0, 1, -1}, {40, -40, 0}}, z{{1, 0, 0}, {0.5, 0.25, 0.25}};
    both_modes run(both, tg::spec<double, 2, 3>{}, tg::spec<double, 2, 3>{});
    const std::string differs = run.compare(x, z);
    CHECK_MESSAGE(differs.empty(), differs);
    for (const tg::any_tensor& each : run.results())
        for (const double v : tg::tensor<double>(each).to_vector()) CHECK(std::isfinite(v));
    CHECK(tg::tensor<double>(run.results()[1])(0, 0) == 0.25);
}

TEST_CASE("focal losses where the answer is right beyond doubt: an integer gamma's derivatives, and never NaN") {
    const auto at_one = [](double gamma) {
        const tg::binary_focal_cross_entropy loss{.gamma = gamma};
        const tg::tensor<double> z{1};
        return nested_derivatives([&](const auto& v) { return tg::tensor<double>(loss.each(v, z, loss.numbers())); },
                                  tg::tensor<double>{1});
    };
    const double entropy = -std::log(1 - 1e-7); // of a probability that is clipped, a constant
    const auto two = at_one(2), three = at_one(3), half = at_one(0.5);
    CHECK(two[0][0] == 0);
    CHECK(two[1][0] == doctest::Approx(2 * entropy));
    CHECK(two[2][0] == 0);
    CHECK(three[2][0] == doctest::Approx(-6 * entropy));
    for (const auto& each : half) CHECK(each[0] == 0);
}

} // namespace loss_seams_test
