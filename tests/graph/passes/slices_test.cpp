#include <support/builders.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace slices_test {

/// Slices that are views of their operand, and gradients of slices that are one sum.

namespace tg = tapegraph;
using namespace builders;
using tg::ir::kernel_kind;

namespace {

using list = std::vector<double>;

// ---- which slices are views

template <class Build>
constexpr int views_in(const Build& build) {
    trace t;
    build(t);
    view_slices(t);
    return verify(t).ok() ? count<tg::slice_view_op>(t) : -1;
}

static_assert(views_in([](trace& t) { slice(input(t, "x", {5}), {{1, 4}}); }) == 1);
static_assert(views_in([](trace& t) { slice(input(t, "x", {5}), {{2, 2}}); }) == 1);             // empty
static_assert(views_in([](trace& t) { slice(input(t, "x", {5}), {{0, 5}}); }) == 1);             // whole
static_assert(views_in([](trace& t) { slice(input(t, "x", {4, 3}), {{1, 3}}); }) == 1);          // rows
static_assert(views_in([](trace& t) { slice(input(t, "x", {4, 3}), {tg::all, {1, 3}}); }) == 0); // columns
static_assert(views_in([](trace& t) { slice(input(t, "x", {4, 3}), {{2, 3}, {1, 3}}); }) == 1);  // part of a row
static_assert(views_in([](trace& t) { slice(input(t, "x", {4, 3, 2}), {{2, 3}, {1, 3}}); }) == 1);
static_assert(views_in([](trace& t) { slice(input(t, "x", {4, 3, 2}), {{2, 4}, {1, 3}}); }) == 0);
static_assert(views_in([](trace& t) { slice(input(t, "x", {1, 3, 2}), {tg::all, {1, 3}}); }) == 1);
static_assert(views_in([](trace& t) { slice(input(t, "x", {5}), {{0, 5, 2}}); }) == 0);
static_assert(views_in([](trace& t) { reverse(input(t, "x", {5})); }) == 0);
static_assert(views_in([](trace& t) { reverse(input(t, "x", {4, 3}), {1}); }) == 0);
static_assert(views_in([](trace& t) { take(input(t, "x", {4, 3}), -1); }) == 1);
static_assert(views_in([](trace& t) { tg::split<3>(input(t, "x", {6, 2})); }) == 3);
static_assert(views_in([](trace& t) { slice(batch_input(t, "x", {2}), {{1, -1}}); }) == 1);
static_assert(views_in([](trace& t) { slice(batch_input(t, "x", {2}), {{-2}}); }) == 1);
static_assert(views_in([](trace& t) { slice(batch_input(t, "x", {2}), {tg::all, {0, 1}}); }) == 0);
// A view keeps all of a computed value in memory.
static_assert(views_in([](trace& t) { slice(tanh(batch_input(t, "x", {2})), {{1, -1}}); }) == 1);
static_assert(views_in([](trace& t) { slice(tanh(batch_input(t, "x", {2})), {{0, 3}}); }) == 0);
static_assert(views_in([](trace& t) { slice(reshape(tanh(batch_input(t, "x", {2})), {-1}), {{0, 3}}); }) == 0);
static_assert(views_in([](trace& t) { slice(tanh(input(t, "x", {1000, 9})), {{0, 125}}); }) == 1);
static_assert(views_in([](trace& t) { slice(tanh(input(t, "x", {1000, 9})), {{0, 124}}); }) == 0);
static_assert(views_in([](trace& t) { slice(tanh(input(t, "x", {10, 9})), {{0, 1}}); }) == 1);
static_assert(views_in([](trace& t) { slice(variable(t, "w", {1000, 9}), {{0, 1}}); }) == 1);

// ---- what they are worth

struct rows {
    static constexpr void build(trace& t) { // from both ends, and a view of a view of a view
        const node x = batch_input(t, "x", {2});
        const node inner = slice(x, {{1, -1}});
        output(t, "inner", inner * 2);
        output(t, "last", slice(reshape(slice(inner, {{1, tg::all.end}}), {-1}), {{-1}}));
        output(t, "none", slice(x, {{1, 1}}) + 1);
        output(t, "all", sum(slice(x, {{0, tg::all.end}})));
        output(t, "first", take(x, 0));
    }
};

TEST_CASE("slices of what is fed are read where it lies, wherever that is") {
    static_assert(first_problem<rows>() == nullptr);
    runner run(tg::ir::compile_program<rows>());
    CHECK(run.program.view().steps.size() == 3);
    for (const std::int64_t n : {4, 4, 5, 4, 31}) { // the second time the same extents, another place
        const list x = values(2 * n, static_cast<std::uint32_t>(n + run.program.view().steps.size()));
        run.feed(0, x, {n, 2});
        run.run();
        list inner(x.begin() + 2, x.end() - 2);
        CHECK(run.output(1) == list{inner.back()});
        for (double& v : inner) v *= 2;
        CHECK(run.output(0) == inner);
        CHECK(run.output(2).empty());
        CHECK(run.scalar(3) == doctest::Approx(std::accumulate(x.begin(), x.end(), 0.0)));
        CHECK(run.output(4) == list{x[0], x[1]});
    }
}

// ---- variables that are updated while slices of them are read

struct centred { // every row less the first one: in place, that would be 0 before the others are reached
    static constexpr void build(trace& t) {
        const node w = variable(t, "w", {3, 4000});
        assign(t, w, w - slice(w, {{0, 1}}));
    }
};
struct exchanged {
    static constexpr void build(trace& t) {
        const node a = variable(t, "a", {2}), b = variable(t, "b", {4});
        output(t, "old", slice(b, {{1, 3}}));
        assign(t, a, slice(b, {{2, 4}}));
        assign(t, b, b + 1);
    }
};
struct part_of_a_value { // what a becomes is part of a larger value
    static constexpr void build(trace& t) {
        const node a = variable(t, "a", {2}), x = input(t, "x", {4});
        const node y = x * 2;
        assign(t, a, slice(y, {{1, 3}}));
    }
};
struct in_one_kernel { // b's update reads part of a's, which thus cannot stay in registers
    static constexpr void build(trace& t) {
        const node a = variable(t, "a", {3, 2}), b = variable(t, "b", {3, 2});
        const node next = a * 2;
        assign(t, a, next);
        assign(t, b, b + next * slice(next, {{2, 3}}));
    }
};

template <class Builder>
runner make() {
    static_assert(first_problem<Builder>() == nullptr);
    return runner(tg::ir::compile_program<Builder>());
}

TEST_CASE("slices of variables show what these were before the step") {
    runner c = make<centred>();
    const list before = values(12000, 3);
    std::copy(before.begin(), before.end(), c.variables[0].begin());
    c.run();
    list after = before;
    for (std::size_t i = 0; i < after.size(); ++i) after[i] -= before[i % 4000];
    CHECK(c.variables[0] == after);

    runner e = make<exchanged>();
    e.variables = {{1, 2}, {10, 20, 30, 40}};
    e.program.set_variable(0, e.variables[0].data());
    e.program.set_variable(1, e.variables[1].data());
    for (int step = 0; step < 2; ++step) {
        e.run();
        CHECK(e.output(0) == list{20.0 + step, 30.0 + step});
        CHECK(e.variables[0] == list{30.0 + step, 40.0 + step});
        CHECK(e.variables[1] == list{11.0 + step, 21.0 + step, 31.0 + step, 41.0 + step});
    }

    runner k = make<in_one_kernel>();
    for (auto& v : k.variables) v = {1, 2, 3, 4, 5, 6};
    for (int i = 0; i < 2; ++i) k.program.set_variable(i, k.variables[static_cast<std::size_t>(i)].data());
    k.run();
    CHECK(k.variables[0] == list{2, 4, 6, 8, 10, 12});
    CHECK(k.variables[1] == list{21, 50, 63, 100, 105, 150});
}

TEST_CASE("a variable becomes part of a value") {
    runner p = make<part_of_a_value>();
    list memory{-1, -2, -3, -4}; // the variable, and what must not be written
    p.program.set_variable(0, memory.data());
    const list x{0, 1, 2, 700};
    p.feed(0, x, {4});
    p.run();
    CHECK(memory == list{2, 4, -3, -4});
}

// ---- buffers

struct written_over { // y is read for the last time, whole and in part
    static constexpr void build(trace& t) {
        const node x = input(t, "x", {3, 4000});
        const node y = tg::cumulative_sum(x, 0); // no elementwise kernel makes it
        output(t, "z", tg::cumulative_sum(y + slice(y, {{0, 1}}), 0));
    }
};

TEST_CASE("no kernel writes over a buffer of which it reads a part elsewhere") {
    runner run = make<written_over>();
    list want = values(12000, 7);
    const list x = want;
    run.feed(0, x, {3, 4000});
    run.run();
    for (std::size_t i = 4000; i < want.size(); ++i) want[i] += want[i - 4000];
    for (std::size_t i = want.size(); i-- > 0;) want[i] += want[i % 4000];
    for (std::size_t i = 4000; i < want.size(); ++i) want[i] += want[i - 4000];
    const list found = run.output(0);
    for (std::size_t i = 0; i < want.size(); i += 499) CHECK(found[i] == doctest::Approx(want[i]));
}

struct large_result { // the caller's memory is as large as the result, the buffer larger
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x", {8});
        output(t, "part", slice(tg::cumulative_sum(x, 0), {{1, -1}}));
    }
};

