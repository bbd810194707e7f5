#include <support/builders.hpp>

#include <doctest/doctest.h>

#include <cstring>

namespace epilogue_test {

/// What the pass for epilogues takes into the kernel before, what it leaves, and that bits are kept.

namespace tg = tapegraph;
using namespace builders;

namespace {

template <bool Relu>
using biased_product = tg::matmul_bias_op<Relu>;
template <bool Relu>
using biased_convolution = tg::convolution_bias_op<Relu>;
template <bool Relu>
using pooled = tg::convolution_bias_pool_op<Relu>;

/// The trace of a builder after the pass, without dead nodes.
template <class Builder>
constexpr trace passed() {
    trace t;
    Builder::build(t);
    simplify(t);
    eliminate_common_subexpressions(t);
    eliminate_dead_nodes(t);
    fuse_epilogues(t);
    eliminate_dead_nodes(t);
    return t;
}
template <class Op, class Builder>
constexpr int left() {
    return count<Op>(passed<Builder>());
}

template <class Builder>
struct untouched {
    static constexpr void build(trace& t, tg::ir::schedule& s) {
        Builder::build(t);
        s = make_schedule(t, false);
    }
};

/// Products of every kind that is one kernel with its bias: both sides of the addition, transposed, batches, one column.
struct products {
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x", {7}), b = variable(t, "b", {5}), w = variable(t, "w", {7, 5}),
                   v = variable(t, "v", {5, 5}), column = variable(t, "column", {5, 1}), one = variable(t, "one", {1});
        const node h = relu(matmul(x, w) + b);
        const node k = eval(b + matmul(h, v, {.transpose_b = true}));
        const node batched = reshape(k, {-1, 1, 5});
        output(t, "h", h);
        output(t, "k", k);
        output(t, "column", matmul(k, column) + one);
        output(t, "batched", relu(matmul(batched, v) + b));
    }
};
static_assert(first_problem<products>() == nullptr);
static_assert(left<tg::matmul_op, products>() == 0 && left<tg::add_op, products>() == 0 &&
              left<tg::relu_op, products>() == 0);
static_assert(left<biased_product<true>, products>() == 2 && left<biased_product<false>, products>() == 2);

/// Sums that go on in another elementwise kernel stay there; what two read, or another shape, is no epilogue.
struct others {
    static constexpr void build(trace& t) {
        const node x = input(t, "x", {5, 5}), w = variable(t, "w", {5, 5}), b = variable(t, "b", {5}),
                   rows = variable(t, "rows", {5, 1});
        output(t, "tanh", tanh(matmul(x, w) + b));
        const node product = matmul(w, x);
        output(t, "twice", product + b);
        output(t, "again", product * 2.0);
        output(t, "rows", matmul(w, w) + rows);
        output(t, "sum", sum(matmul(x, x) + b));
    }
};
static_assert(first_problem<others>() == nullptr);
static_assert(left<tg::matmul_op, others>() == 4 && left<biased_product<false>, others>() == 0);

/// A training step: gradients of what was fused are those of its parts.
struct step {
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x", {7}), w = variable(t, "w", {7, 5}), b = variable(t, "b", {5}),
                   u = variable(t, "u", {5, 3}), c = variable(t, "c", {3});
        const node h = relu(matmul(x, w) + b);
        const node loss = mean(square(matmul(h, u) + c));
        output(t, "loss", loss);
        const auto g = tg::ir::gradient(t, loss.id(), {w.id(), b.id(), u.id(), c.id()});
        assign(t, w, w - node(&t, g[0]) * 0.1);
        assign(t, b, b - node(&t, g[1]) * 0.1);
        assign(t, u, u - node(&t, g[2]) * 0.1);
        assign(t, c, c - node(&t, g[3]) * 0.1);
    }
};
static_assert(first_problem<step>() == nullptr);
static_assert(left<biased_product<true>, step>() == 1);

/// Images with odd and even extents; padding that follows from the whole output; strides; groups; a depthwise one.
struct images {
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x", {9, 8, 6}), w = variable(t, "w", {3, 2, 6, 5}), b = variable(t, "b", {5}),
                   g = variable(t, "g", {3, 3, 3, 4}), d = variable(t, "d", {3, 3, 1, 6}), b4 = variable(t, "b4", {4}),
                   b6 = variable(t, "b6", {6});
        output(t, "plain", max_pooling2d(conv2d(x, w) + b));
        output(t, "relu", max_pooling2d(relu(conv2d(x, w, {.stride = {2, 1}, .padding = tg::padding::same()}) + b)));
        output(t, "groups",
               max_pooling2d(relu(conv2d(x, g, {.padding = tg::padding::amounts(2, 0, 1, 0), .groups = 2}) + b4)));
        output(t, "depthwise", max_pooling2d(relu(conv2d(x, d, {.dilation = {1, 2}, .groups = 6}) + b6)));
    }
};
static_assert(first_problem<images>() == nullptr);
static_assert(left<pooled<true>, images>() == 3 && left<pooled<false>, images>() == 1 &&
              left<tg::max_pool_op, images>() == 0);

