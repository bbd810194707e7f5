#pragma once

#include <nn/models.hpp>

#include <cmath>

/// Losses by themselves: a model whose output is its only variable, so that a step of sgd shows the loss's gradient.

namespace nn_test {

struct output_model {
    constexpr auto operator()(auto scope, auto x) const {
        return eval(x + scope.variable_like(x, "w", {3, 4}, {.initializer = tg::init::zeros{}}));
    }
};

/// Value, gradient and accuracy of a loss of x [3, 4] in a mode, against the given ones. The losses of twelve numbers
/// are off by a few roundings: 1e-14 where they are near one.
template <class Mode, class Loss, class Labels>
void check_loss(const tg::tensor<double>& x, const Labels& z, double value, const tg::tensor<double>& gradient,
                double accuracy = 0) {
    constexpr double rate = 1024; // a power of two: the gradient's digits stay
    auto model = tg::compile<Mode>(output_model{}, tg::spec<double, 3, 4>{}, Loss{}, tg::sgd{.learning_rate = rate});
    const tg::step_result e = model.evaluate(x, z);
    CHECK(std::abs(e.loss - value) <= 1e-14 * std::max(1.0, std::abs(value)));
    CHECK(e.accuracy == doctest::Approx(accuracy).epsilon(1e-6)); // a mean in float
    const tg::step_result t = model.train_on_batch(x, z);
    CHECK(t.loss == e.loss);
    CHECK(t.accuracy == e.accuracy);
    const auto w = model.variables()["w"].template value<double>();
    for (int i = 0; i < 3; ++i)
        for (int k = 0; k < 4; ++k) {
            CAPTURE(i);
            CAPTURE(k);
            CHECK(std::abs(-w(i, k) / rate - gradient(i, k)) <= 1e-14 * std::max(1.0, std::abs(gradient(i, k))));
        }
}

/// f(i, k) for all elements of [3, 4].
template <class F>
tg::tensor<double> table(const F& f) {
    auto t = tg::zeros<double>({3, 4});
    for (int i = 0; i < 3; ++i)
        for (int k = 0; k < 4; ++k) t.set(f(i, k), i, k);
    return t;
}

} // namespace nn_test
