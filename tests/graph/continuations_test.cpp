#include <support/builders.hpp>

#include <tapegraph/runtime/continuation.hpp>

#include <doctest/doctest.h>

#include <cstring>

namespace continuations_test {

/// Elementwise kernels that run inside the convolution before them give what they give after it, and those that would write to what the
/// convolution still reads do not.

namespace tg = tapegraph;
using namespace builders;
using tg::runtime::continuation;

namespace {

bool elementwise(const tg::ir::program_view& view, int step) {
    return view.kernels[view.steps[step].kernel].kind == static_cast<int>(tg::ir::kernel_kind::region);
}

/// The pairs of steps that fit, and of these the ones whose first kernel runs the second.
struct pairs {
    int fit = 0, done = 0;

    explicit pairs(const tg::ir::program& p) {
        const tg::ir::program_view& view = p.view();
        const auto run_of = [&](int step) { return view.functions[view.steps[step].kernel].run; };
        for (int s = 0; s + 1 < view.steps.size(); ++s) {
            if (elementwise(view, s) || !elementwise(view, s + 1) ||
                !continuation::fits(p.call_of(s), p.scratch_bytes(s), p.call_of(s + 1)))
                continue;
            ++fit;
            continuation next{run_of(s + 1), &p.call_of(s + 1)};
            tg::kernel_call c = p.call_of(s);
            c.next = &next;
            run_of(s)(c);
            done += next.done ? 1 : 0;
        }
    }
};

/// Outputs of a run and of the same calls one by one.
template <class Builder>
pairs compare(std::int64_t batch, std::initializer_list<std::int64_t> rest) {
    runner p(tg::ir::compile_program<Builder>());
    std::int64_t elements = batch;
    for (const std::int64_t extent : rest) elements *= extent;
    const std::vector<double> x = values(elements, 99);
    for (std::size_t v = 0; v < p.variables.size(); ++v) {
        p.variables[v] = values(static_cast<std::int64_t>(p.variables[v].size()), static_cast<std::uint32_t>(v) + 1);
        p.program.set_variable(static_cast<int>(v), p.variables[v].data());
    }
    tg::buffer_view in;
    static double none = 0; // an empty vector may have no address
    in.data = x.empty() ? &none : const_cast<double*>(x.data());
    in.type = tg::dtype::f64;
    in.extents[in.rank++] = batch;
    for (const std::int64_t extent : rest) in.extents[in.rank++] = extent;
    p.program.set_input(0, in);
    std::vector<std::vector<double>> results[2];
    for (int way = 0; way < 2; ++way) {
        if (way == 0)
            p.run();
        else
            p.program.run_each({}, [](int, const auto& run) { run(); });
        for (int k = 0; k < p.program.view().outputs.size(); ++k) results[way].push_back(p.output(k));
    }
    for (std::size_t k = 0; k < results[0].size(); ++k) {
        CAPTURE(k);
        CAPTURE(batch);
        REQUIRE(results[0][k].size() == results[1][k].size());
        CHECK(std::memcmp(results[0][k].data(), results[1][k].data(), results[0][k].size() * sizeof(double)) == 0);
    }
    return pairs(p.program);
}

/// What follows is elementwise with numbers, with a value for each channel, and with another image; in rows that are cut, too.
struct chains {
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x", {40, 13, 5}), w = variable(t, "w", {3, 3, 5, 9}), b = variable(t, "b", {9}),
                   d = variable(t, "d", {3, 3, 1, 9}), point = variable(t, "point", {1, 1, 9, 9}),
                   scale = variable(t, "scale", {9});
        const node first = clip(conv2d(x, w, {.padding = tg::padding::same()}) + b, 0.0, 0.25);
        const node second = swish(conv2d(first, d, {.padding = tg::padding::same(), .groups = 9}) + b);
        const node third = eval(conv2d(second, point) * scale);
        output(t, "y", third + first);
        output(t, "sums", sum(second, {1, 2}));
    }
};
static_assert(first_problem<chains>() == nullptr);

/// Rows of more pixels than a block has.
struct wide {
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x", {3, 601, 2}), w = variable(t, "w", {2, 3, 2, 3}), b = variable(t, "b", {3});
        output(t, "y", tanh(conv2d(x, w) + b));
    }
};
static_assert(first_problem<wide>() == nullptr);

/// Few pixels and many channels, which are unfolded; a convolution along one dimension.
struct unfolded {
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x", {5, 4, 3}), w = variable(t, "w", {3, 3, 3, 257}),
                   line = variable(t, "line", {3, 3, 4});
        output(t, "y", tanh(conv2d(x, w, {.padding = tg::padding::same()})));
        output(t, "line", clip(conv1d(reshape(x, {-1, 20, 3}), line), -0.5, 0.5));
    }
};
static_assert(first_problem<unfolded>() == nullptr);

