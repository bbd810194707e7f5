#pragma once

#include <tapegraph/nn/optimizers/hyperparameter.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

/// Schedules: numbers that depend on the step, which counts from 0 like Keras's iterations. Names,
/// members and formulas are those of keras.optimizers.schedules; where Keras has none, the comment
/// names the source.
///
/// A schedule throws argument_error where it has no number, for example with `decay_steps` of zero.
/// Its result is checked where it is used.

namespace tapegraph {

namespace detail {
/// A number of steps used as a divisor.
inline double divisor_of(double steps, const char* schedule, const char* member) {
    if (!(steps > 0) || !std::isfinite(steps)) hyperparameter::refuse(steps, 1, schedule, member, "must be positive");
    return steps;
}
/// A number that a schedule requires to obey a rule; an error names the rule that it breaks.
inline double within(bool valid, double value, const char* schedule, const char* member, const char* rule) {
    if (!valid || !std::isfinite(value)) hyperparameter::refuse(value, 1, schedule, member, rule);
    return value;
}
/// Interpolates from one number to another along half a cosine wave: `from` at 0, `to` at 1.
inline double along_cosine(double from, double to, double share) {
    return to + (from - to) * 0.5 * (1 + std::cos(std::numbers::pi * share));
}
} // namespace detail

/// initial_learning_rate decay_rate^(step / decay_steps); `staircase` rounds the quotient down.
struct exponential_decay {
    double initial_learning_rate = 0.01, decay_steps = 1000, decay_rate = 0.96;
    bool staircase = false;

    double operator()(std::int64_t step) const {
        const double p =
            static_cast<double>(step) / detail::divisor_of(decay_steps, "exponential_decay", "decay_steps");
        detail::within(decay_rate >= 0, decay_rate, "exponential_decay", "decay_rate", "must not be negative");
        return initial_learning_rate * std::pow(decay_rate, staircase ? std::floor(p) : p);
    }
};

/// initial_learning_rate / (1 + decay_rate step / decay_steps); `staircase` rounds the quotient
/// down.
struct inverse_time_decay {
    double initial_learning_rate = 0.01, decay_steps = 1000, decay_rate = 0.5;
    bool staircase = false;

    double operator()(std::int64_t step) const {
        const double p =
            static_cast<double>(step) / detail::divisor_of(decay_steps, "inverse_time_decay", "decay_steps");
        return initial_learning_rate / (1 + decay_rate * (staircase ? std::floor(p) : p));
    }
};

/// (initial_learning_rate - end_learning_rate) (1 - min(step, decay_steps) / decay_steps)^power +
/// end_learning_rate; with `cycle` the smallest multiple of decay_steps that is not below the step
/// replaces decay_steps.
struct polynomial_decay {
    double initial_learning_rate = 0.01, decay_steps = 1000, end_learning_rate = 0.0001, power = 1;
    bool cycle = false;

    double operator()(std::int64_t step) const {
        const double n = detail::divisor_of(decay_steps, "polynomial_decay", "decay_steps");
        detail::within(power >= 0, power, "polynomial_decay", "power", "must not be negative");
        const auto s = static_cast<double>(step);
        const double share = cycle ? s / (n * (step == 0 ? 1 : std::ceil(s / n))) : std::min(s, n) / n;
        return (initial_learning_rate - end_learning_rate) * std::pow(1 - share, power) + end_learning_rate;
    }
};

/// values[i] up to and including step boundaries[i], and the last one afterwards:
/// `piecewise_constant_decay<2>{.boundaries = {1000, 2000}, .values = {0.1, 0.01, 0.001}}`.
template <std::size_t Boundaries>
struct piecewise_constant_decay {
    std::array<std::int64_t, Boundaries> boundaries;
    std::array<double, Boundaries + 1> values;

    double operator()(std::int64_t step) const {
        std::size_t i = 0;
        while (i < Boundaries && step > boundaries[i]) ++i;
        return values[i];
    }
};

/// Half a cosine wave from initial_learning_rate to alpha times that (Loshchilov and Hutter 2016,
/// without restarts). With `warmup_steps`, it starts with a linear warmup from
/// initial_learning_rate to warmup_target, from where the wave descends; decay_steps are counted
/// from there.
struct cosine_decay {
    double initial_learning_rate = 0.01, decay_steps = 1000, alpha = 0;
    double warmup_target = 0, warmup_steps = 0;

