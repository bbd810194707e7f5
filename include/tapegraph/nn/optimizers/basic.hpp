#pragma once

#include <tapegraph/nn/optimizers/hyperparameter.hpp>
#include <tapegraph/ops/elementwise/power.hpp>

#include <array>
#include <cmath>
#include <cstdint>

/// Optimizers. An optimizer is a plain struct, whose members may change between steps without
/// recompilation: `numbers(step)` returns the `count` numbers that step `step` (from 1) uses, and
/// `update` writes the update with these numbers as scalars. It requests state by name from `slots`;
/// state starts at zero, or at `first_value(name)` if there is such a function. If there is a function
/// `shared(gradients, n)`, which computes a value from all gradients of a step, `update` receives that
/// value, too.
///
/// More optimizers, and what composes with them: nn/optimizers/all.hpp.

namespace tapegraph {

namespace detail {
/// What has the numbers of a step, and so is an optimizer.
template <class T>
concept optimizer_like = requires(const T& optimizer) {
    optimizer.numbers(std::int64_t{1});
};
} // namespace detail

/// w <- w - learning_rate g
struct sgd {
    hyperparameter learning_rate = 0.01;

    static constexpr int count = 1;
    std::array<double, count> numbers(std::int64_t step) const {
        return {learning_rate.used(step, "sgd", "learning_rate")};
    }
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        slots.assign(w, w - n[0] * g);
    }
};

/// v <- momentum v - learning_rate g; w <- w + v, or with Nesterov's look-ahead w + momentum v - learning_rate g (Keras's
/// form; Sutskever et al. 2013)
template <bool Nesterov = false>
struct basic_momentum {
    hyperparameter learning_rate = 0.01;
    hyperparameter momentum = 0.9;

    static constexpr int count = 2;
    std::array<double, count> numbers(std::int64_t step) const {
        constexpr const char* name = Nesterov ? "nesterov_momentum" : "momentum";
        return {learning_rate.used(step, name, "learning_rate"), momentum.used(step, name, "momentum")};
    }
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        const auto velocity = slots.state(w, "momentum");
        const auto next = eval(n[1] * velocity - n[0] * g);
        slots.assign(velocity, next);
        if constexpr (Nesterov)
            slots.assign(w, w + n[1] * next - n[0] * g);
        else
            slots.assign(w, w + next);
    }
};
using momentum = basic_momentum<false>;
using nesterov_momentum = basic_momentum<true>;

namespace detail {
/// The size of Adam's step: learning_rate sqrt(1 - beta2^t) / (1 - beta1^t).
inline double adam_step_size(double learning_rate, double beta1, double beta2, std::int64_t step) {
    const auto t = static_cast<double>(step);
    return learning_rate * std::sqrt(1 - std::pow(beta2, t)) / (1 - std::pow(beta1, t));
}
} // namespace detail

/// Adam (Kingma and Ba 2015) in Keras's form: the bias corrections are part of the step size
/// a = learning_rate sqrt(1 - beta2^t) / (1 - beta1^t); m <- m + (1 - beta1)(g - m); v <- v + (1 - beta2)(g^2 - v);
/// w <- w - a m / (sqrt(v) + epsilon)
struct adam {
    hyperparameter learning_rate = 0.001;
    hyperparameter beta1 = 0.9, beta2 = 0.999;
    hyperparameter epsilon = 1e-7;

    static constexpr int count = 4;
    std::array<double, count> numbers(std::int64_t step) const {
        const double rate = learning_rate.used(step, "adam", "learning_rate");
        const double b1 = beta1.used_below_one(step, "adam", "beta1"), b2 = beta2.used_below_one(step, "adam", "beta2");
        return {detail::adam_step_size(rate, b1, b2, step), 1 - b1, 1 - b2, epsilon.used(step, "adam", "epsilon")};
    }
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        const auto m = slots.state(w, "adam_m");
        const auto v = slots.state(w, "adam_v");
        const auto next_m = eval(m + n[1] * (g - m));
        const auto next_v = eval(v + n[2] * (square(g) - v));
        slots.assign(m, next_m);
        slots.assign(v, next_v);
        slots.assign(w, w - n[0] * next_m / (sqrt(next_v) + n[3]));
    }
};

} // namespace tapegraph
