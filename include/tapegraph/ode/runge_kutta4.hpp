#pragma once

#include <tapegraph/ode/dense_step.hpp>
#include <tapegraph/ode/state.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace tapegraph::ode {

/// The classical Runge-Kutta method of order 4 with steps of one length. Its dense output is the cubic with the values
/// and derivatives of both ends of a step.
struct runge_kutta4 {
    std::int64_t steps = 100;
};

/// The stages of a step: afterwards `next` is the state at its end.
template <class F, class S>
struct runge_kutta4_stages {
    using T = time_of<S>;
    const F& f;
    std::array<S, 4> k;
    S next;

    runge_kutta4_stages(const F& function, const S& like) : f(function), k{like, like, like, like}, next(like) {}
    void begin(T t, const S& y) { rate(f, t, y, k[0]); }
    /// Computes the stages of a step of length h from the state y at time t.
    void run(T t, T h, const S& y) {
        const std::size_t n = scalars::length(y);
        for (std::size_t i = 0; i < n; ++i) next[i] = y[i] + h / 2 * k[0][i];
        rate(f, t + h / 2, next, k[1]);
        for (std::size_t i = 0; i < n; ++i) next[i] = y[i] + h / 2 * k[1][i];
        rate(f, t + h / 2, next, k[2]);
        for (std::size_t i = 0; i < n; ++i) next[i] = y[i] + h * k[2][i];
        rate(f, t + h, next, k[3]);
        for (std::size_t i = 0; i < n; ++i) next[i] = y[i] + h / 6 * (k[0][i] + 2 * (k[1][i] + k[2][i]) + k[3][i]);
    }
    /// Takes the derivative at the end into k[1], which the step needs no more.
    dense_step<S> dense(T t, T h, const S& y) {
        rate(f, t + h, next, k[1]);
        return {y, next, k[0], k[1], h};
    }
};

/// Moves y from t to `end`. Calls observe(t, h, y, stages) after each step, before y is moved.
template <class F, class S, class Observe>
statistics advance(const runge_kutta4& method, const F& f, S& y, time_of<S> t, time_of<S> end, const Observe& observe) {
    using T = time_of<S>;
    if (method.steps < 1)
        throw argument_error("ode::runge_kutta4: " + std::to_string(method.steps) + " steps, at least 1");
    require_times(t, end);
    statistics counts;
    if (t == end) return counts;
    runge_kutta4_stages<F, S> stages(f, y);
    for (std::int64_t i = 0; i < method.steps; ++i) {
        const T from = t + (end - t) * static_cast<T>(i) / static_cast<T>(method.steps);
        const T h = (end - t) / static_cast<T>(method.steps);
        stages.begin(from, y);
        stages.run(from, h, y);
        if (!all_finite(stages.next)) refuse_rate(time_text(from));
        observe(from, h, y, stages);
        std::swap(y, stages.next);
        ++counts.steps;
        counts.evaluations += 4;
    }
    return counts;
}

} // namespace tapegraph::ode
