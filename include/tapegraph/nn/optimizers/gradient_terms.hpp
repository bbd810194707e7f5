#pragma once

#include <tapegraph/nn/optimizers/chain.hpp>
#include <tapegraph/nn/optimizers/masks.hpp>
#include <tapegraph/nn/optimizers/sparse.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>

/// Elements of a chain that add terms to gradients or subtract them.

namespace tapegraph {

/// g + weight_decay w: the gradient of weight_decay / 2 |w|^2 added to the loss (PyTorch's
/// weight_decay of SGD, optax's add_decayed_weights). adamw has decoupled decay. `Mask` selects
/// variables: `basic_add_weight_decay<except<"*/bias">>`.
template <class Mask = all_variables>
struct basic_add_weight_decay {
    hyperparameter weight_decay = 1e-4;

    static constexpr auto role = chain_role::gradient;
    static constexpr int count = 1;
    std::array<double, count> numbers(std::int64_t step) const {
        return {weight_decay.used(step, "add_weight_decay", "weight_decay")};
    }
    static constexpr auto transform(const auto& slots, const auto& w, const auto& g, const auto& n, const auto&) {
        const auto first = eval(g);
        return Mask::holds(slots) ? eval(first + n[0] * w) : first;
    }
};
using add_weight_decay = basic_add_weight_decay<>;

/// Subtracts the gradient's mean over all axes but the last (Yong et al. 2020); gradients of fewer
/// than two axes and of sparse rows are unchanged.
struct centralize_gradients {
    static constexpr auto role = chain_role::gradient;
    static constexpr int count = 0;
    std::array<double, count> numbers(std::int64_t) const { return {}; }
    static constexpr auto transform(const auto& slots, const auto& w, const auto& g, const auto&, const auto&) {
        const int rank = shape_of(w).rank();
        auto x = eval(g);
        if (detail::by_rows<std::remove_cvref_t<decltype(slots)>> || rank < 2) return x;
        auto average = mean(x, 0, {.keepdims = true});
        for (int axis = 1; axis < rank - 1; ++axis) average = mean(average, axis, {.keepdims = true});
        return eval(x - average);
    }
};

} // namespace tapegraph