/// Other windows, each in one respect, and convolutions that something else reads.
struct other_images {
    static constexpr void build(trace& t) {
        const node x = input(t, "x", {2, 9, 8, 3}), w = variable(t, "w", {3, 2, 3, 5}), b = variable(t, "b", {5}),
                   v = variable(t, "v", {3, 2, 3, 5});
        const auto convolved = [&](std::int64_t stride) { return relu(conv2d(x, w, {.stride = {stride, 1}}) + b); };
        output(t, "three", max_pooling2d(convolved(1), {.pool_size = {3, 2}}));
        output(t, "same", max_pooling2d(convolved(2), {.padding = tg::padding::same()}));
        output(t, "padded", max_pooling2d(convolved(3), {.padding = tg::padding::amounts(1, 0, 0, 0)}));
        output(t, "strided", max_pooling2d(convolved(4), {.stride = {2, 1}}));
        output(t, "average", average_pooling2d(convolved(5)));
        const auto again = [&](std::int64_t stride) { return relu(conv2d(x, v, {.stride = {stride, 1}}) + b); };
        output(t, "wide", max_pooling2d(again(1), {.pool_size = {2, 3}, .stride = {2, 2}}));
        output(t, "padded after", max_pooling2d(again(2), {.padding = tg::padding::amounts(0, 0, 0, 1)}));
        output(t, "dilated", max_pooling2d(again(3), {.dilation = {1, 2}}));
        const node y = convolved(6);
        output(t, "y", y);
        output(t, "pooled", max_pooling2d(y, {.pool_size = {2, 2}}));
    }
};
static_assert(first_problem<other_images>() == nullptr);
static_assert(left<pooled<true>, other_images>() == 0 && left<biased_convolution<true>, other_images>() == 9);

struct image_step {
    static constexpr void build(trace& t) {
        const node x = input(t, "x", {2, 9, 8, 3}), w = variable(t, "w", {3, 2, 3, 5}), b = variable(t, "b", {5});
        const node loss = sum(max_pooling2d(relu(conv2d(x, w) + b)));
        const auto g = tg::ir::gradient(t, loss.id(), {w.id()});
        assign(t, w, w - node(&t, g[0]) * 0.1);
    }
};
static_assert(first_problem<image_step>() == nullptr);
static_assert(left<pooled<true>, image_step>() == 0 && left<biased_convolution<true>, image_step>() == 1);

/// Outputs and variables after three runs, fused and node by node.
template <class Builder>
void compare(std::int64_t batch, std::initializer_list<std::int64_t> rest) {
    const tg::ir::program_view& fused = tg::ir::compile_program<Builder>();
    const tg::ir::program_view& raw = tg::ir::lowered<tg::ir::compile_stage<untouched<Builder>>>::view;
    CHECK(fused.steps.size() < raw.steps.size());
    std::int64_t elements = batch;
    for (const std::int64_t extent : rest) elements *= extent;
    const std::vector<double> x = values(elements, 99);
    std::vector<std::vector<double>> results[2];
    for (const tg::ir::program_view* view : {&fused, &raw}) {
        auto& seen = results[view == &raw ? 1 : 0];
        runner p(*view);
        for (std::size_t v = 0; v < p.variables.size(); ++v) {
            p.variables[v] =
                values(static_cast<std::int64_t>(p.variables[v].size()), static_cast<std::uint32_t>(v) + 1);
            p.program.set_variable(static_cast<int>(v), p.variables[v].data());
        }
        tg::buffer_view in;
        in.data = const_cast<double*>(x.data());
        in.type = tg::dtype::f64;
        in.extents[in.rank++] = batch;
        for (const std::int64_t extent : rest) in.extents[in.rank++] = extent;
        p.program.set_input(0, in);
        for (int i = 0; i < 3; ++i) p.run();
        seen = p.variables;
        for (int k = 0; k < view->outputs.size(); ++k) seen.push_back(p.output(k));
    }
    REQUIRE(results[0].size() == results[1].size());
    for (std::size_t k = 0; k < results[0].size(); ++k) {
        CAPTURE(k);
        CAPTURE(batch);
        REQUIRE(results[0][k].size() == results[1][k].size());
        CHECK(std::memcmp(results[0][k].data(), results[1][k].data(), results[0][k].size() * sizeof(double)) == 0);
    }
}

} // namespace

TEST_CASE("epilogues: products with bias and relu keep every bit") {
    for (const std::int64_t batch : {1, 2, 13, 600}) {
        compare<products>(batch, {7});
        compare<step>(batch, {7});
    }
}

TEST_CASE("epilogues: convolutions with bias, relu and pooling keep every bit") {
    for (const std::int64_t batch : {1, 3, 200}) compare<images>(batch, {9, 8, 6});
}

} // namespace epilogue_test
