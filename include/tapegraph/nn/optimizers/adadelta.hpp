#pragma once

#include <tapegraph/nn/optimizers/basic.hpp>

namespace tapegraph {

/// Adadelta (Zeiler 2012) in Keras's form, rms(x) = sqrt(x + epsilon): a <- rho a + (1 - rho) g^2, u = g rms(d) / rms(a),
/// d <- rho d + (1 - rho) u^2, w <- w - learning_rate u
struct adadelta {
    hyperparameter learning_rate = 0.001;
    hyperparameter rho = 0.95;
    hyperparameter epsilon = 1e-7;

    static constexpr int count = 4;
    std::array<double, count> numbers(std::int64_t step) const {
        const double r = rho.used(step, "adadelta", "rho");
        return {learning_rate.used(step, "adadelta", "learning_rate"), r, 1 - r,
                epsilon.used_positive(step, "adadelta", "epsilon")};
    }
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        const auto a = slots.state(w, "accumulated_grad");
        const auto d = slots.state(w, "accumulated_delta");
        const auto next = eval(n[1] * a + n[2] * square(g));
        const auto u = eval(sqrt(d + n[3]) * g / sqrt(next + n[3]));
        slots.assign(a, next);
        slots.assign(d, n[1] * d + n[2] * square(u));
        slots.assign(w, w - n[0] * u);
    }
};

} // namespace tapegraph
