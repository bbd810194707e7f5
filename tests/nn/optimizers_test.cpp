#include <nn/models.hpp>

namespace optimizers_test {

using namespace nn_test;

namespace {

/// The variable itself: adding the input, zero, only makes it depend on it.
struct pair_model {
    constexpr auto operator()(auto scope, auto x) const {
        return eval(x + scope.variable_like(x, "w", {2}, {.initializer = tg::init::constant{1}}));
    }
};
/// sum(x z): its derivative by x is z, so labels are the gradient of a step.
struct given_gradient {
    constexpr auto operator()(auto x, auto z) const { return sum(x * z); }
    static constexpr tg::tensor_spec labels(tg::dtype type, const tg::shape& output) { return {type, output}; }
};

const tg::tensor<double> gradients[3]{{{1, -2}}, {{0.5, 0.25}}, {{-1, 4}}};

/// Three steps; the third with another learning rate. Expected values are for w = [1, 1] at the start.
template <class Mode, class Optimizer>
void check_steps(const Optimizer& optimizer, double third_rate, const double (&expected)[3][2]) {
    auto model = tg::compile<Mode>(pair_model{}, tg::spec<double, 1, 2>{}, given_gradient{}, optimizer);
    const auto x = tg::zeros<double>({1, 2});
    for (int step = 0; step < 3; ++step) {
        CAPTURE(step);
        if (step == 2) model.optimizer().learning_rate = third_rate;
        const auto w = model.variables()["w"].template value<double>();
        const tg::step_result r = model.train_on_batch(x, gradients[step]);
        // The loss is of the variables before the update; at most three roundings of numbers below 8.
        CHECK(std::abs(r.loss - (w(0) * gradients[step](0, 0) + w(1) * gradients[step](0, 1))) < 1e-14);
        const auto next = model.variables()["w"].template value<double>();
        // The expected values carry 16 digits, the updates a handful of roundings.
        for (int i = 0; i < 2; ++i) CHECK(std::abs(next(i) - expected[step][i]) < 1e-14);
    }
    CHECK(model.step() == 3);
}

} // namespace

TEST_CASE("sgd makes the steps computed by hand") {
    // 1 - 0.1 * 1, then - 0.1 * 0.5, then + 0.5 * 1; 1 + 0.1 * 2, then - 0.1 * 0.25, then - 0.5 * 4
    each_mode([](auto mode) {
        check_steps<decltype(mode)>(tg::sgd{.learning_rate = 0.1}, 0.5, {{0.9, 1.2}, {0.85, 1.175}, {1.35, -0.825}});
    });
}

TEST_CASE("momentum makes the steps computed by hand") {
    // v: -0.1, -0.9*0.1 - 0.05 = -0.14, -0.126 + 0.5 = 0.374; 0.2, 0.18 - 0.025 = 0.155, 0.1395 - 2 = -1.8605
    each_mode([](auto mode) {
        check_steps<decltype(mode)>(tg::momentum{.learning_rate = 0.1, .momentum = 0.9}, 0.5,
                                    {{0.9, 1.2}, {0.76, 1.355}, {1.134, -0.5055}});
    });
}

TEST_CASE("Nesterov's momentum makes the steps computed by hand") {
    // v as above; w + 0.9 v - rate g: 1 - 0.09 - 0.1 = 0.81, 0.81 - 0.126 - 0.05 = 0.634, 0.634 + 0.3366 + 0.5 = 1.4706
    // 1 + 0.18 + 0.2 = 1.38, 1.38 + 0.1395 - 0.025 = 1.4945, 1.4945 - 1.67445 - 2 = -2.17995
    each_mode([](auto mode) {
        check_steps<decltype(mode)>(tg::nesterov_momentum{.learning_rate = 0.1, .momentum = 0.9}, 0.5,
                                    {{0.81, 1.38}, {0.634, 1.4945}, {1.4706, -2.17995}});
    });
}

TEST_CASE("Adam makes the steps computed by hand") {
    // m <- 0.9 m + 0.1 g, v <- 0.99 v + 0.01 g^2, w <- w - rate sqrt(1 - 0.99^t) / (1 - 0.9^t) m / (sqrt(v) + 1e-7), evaluated
    // with 40 decimal digits
    each_mode([](auto mode) {
        check_steps<decltype(mode)>(tg::adam{.learning_rate = 0.1, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-7}, 0.5,
                                    {{0.90000009999990000, 1.0999999500000250}, {0.80665538364867174, 1.1573794015083800}, {0.75126419284597334, 0.97208111041524737}});
    });
}

TEST_CASE("optimizer state is a variable of its own, zero at first") {
    each_mode([](auto mode) {
        auto model = tg::compile<decltype(mode)>(pair_model{}, tg::spec<double, 1, 2>{}, given_gradient{},
                                                 tg::momentum{.learning_rate = 0.1, .momentum = 0.9});
        REQUIRE(model.variables().size() == 2);
        const tg::variable& v = model.variables()["w/momentum"];
        CHECK(v.optimizer_state());
        CHECK(!v.trainable());
        CHECK(v.shape() == tg::shape{2});
        CHECK(v.template value<double>().to_vector() == std::vector<double>{0, 0});
        model.train_on_batch(tg::zeros<double>({1, 2}), gradients[0]);
        CHECK(v.template value<double>()(1) == doctest::Approx(0.2));
        CHECK(model.parameter_count() == 2); // the model's alone
    });
}

} // namespace optimizers_test
