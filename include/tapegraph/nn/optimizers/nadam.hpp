#pragma once

#include <tapegraph/nn/optimizers/basic.hpp>

namespace tapegraph {

/// Nadam (Dozat 2016) in Keras's form, with its schedule of momentum u(t) = beta1 (1 - 0.96^t / 2): m and v as in Adam,
/// m' = u(t + 1) m / (1 - u(1) ... u(t + 1)) + (1 - u(t)) g / (1 - u(1) ... u(t)), w <- w - learning_rate m' / (sqrt(v / (1 - beta2^t)) + epsilon)
struct nadam {
    hyperparameter learning_rate = 0.001;
    double beta1 = 0.9, beta2 = 0.999; ///< not scheduled, because the momenta of all steps so far are multiplied
    hyperparameter epsilon = 1e-7;

    static constexpr int count = 6;
    std::array<double, count> numbers(std::int64_t step) const {
        const double rate = learning_rate.used(step, "nadam", "learning_rate");
        const double b1 = hyperparameter(beta1).used_below_one(step, "nadam", "beta1");
        const double b2 = hyperparameter(beta2).used_below_one(step, "nadam", "beta2");
        const auto at = [&](std::int64_t t) { return b1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(t))); };
        double product = 1; // below 1e-20, 1 - product is 1, whatever factors follow
        for (std::int64_t t = 1; t <= step && product > 1e-20; ++t) product *= at(t);
        const double now = at(step), next = at(step + 1);
        return {rate * next / (1 - product * next),          rate * (1 - now) / (1 - product),      1 - b1, 1 - b2,
                1 - std::pow(b2, static_cast<double>(step)), epsilon.used(step, "nadam", "epsilon")};
    }
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        const auto m = slots.state(w, "nadam_m");
        const auto v = slots.state(w, "nadam_v");
        const auto next_m = eval(m + n[2] * (g - m));
        const auto next_v = eval(v + n[3] * (square(g) - v));
        slots.assign(m, next_m);
        slots.assign(v, next_v);
        slots.assign(w, w - (n[0] * next_m + n[1] * g) / (sqrt(next_v / n[4]) + n[5]));
    }
};

} // namespace tapegraph
