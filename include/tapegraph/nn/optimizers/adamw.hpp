#pragma once

#include <tapegraph/nn/optimizers/basic.hpp>
#include <tapegraph/nn/optimizers/masks.hpp>

namespace tapegraph {

/// Adam with decoupled weight decay (Loshchilov and Hutter 2019) in Keras's form: w <- w -
/// learning_rate weight_decay w, then Adam's step. `Mask` selects the variables that decay:
/// `basic_adamw<except<"*/bias">>`.
template <class Mask = all_variables>
struct basic_adamw {
    hyperparameter learning_rate = 0.001;
    hyperparameter weight_decay = 0.004;
    hyperparameter beta1 = 0.9, beta2 = 0.999;
    hyperparameter epsilon = 1e-7;

    static constexpr int count = 5;
    std::array<double, count> numbers(std::int64_t step) const {
        const double rate = learning_rate.used(step, "adamw", "learning_rate");
        const double b1 = beta1.used_below_one(step, "adamw", "beta1"),
                     b2 = beta2.used_below_one(step, "adamw", "beta2");
        return {detail::adam_step_size(rate, b1, b2, step), 1 - b1, 1 - b2, epsilon.used(step, "adamw", "epsilon"),
                rate * weight_decay.used(step, "adamw", "weight_decay")};
    }
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        const auto m = slots.state(w, "adam_m");
        const auto v = slots.state(w, "adam_v");
        const auto next_m = eval(m + n[1] * (g - m));
        const auto next_v = eval(v + n[2] * (square(g) - v));
        slots.assign(m, next_m);
        slots.assign(v, next_v);
        if (Mask::holds(slots))
            slots.assign(w, (w - w * n[4]) - n[0] * next_m / (sqrt(next_v) + n[3]));
        else
            slots.assign(w, w - n[0] * next_m / (sqrt(next_v) + n[3]));
    }
};
using adamw = basic_adamw<>;

} // namespace tapegraph
