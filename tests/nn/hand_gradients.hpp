#pragma once

#include <tapegraph/nn/optimizers/applied.hpp>

#include <nn/models.hpp>

#include <cmath>

/// One matrix, whose gradient in each step the test gives.

namespace hand_gradients {

using namespace nn_test;

/// The variable itself: adding the input, zero, only makes it depend on it.
struct matrix_model {
    constexpr auto operator()(auto scope, auto x) const {
        return eval(x + scope.variable_like(x, "w", {3, 2}, {.initializer = tg::init::zeros{}}));
    }
};
/// sum(x z): its derivative by x is z, so labels are the gradient of a step.
struct given_gradient {
    constexpr auto operator()(auto x, auto z) const { return sum(x * z); }
    static constexpr tg::tensor_spec labels(tg::dtype type, const tg::shape& output) { return {type, output}; }
};

inline constexpr double first_weights[6]{0.5, -0.75, 1.25, 0.1, -0.3, 2.0};

/// A gradient that depends on the weights and on the step; its numbers, except the weights, are exact in binary.
template <class T>
tg::tensor<T> gradient_at(const tg::tensor<T>& w, int step) {
    auto g = tg::tensor<T>::uninitialized({3, 2});
    for (int i = 0; i < 6; ++i)
        g.mutable_data()[i] = static_cast<T>(0.5) * w.data()[i] + static_cast<T>(((7 * step + 5 * i) % 11 - 5) / 8.0);
    return g;
}
template <class T>
tg::tensor<T> starting_weights() {
    auto w = tg::tensor<T>::uninitialized({3, 2});
    for (int i = 0; i < 6; ++i) w.mutable_data()[i] = static_cast<T>(first_weights[i]);
    return w;
}

template <class Mode, class Optimizer>
auto made(const Optimizer& optimizer) {
    auto model = tg::compile<Mode>(matrix_model{}, tg::spec<double, 3, 2>{}, given_gradient{}, optimizer);
    model.variables()["w"].assign(starting_weights<double>());
    return model;
}
template <class Model>
void one_step(Model& model, int step) {
    model.train_on_batch(tg::zeros<double>({3, 2}), gradient_at(model.variables()["w"].template value<double>(), step));
}

template <class T>
void check_close(const tg::tensor<T>& found, const double (&expected)[6]) {
    for (int i = 0; i < 6; ++i) {
        CAPTURE(i);
        // A handful of roundings a step of numbers near one; in float they add up to what issue and documentation promise.
        CHECK(std::abs(found.data()[i] - expected[i]) <
              (sizeof(T) == 8 ? 1e-12 : 1e-6) * std::max(1.0, std::abs(expected[i])));
    }
}

/// Twenty steps in both modes and by hand: the same bits in double, the expected numbers in double and float. `average`: what a
/// weight_average has then, where there is one.
template <class Optimizer>
void check_twenty_steps(const Optimizer& optimizer, const double (&expected)[6], const double* average = nullptr) {
    auto graph = made<tg::graph>(optimizer);
    auto eager = made<tg::eager>(optimizer);
    auto wide = starting_weights<double>();
    auto narrow = starting_weights<float>();
    tg::applied by_hand(optimizer, tg::named{"w", wide});
    tg::applied in_float(optimizer, tg::named{"w", narrow});
    for (int step = 1; step <= 20; ++step) {
        CAPTURE(step);
        one_step(graph, step);
        one_step(eager, step);
        by_hand.apply_gradients({gradient_at(wide, step)});
        in_float.apply_gradients({gradient_at(narrow, step)});
        REQUIRE(first_difference(graph, eager) == "");
        REQUIRE(same_bits(graph.variables()["w"].data(), wide));
    }
    check_close(wide, expected);
    check_close(narrow, expected);
    if (average != nullptr)
        for (int i = 0; i < 6; ++i)
            CHECK(std::abs(graph.variables()["w/average"].template value<double>().data()[i] - average[i]) < 1e-12);
}
template <class Optimizer>
void check_twenty_steps(const Optimizer& optimizer, const double (&expected)[6], const double (&average)[6]) {
    check_twenty_steps(optimizer, expected, &average[0]);
}

} // namespace hand_gradients
