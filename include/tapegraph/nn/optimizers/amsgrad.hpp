#pragma once

#include <tapegraph/nn/optimizers/basic.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>

namespace tapegraph {

/// AMSGrad (Reddi et al. 2018), as Keras's Adam(amsgrad=True): Adam whose step is divided by
/// sqrt(u) + epsilon, u <- max(u, v)
struct amsgrad {
    hyperparameter learning_rate = 0.001;
    hyperparameter beta1 = 0.9, beta2 = 0.999;
    hyperparameter epsilon = 1e-7;

    static constexpr int count = 4;
    std::array<double, count> numbers(std::int64_t step) const {
        const double rate = learning_rate.used(step, "amsgrad", "learning_rate");
        const double b1 = beta1.used_below_one(step, "amsgrad", "beta1");
        const double b2 = beta2.used_below_one(step, "amsgrad", "beta2");
        return {detail::adam_step_size(rate, b1, b2, step), 1 - b1, 1 - b2, epsilon.used(step, "amsgrad", "epsilon")};
    }
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        const auto m = slots.state(w, "adam_m");
        const auto v = slots.state(w, "adam_v");
        const auto u = slots.state(w, "adam_vhat");
        const auto next_m = eval(m + n[1] * (g - m));
        const auto next_v = eval(v + n[2] * (square(g) - v));
        const auto next_u = eval(maximum(u, next_v));
        slots.assign(m, next_m);
        slots.assign(v, next_v);
        slots.assign(u, next_u);
        slots.assign(w, w - n[0] * next_m / (sqrt(next_u) + n[3]));
    }
};

} // namespace tapegraph
