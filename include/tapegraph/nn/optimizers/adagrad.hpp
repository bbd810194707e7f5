#pragma once

#include <tapegraph/nn/optimizers/basic.hpp>

namespace tapegraph {

/// Adagrad (Duchi et al. 2011) in Keras's form: a <- a + g^2, w <- w - learning_rate g / sqrt(a +
/// epsilon). `a` starts at initial_accumulator_value, which is read when the model is created.
struct adagrad {
    hyperparameter learning_rate = 0.001;
    double initial_accumulator_value = 0.1;
    hyperparameter epsilon = 1e-7;

    static constexpr int count = 2;
    std::array<double, count> numbers(std::int64_t step) const {
        hyperparameter(initial_accumulator_value).used(step, "adagrad", "initial_accumulator_value");
        return {learning_rate.used(step, "adagrad", "learning_rate"), epsilon.used(step, "adagrad", "epsilon")};
    }
    double first_value(std::string_view state) const { return state == "accumulator" ? initial_accumulator_value : 0; }
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        const auto a = slots.state(w, "accumulator");
        const auto next = eval(a + square(g));
        slots.assign(a, next);
        slots.assign(w, w - n[0] * g / sqrt(next + n[1]));
    }
};

} // namespace tapegraph
