#pragma once

#include <tapegraph/nn/optimizers/basic.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>

namespace tapegraph {

/// Follow the regularized leader (McMahan et al. 2013) in Keras's form, p = -learning_rate_power, s = l2 + beta / (2 learning_rate):
/// b = a + g^2, z <- z + g + 2 l2_shrinkage w - (b^p - a^p) / learning_rate w, a <- b,
/// w <- (clip(z, -l1, l1) - z) / (b^p / learning_rate + 2 s)
struct ftrl {
    hyperparameter learning_rate = 0.001;
    double learning_rate_power = -0.5; ///< at most 0
    double initial_accumulator_value = 0.1;
    hyperparameter l1_regularization_strength = 0, l2_regularization_strength = 0;
    hyperparameter l2_shrinkage_regularization_strength = 0;
    hyperparameter beta = 0;

    static constexpr int count = 5;
    std::array<double, count> numbers(std::int64_t step) const {
        if (!(learning_rate_power <= 0) || !std::isfinite(learning_rate_power))
            hyperparameter::refuse(learning_rate_power, step, "ftrl", "learning_rate_power", "must not be positive");
        hyperparameter(initial_accumulator_value).used(step, "ftrl", "initial_accumulator_value");
        const double rate = learning_rate.used_positive(step, "ftrl", "learning_rate");
        const double l2 = l2_regularization_strength.used(step, "ftrl", "l2_regularization_strength") +
                          beta.used(step, "ftrl", "beta") / (2 * rate);
        return {rate, -learning_rate_power, l1_regularization_strength.used(step, "ftrl", "l1_regularization_strength"),
                2 * l2,
                2 * l2_shrinkage_regularization_strength.used(step, "ftrl", "l2_shrinkage_regularization_strength")};
    }
    double first_value(std::string_view state) const { return state == "accumulator" ? initial_accumulator_value : 0; }
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        const auto a = slots.state(w, "accumulator");
        const auto z = slots.state(w, "linear");
        const auto next_a = eval(a + square(g));
        const auto power = eval(pow(next_a, n[1]));
        const auto next_z = eval(z + ((g + n[4] * w) - (power - pow(a, n[1])) / n[0] * w));
        slots.assign(a, next_a);
        slots.assign(z, next_z);
        slots.assign(w, (clip(next_z, -n[2], n[2]) - next_z) / (power / n[0] + n[3]));
    }
};

} // namespace tapegraph
