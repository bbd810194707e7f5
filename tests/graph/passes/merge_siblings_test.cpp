#include <support/builders.hpp>

#include <doctest/doctest.h>

#include <cmath>

namespace merge_siblings_test {

/// Elementwise kernels over one shape that become one.

namespace tg = tapegraph;
using namespace builders;

namespace {

template <class Build>
constexpr int steps_of(const Build& build) {
    trace t;
    build(t);
    eliminate_dead_nodes(t);
    view_slices(t);
    const tg::ir::schedule s = make_schedule(t);
    return verify(t, s).ok() ? s.steps.size() : -1;
}

static_assert(steps_of([](trace& t) { // they read the same operand
                  const node x = batch_input(t, "x", {3}), y = batch_input(t, "y", {3});
                  output(t, "a", tanh(x) * y);
                  output(t, "b", exp(y));
              }) == 1);
static_assert(steps_of([](trace& t) { // they share nothing, and may be large
                  output(t, "a", tanh(batch_input(t, "x", {3})));
                  output(t, "b", exp(batch_input(t, "y", {3})));
              }) == 2);
static_assert(steps_of([](trace& t) { // small
                  output(t, "a", tanh(input(t, "x", {512})));
                  output(t, "b", exp(input(t, "y", {512})));
              }) == 1);
static_assert(steps_of([](trace& t) {
                  output(t, "a", tanh(input(t, "x", {513})));
                  output(t, "b", exp(input(t, "y", {513})));
              }) == 2);
static_assert(steps_of([](trace& t) { // another shape, another type
                  const node x = input(t, "x", {3});
                  output(t, "a", tanh(x));
                  output(t, "b", reshape(x, {1, 3}) * 2);
                  output(t, "c", exp(input(t, "z", {3}, dtype::f32)));
              }) == 3);
static_assert(steps_of([](trace& t) { // the second one reads what the first one makes
                  const node x = batch_input(t, "x", {3}), h = tanh(x);
                  output(t, "a", h);
                  output(t, "b", exp(h) + x);
              }) == 1);
static_assert(steps_of([](trace& t) { // the second one waits for a product of what the first one makes
                  const node x = input(t, "x", {3, 3}), h = tanh(x);
                  output(t, "a", matmul(h, h) - x);
              }) == 3);
static_assert(steps_of([](trace& t) { // the first one can wait for the product
                  const node x = input(t, "x", {3, 3}), h = tanh(x);
                  output(t, "a", exp(matmul(x, x)) * x);
                  output(t, "b", h);
              }) == 2);
static_assert(steps_of([](trace& t) { // part of what the first one makes is not in registers
                  const node x = input(t, "x", {3, 2}), h = tanh(x);
                  output(t, "a", h);
                  output(t, "b", x * slice(h, {{0, 1}}));
              }) == 2);
static_assert(steps_of([](trace& t) { // six results a kernel
                  const node x = input(t, "x", {3});
                  for (int i = 0; i < 13; ++i) output(t, "a", x * i + exp(x));
              }) == 3);
static_assert(steps_of([](trace& t) { // an assignment to a variable stays after what reads the variable
                  const node w = variable(t, "w", {3}), x = input(t, "x", {3});
                  output(t, "a", tanh(w) * x);
                  assign(t, w, w * 0.5);
                  output(t, "b", exp(x));
              }) <= 3);

struct several { // operands read for the last time, as many as results
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x", {5});
        const node p = tg::cumulative_sum(x, 0), q = tg::cumulative_sum(x, 1);
        const node a = p * q + 1, b = tanh(p) - q, c = tanh(p) * p;
        output(t, "a", tg::cumulative_sum(a, 0));
        output(t, "b", tg::cumulative_sum(b, 0));
        output(t, "c", tg::cumulative_sum(c, 0));
    }
};

TEST_CASE("results of one kernel may lie where its operands did, each where another one did") {
    static_assert(first_problem<several>() == nullptr);
    runner run(tg::ir::compile_program<several>());
    const tg::ir::program_view& view = run.program.view();
    REQUIRE(view.steps.size() == 6);
    REQUIRE(view.steps[2].outputs == 3);
    for (const std::int64_t n : {3, 1, 200, 7}) {
        const std::vector<double> x = values(5 * n, 11);
        std::vector<double> p = x, q = x;
        for (std::size_t i = 5; i < p.size(); ++i) p[i] += p[i - 5];
        for (std::size_t i = 0; i < q.size(); ++i) q[i] += i % 5 > 0 ? q[i - 1] : 0;
        run.feed(0, x, {n, 5});
        run.run();
        double a[5]{}, b[5]{}, c[5]{};
        for (std::size_t i = 0; i < x.size(); ++i) {
            const std::size_t k = i % 5;
            CHECK(run.output(0)[i] == doctest::Approx(a[k] += p[i] * q[i] + 1));
            CHECK(run.output(1)[i] == doctest::Approx(b[k] += std::tanh(p[i]) - q[i]));
            CHECK(run.output(2)[i] == doctest::Approx(c[k] += std::tanh(p[i]) * p[i]));
        }
        const auto at = [&](int k) {
            return run.program.arena_slot_of(view.values[view.steps[2].first_value + k]).offset;
        };
        const int inputs = view.steps[2].inputs;
        int reused = 0;
        for (int k = inputs; k < inputs + 3; ++k) {
            for (int l = k + 1; l < inputs + 3; ++l) CHECK(at(k) != at(l));
            for (int l = 0; l < inputs; ++l) reused += at(l) >= 0 && at(k) == at(l) ? 1 : 0;
        }
        CHECK(reused == 2);
    }
}

struct numbers { // formulas of constants over few elements and many
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x");
        output(t, "y", x * 3 + 0.25);
        output(t, "s", sum(square(x - 2) * 3));
    }
};

TEST_CASE("numbers of formulas, for few elements and many, in any order") {
    runner run(tg::ir::compile_program<numbers>());
    for (const std::int64_t n : {1, 256, 5, 257, 3, 100000, 0, 255, 256}) {
        const std::vector<double> x = values(n, 12);
        run.feed(0, x, {n});
        run.run();
        const std::vector<double> y = run.output(0);
        double sum = 0;
        bool same = y.size() == x.size();
        for (std::size_t i = 0; i < x.size(); ++i) {
            same = same && y[i] == x[i] * 3 + 0.25;
            sum += (x[i] - 2) * (x[i] - 2) * 3;
        }
        CHECK(same);
        CHECK(run.scalar(1) == doctest::Approx(sum));
    }
}

} // namespace

} // namespace merge_siblings_test
