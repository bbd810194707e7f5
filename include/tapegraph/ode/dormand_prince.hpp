#pragma once

#include <tapegraph/ode/dense_step.hpp>
#include <tapegraph/ode/state.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace tapegraph::ode {

/// The explicit Runge-Kutta method of orders 5 and 4 of Dormand and Prince (1980), with steps that keep the estimated
/// error of each step below absolute_tolerance + relative_tolerance * |y|, in the root mean square over the state. The
/// controller (proportional and integral), its constants, the first step and the dense output are those of DOPRI5
/// (Hairer, Norsett and Wanner 1993, sections II.4 to II.6). Derivatives that a state carries follow the steps that its
/// values want.
struct dormand_prince {
    double relative_tolerance = 1e-6;
    double absolute_tolerance = 1e-9;
    double initial_step = 0; ///< its size; 0: chosen from the derivatives
    double max_step = 0;     ///< its size; 0: the whole interval
    std::int64_t max_steps = 100000;
};

/// The method's coefficients.
template <class T>
struct dormand_prince_table {
    static constexpr std::array<T, 7> times{0, T(1) / 5, T(3) / 10, T(4) / 5, T(8) / 9, 1, 1};
    static constexpr T a[7][6]{{},
                               {T(1) / 5},
                               {T(3) / 40, T(9) / 40},
                               {T(44) / 45, -T(56) / 15, T(32) / 9},
                               {T(19372) / 6561, -T(25360) / 2187, T(64448) / 6561, -T(212) / 729},
                               {T(9017) / 3168, -T(355) / 33, T(46732) / 5247, T(49) / 176, -T(5103) / 18656},
                               {T(35) / 384, 0, T(500) / 1113, T(125) / 192, -T(2187) / 6784, T(11) / 84}};
    /// The difference of the solutions of orders 5 and 4.
    static constexpr std::array<T, 7> error{T(71) / 57600,      0,           -T(71) / 16695, T(71) / 1920,
                                            -T(17253) / 339200, T(22) / 525, -T(1) / 40};
    static constexpr std::array<T, 7> dense{-T(12715105075) / T(11282082432),  0,
                                            T(87487479700) / T(32700410799),   -T(10690763975) / T(1880347072),
                                            T(701980252875) / T(199316789632), -T(1453857185) / T(822651844),
                                            T(69997945) / T(29380423)};
};

/// The stages of a step. k[0] is the derivative at its beginning; afterwards `next` is the state at its end and k[6]
/// the derivative there.
template <class F, class S>
struct dormand_prince_stages {
    using T = time_of<S>;
    using table = dormand_prince_table<T>;
    const F& f;
    std::array<S, 7> k;
    S next;

    dormand_prince_stages(const F& function, const S& like)
        : f(function), k{like, like, like, like, like, like, like}, next(like) {}
    void begin(T t, const S& y) { rate(f, t, y, k[0]); }
    /// Computes the stages of a step of length h from the state y at time t.
    void run(T t, T h, const S& y) {
        stage<1>(t, h, y);
        stage<2>(t, h, y);
        stage<3>(t, h, y);
        stage<4>(t, h, y);
        stage<5>(t, h, y);
        stage<6>(t, h, y);
    }
    /// The error in units of the tolerance.
    T error(T h, const S& y, T absolute, T relative) const {
        T sum = 0;
        const std::size_t n = scalars::length(y);
        for (std::size_t i = 0; i < n; ++i) {
            T e = 0;
            for (std::size_t s = 0; s < 7; ++s) e += table::error[s] * plain_value(k[s][i]);
            const T scale = absolute + relative * std::max(std::abs(plain_value(y[i])), std::abs(plain_value(next[i])));
            const T ratio = h * e / scale;
            sum += e == 0 ? T(0) : ratio * ratio;
        }
        return n == 0 ? T(0) : std::sqrt(sum / static_cast<T>(n));
    }
    /// The polynomial through the step, for states between its ends.
    dense_step<S> dense(T h, const S& y) const {
        dense_step<S> d(y, next, k[0], k[6], h);
        for (std::size_t i = 0; i < scalars::length(y); ++i)
            d.coefficients[3][i] =
                h * (table::dense[0] * k[0][i] + table::dense[2] * k[2][i] + table::dense[3] * k[3][i] +
                     table::dense[4] * k[4][i] + table::dense[5] * k[5][i] + table::dense[6] * k[6][i]);
        return d;
    }

private:
    // One formula, so one statement on a tape, for each number.
    template <std::size_t Stage>
    void stage(T t, T h, const S& y) {
        constexpr const T(&a)[6] = table::a[Stage];
        for (std::size_t i = 0; i < scalars::length(y); ++i) {
            if constexpr (Stage == 1)
                next[i] = y[i] + h * a[0] * k[0][i];
            else if constexpr (Stage == 2)
                next[i] = y[i] + h * (a[0] * k[0][i] + a[1] * k[1][i]);
            else if constexpr (Stage == 3)
                next[i] = y[i] + h * (a[0] * k[0][i] + a[1] * k[1][i] + a[2] * k[2][i]);
            else if constexpr (Stage == 4)
                next[i] = y[i] + h * (a[0] * k[0][i] + a[1] * k[1][i] + a[2] * k[2][i] + a[3] * k[3][i]);
            else if constexpr (Stage == 5)
                next[i] =
                    y[i] + h * (a[0] * k[0][i] + a[1] * k[1][i] + a[2] * k[2][i] + a[3] * k[3][i] + a[4] * k[4][i]);
            else // a[1] is 0
                next[i] =
                    y[i] + h * (a[0] * k[0][i] + a[2] * k[2][i] + a[3] * k[3][i] + a[4] * k[4][i] + a[5] * k[5][i]);
        }
        rate(f, t + table::times[Stage] * h, next, k[Stage]);
    }
};