/// The sum may be written over the convolution's own operand, and a result that is an output keeps its memory.
struct hazards {
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x", {9, 8, 3}), w = variable(t, "w", {3, 3, 3, 3});
        const auto same = [&](const node& h) { return conv2d(h, w, {.padding = tg::padding::same()}); };
        node h = eval(x * 0.5);
        for (int i = 0; i < 3; ++i) h = h + same(h);
        for (int i = 0; i < 3; ++i) h = same(h) + h;
        const node kept = same(h);
        output(t, "kept", kept);
        const node last = tanh(kept);
        output(t, "pixels", same(last) * slice(last, {tg::all, tg::range(0, 1), tg::range(0, 1)}));
        output(t, "channel", same(last) * sum(kept, 3, {.keepdims = true}));
    }
};
static_assert(first_problem<hazards>() == nullptr);

} // namespace

TEST_CASE("continuations: clipping, gates and sums inside convolutions keep every bit") {
    for (const std::int64_t batch : {0, 1, 2, 33}) {
        const pairs found = compare<chains>(batch, {40, 13, 5});
        if (batch > 0) CHECK(found.fit == 3);
        if (batch > 0) CHECK(found.done == found.fit);
    }
}

TEST_CASE("continuations: rows of several blocks, unfolded images and lines") {
    for (const std::int64_t batch : {1, 3, 40}) {
        const pairs cut = compare<wide>(batch, {3, 601, 2});
        CHECK(cut.fit == 1);
        CHECK(cut.done == 1);
        const pairs found = compare<unfolded>(batch, {5, 4, 3});
        CHECK(found.fit == 2);
        CHECK(found.done == 2);
    }
}

TEST_CASE("continuations: nothing is written to what the convolution reads") {
    for (const std::int64_t batch : {1, 2, 7}) compare<hazards>(batch, {9, 8, 3});
}

TEST_CASE("continuations: calls that do not fit") {
    float x[24]{}, y[24]{}, other[24]{}, workspace[8]{};
    const auto view = [](float* data, std::initializer_list<std::int64_t> extents, tg::dtype type = tg::dtype::f32) {
        tg::buffer_view v;
        v.data = data, v.type = type;
        for (const std::int64_t extent : extents) v.extents[v.rank++] = extent;
        return v;
    };
    const tg::buffer_view from[]{view(x, {2, 3, 4})}, result[]{view(y, {2, 3, 4})};
    tg::kernel_call first, next;
    first.in = from, first.inputs = 1, first.out = result, first.outputs = 1, first.workspace = workspace;
    const auto fits = [&](const tg::buffer_view& second, const tg::buffer_view& to) {
        const tg::buffer_view in[]{result[0], second}, out[]{to};
        next.in = in, next.inputs = 2, next.out = out, next.outputs = 1, next.domain = to;
        return continuation::fits(first, sizeof workspace, next);
    };
    CHECK(fits(view(other, {2, 3, 4}), result[0]));
    CHECK(fits(view(other, {4}), result[0]));
    CHECK(fits(view(other, {1, 1, 4}), result[0]));
    CHECK(fits(view(other, {}), view(other, {2, 3, 4})));
    CHECK_FALSE(fits(view(other, {2, 3, 4}), view(x, {2, 3, 4})));         // still read
    CHECK_FALSE(fits(view(other, {2, 3, 4}), view(workspace, {2, 3, 4}))); // in use
    CHECK_FALSE(fits(view(other, {2, 3, 4}), view(y + 1, {2, 3, 4})));     // other elements than those read
    CHECK_FALSE(fits(view(other, {3, 4}), result[0]));                     // other rows
    CHECK_FALSE(fits(view(other, {2, 1, 4}), result[0]));
    CHECK_FALSE(fits(view(other, {2, 3, 1}), result[0]));
    CHECK_FALSE(fits(view(y, {4}), result[0]));              // part of a result that is not complete
    CHECK_FALSE(fits(view(other, {4}), view(y, {2, 2, 4}))); // another index space
    CHECK_FALSE(fits(view(other, {4}), view(y, {2, 4, 3})));
    const tg::buffer_view in[]{view(other, {2, 3, 4})};
    next.in = in, next.inputs = 1, next.out = in, next.domain = in[0];
    CHECK_FALSE(continuation::fits(first, 0, next)); // does not read the result
}

} // namespace continuations_test
