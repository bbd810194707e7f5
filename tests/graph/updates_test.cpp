#include <support/builders.hpp>

#include <doctest/doctest.h>

namespace updates_test {

/// Variables and their updates: reads see the value at the start of the step, updates apply at its end.

namespace tg = tapegraph;
using namespace builders;

namespace {

template <class Builder>
runner make() {
    static_assert(first_problem<Builder>() == nullptr);
    return runner(tg::ir::compile_program<Builder>());
}

using list = std::vector<double>;

struct counter {
    static constexpr void build(trace& t) {
        const node n = variable(t, "n", {2});
        assign(t, n, n + 1);
        output(t, "before", n * 1.5); // computed after the update in the order of the trace, from the old value
    }
};

struct swapped {
    static constexpr void build(trace& t) {
        const node a = variable(t, "a", {2}), b = variable(t, "b", {2});
        assign(t, a, b);
        assign(t, b, a);
    }
};

struct rotated { // a <- b <- c <- a + 1, and a view among them
    static constexpr void build(trace& t) {
        const node a = variable(t, "a", {2, 2}), b = variable(t, "b", {4}), c = variable(t, "c", {2, 2});
        assign(t, c, a + 1);
        assign(t, b, reshape(c, {4}));
        assign(t, a, reshape(b, {2, 2}));
    }
};

struct copied_and_updated {
    static constexpr void build(trace& t) {
        const node a = variable(t, "a", {2}), b = variable(t, "b", {2});
        assign(t, a, a * 2); // could be written in place, but b wants the old value
        assign(t, b, a);
    }
};

struct fetched { // the old value, the updated one, and the variable that is not assigned
    static constexpr void build(trace& t) {
        const node a = variable(t, "a", {2}), b = variable(t, "b", {2});
        const node next = a + b;
        assign(t, a, next);
        output(t, "old", a);
        output(t, "new", next);
        output(t, "b", b);
    }
};

struct one_for_two {
    static constexpr void build(trace& t) {
        const node a = variable(t, "a", {2}), b = variable(t, "b", {2}), x = batch_input(t, "x", {2});
        const node s = sum(x, 0), next = a + s;
        assign(t, a, next);
        assign(t, b, next);
    }
};

struct read_later { // the update is ready early; a matrix product reads the old value afterwards
    static constexpr void build(trace& t) {
        const node w = variable(t, "w", {2, 2});
        const node next = w - 0.5;
        assign(t, w, next);
        const node later = matmul(next, next);
        output(t, "y", matmul(later, w));
    }
};

struct of_a_view {
    static constexpr void build(trace& t) {
        const node w = variable(t, "w", {2, 2}), x = batch_input(t, "x", {4});
        assign(t, w, reshape(sum(x * 2, 0), {2, 2}));
    }
};

struct momentum_step { // the usual update: velocity and weight, in place, next read by the weight's update
    static constexpr void build(trace& t) {
        const node w = variable(t, "w", {3}), v = variable(t, "v", {3}), x = batch_input(t, "x", {3});
        const node g = mean(x, 0) * w;
        const node next = v * 0.9 - g * 0.1;
        assign(t, v, next);
        assign(t, w, w + next);
        output(t, "loss", sum(g));
    }
};

} // namespace

TEST_CASE("an update does not disturb other reads") {
    runner p = make<counter>();
    p.variables[0] = list{1, 5};
    p.program.set_variable(0, p.variables[0].data());
    p.run();
    CHECK(p.variables[0] == list{2, 6});
    CHECK(p.output(0) == list{1.5, 7.5});
    p.run();
    CHECK(p.variables[0] == list{3, 7});
    CHECK(p.output(0) == list{3, 9});
}

TEST_CASE("two variables change places") {
    runner p = make<swapped>();
    p.variables[0][0] = 1, p.variables[0][1] = 2, p.variables[1][0] = 10, p.variables[1][1] = 20;
    p.run();
    CHECK(p.variables[0] == list{10, 20});
    CHECK(p.variables[1] == list{1, 2});
    p.run();
    CHECK(p.variables[0] == list{1, 2});
}

TEST_CASE("three variables rotate through views") {
    runner p = make<rotated>();
    for (std::size_t i = 0; i < 4; ++i)
        p.variables[0][i] = static_cast<double>(i), p.variables[1][i] = 10. + static_cast<double>(i),
        p.variables[2][i] = 20. + static_cast<double>(i);
    p.run();
    CHECK(p.variables[0] == list{10, 11, 12, 13});
    CHECK(p.variables[1] == list{20, 21, 22, 23});
    CHECK(p.variables[2] == list{1, 2, 3, 4});
}

TEST_CASE("a copy of a variable is of its value at the start") {
    runner p = make<copied_and_updated>();
    p.variables[0][0] = 3, p.variables[0][1] = 4;
    p.run();
    CHECK(p.variables[0] == list{6, 8});
    CHECK(p.variables[1] == list{3, 4});
}

TEST_CASE("fetches show old and new values") {
    runner p = make<fetched>();
    p.variables[0][0] = 1, p.variables[0][1] = 2, p.variables[1][0] = 10, p.variables[1][1] = 20;
    p.run();
    CHECK(p.output(0) == list{1, 2});
    CHECK(p.output(1) == list{11, 22});
    CHECK(p.output(2) == list{10, 20});
    CHECK(p.variables[0] == list{11, 22});
    p.run();
    CHECK(p.output(0) == list{11, 22});
    CHECK(p.output(1) == list{21, 42});
}

TEST_CASE("one value goes into two variables") {
    runner p = make<one_for_two>();
    const list x{1, 2, 3, 4};
    p.variables[0][0] = 0.5;
    p.feed(0, x, {2, 2});
    p.run();
    CHECK(p.variables[0] == list{4.5, 6});
    CHECK(p.variables[1] == list{4.5, 6});
}

TEST_CASE("a later read sees the old value") {
    runner p = make<read_later>();
    p.variables[0] = list{1, 2, 3, 4};
    p.program.set_variable(0, p.variables[0].data());
    p.run();
    // n = w - 0.5 = [[.5, 1.5], [2.5, 3.5]]; n n = [[4, 6], [10, 16]]; (n n) w, exact in these numbers
    CHECK(p.output(0) == list{22, 32, 58, 84});
    CHECK(p.variables[0] == list{0.5, 1.5, 2.5, 3.5});
}

TEST_CASE("a view is assigned") {
    runner p = make<of_a_view>();
    const list x{1, 2, 3, 4, 10, 20, 30, 40};
    p.feed(0, x, {2, 4});
    p.run();
    CHECK(p.variables[0] == list{22, 44, 66, 88});
}

TEST_CASE("updates of an optimizer happen in place") {
    runner p = make<momentum_step>();
    const list x{1, 2, 3};
    p.variables[0] = list{1, 1, 1};
    p.program.set_variable(0, p.variables[0].data());
    p.feed(0, x, {1, 3});
    list w{1, 1, 1}, v{0, 0, 0};
    for (int step = 0; step < 3; ++step) {
        p.run();
        for (std::size_t i = 0; i < 3; ++i) {
            const double g = x[i] / 1.0 * w[i];
            v[i] = v[i] * 0.9 - g * 0.1;
            w[i] = w[i] + v[i];
            CHECK(p.variables[0][i] == w[i]);
            CHECK(p.variables[1][i] == v[i]);
        }
    }
    const tg::ir::program_view& view = p.program.view();
    for (const auto& update : view.assignments)
        CHECK(p.program.arena_slot_of(view.alias[update.node]).variable == update.variable);
}

} // namespace updates_test
