#pragma once

#include <tapegraph/nn/optimizers/basic.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>

namespace tapegraph {

/// Adamax (Kingma and Ba 2015, section 7.1) in Keras's form: m <- m + (1 - beta1)(g - m), u <- max(beta2 u, |g|),
/// w <- w - learning_rate / (1 - beta1^t) m / (u + epsilon)
struct adamax {
    hyperparameter learning_rate = 0.001;
    hyperparameter beta1 = 0.9, beta2 = 0.999;
    hyperparameter epsilon = 1e-7;

    static constexpr int count = 4;
    std::array<double, count> numbers(std::int64_t step) const {
        const double rate = learning_rate.used(step, "adamax", "learning_rate");
        const double b1 = beta1.used_below_one(step, "adamax", "beta1");
        return {rate / (1 - std::pow(b1, static_cast<double>(step))), 1 - b1, beta2.used(step, "adamax", "beta2"),
                epsilon.used(step, "adamax", "epsilon")};
    }
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        const auto m = slots.state(w, "adamax_m");
        const auto u = slots.state(w, "adamax_u");
        const auto next_m = eval(m + n[1] * (g - m));
        const auto next_u = eval(maximum(n[2] * u, abs(g)));
        slots.assign(m, next_m);
        slots.assign(u, next_u);
        slots.assign(w, w - n[0] * next_m / (next_u + n[3]));
    }
};

} // namespace tapegraph