TEST_CASE("a result that is part of a buffer has no place of the caller's") {
    runner run = make<large_result>();
    const list x(80, 1.0);
    run.feed(0, x, {10, 8});
    run.program.bind();
    list place(64, -1.0);
    CHECK(!run.program.place_output(0, place.data()));
    run.run();
    CHECK(run.output(0).size() == 64);
    CHECK(run.output(0).front() == 2);
    CHECK(run.output(0).back() == 9);
    CHECK(place == list(64, -1.0));
}

// ---- sums of pads

template <class Build>
constexpr std::pair<int, int> sums_and_pads(const Build& build) {
    trace t;
    build(t);
    join_pads(t);
    eliminate_dead_nodes(t);
    return verify(t).ok() ? std::pair{count<tg::placed_sum_op>(t), count<tg::pad_op>(t)} : std::pair{-1, -1};
}
constexpr bool is(std::pair<int, int> found, int sums, int pads) { return found.first == sums && found.second == pads; }

template <int Parts>
constexpr void build_parts(trace& t, dtype type = dtype::f64) {
    const node x = input(t, "x", {2}, type);
    node total = pad(x, {{0, Parts}});
    for (int k = 1; k < Parts; ++k) total = total + pad(x * (k + 1.0), {{k, Parts - k}});
    output(t, "y", total);
}

