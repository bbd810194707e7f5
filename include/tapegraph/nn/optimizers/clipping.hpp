#pragma once

#include <tapegraph/nn/optimizers/chain.hpp>
#include <tapegraph/nn/optimizers/length.hpp>
#include <tapegraph/nn/optimizers/sparse.hpp>
#include <tapegraph/ops/elementwise/trigonometric.hpp>

/// Elements of a chain that clip gradients, with TensorFlow's formulas.

namespace tapegraph {

/// Clips each element of the gradient to [-value, value] (Keras's clipvalue).
struct clip_by_value {
    hyperparameter value = 1;

    static constexpr auto role = chain_role::gradient;
    static constexpr int count = 1;
    std::array<double, count> numbers(std::int64_t step) const {
        return {value.used_positive(step, "clip_by_value", "value")};
    }
    static constexpr auto transform(const auto&, const auto&, const auto& g, const auto& n, const auto&) {
        return clip(g, -n[0], n[0]);
    }
};

/// Multiplies each variable's gradient by norm / max(|g|, norm) (Keras's clipnorm). Not for sparse
/// rows.
struct clip_by_norm {
    hyperparameter norm = 1;

    static constexpr auto role = chain_role::gradient;
    static constexpr int count = 1;
    std::array<double, count> numbers(std::int64_t step) const {
        return {norm.used_positive(step, "clip_by_norm", "norm")};
    }
    static constexpr auto transform(const auto& slots, const auto& w, const auto& g, const auto& n, const auto&) {
        detail::refuse_rows(slots, w, "clip_by_norm: the norm of a sparse gradient is not known, its rows may repeat");
        const auto length = detail::whole_length(g);
        return g * (n[0] / maximum(length, n[0]));
    }
};

/// Multiplies each gradient by min(norm / |all|, 1), where |all| is the norm of all of them
/// together (tf.clip_by_global_norm, Keras's global_clipnorm); NaN where that is not finite. Frozen
/// variables do not count. Not for sparse rows.
struct clip_by_global_norm {
    hyperparameter norm = 1;

    static constexpr auto role = chain_role::gradient;
    static constexpr bool shares = true;
    static constexpr int count = 1;
    std::array<double, count> numbers(std::int64_t step) const {
        return {norm.used_positive(step, "clip_by_global_norm", "norm")};
    }
    /// The factor.
    static constexpr auto shared(const auto& gradients, const auto& n) {
        const auto length_of = [](const auto& slots, const auto& w, const auto& g) {
            detail::refuse_rows(slots, w,
                                "clip_by_global_norm: the norm of a sparse gradient is not known, its rows may repeat");
            return detail::whole_length(g);
        };
        // Combines lengths by hypot, because their squares could overflow where the total length
        // does not.
        const auto length = gradients.fold(length_of, [](const auto& a, const auto& b) { return hypot(a, b); });
        return eval(where(length <= n[0], 1, n[0] / length) + (length - length));
    }
    static constexpr auto transform(const auto&, const auto& w, const auto& g, const auto&, const auto& factor) {
        return g * detail::as_type_of(w, factor);
    }
};

} // namespace tapegraph
