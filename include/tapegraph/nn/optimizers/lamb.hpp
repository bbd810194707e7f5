#pragma once

#include <tapegraph/nn/optimizers/basic.hpp>
#include <tapegraph/nn/optimizers/length.hpp>
#include <tapegraph/nn/optimizers/sparse.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>

namespace tapegraph {

/// LAMB (You et al. 2020) in Keras's form: m and v as in Adam, u = m / (1 - beta1^t) / (sqrt(v / (1
/// - beta2^t)) + epsilon), w <- w - learning_rate weight_decay w, w <- w - r learning_rate u, where
/// r = |w| / |u| with norms of the whole variable (1 if one of them is 0). Not for sparse rows.
struct lamb {
    hyperparameter learning_rate = 0.001;
    hyperparameter beta1 = 0.9, beta2 = 0.999;
    hyperparameter epsilon = 1e-7;
    hyperparameter weight_decay = 0;

    static constexpr int count = 7;
    std::array<double, count> numbers(std::int64_t step) const {
        const double rate = learning_rate.used(step, "lamb", "learning_rate");
        const double b1 = beta1.used_below_one(step, "lamb", "beta1"), b2 = beta2.used_below_one(step, "lamb", "beta2");
        const auto t = static_cast<double>(step);
        return {rate,
                1 - b1,
                1 - b2,
                epsilon.used(step, "lamb", "epsilon"),
                1 - std::pow(b1, t),
                1 - std::pow(b2, t),
                rate * weight_decay.used(step, "lamb", "weight_decay")};
    }
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        detail::refuse_rows(slots, w, "lamb: norms of a whole variable are not known where its gradient is sparse");
        const auto m = slots.state(w, "lamb_m");
        const auto v = slots.state(w, "lamb_v");
        const auto next_m = eval(m + n[1] * (g - m));
        const auto next_v = eval(v + n[2] * (square(g) - v));
        slots.assign(m, next_m);
        slots.assign(v, next_v);
        const auto u = eval(next_m / n[4] / (sqrt(next_v / n[5]) + n[3]));
        const auto decayed = eval(w - w * n[6]);
        const auto long_w = detail::whole_length(decayed);
        const auto long_u = detail::whole_length(u);
        const auto ratio = eval(where(long_w > 0, where(long_u > 0, long_w / long_u, 1), 1));
        slots.assign(w, decayed - ratio * n[0] * u);
    }
};

} // namespace tapegraph
