#pragma once

#include <tapegraph/nn/optimizers/schedules.hpp>

#include <cmath>
#include <cstdint>
#include <string>

/// Every schedule with options at the limits of their ranges, and its formula, written for this test from the documentation of
/// Keras, optax and PyTorch.
/// tools/check_lists.py compares the list with the header.

namespace every_schedule {

namespace tg = tapegraph;

inline constexpr long double pi = 3.14159265358979323846264338327950288L;

/// f(what, schedule, formula, last): last is the step that the schedule ends with. formula(step) in long double.
template <class F>
void for_every_schedule(const F& f) {
    for (const double steps : {0.5, 1.0, 10.0}) {
        const std::string text = std::to_string(steps);
        const auto last = static_cast<std::int64_t>(steps);
        for (const bool staircase : {false, true}) {
            const auto quotient = [=](std::int64_t step) {
                const long double p = static_cast<long double>(step) / steps;
                return staircase ? std::floor(p) : p;
            };
            for (const double rate : {0.0, 0.5, 1.0, 1.5}) {
                f(
                    "exponential_decay " + text,
                    tg::exponential_decay{
                        .initial_learning_rate = 0.1, .decay_steps = steps, .decay_rate = rate, .staircase = staircase},
                    [=](std::int64_t step) { return 0.1L * std::pow(static_cast<long double>(rate), quotient(step)); },
                    last);
                f(
                    "inverse_time_decay " + text,
                    tg::inverse_time_decay{
                        .initial_learning_rate = 0.1, .decay_steps = steps, .decay_rate = rate, .staircase = staircase},
                    [=](std::int64_t step) { return 0.1L / (1 + rate * quotient(step)); }, last);
            }
        }
        for (const double power : {0.0, 0.5, 1.0, 2.0})
            for (const bool cycle : {false, true})
                f(
                    "polynomial_decay " + text,
                    tg::polynomial_decay{.initial_learning_rate = 0.1,
                                         .decay_steps = steps,
                                         .end_learning_rate = 0.01,
                                         .power = power,
                                         .cycle = cycle},
                    [=](std::int64_t step) {
                        long double length = steps, at = static_cast<long double>(step);
                        if (cycle)
                            while (length < at) length += steps;
                        else if (at > length)
                            at = length;
                        return (0.1L - 0.01L) * std::pow(1 - at / length, static_cast<long double>(power)) + 0.01L;
                    },
                    last);
        for (const double warmup : {0.0, 0.5, 1.0, 4.0})
            for (const double alpha : {0.0, 0.25, 1.0})
                f(
                    "cosine_decay " + text,
                    tg::cosine_decay{.initial_learning_rate = 0.01,
                                     .decay_steps = steps,
                                     .alpha = alpha,
                                     .warmup_target = warmup == 0 ? 0 : 0.1,
                                     .warmup_steps = warmup},
                    [=](std::int64_t step) {
                        const long double at = static_cast<long double>(step), top = warmup == 0 ? 0.01L : 0.1L;
                        if (at < warmup) return 0.01L + (0.1L - 0.01L) * at / warmup;
                        const long double share = at - warmup > steps ? 1 : (at - warmup) / steps;
                        return top * (alpha + (1 - alpha) * (1 + std::cos(pi * share)) / 2);
                    },
                    last + static_cast<std::int64_t>(warmup));
        for (const double longer : {0.5, 1.0, 2.0})
            for (const double height : {0.0, 0.5, 1.0})
                f(
                    "cosine_decay_restarts " + text,
                    tg::cosine_decay_restarts{.initial_learning_rate = 0.1,
                                              .first_decay_steps = steps,
                                              .t_mul = longer,
                                              .m_mul = height,
                                              .alpha = 0.25},
                    [=](std::int64_t step) {
                        long double at = static_cast<long double>(step), length = steps, top = 1;
                        while (at >= length && length > 1e-12L) at -= length, length *= longer, top *= height;
                        if (length <= 1e-12L) return 0.25L * 0.1L; // nothing is left of waves that become shorter
                        return 0.1L * (0.25L + 0.75L * top * (1 + std::cos(pi * at / length)) / 2);
                    },
                    last);
    }
    f(
        "piecewise_constant_decay", tg::piecewise_constant_decay<2>{.boundaries = {0, 3}, .values = {0.1, 0.05, 0.01}},
        [](std::int64_t step) { return step == 0   ? 0.1L
                                       : step <= 3 ? 0.05L
                                                   : 0.01L; }, 3);
    f(
        "piecewise_constant_decay", tg::piecewise_constant_decay<0>{.boundaries = {}, .values = {0.1}},
        [](std::int64_t) { return 0.1L; }, 0);
    for (const std::int64_t steps : {0, 1, 10}) {
        const auto warmup = tg::linear_warmup{.steps = steps, .start = 0.02, .target = 0.1};
        const auto line = [=](std::int64_t step) {
            return step >= steps ? 0.1L
                                 : 0.02L + 0.08L * static_cast<long double>(step) / static_cast<long double>(steps);
        };
        f("linear_warmup", warmup, line, steps);
        f(
            "linear_warmup, then", warmup.then(tg::inverse_time_decay{.initial_learning_rate = 0.2, .decay_steps = 4}),
            [=](std::int64_t step) {
                return step < steps ? line(step) : 0.2L / (1 + 0.5L * static_cast<long double>(step - steps) / 4);
            },
            steps);
    }
    // PyTorch's two phases end at these steps; where the first one has no length there is a quotient of zeros, and its end is meant.
    for (const double total : {1.0, 2.0, 10.0, 21.0})
        for (const double share : {0.0, 0.05, 0.1, 0.3, 0.5, 1.0})
            f(
                "one_cycle " + std::to_string(total) + ' ' + std::to_string(share),
                tg::one_cycle{.max_rate = 0.1, .total_steps = total, .pct_start = share},
                [=](std::int64_t step) {
                    const long double top = 0.1L, first = top / 25, last = first / 10000, end = total - 1;
                    const long double peak = static_cast<long double>(share * total) - 1;
                    const long double at = static_cast<long double>(step) > end ? end : static_cast<long double>(step);
                    const auto wave = [](long double from, long double to, long double part) {
                        return to + (from - to) * (1 + std::cos(pi * part)) / 2;
                    };
                    if (at > peak) return wave(top, last, (at - peak) / (end - peak));
                    return peak == 0 ? top : wave(first, top, at / peak);
                },
                static_cast<std::int64_t>(total) - 1);
}

} // namespace every_schedule
