#pragma once

#include <tapegraph/ode/dormand_prince.hpp>
#include <tapegraph/ode/runge_kutta4.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <utility>
#include <vector>

namespace tapegraph::ode {

/// A method of integration that the library has.
template <class M>
concept solver = std::same_as<M, dormand_prince> || std::same_as<M, runge_kutta4>;

/// The state at `end` of y' = f(t, y) with the state `begin_state` at `begin`; `end` may be earlier. A state is a
/// vector, array, span or column vector of Eigen's, of plain numbers, tg::real or jets; f returns a sequence of the
/// same length, or is f(t, y, dy) and writes to dy. Times are plain numbers. Numbers that record are differentiated
/// through the steps that were accepted, and f must not keep numbers between calls. Throws numeric_error, with the
/// time, where the derivative is not finite, the step size underflows or max_steps do not lead to the end;
/// argument_error if the method's numbers make no sense; shape_error if f gives another length.
template <class F, initial_state Y, solver M = dormand_prince>
[[nodiscard]] state_of<Y> integrate(const F& f, const Y& begin_state, time_of<Y> begin, time_of<Y> end,
                                    const M& method = {}) {
    state_of<Y> y = copied(begin_state);
    advance(method, f, y, begin, end, [](const auto&...) {});
    return y;
}

/// The solution on an interval: the states at the ends of steps, and any between.
template <class S>
class solution {
public:
    using T = time_of<S>;
    solution(T begin, S state) : times_{begin}, states_{std::move(state)} {}

    /// The state at t. Throws range_error outside of the interval.
    S operator()(T t) const {
        const bool forward = times_.back() >= times_.front();
        if (!(forward ? times_.front() <= t && t <= times_.back() : times_.back() <= t && t <= times_.front()))
            throw range_error("ode::solution: t = " + time_text(t) + " is outside of [" +
                              time_text(std::min(times_.front(), times_.back())) + ", " +
                              time_text(std::max(times_.front(), times_.back())) + "]");
        const auto after =
            std::lower_bound(times_.begin(), times_.end(), t, [&](T a, T b) { return forward ? a < b : a > b; });
        const auto k = static_cast<std::size_t>(after - times_.begin());
        if (times_[k] == t) return states_[k];
        return steps_[k - 1].at(states_[k - 1], (t - times_[k - 1]) / (times_[k] - times_[k - 1]));
    }
    /// The beginning, and the end of each step.
    const std::vector<T>& times() const { return times_; }
    /// The states at the ends of all steps.
    const std::vector<S>& states() const { return states_; }
    /// Steps and evaluations of the derivative.
    const statistics& counts() const { return counts_; }

    /// Adds a step and the state at its end.
    void add(T end, const S& state, dense_step<S> step) {
        times_.push_back(end);
        states_.push_back(state);
        steps_.push_back(std::move(step));
    }
    /// Sets what `counts` returns.
    void set_counts(const statistics& counts) { counts_ = counts; }

private:
    std::vector<T> times_;
    std::vector<S> states_;
    std::vector<dense_step<S>> steps_;
    statistics counts_;
};

/// As integrate, but keeps every step: five states each.
template <class F, initial_state Y, solver M = dormand_prince>
[[nodiscard]] solution<state_of<Y>> solve(const F& f, const Y& begin_state, time_of<Y> begin, time_of<Y> end,
                                          const M& method = {}) {
    using T = time_of<Y>;
    state_of<Y> y = copied(begin_state);
    solution<state_of<Y>> whole(begin, y);
    statistics counts = advance(method, f, y, begin, end, [&](T t, T h, const auto& before, auto& stages) {
        // The last step ends at the end, which t + h may miss by a rounding.
        const T next = std::abs(end - (t + h)) <= std::abs(h) * T(1e-3) ? end : t + h;
        if constexpr (std::same_as<M, dormand_prince>)
            whole.add(next, stages.next, stages.dense(h, before));
        else
            whole.add(next, stages.next, stages.dense(t, h, before));
    });
    if constexpr (std::same_as<M, runge_kutta4>) counts.evaluations += counts.steps;
    whole.set_counts(counts);
    return whole;
}

} // namespace tapegraph::ode
