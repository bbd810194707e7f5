#include <nn/models.hpp>
#include <tapegraph/compile/instance.hpp>
#include <tapegraph/compile/training_step.hpp>
#include <tapegraph/nn/constraint.hpp>
#include <tapegraph/nn/layers/activity_regularization.hpp>
#include <tapegraph/nn/layers/group_normalization.hpp>
#include <tapegraph/nn/optimizers/applied.hpp>
#include <tapegraph/nn/regularizer.hpp>
#include <tapegraph/session/session.hpp>

namespace penalties_test {

using namespace nn_test;

/// Regularizers, constraints and scope.add_loss act in every kind of training as they do in a model.

namespace {

struct network {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = tg::dense(scope / "in", x,
                                 {.units = 4,
                                  .kernel_regularizer = tg::regularizers::l2{0.3},
                                  .kernel_constraint = tg::constraints::max_norm{0.5}});
        scope.add_loss(0.1 * mean(abs(h)));
        return tg::dense(scope / "out", tanh(h), {.units = 2, .bias_regularizer = tg::regularizers::l1{0.2}});
    }
};
using spec = tg::spec<double, tg::dyn, 3>;
constexpr auto specs = tg::inputs{tg::input<"x">(spec{}), tg::input<"y">(tg::spec<double, tg::dyn, 2>{})};

struct step_of_network {
    constexpr auto operator()(auto step, auto x, auto y) const {
        const auto loss = tg::eval(tg::mean_squared_error{}(network{}(step, x), y));
        step.minimize(step.with_added_losses(loss));
        return loss;
    }
};
/// Two losses, each of which names all variables and depends on one.
struct apart {
    constexpr auto operator()(auto step, auto x, auto y) const {
        const auto one = [&](auto scope, auto to) {
            return tg::eval(
                mean(square(tg::dense(scope, to, {.units = 1, .kernel_regularizer = tg::regularizers::l2{0.3}}))));
        };
        const auto a = one(step / "a", x), b = one(step / "b", y);
        step.template minimize<0>(a);
        step.template minimize<1>(b);
        return tg::outputs{tg::output<"a">(a), tg::output<"b">(b)};
    }
};
struct alone {
    constexpr auto operator()(auto step, auto x) const {
        const auto loss = tg::eval(
            mean(square(tg::dense(step / "a", x, {.units = 1, .kernel_regularizer = tg::regularizers::l2{0.3}}))));
        step.minimize(loss);
        return loss;
    }
};
struct session_of_network {
    constexpr auto operator()(auto scope) const {
        const auto x = scope.template placeholder<double>("x", {-1, 3}),
                   y = scope.template placeholder<double>("y", {-1, 2});
        const auto loss = tg::eval(tg::mean_squared_error{}(network{}(scope, x), y));
        return tg::fetches{
            tg::fetch("train", tg::minimize(scope.with_added_losses(loss), tg::momentum{.learning_rate = 0.1}))};
    }
};

/// A scale of ones whose penalty is all that is lost where x and the loss's target are zeros.
struct scaled_rows {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::rms_normalization(scope / "norm", x,
                                     {.scale_regularizer = tg::regularizers::l2{0.5},
                                      .scale_constraint = tg::constraints::max_norm{.max_value = 0.25}});
    }
};

template <class A, class B>
void check_weights(A& a, B& right) {
    for (const char* path : {"in/kernel", "in/bias", "out/kernel", "out/bias"}) {
        CAPTURE(path);
        REQUIRE(same_bits(a.variables()[path].data(), right.variables()[path].data()));
    }
}

} // namespace

