#pragma once

#include <tapegraph/nn/optimizers/basic.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>

namespace tapegraph {

/// Lion (Chen et al. 2023) in Keras's form: w <- w - learning_rate weight_decay w, w <- w - learning_rate sign(beta1 m + (1 - beta1) g),
/// m <- beta2 m + (1 - beta2) g
struct lion {
    hyperparameter learning_rate = 0.001;
    hyperparameter beta1 = 0.9, beta2 = 0.99;
    hyperparameter weight_decay = 0;

    static constexpr int count = 6;
    std::array<double, count> numbers(std::int64_t step) const {
        const double rate = learning_rate.used(step, "lion", "learning_rate");
        const double b1 = beta1.used(step, "lion", "beta1"), b2 = beta2.used(step, "lion", "beta2");
        return {rate, b1, 1 - b1, b2, 1 - b2, rate * weight_decay.used(step, "lion", "weight_decay")};
    }
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        const auto m = slots.state(w, "lion_m");
        slots.assign(w, (w - w * n[5]) - n[0] * sign(m * n[1] + g * n[2]));
        slots.assign(m, m * n[3] + g * n[4]);
    }
};

} // namespace tapegraph
