#include <support/builders.hpp>
#include <tapegraph/ops/movement/fill.hpp>

#include <doctest/doctest.h>

namespace merge_updates_test {

namespace tg = tapegraph;
using namespace builders;
using tg::ir::kernel_kind;

namespace {

/// Steps of the schedule, and results of the largest.
struct shape_of_it {
    int steps = 0, results = 0, reads = 0, kernels = 0;
    constexpr bool operator==(const shape_of_it&) const = default;
};
template <class Build>
constexpr shape_of_it scheduled(const Build& build, bool fuse = true) {
    const tg::ir::schedule s = scheduled_by(build, fuse);
    shape_of_it found{s.steps.size(), 0, 0, s.kernels.size()};
    for (const tg::ir::step_entry& step : s.steps)
        if (step.outputs > found.results) found.results = step.outputs, found.reads = step.inputs;
    return found;
}

/// Momentum and a moving average of the variable: three updates, each of which reads the one before.
constexpr void momentum(trace& t) {
    const node x = input(t, "x", {5}), w = variable(t, "w", {5}), m = variable(t, "m", {5}), a = variable(t, "a", {5});
    const node next_m = m * 0.5 + x;
    const node next_w = w - next_m * 0.25;
    assign(t, m, next_m);
    assign(t, w, next_w);
    assign(t, a, a * 0.5 + next_w * 0.5);
}
static_assert(scheduled(momentum, false).results == 1);
static_assert(scheduled(momentum) == shape_of_it{1, 3, 6, 1}); // x, w, m, a and two numbers in

constexpr void read_between(trace& t) {
    const node x = input(t, "x", {5}), w = variable(t, "w", {5}), m = variable(t, "m", {5});
    const node next = m * 0.5 + x;
    assign(t, m, next);
    assign(t, w, w - next / sqrt(sum(next * next))); // the sum is a kernel between the two
}
static_assert(scheduled(read_between).results == 1);

constexpr void other_shape(trace& t) {
    const node x = input(t, "x", {5}), w = variable(t, "w", {3, 5}), m = variable(t, "m", {5});
    const node next = m + x;
    assign(t, m, next);
    assign(t, w, w - next);
}
static_assert(scheduled(other_shape).results == 1);

constexpr void through_a_view(trace& t) {
    const node x = input(t, "x", {6}), w = variable(t, "w", {2, 3}), m = variable(t, "m", {6});
    const node next = m + x;
    assign(t, m, next);
    assign(t, w, w - reshape(next, {2, 3}));
}
static_assert(scheduled(through_a_view).results == 1);

// Kernels that stand between the two, and before them, keep their places.
constexpr void others_between(trace& t) {
    const node x = input(t, "x", {5}), w = variable(t, "w", {5});
    const node before = exp(pad(x, {{0, 1}}, {.value = 0.25}));
    const node next = tanh(w + x) + slice(before, {{1, 6}});
    assign(t, w, next);
    output(t, "y", next * sum(x) * tg::fill<double>(x, {5}, 2));
    output(t, "z", before * 2);
}
static_assert(scheduled(others_between).results == 2);

// Thirteen states of one variable: a kernel writes twelve results at most, so the last has two kernels.
constexpr void many(trace& t) {
    const node x = input(t, "x", {5});
    node last = x;
    constexpr const char* names[13] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"};
    for (const char* name : names) {
        const node v = variable(t, name, {5});
        const node next = v * 0.5 + last;
        assign(t, v, next);
        last = next;
    }
}
static_assert(scheduled(many).results == 12 && scheduled(many).steps == 2);

// Two variables of one shape: one kernel, called twice.
constexpr void twice(trace& t) {
    const node x = input(t, "x", {5});
    for (const bool first : {true, false}) {
        const node w = variable(t, first ? "v" : "w", {5}), m = variable(t, first ? "m" : "n", {5});
        const node next = m * 0.5 + x;
        assign(t, m, next);
        assign(t, w, w - next);
    }
}
static_assert(scheduled(twice) == shape_of_it{2, 2, 4, 1});

} // namespace

TEST_CASE("updates that read one another are one kernel, with the values of several") {
    CHECK(scheduled(momentum) == shape_of_it{1, 3, 6, 1});
    CHECK(scheduled(read_between).results == 1);
    CHECK(scheduled(other_shape).results == 1);
    CHECK(scheduled(through_a_view).results == 1);
    CHECK(scheduled(others_between).results == 2);
    CHECK(scheduled(many).results == 12);
    CHECK(scheduled(twice).kernels == 1);
}

} // namespace merge_updates_test