static_assert(is(sums_and_pads([](trace& t) { build_parts<2>(t); }), 1, 0));
static_assert(is(sums_and_pads([](trace& t) { build_parts<16>(t); }), 1, 0));
static_assert(is(sums_and_pads([](trace& t) { build_parts<17>(t); }), 2, 0));
static_assert(is(sums_and_pads([](trace& t) { build_parts<40>(t); }), 3, 0));
static_assert(is(sums_and_pads([](trace& t) { build_parts<2>(t, dtype::f32); }), 1, 0));
static_assert(is(sums_and_pads([](trace& t) { build_parts<2>(t, dtype::bf16); }), 0, 2)); // rounded sum by sum
static_assert(is(sums_and_pads([](trace& t) {                                             // the order does not matter
                     const node x = input(t, "x", {2}), y = input(t, "y", {3});
                     output(t, "y", y + (pad(x, {{1, 0}}) + pad(x * 2, {{0, 1}})));
                 }),
                 1, 0));
static_assert(is(sums_and_pads([](trace& t) { // one pad beside two others: as much would be written as before
                     const node x = input(t, "x", {2}), y = input(t, "y", {3});
                     output(t, "y", exp(y) + pad(x, {{1, 0}}));
                 }),
                 0, 1));
static_assert(is(sums_and_pads([](trace& t) { // another axis
                     const node x = input(t, "x", {2, 3}), y = input(t, "y", {3, 2});
                     output(t, "y", pad(x, {{1, 0}}) + pad(y, {{0, 0}, {1, 0}}));
                 }),
                 0, 2));
static_assert(is(sums_and_pads([](trace& t) { // two axes
                     const node x = input(t, "x", {2, 3});
                     output(t, "y", pad(x, {{1, 0}, {1, 1}}) + pad(x * 2, {{1, 0}, {1, 1}}));
                 }),
                 0, 2));
static_assert(is(sums_and_pads([](trace& t) { // another number than 0
                     const node x = input(t, "x", {2});
                     output(t, "y", pad(x, {{1, 0}}, {.value = 1}) + pad(x * 2, {{1, 0}}));
                 }),
                 0, 2));
static_assert(is(sums_and_pads([](trace& t) { // somebody else reads it
                     const node x = input(t, "x", {2}), p = pad(x, {{1, 0}});
                     output(t, "p", p);
                     output(t, "y", p + pad(x * 2, {{1, 0}}));
                 }),
                 0, 2));
static_assert(is(sums_and_pads([](trace& t) { // broadcast
                     const node x = input(t, "x", {2}), y = input(t, "y", {1, 2});
                     output(t, "y", pad(x, {{1, 0}}) + pad(y, {{0, 0}, {0, 1}}));
                 }),
                 0, 2));

