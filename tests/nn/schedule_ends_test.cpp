#include <nn/every_schedule.hpp>
#include <support/messages.hpp>

#include <doctest/doctest.h>

#include <limits>

/// Schedules at their first and last steps, with options at the limits of their ranges; options beyond are refused.

namespace schedule_ends_test {

namespace tg = tapegraph;

TEST_CASE("every schedule has its formula's number at the first and last steps") {
    every_schedule::for_every_schedule(
        [](const std::string& what, const auto& schedule, const auto& formula, std::int64_t last) {
            INFO(what);
            const tg::hyperparameter number = schedule;
            for (const std::int64_t step :
                 {std::int64_t{0}, std::int64_t{1}, last / 2, last - 1, last, last + 1, last + 7, 50 * (last + 1)}) {
                if (step < 0) continue;
                CAPTURE(step);
                const auto right = static_cast<double>(formula(step));
                // A few roundings, and of a cosine's argument, which is some steps: three digits of sixteen. Growing rates are compared by
                // their own size.
                const double size = std::max(0.2, std::abs(right));
                CHECK(std::abs(number.at(step) - right) <= 1e-12 * size);
            }
        });
    CHECK(tg::one_cycle{.max_rate = 0.1, .total_steps = 10, .pct_start = 0.1}(0) == 0.1); // was NaN
}

TEST_CASE("an option that a schedule cannot have is an error that names it") {
    const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
    const auto says = [](const auto& schedule) {
        return support::message_of<tg::argument_error>([&] { schedule(0); });
    };
    for (const double steps : {0.0, -1.0, nan, infinity}) {
        CHECK(says(tg::exponential_decay{.decay_steps = steps}).starts_with("exponential_decay: decay_steps must be "));
        CHECK(
            says(tg::inverse_time_decay{.decay_steps = steps}).starts_with("inverse_time_decay: decay_steps must be "));
        CHECK(says(tg::polynomial_decay{.decay_steps = steps}).starts_with("polynomial_decay: decay_steps must be "));
        CHECK(says(tg::cosine_decay{.decay_steps = steps}).starts_with("cosine_decay: decay_steps must be "));
        CHECK(says(tg::cosine_decay_restarts{.first_decay_steps = steps})
                  .starts_with("cosine_decay_restarts: first_decay_steps must be "));
        CHECK(says(tg::cosine_decay_restarts{.t_mul = steps}).starts_with("cosine_decay_restarts: t_mul must be "));
        CHECK(says(tg::one_cycle{.total_steps = steps}).starts_with("one_cycle: total_steps must be "));
        CHECK(says(tg::one_cycle{.div_factor = steps}).starts_with("one_cycle: div_factor must be "));
        CHECK(says(tg::one_cycle{.final_div_factor = steps}).starts_with("one_cycle: final_div_factor must be "));
    }
    for (const double number : {-0.5, nan, infinity}) {
        CHECK(says(tg::exponential_decay{.decay_rate = number}).starts_with("exponential_decay: decay_rate must "));
        CHECK(says(tg::polynomial_decay{.power = number}).starts_with("polynomial_decay: power must "));
        CHECK(says(tg::cosine_decay{.warmup_steps = number}).starts_with("cosine_decay: warmup_steps must "));
        CHECK(says(tg::one_cycle{.pct_start = number}).starts_with("one_cycle: pct_start must be "));
    }
    CHECK(says(tg::one_cycle{.pct_start = 1.5}) == "one_cycle: pct_start must be within [0, 1], step 1 has 1.5");
    CHECK(says(tg::one_cycle{.total_steps = 0.5}) == "one_cycle: total_steps must be at least 1, step 1 has 0.5");
}

} // namespace schedule_ends_test
