#pragma once

#include <tapegraph/core/number_text.hpp>
#include <tapegraph/nn/optimizers/chain.hpp>
#include <tapegraph/nn/optimizers/masks.hpp>
#include <tapegraph/nn/optimizers/sparse.hpp>
#include <tapegraph/ops/reduction/norm.hpp>

/// Elements of a chain that modify the values assigned to weights. They act in their order,
/// independently of the optimizer's position.

namespace tapegraph {

/// A learning rate for some variables: their update is `factor` times the optimizer's, w <- w +
/// factor (next - w). It acts on the update, not on the rate, so it means the same for every
/// optimizer, and decoupled weight decay is multiplied, too, as by a parameter group's rate in
/// PyTorch: `rate_for<"encoder", "embedding">{.factor = 0.1}`.
template <fixed_string... Patterns>
struct rate_for {
    hyperparameter factor = 1;

    static constexpr auto role = chain_role::weights;
    static constexpr int count = 1;
    std::array<double, count> numbers(std::int64_t step) const { return {factor.used(step, "rate_for", "factor")}; }
    static constexpr auto after(const auto& slots, const auto& w, const auto& next, const auto& n) {
        return only<Patterns...>::holds(slots) ? eval(w + n[0] * (next - w)) : next;
    }
};

/// Clips weights to [low, high], for the variables that `Mask` selects:
/// `basic_keep_within<only<"*/kernel">>{.low = 0}`.
template <class Mask = all_variables>
struct basic_keep_within {
    double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();

    static constexpr auto role = chain_role::weights;
    static constexpr int count = 2;
    std::array<double, count> numbers(std::int64_t) const {
        if (!(low <= high))
            throw argument_error("keep_within: low must not be above high, given " + number_text(low) + " and " +
                                 number_text(high));
        return {low, high};
    }
    static constexpr auto after(const auto& slots, const auto&, const auto& next, const auto& n) {
        return Mask::holds(slots) ? eval(clip(next, n[0], n[1])) : next;
    }
};
using keep_within = basic_keep_within<>;

/// Limits the norms of weights along the first axis (those of a unit's incoming weights) to `norm`,
/// in Keras's form (MaxNorm): w min(|w|, norm) / (1e-7 + |w|). Variables of fewer than two axes are
/// unchanged. Not for sparse rows.
template <class Mask = all_variables>
struct basic_limit_norm {
    hyperparameter norm = 2;

    static constexpr auto role = chain_role::weights;
    static constexpr int count = 1;
    std::array<double, count> numbers(std::int64_t step) const { return {norm.used(step, "limit_norm", "norm")}; }
    static constexpr auto after(const auto& slots, const auto& w, const auto& next, const auto& n) {
        if (!Mask::holds(slots) || shape_of(w).rank() < 2) return next;
        detail::refuse_rows(slots, w,
                            "limit_norm: norms along the first axis are not known where a gradient is sparse");
        const auto length = detail::euclidean(next, 1, true, std::source_location::current());
        return eval(next * (minimum(length, n[0]) / (1e-7 + length)));
    }
};
using limit_norm = basic_limit_norm<>;

} // namespace tapegraph