template <int Parts>
struct parts {
    static constexpr void build(trace& t) { build_parts<Parts>(t); }
};
struct with_gaps { // nothing in the middle; parts that overlap, of another length; -0 and the whole
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x", {3}), whole = batch_input(t, "whole", {5});
        const node rest = pad(slice(x, {{1, tg::all.end}}), {{5, 3}});
        output(t, "gap", pad(x, {{0, 7}}) + pad(x * -1, {{7, 0}}));
        output(t, "overlap", pad(x, {{0, 7}}) + rest + pad(x * 2, {{1, 6}}));
        output(t, "with whole", pad(x * 3, {{0, 0}, {1, 1}}) + whole + pad(x * 5, {{0, 0}, {2, 0}}));
    }
};

TEST_CASE("sums of parts, whatever their number") {
    const auto check = [](auto builder, std::size_t count) {
        runner run = make<decltype(builder)>();
        const list x{0.1, 0.2};
        run.feed(0, x, {2});
        run.run();
        list want(count + 2);
        for (std::size_t k = 0; k < count; ++k)
            for (std::size_t i = 0; i < 2; ++i) want[k + i] += x[i] * static_cast<double>(k + 1);
        CHECK(run.output(0) == want);
    };
    check(parts<2>{}, 2);
    check(parts<3>{}, 3);
    check(parts<16>{}, 16);
    check(parts<17>{}, 17);
    check(parts<40>{}, 40);
}

TEST_CASE("sums of parts with gaps and overlaps, along any axis") {
    runner run = make<with_gaps>();
    for (const std::int64_t n : {1, 2, 7, 9000}) {
        list x = values(3 * n, 3);
        x[0] = -0.0;
        const list whole = values(5 * n, 4);
        run.feed(0, x, {n, 3});
        run.feed(1, whole, {n, 5});
        run.run();
        const auto size = static_cast<std::size_t>(3 * n);
        const auto at = [&](std::size_t i, std::size_t before) { // of x with `before` elements in front
            return i >= before && i < before + size ? x[i - before] : 0.0;
        };
        list gap(size + 21), overlap(size + 21), sums(static_cast<std::size_t>(5 * n));
        for (std::size_t i = 0; i < gap.size(); ++i) {
            gap[i] = at(i, 0) + (i >= 21 ? at(i, 21) * -1 : 0.0);
            overlap[i] = at(i, 0) + (i >= 15 && i < 12 + size ? at(i, 12) : 0.0) + at(i, 3) * 2;
        }
        for (std::size_t row = 0; row < static_cast<std::size_t>(n); ++row)
            for (std::size_t c = 0; c < 5; ++c) {
                const auto in_row = [&](std::size_t before) {
                    return c >= before && c < before + 3 ? x[3 * row + c - before] : 0.0;
                };
                sums[5 * row + c] = in_row(1) * 3 + whole[5 * row + c] + in_row(2) * 5;
            }
        CHECK(run.output(0) == gap);
        CHECK(run.output(1) == overlap);
        CHECK(run.output(2) == sums);
        CHECK(!std::signbit(run.output(0)[0])); // -0 and the zero of the other one
    }
}

// ---- both, in a gradient

struct rosenbrock {
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x");
        const node a = slice(x, {{0, -1}}), b = slice(x, {{1, tg::all.end}});
        const node y = sum(100 * square(b - square(a)) + square(1 - a));
        output(t, "y", y);
        tg::list<int> sources;
        sources.push_back(x.id());
        t.outputs.push_back({"gradient", tg::ir::gradient(t, y.id(), sources)[0]});
    }
};

TEST_CASE("Rosenbrock's function copies no slice and pads no gradient") {
    runner run = make<rosenbrock>();
    const tg::ir::program_view& view = run.program.view();
    CHECK(view.steps.size() == 3); // the sum, both derivatives, their sum
    for (const std::int64_t n : {1, 2, 3, 100, 513, 20000}) {
        const list x = values(n, 5);
        run.feed(0, x, {n});
        run.run();
        list g(x.size());
        for (std::size_t i = 0; i + 1 < x.size(); ++i) {
            const double e = x[i + 1] - x[i] * x[i];
            g[i] += -2 * (1 - x[i]) - 400 * e * x[i];
            g[i + 1] += 200 * e;
        }
        const list found = run.output(1);
        REQUIRE(found.size() == g.size());
        for (std::size_t i = 0; i < g.size(); ++i) CHECK(std::abs(found[i] - g[i]) <= 1e-11 * (1 + std::abs(g[i])));
    }
}

} // namespace

} // namespace slices_test
