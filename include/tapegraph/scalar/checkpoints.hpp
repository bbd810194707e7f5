#pragma once

#include <tapegraph/scalar/tape.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

/// Long loops of steps in little memory: only some states are stored, and the steps between them run
/// again when the derivative is taken. The binomial schedule of Griewank and Walther (2000), "Algorithm
/// 799: revolve", selects the states; it runs the fewest steps for a given number of states.

namespace tapegraph {

namespace scalars {

/// The number of steps that c states can reverse if no step is run more than `again` times, binomial(c + again, c).
constexpr std::uint64_t reversible_steps(std::uint64_t c, std::int64_t again) {
    if (again < 0) return 0;
    std::uint64_t steps = 1;
    for (std::uint64_t i = 1; i <= static_cast<std::uint64_t>(again); ++i) {
        steps = steps * (c + i) / i;
        if (steps > (std::uint64_t{1} << 40)) break; // more than anyone runs, and far from an overflow
    }
    return steps;
}

/// Where the next state is kept: after how many of `steps` steps, if `states` (2 at least) can be kept with the one at
/// their beginning.
constexpr std::uint64_t next_kept(std::uint64_t steps, std::uint64_t states) {
    std::int64_t again = 0;
    while (reversible_steps(states, again) < steps) ++again;
    const std::uint64_t most = reversible_steps(states, again - 1), right = reversible_steps(states - 1, again - 1);
    return std::max<std::uint64_t>(1, std::min(most, steps > right ? steps - right : 1));
}

/// The steps of checkpointed_steps: runs them without a tape, and backward.
template <class T, class F>
class step_reversal {
public:
    step_reversal(F step, std::size_t steps, std::size_t states, std::vector<T> parameters)
        : step_(std::move(step)), steps_(steps), states_(states), parameters_(std::move(parameters)) {}

    /// The state after all steps. Keeps states on the way.
    std::vector<T> run(std::vector<T> state) {
        kept_.push_back({0, std::move(state)});
        before_last_ = descend(steps_);
        std::vector<T> last = before_last_;
        advance(last, steps_ - 1, steps_);
        return last;
    }
    /// Carries the adjoints of the last state to the first one, and adds to those of the parameters.
    void pull(std::span<T> adjoints, std::span<T> of_parameters) {
        real_tape<T> tape;
        for (std::size_t i = steps_; i-- > 0;) {
            // The run has come by the last step's state; when a derivative is taken once more it is gone.
            const bool first = i + 1 == steps_ && !before_last_.empty();
            const std::vector<T> before = first ? std::exchange(before_last_, {}) : descend(i + 1);
            record(tape, before, i, adjoints, of_parameters);
            if (i > 0 && kept_.back().steps == i) kept_.pop_back();
        }
    }

private:
    struct kept_state {
        std::size_t steps;
        std::vector<T> state;
    };

    // The state before step end - 1, keeping states on the way as the schedule says.
    std::vector<T> descend(std::size_t end) {
        std::vector<T> state = kept_.back().state;
        std::size_t at = kept_.back().steps;
        while (end - at > 1) {
            const std::size_t free = states_ - kept_.size() + 1;
            if (free <= 1) {
                advance(state, at, end - 1);
                break;
            }
            const auto steps = static_cast<std::size_t>(next_kept(end - at, free));
            advance(state, at, at + steps);
            at += steps;
            kept_.push_back({at, state});
        }
        return state;
    }
    void advance(std::vector<T>& state, std::size_t from, std::size_t to) {
        if constexpr (std::is_invocable_v<const F&, std::vector<T>&, const std::vector<T>&, std::size_t>) {
            for (std::size_t i = from; i < to; ++i) step_(state, std::as_const(parameters_), i);
        } else {
            std::vector<real<T>> numbers(state.begin(), state.end());
            const std::vector<real<T>> constants(parameters_.begin(), parameters_.end());
            for (std::size_t i = from; i < to; ++i) step_(numbers, constants, i);
            state.clear();
            for (const real<T>& x : numbers) state.push_back(x.value());
        }
    }
    void record(real_tape<T>& tape, const std::vector<T>& before, std::size_t i, std::span<T> adjoints,
                std::span<T> of_parameters) {
        tape.clear();
        std::vector<real<T>> first(before.begin(), before.end()), parameters(parameters_.begin(), parameters_.end());
        tape.watch(first);
        tape.watch(parameters);
        std::vector<real<T>> last = first;
        step_(last, std::as_const(parameters), i);
        tape.clear_adjoints();
        for (std::size_t k = 0; k < last.size(); ++k) tape.add_adjoint(last[k], adjoints[k]);
        tape.sweep();
        for (std::size_t k = 0; k < first.size(); ++k) adjoints[k] = tape.adjoint(first[k]);
        for (std::size_t k = 0; k < parameters.size(); ++k) of_parameters[k] += tape.adjoint(parameters[k]);
    }

    F step_;
    std::size_t steps_, states_;
    std::vector<T> parameters_;
    std::vector<kept_state> kept_;
    std::vector<T> before_last_;
};

} // namespace scalars

/// The state after `steps` calls of step(state, parameters, i), i = 0, 1, ..., where state and
/// parameters are vectors of numbers. At most `kept` states are stored, besides the one before the last
/// step; steps run again as often as that requires. `step` changes the state but not its length; it is a
/// template of the numbers' type (`auto&`), or takes vectors of real<T>. It reads no other numbers of
/// the tape, is stored until the tape is cleared, and must do the same whenever it is called.
template <class T, class F>
std::vector<real<T>> checkpointed_steps(real_tape<T>& tape, const std::vector<real<T>>& state,
                                        const std::vector<real<T>>& parameters, std::size_t steps, std::size_t kept,
                                        F step) {
    if (kept == 0) throw argument_error("checkpointed_steps: at least 1 state must be kept");
    if (steps == 0) return state;
    const auto values = [](const std::vector<real<T>>& numbers) {
        std::vector<T> plain;
        for (const real<T>& x : numbers) plain.push_back(x.value());
        return plain;
    };
    const std::size_t size = state.size();
    scalars::step_reversal<T, F> reversal(std::move(step), steps, kept, values(parameters));
    const std::vector<T> last = reversal.run(values(state));
    if (last.size() != size)
        throw argument_error("checkpointed_steps: a step has changed the length of the state from " +
                             std::to_string(size) + " to " + std::to_string(last.size()));
    std::vector<real<T>> inputs = state;
    inputs.insert(inputs.end(), parameters.begin(), parameters.end());
    return tape.external(
        inputs, last,
        [reversal = std::move(reversal), size](std::span<const T> of_last, std::span<T> of_inputs) mutable {
            const std::span<T> of_state = of_inputs.first(size);
            std::copy(of_last.begin(), of_last.end(), of_state.begin());
            reversal.pull(of_state, of_inputs.subspan(size));
        });
}

} // namespace tapegraph
