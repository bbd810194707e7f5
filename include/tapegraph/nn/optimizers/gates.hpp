#pragma once

#include <tapegraph/nn/optimizers/chain.hpp>
#include <tapegraph/nn/optimizers/sparse.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>

/// Elements of a chain that suspend later elements in some steps.

namespace tapegraph {

/// Later elements receive the mean gradient of `steps` steps, in every `steps`-th step, and count
/// only these steps (Keras's gradient_accumulation_steps). Change `steps` only between rounds. Not
/// for sparse rows.
struct accumulate {
    std::int64_t steps = 2;

    static constexpr auto role = chain_role::gradient;
    static constexpr std::string_view state_name = "accumulated";
    static constexpr int count = 2;
    std::array<double, count> numbers(std::int64_t step) const {
        if (steps < 1) throw argument_error("accumulate: steps must be positive, given " + std::to_string(steps));
        return {step % steps == 0 ? 1.0 : 0.0, 1 / static_cast<double>(steps)};
    }
    /// The number, from 1, of the update that a step belongs to.
    std::int64_t applied(std::int64_t step) const { return (step - 1) / steps + 1; }
    static constexpr auto transform(const auto& slots, const auto& w, const auto& g, const auto& n, const auto&) {
        detail::refuse_rows(slots, w, "accumulate: a sparse gradient has other rows in every step");
        return (slots.state(w, state_name) + g) * n[1];
    }
    /// Adds a step's gradient to the sum; the step that updates clears it.
    static constexpr void remember(const auto& slots, const auto& w, const auto& g, const auto& n) {
        const auto before = slots.state(w, state_name);
        slots.assign(before, where(n[0] > 0.5, 0, before + g));
    }
    static constexpr auto gate(const auto& n, const auto&) { return n[0] > 0.5; }
};

/// In steps in which some gradient is not finite, later elements change nothing (optax's
/// apply_if_finite). Such a step counts: schedules and bias corrections advance. After `accumulate`
/// it checks the mean, and a bad one loses its `steps` steps.
struct skip_nonfinite {
    static constexpr auto role = chain_role::gradient;
    static constexpr bool shares = true;
    static constexpr int count = 0;
    std::array<double, count> numbers(std::int64_t) const { return {}; }
    /// 0, or NaN if any element is not finite. Rows may repeat.
    static constexpr auto shared(const auto& gradients, const auto&) {
        return eval(gradients.sum([](const auto&, const auto&, const auto& g) { return sum(g * 0); }) == 0);
    }
    static constexpr auto gate(const auto&, const auto& finite) { return finite; }
};

} // namespace tapegraph