TEST_CASE("steps, loops and sessions add penalties and added losses, and keep to constraints, as models do") {
    const auto x = noise<double>({6, 3}, 1), y = noise<double>({6, 2}, 2);
    auto model =
        tg::compile<tg::graph>(network{}, spec{}, tg::mean_squared_error{}, tg::momentum{.learning_rate = 0.1});
    auto free_model =
        tg::compile<tg::eager>(network{}, spec{}, tg::mean_squared_error{}, tg::momentum{.learning_rate = 0.1});
    auto a = tg::compile_step<tg::graph>(step_of_network{}, specs, tg::optimizers{tg::momentum{.learning_rate = 0.1}});
    auto b = tg::compile_step<tg::eager>(step_of_network{}, specs, tg::optimizers{tg::momentum{.learning_rate = 0.1}});
    auto net = tg::instance(network{}, spec{});
    tg::applied optimizer(tg::momentum{.learning_rate = 0.1}, net.variables());
    tg::session<session_of_network> session;
    for (int i = 0; i < 3; ++i) {
        CAPTURE(i);
        model.train_on_batch(x, y);
        free_model.train_on_batch(x, y);
        a(x, y);
        b(x, y);
        {
            tg::gradient_tape tape;
            const auto loss = tg::eval(tg::mean_squared_error{}(net.in_training(x), y));
            optimizer.apply_gradients(net.gradients(tape, loss + net.added_losses()));
        }
        session.run<"train">(tg::given<"x">(x), tg::given<"y">(y));
        check_weights(free_model, model);
        check_weights(a, model);
        check_weights(b, model);
        check_weights(net, model);
        check_weights(session, model);
        const auto kernel = net.variables()["in/kernel"].value<double>();
        for (int unit = 0; unit < 4; ++unit) {
            double squares = 0;
            for (int k = 0; k < 3; ++k) squares += kernel(k, unit) * kernel(k, unit);
            CHECK(std::sqrt(squares) < 0.5 + 1e-12); // rounding of a few numbers below 1
        }
    }
    tg::gradient_tape tape;
    const auto loss = tg::eval(tg::mean_squared_error{}(net.in_training(x), y));
    CHECK_THROWS_WITH_AS(net.gradients(tape, loss),
                         "instance: the model adds to its loss (add_loss or regularizers), which this one leaves out: "
                         "loss + net.added_losses()",
                         tg::argument_error);
}

TEST_CASE("rms_normalization: its scale has a penalty and a constraint") {
    const auto zeros = tg::zeros<double>({1, 3});
    auto graph = tg::compile<tg::graph>(scaled_rows{}, spec{}, tg::mean_squared_error{}, tg::sgd{.learning_rate = 0});
    auto eager = tg::compile<tg::eager>(scaled_rows{}, spec{}, tg::mean_squared_error{}, tg::sgd{.learning_rate = 0});
    const auto check = [&](auto& model) {
        CHECK(model.train_on_batch(zeros, zeros).loss == 1.5); // 0.5 (1 + 1 + 1)
        double norm = 0;
        for (const double v : model.variables()["norm/scale"].template value<double>().to_vector()) norm += v * v;
        CHECK(norm == doctest::Approx(0.0625));
    };
    check(graph);
    check(eager);
}

TEST_CASE("a penalty goes with the loss that depends on its variable") {
    const auto x = noise<double>({6, 3}, 1), y = noise<double>({6, 2}, 2);
    const tg::optimizers both{tg::adam{.learning_rate = 0.1}, tg::adam{.learning_rate = 0.2}};
    auto a = tg::compile_step<tg::graph>(apart{}, specs, both);
    auto b = tg::compile_step<tg::eager>(apart{}, specs, both);
    auto right = tg::compile_step<tg::graph>(alone{}, spec{}, tg::optimizers{tg::adam{.learning_rate = 0.1}});
    for (int i = 0; i < 3; ++i) {
        a(x, y);
        b(x, y);
        right(x);
        REQUIRE(first_difference(a, b) == "");
        REQUIRE(same_bits(a.variables()["a/kernel"].data(), right.variables()["a/kernel"].data()));
    }
}

namespace {
struct sparse_code {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h =
            tg::dense(scope / "same", x, {.units = 2, .use_bias = false, .kernel_initializer = tg::init::identity{}});
        return tg::activity_regularization(scope / "penalty", h, tg::regularizers::l1_l2{0.25, 0.5});
    }
};
} // namespace

TEST_CASE("activity_regularization: Keras's number, its gradient, and nothing in predictions") {
    each_mode([](auto mode) {
        auto model = tg::compile<decltype(mode)>(sparse_code{}, tg::spec<double, tg::dyn, 2>{}, tg::added_losses{},
                                                 tg::sgd{.learning_rate = 1});
        const tg::tensor<double> x{{1, -2}, {3, 0.5}, {0, -1}};
        CHECK(model.predict(x).to_vector() == x.to_vector());
        CHECK(model.evaluate(x).loss ==
              doctest::Approx(9.5 / 3).epsilon(1e-15)); // ActivityRegularization(0.25, 0.5): 3.1666667
        model.train_on_batch(x);
        // d/dw_00 of the mean over three records: x_0 (0.25 sign(h_0) + h_0), h = x: (1 * 1.25 + 3 * 3.25) / 3 = 11 / 3
        CHECK(model.variables()["same/kernel"].template value<double>()(0, 0) ==
              doctest::Approx(1 - 11. / 3).epsilon(1e-14));
    });
}

} // namespace penalties_test
