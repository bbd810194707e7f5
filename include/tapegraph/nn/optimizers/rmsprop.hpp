#pragma once

#include <tapegraph/nn/optimizers/basic.hpp>

namespace tapegraph {

/// RMSProp (Hinton 2012) in Keras's form: v <- rho v + (1 - rho) g^2, u = learning_rate g / sqrt(v
/// + epsilon), w <- w - u. If centred, a <- rho a + (1 - rho) g, and v - a^2 + epsilon is under the
/// root. With momentum, d <- momentum d + u, w <- w - d. The type determines the state: `rmsprop`,
/// `rmsprop_momentum`, `centered_rmsprop`, `centered_rmsprop_momentum`.
template <bool Momentum, bool Centered>
struct basic_rmsprop {
    hyperparameter learning_rate = 0.001;
    hyperparameter rho = 0.9;
    hyperparameter momentum = Momentum ? 0.9 : 0.0; ///< read where the type has momentum; otherwise it must be 0
    hyperparameter epsilon = 1e-7;

    static constexpr int count = 5;
    std::array<double, count> numbers(std::int64_t step) const {
        const double r = rho.used(step, "rmsprop", "rho"), u = momentum.used(step, "rmsprop", "momentum");
        if (!Momentum && u != 0)
            hyperparameter::refuse(u, step, "rmsprop", "momentum", "must be 0, rmsprop_momentum has one");
        return {learning_rate.used(step, "rmsprop", "learning_rate"), r, 1 - r,
                epsilon.used_positive(step, "rmsprop", "epsilon"), u};
    }
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        const auto v = slots.state(w, "rmsprop_v");
        const auto next_v = eval(n[1] * v + n[2] * square(g));
        slots.assign(v, next_v);
        if constexpr (Centered) {
            const auto a = slots.state(w, "rmsprop_average");
            const auto next_a = eval(n[1] * a + n[2] * g);
            slots.assign(a, next_a);
            finish(slots, w, n[0] * g / sqrt(next_v - square(next_a) + n[3]), n);
        } else {
            finish(slots, w, n[0] * g / sqrt(next_v + n[3]), n);
        }
    }

private:
    static constexpr void finish(const auto& slots, const auto& w, const auto& u, const auto& n) {
        if constexpr (Momentum) {
            const auto d = slots.state(w, "rmsprop_momentum");
            const auto next = eval(n[4] * d + u);
            slots.assign(d, next);
            slots.assign(w, w - next);
        } else {
            slots.assign(w, w - u);
        }
    }
};
using rmsprop = basic_rmsprop<false, false>;
using rmsprop_momentum = basic_rmsprop<true, false>;
using centered_rmsprop = basic_rmsprop<false, true>;
using centered_rmsprop_momentum = basic_rmsprop<true, true>;

} // namespace tapegraph