/// Chooses the first step: Hairer, Norsett and Wanner, section II.4.
template <class F, class S>
time_of<S> first_step(const dormand_prince_stages<F, S>& stages, const S& y, time_of<S> t, time_of<S> direction,
                      time_of<S> most, const dormand_prince& method) {
    using T = time_of<S>;
    const std::size_t n = scalars::length(y);
    const auto scaled = [&](const auto& number) {
        T sum = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const T scale = static_cast<T>(method.absolute_tolerance) +
                            static_cast<T>(method.relative_tolerance) * std::abs(plain_value(y[i]));
            const T ratio = number(i) / scale;
            sum += ratio * ratio;
        }
        return n == 0 ? T(0) : std::sqrt(sum / static_cast<T>(n));
    };
    const T d0 = scaled([&](std::size_t i) { return plain_value(y[i]); });
    const T d1 = scaled([&](std::size_t i) { return plain_value(stages.k[0][i]); });
    T h = d0 < T(1e-5) || d1 < T(1e-5) ? T(1e-6) : T(0.01) * d0 / d1;
    h = std::min(h, most);
    S moved = y, moved_rate = y;
    for (std::size_t i = 0; i < n; ++i) moved[i] = y[i] + direction * h * stages.k[0][i];
    rate(stages.f, t + direction * h, moved, moved_rate);
    const T d2 = scaled([&](std::size_t i) { return plain_value(moved_rate[i]) - plain_value(stages.k[0][i]); }) / h;
    const T larger = std::max(d1, d2);
    T next = larger <= T(1e-15) ? std::max(T(1e-6), h * T(1e-3)) : std::pow(T(0.01) / larger, T(0.2));
    if (!std::isfinite(next)) next = h / 10;
    return std::min({100 * h, next, most});
}

/// Moves y from t to `end`. Calls observe(t, h, y, stages) after each step, before y is moved.
template <class F, class S, class Observe>
statistics advance(const dormand_prince& method, const F& f, S& y, time_of<S> t, time_of<S> end,
                   const Observe& observe) {
    using T = time_of<S>;
    if (!(method.relative_tolerance >= 0 && method.absolute_tolerance >= 0 &&
          method.relative_tolerance + method.absolute_tolerance > 0))
        throw argument_error("ode::dormand_prince: tolerances are " + number_text(method.relative_tolerance) +
                             " (relative) and " + number_text(method.absolute_tolerance) +
                             " (absolute); one must be positive, none negative");
    if (!(method.initial_step >= 0 && method.max_step >= 0))
        throw argument_error("ode::dormand_prince: sizes of steps are not negative, whatever the direction");
    require_times(t, end);
    statistics counts;
    if (t == end) return counts;
    dormand_prince_stages<F, S> stages(f, y);
    const T direction = end > t ? T(1) : T(-1), length = std::abs(end - t);
    const T most = method.max_step > 0 ? std::min(static_cast<T>(method.max_step), length) : length;
    stages.begin(t, y);
    ++counts.evaluations;
    if (!all_finite(stages.k[0])) refuse_rate(time_text(t));
    recorded_attempt<number_of<S>> attempt;
    attempt.begin();
    T h = most;
    if (method.initial_step > 0) {
        h = std::min(static_cast<T>(method.initial_step), most);
    } else {
        h = first_step(stages, y, t, direction, most, method);
        attempt.forget();
        ++counts.evaluations;
    }
    const T absolute = static_cast<T>(method.absolute_tolerance), relative = static_cast<T>(method.relative_tolerance);
    T error_before = T(1e-4);
    bool rejected = false, finite = true;
    for (;;) {
        if (counts.steps + counts.rejected >= method.max_steps)
            throw numeric_error("ode::dormand_prince: " + std::to_string(method.max_steps) +
                                " steps have led to t = " + time_text(t) + ", and not to t = " + time_text(end));
        if (h < 10 * std::numeric_limits<T>::epsilon() * std::abs(t) || h < std::numeric_limits<T>::min()) {
            if (!finite) refuse_rate(time_text(t + direction * h));
            throw numeric_error("ode::dormand_prince: the step size has become " + number_text(h) + " at t = " +
                                time_text(t) + ": the solution may be singular there, or the tolerance too small");
        }
        // The last step ends at the end, also when it would end close before it.
        const T rest = std::abs(end - t);
        const bool last = h * T(1.01) >= rest;
        if (last) h = rest;
        attempt.begin();
        stages.run(t, direction * h, y);
        counts.evaluations += 6;
        const T error = stages.error(h, y, absolute, relative);
        finite = std::isfinite(error) && all_finite(stages.next);
        const T growth = finite ? std::pow(error, T(0.2) - T(0.03)) : T(10);
        if (finite && error <= 1) {
            observe(t, direction * h, y, stages);
            std::swap(y, stages.next);
            std::swap(stages.k[0], stages.k[6]);
            ++counts.steps;
            if (last) return counts;
            t += direction * h;
            const T divisor = std::clamp(growth / std::pow(error_before, T(0.04)) / T(0.9), T(0.1), T(5));
            error_before = std::max(error, T(1e-4));
            h = std::min(rejected ? std::min(h / divisor, h) : h / divisor, most);
            rejected = false;
        } else {
            attempt.forget();
            h /= finite ? std::min(T(5), growth / T(0.9)) : T(10);
            rejected = true;
            ++counts.rejected;
        }
    }
}

} // namespace tapegraph::ode
