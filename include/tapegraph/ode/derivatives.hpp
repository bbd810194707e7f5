#pragma once

#include <tapegraph/ode/solve.hpp>
#include <tapegraph/scalar/checkpoints.hpp>
#include <tapegraph/scalar/tape.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

/// Derivatives of solutions in less memory than the tape of all steps: by checkpoints, and by the adjoint equation.

namespace tapegraph::ode {

namespace detail {

template <class T>
std::vector<T> values_of(const std::vector<real<T>>& numbers) {
    std::vector<T> values;
    values.reserve(numbers.size());
    for (const real<T>& each : numbers) values.push_back(each.value());
    return values;
}

/// A step as checkpointed_steps takes it: step i goes from times[i] to times[i] + sizes[i].
template <class M, class F, class T>
struct repeated_step {
    F f;
    std::vector<T> times, sizes;
    template <class N>
    void operator()(std::vector<N>& state, const std::vector<N>& parameters, std::size_t i) const {
        const with_parameters<F, std::vector<N>> rates{f, parameters};
        const auto move = [&](auto stages) {
            stages.begin(times[i], state);
            stages.run(times[i], sizes[i], state);
            state = std::move(stages.next);
        };
        if constexpr (std::same_as<M, dormand_prince>)
            move(dormand_prince_stages<with_parameters<F, std::vector<N>>, std::vector<N>>(rates, state));
        else
            move(runge_kutta4_stages<with_parameters<F, std::vector<N>>, std::vector<N>>(rates, state));
    }
};

/// The adjoint equation, backward in time: l' = -(df/dy)' l, and m' = -(df/dp)' l, whose integral is the derivative by
/// the parameters.
template <class F, class T>
struct adjoint_rates {
    const F& f;
    const solution<std::vector<T>>& states;
    const std::vector<T>& parameters;

    void operator()(T t, const std::vector<T>& z, std::vector<T>& dz) const {
        // A step may end beyond the interval by a rounding.
        const auto [first, last] = std::minmax(states.times().front(), states.times().back());
        const std::vector<T> at = states(std::clamp(t, first, last));
        real_tape<T> tape;
        std::vector<real<T>> y(at.begin(), at.end()), p(parameters.begin(), parameters.end()), dy(y.size());
        tape.watch(y);
        tape.watch(p);
        with_parameters<F, std::vector<real<T>>>{f, p}(t, std::as_const(y), dy);
        tape.clear_adjoints();
        for (std::size_t i = 0; i < y.size(); ++i) tape.add_adjoint(dy[i], -z[i]);
        tape.sweep();
        for (std::size_t i = 0; i < y.size(); ++i) dz[i] = tape.adjoint(y[i]);
        for (std::size_t i = 0; i < p.size(); ++i) dz[y.size() + i] = tape.adjoint(p[i]);
    }
};

} // namespace detail

/// integrate for numbers on the tape, with the derivatives of the discrete solution, as by taping all steps; but at
/// most `kept` states and the tape of one step are kept, and steps run again when a gradient is taken
/// (checkpointed_steps). f(t, y, parameters) is a template of the numbers' type, returns a sequence or writes to a
/// fourth argument, and reads no other numbers of the tape.
template <class T, class F, solver M = dormand_prince>
[[nodiscard]] std::vector<real<T>> checkpointed(real_tape<T>& tape, const F& f, const std::vector<real<T>>& begin_state,
                                                const std::vector<real<T>>& parameters, T begin, T end,
                                                std::size_t kept, const M& method = {}) {
    detail::repeated_step<M, F, T> step{f, {}, {}};
    std::vector<T> y = detail::values_of(begin_state);
    const std::vector<T> p = detail::values_of(parameters);
    // Runs once to find the steps.
    advance(method, with_parameters<F, std::vector<T>>{f, p}, y, begin, end, [&](T t, T h, const auto&...) {
        step.times.push_back(t);
        step.sizes.push_back(h);
    });
    const std::size_t steps = step.times.size();
    return checkpointed_steps(tape, begin_state, parameters, steps, kept, std::move(step));
}

/// integrate for numbers on the tape, with derivatives by the adjoint equation, which is integrated backward by the
/// same method along the solution's dense output. They are those of the exact solution, up to the tolerances, and not
/// those of the steps: a search that needs exact derivatives of what it computes wants checkpointed. The forward
/// solution is kept until the tape is cleared.
template <class T, class F, solver M = dormand_prince>
[[nodiscard]] std::vector<real<T>> adjoint(real_tape<T>& tape, const F& f, const std::vector<real<T>>& begin_state,
                                           const std::vector<real<T>>& parameters, T begin, T end,
                                           const M& method = {}) {
    std::vector<T> p = detail::values_of(parameters);
    auto whole = solve(with_parameters<F, std::vector<T>>{f, p}, detail::values_of(begin_state), begin, end, method);
    std::vector<real<T>> inputs = begin_state;
    inputs.insert(inputs.end(), parameters.begin(), parameters.end());
    const std::vector<T> last = whole.states().back();
    return tape.external(
        inputs, last,
        [f, whole = std::move(whole), p = std::move(p), method, begin, end](std::span<const T> of_last,
                                                                            std::span<T> of_inputs) {
            std::vector<T> z(of_inputs.size());
            std::copy(of_last.begin(), of_last.end(), z.begin());
            const std::vector<T> result = integrate(detail::adjoint_rates<F, T>{f, whole, p}, z, end, begin, method);
            for (std::size_t i = 0; i < of_inputs.size(); ++i) of_inputs[i] = result[i];
        });
}

} // namespace tapegraph::ode
