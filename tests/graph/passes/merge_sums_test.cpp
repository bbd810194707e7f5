#include <support/builders.hpp>

#include <tapegraph/graph/cost.hpp>

#include <doctest/doctest.h>

namespace merge_sums_test {

namespace tg = tapegraph;
using namespace builders;
using tg::ir::kernel_kind;

namespace {

/// Steps of the schedule, and sums and results of the step with most of them.
struct shape_of_it {
    int steps = 0, sums = 0, results = 0;
    constexpr bool operator==(const shape_of_it&) const = default;
};
template <class Build>
constexpr shape_of_it scheduled(const Build& build, bool fuse = true) {
    const tg::ir::schedule s = scheduled_by(build, fuse);
    shape_of_it found{s.steps.size(), 0, 0};
    for (const tg::ir::step_entry& step : s.steps) {
        const tg::ir::kernel_entry& k = s.kernels[step.kernel];
        if (k.kind != static_cast<int>(kernel_kind::sums) || step.outputs <= found.results) continue;
        found.sums = reductions_of(k, s.kernel_words.begin());
        found.results = step.outputs;
    }
    return found;
}

// What a batch normalization's gradient adds up of dy.
constexpr void three_of_one_operand(trace& t) {
    const node dy = batch_input(t, "dy", {4}), x = batch_input(t, "x", {4}), m = input(t, "m", {4});
    output(t, "a", sum(dy, 0));
    output(t, "b", sum(dy * (x - m), 0));
    output(t, "c", sum(negate(dy * m), 0));
}
static_assert(scheduled(three_of_one_operand, false) == shape_of_it{7, 0, 0});
static_assert(scheduled(three_of_one_operand) == shape_of_it{1, 3, 3});

// A bias's gradient beside the kernel that makes what it adds up.
constexpr void written_and_summed(trace& t) {
    const node x = batch_input(t, "x", {4}), y = batch_input(t, "y", {4});
    const node dz = tanh(x) * y;
    output(t, "dz", dz);
    output(t, "b", sum(dz, 0));
    output(t, "squares", sum(square(dz), 0));
}
static_assert(scheduled(written_and_summed) == shape_of_it{1, 2, 3});

// What follows a depthwise convolution runs inside it, without its sum.
template <int Groups>
constexpr void convolved_and_summed(trace& t) {
    const node x = batch_input(t, "x", {5, 7, 6}), w = variable(t, "w", {3, 3, 6 / Groups, 6});
    const node y = tanh(conv2d(x, w, {.groups = Groups}));
    output(t, "y", y);
    output(t, "sums", sum(y, {1, 2}));
}
static_assert(scheduled(convolved_and_summed<1>) == shape_of_it{2, 1, 2});
static_assert(scheduled(convolved_and_summed<6>) == shape_of_it{3, 0, 0});

constexpr void other_axes(trace& t) {
    const node x = batch_input(t, "x", {4});
    output(t, "a", sum(tanh(x), 0));
    output(t, "b", sum(exp(x), 1));
}
static_assert(scheduled(other_axes) == shape_of_it{2, 1, 1}); // down columns a formula is added up where it is made
constexpr void along_rows(trace& t) {
    const node x = batch_input(t, "x", {4});
    output(t, "a", sum(tanh(x), 1));
    output(t, "b", sum(exp(x), 1));
}
static_assert(scheduled(along_rows) == shape_of_it{1, 2, 2});

constexpr void nothing_in_common(trace& t) {
    const node x = batch_input(t, "x", {4}), y = batch_input(t, "y", {4});
    output(t, "a", sum(x, 0));
    output(t, "b", sum(y, 0));
}
static_assert(scheduled(nothing_in_common) == shape_of_it{2, 0, 0});

// The second needs the first, and what stands between them is a kernel of its own.
constexpr void one_after_the_other(trace& t) {
    const node x = batch_input(t, "x", {4});
    const node mean = sum(x, 0);
    output(t, "spread", sum(square(x - mean), 0));
}
static_assert(scheduled(one_after_the_other) == shape_of_it{2, 1, 1});

// A view of what is written is not made element by element.
constexpr void through_a_view(trace& t) {
    const node x = input(t, "x", {6, 2});
    const node h = tanh(x);
    output(t, "h", h);
    output(t, "a", sum(reshape(h, {2, 6}), 0));
}
static_assert(scheduled(through_a_view) == shape_of_it{2, 0, 0});

// What becomes a variable is written over it, which a kernel with sums does not do.
constexpr void of_an_update(trace& t) {
    const node x = input(t, "x", {3, 4}), w = variable(t, "w", {3, 4});
    const node next = w * 0.5 + x;
    assign(t, w, next);
    output(t, "a", sum(next, 0));
}
static_assert(scheduled(of_an_update) == shape_of_it{2, 0, 0});

// Five sums: a kernel has four at most.
constexpr void many(trace& t) {
    const node x = batch_input(t, "x", {4});
    output(t, "a", sum(tanh(x), 0));
    output(t, "b", sum(exp(x), 0));
    output(t, "c", sum(sin(x), 0));
    output(t, "d", sum(cos(x), 0));
    output(t, "e", sum(square(x), 0));
}
static_assert(scheduled(many) == shape_of_it{2, 4, 4});

// Integers, and 16 bits, whose sums are those of floats, stay as they were.
constexpr void of_16_bits(trace& t) {
    const node x = input(t, "x", {3, 4}, dtype::bf16);
    output(t, "a", sum(tanh(x), 0));
    output(t, "b", sum(exp(x), 0));
}
static_assert(scheduled(of_16_bits) == shape_of_it{2, 0, 0});

template <void Build(trace&)>
struct builder {
    static constexpr void build(trace& t) { Build(t); }
};

} // namespace

TEST_CASE("sums that read one operand, or what a kernel writes, are one kernel with it") {
    CHECK(scheduled(three_of_one_operand) == shape_of_it{1, 3, 3});
    CHECK(scheduled(written_and_summed) == shape_of_it{1, 2, 3});
    CHECK(scheduled(other_axes) == shape_of_it{2, 1, 1});
    CHECK(scheduled(along_rows) == shape_of_it{1, 2, 2});
    CHECK(scheduled(nothing_in_common) == shape_of_it{2, 0, 0});
    CHECK(scheduled(one_after_the_other) == shape_of_it{2, 1, 1});
    CHECK(scheduled(through_a_view) == shape_of_it{2, 0, 0});
    CHECK(scheduled(of_an_update) == shape_of_it{2, 0, 0});
    CHECK(scheduled(many) == shape_of_it{2, 4, 4});
    CHECK(scheduled(of_16_bits) == shape_of_it{2, 0, 0});
}

TEST_CASE("a kernel of several sums reads each operand once and counts what it adds up") {
    runner r(tg::ir::compile_program<builder<three_of_one_operand>>());
    for (const std::int64_t n : {0, 1, 7, 700}) {
        CAPTURE(n);
        const std::vector<double> dy = values(n * 4, 1), x = values(n * 4, 2), m = values(4, 3);
        r.feed(0, dy, {n, 4});
        r.feed(1, x, {n, 4});
        r.feed(2, m, {4});
        r.run();
        const tg::ir::cost cost = cost_of(r.program);
        CHECK(cost.bytes == 8.0 * static_cast<double>(2 * n * 4 + 4 + 3 * 4));
        CHECK(cost.flops == (4 + 3) * static_cast<double>(n * 4)); // multiply, negate, subtract, multiply; three sums
        for (int c = 0; c < 4; ++c) {
            double a = 0, b = 0, d = 0;
            for (std::int64_t i = 0; i < n; ++i) {
                const auto at = static_cast<std::size_t>(i * 4 + c), column = static_cast<std::size_t>(c);
                a += dy[at];
                b += dy[at] * (x[at] - m[column]);
                d -= dy[at] * m[column];
            }
            const auto k = static_cast<std::size_t>(c);
            CHECK(r.output(0)[k] == doctest::Approx(a).epsilon(1e-12));
            CHECK(r.output(1)[k] == doctest::Approx(b).epsilon(1e-12));
            CHECK(r.output(2)[k] == doctest::Approx(d).epsilon(1e-12));
        }
    }
}

// The elementwise result takes the place of an operand that nothing reads afterwards, as without the sum.
constexpr void written_over(trace& t) {
    const node x = batch_input(t, "x", {20}), y = batch_input(t, "y", {20});
    const node h = pad(tanh(x), {{0, 0}, {1, 0}}); // a buffer [n, 21]
    const node wide = pad(y, {{0, 0}, {0, 1}});
    const node dz = h * wide;
    output(t, "b", sum(dz, 0));
    output(t, "z", sum(pad(dz, {{0, 0}, {1, 1}}), 1));
}

TEST_CASE("a result with sums beside it may lie where an operand did") {
    runner r(tg::ir::compile_program<builder<written_over>>());
    for (const std::int64_t n : {1, 3, 501}) {
        CAPTURE(n);
        const std::vector<double> x = values(n * 20, 1), y = values(n * 20, 2);
        r.feed(0, x, {n, 20});
        r.feed(1, y, {n, 20});
        r.run();
        std::vector<double> columns(21, 0);
        for (std::int64_t i = 0; i < n; ++i) {
            double row = 0;
            for (int c = 1; c < 20; ++c) {
                const double dz =
                    std::tanh(x[static_cast<std::size_t>(i * 20 + c - 1)]) * y[static_cast<std::size_t>(i * 20 + c)];
                columns[static_cast<std::size_t>(c)] += dz;
                row += dz;
            }
            CHECK(r.output(1)[static_cast<std::size_t>(i)] == doctest::Approx(row).epsilon(1e-12));
        }
        for (std::size_t c = 0; c < 21; ++c) CHECK(r.output(0)[c] == doctest::Approx(columns[c]).epsilon(1e-12));
        bool shared = false;
        const tg::ir::program_view& view = r.program.view();
        for (const tg::ir::step_entry& step : view.steps) {
            if (view.kernels[step.kernel].kind != static_cast<int>(kernel_kind::sums) || step.outputs != 2) continue;
            const auto written = r.program.arena_slot_of(view.values[step.first_value + step.inputs + 1]).offset;
            for (int k = 0; k < step.inputs; ++k)
                shared = shared || r.program.arena_slot_of(view.values[step.first_value + k]).offset == written;
        }
        CHECK(shared);
    }
}

} // namespace merge_sums_test
