#pragma once

#include <tapegraph/nn/optimizers/basic.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>

/// Proximal optimizers (Duchi and Singer 2009) in the form of TensorFlow 1's
/// tf.train.ProximalGradientDescentOptimizer and tf.train.ProximalAdagradOptimizer.

namespace tapegraph {

namespace detail {
/// The proximal step: each element of p is moved toward 0 by `rate` times l1, then divided for l2:
/// sign(p) max(|p| - rate l1, 0) / (1 + rate l2)
constexpr auto proximal(const auto& p, const auto& rate, const auto& l1, const auto& l2) {
    return sign(p) * maximum(abs(p) - rate * l1, 0) / (1 + rate * l2);
}
} // namespace detail

/// p = w - learning_rate g, w <- sign(p) max(|p| - learning_rate l1, 0) / (1 + learning_rate l2)
struct proximal_gradient_descent {
    hyperparameter learning_rate = 0.001;
    hyperparameter l1_regularization_strength = 0, l2_regularization_strength = 0;

    static constexpr int count = 3;
    std::array<double, count> numbers(std::int64_t step) const {
        constexpr const char* name = "proximal_gradient_descent";
        return {learning_rate.used(step, name, "learning_rate"),
                l1_regularization_strength.used(step, name, "l1_regularization_strength"),
                l2_regularization_strength.used(step, name, "l2_regularization_strength")};
    }
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        const auto p = eval(w - n[0] * g);
        slots.assign(w, detail::proximal(p, n[0], n[1], n[2]));
    }
};

/// a <- a + g^2, r = learning_rate / sqrt(a), p = w - r g, w <- sign(p) max(|p| - r l1, 0) / (1 + r l2)
struct proximal_adagrad {
    hyperparameter learning_rate = 0.001;
    double initial_accumulator_value = 0.1; ///< positive
    hyperparameter l1_regularization_strength = 0, l2_regularization_strength = 0;

    static constexpr int count = 3;
    std::array<double, count> numbers(std::int64_t step) const {
        constexpr const char* name = "proximal_adagrad";
        hyperparameter(initial_accumulator_value).used_positive(step, name, "initial_accumulator_value");
        return {learning_rate.used(step, name, "learning_rate"),
                l1_regularization_strength.used(step, name, "l1_regularization_strength"),
                l2_regularization_strength.used(step, name, "l2_regularization_strength")};
    }
    double first_value(std::string_view state) const { return state == "accumulator" ? initial_accumulator_value : 0; }
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        const auto a = slots.state(w, "accumulator");
        const auto next = eval(a + square(g));
        const auto rate = eval(n[0] * rsqrt(next));
        const auto p = eval(w - rate * g);
        slots.assign(a, next);
        slots.assign(w, detail::proximal(p, rate, n[1], n[2]));
    }
};

} // namespace tapegraph