    double operator()(std::int64_t step) const {
        const double n = detail::divisor_of(decay_steps, "cosine_decay", "decay_steps");
        detail::within(warmup_steps >= 0, warmup_steps, "cosine_decay", "warmup_steps", "must not be negative");
        const auto s = static_cast<double>(step);
        if (s < warmup_steps)
            return (warmup_target - initial_learning_rate) * (s / warmup_steps) + initial_learning_rate;
        const double from = warmup_steps > 0 ? warmup_target : initial_learning_rate;
        const double wave = 0.5 * (1 + std::cos(std::numbers::pi * (std::min(s - warmup_steps, n) / n)));
        return from * ((1 - alpha) * wave + alpha);
    }
};

/// Successive half waves (Loshchilov and Hutter 2016): each is t_mul times as long as the one
/// before and starts at m_mul times its height; alpha is the smallest fraction of
/// initial_learning_rate.
struct cosine_decay_restarts {
    double initial_learning_rate = 0.01, first_decay_steps = 1000, t_mul = 2, m_mul = 1, alpha = 0;

    double operator()(std::int64_t step) const {
        double length = detail::divisor_of(first_decay_steps, "cosine_decay_restarts", "first_decay_steps");
        detail::divisor_of(t_mul, "cosine_decay_restarts", "t_mul");
        double s = static_cast<double>(step), restarts = 0;
        if (t_mul == 1) {
            restarts = std::floor(s / length);
            s -= restarts * length;
        } else {
            // Subtracts whole waves, where Keras takes logarithms, which may miss a restart by
            // rounding. Waves that become shorter (t_mul below 1) end after first_decay_steps / (1
            // - t_mul): then nothing is left of them.
            while (s >= length) {
                s -= length;
                length *= t_mul;
                ++restarts;
                if (length < 1e-9 * first_decay_steps) return alpha * initial_learning_rate;
            }
        }
        const double wave = 0.5 * std::pow(m_mul, restarts) * (1 + std::cos(std::numbers::pi * (s / length)));
        return initial_learning_rate * ((1 - alpha) * wave + alpha);
    }
};

namespace detail {
/// One schedule for some steps, followed by another one, which counts its steps from 0 again.
template <class First, class Second>
struct one_then_another {
    First first;
    Second second;
    std::int64_t steps;

    double operator()(std::int64_t step) const { return step < steps ? first(step) : second(step - steps); }
};
} // namespace detail

/// A linear warmup from `start` to `target` within `steps` steps, and `target` from step `steps`
/// on. `.then(schedule)` continues with any other (optax's linear_schedule and join_schedules),
/// which counts its steps from there: `linear_warmup{.steps = 100, .target =
/// 0.1}.then(exponential_decay{.initial_learning_rate = 0.1})`.
struct linear_warmup {
    std::int64_t steps = 1000;
    double start = 0, target = 0.01;

    double operator()(std::int64_t step) const {
        if (step >= steps) return target;
        return start + (target - start) * (static_cast<double>(step) / static_cast<double>(steps));
    }
    /// The schedule that warms up and then follows `next`, whose steps begin at 0 there.
    template <schedule Next>
    detail::one_then_another<linear_warmup, Next> then(Next next) const {
        return {*this, next, steps};
    }
};

/// One cycle (Smith and Topin 2018) in PyTorch's form (OneCycleLR, two phases, cosine): from
/// max_rate / div_factor to max_rate at step pct_start total_steps - 1, then down to max_rate /
/// div_factor / final_div_factor at step total_steps - 1, where it stays. A cycle whose first phase
/// is only step 0 starts at max_rate.
struct one_cycle {
    double max_rate = 0.1, total_steps = 1000, pct_start = 0.3, div_factor = 25, final_div_factor = 1e4;

    double operator()(std::int64_t step) const {
        detail::within(total_steps >= 1, total_steps, "one_cycle", "total_steps", "must be at least 1");
        detail::within(pct_start >= 0 && pct_start <= 1, pct_start, "one_cycle", "pct_start", "must be within [0, 1]");
        const double first = max_rate / detail::divisor_of(div_factor, "one_cycle", "div_factor");
        const double last = first / detail::divisor_of(final_div_factor, "one_cycle", "final_div_factor");
        const double peak = pct_start * total_steps - 1, end = total_steps - 1;
        const double s = std::min(static_cast<double>(step), end);
        if (s <= peak) return peak > 0 ? detail::along_cosine(first, max_rate, s / peak) : max_rate;
        return detail::along_cosine(max_rate, last, (s - peak) / (end - peak));
    }
};

} // namespace tapegraph
