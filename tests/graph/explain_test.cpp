#include <support/builders.hpp>

#include <tapegraph/graph/explain.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace explain_test {

namespace tg = tapegraph;
using namespace builders;

namespace {

struct small {
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x", {20}), w = variable(t, "w", {20, 10}), b = variable(t, "b", {10});
        t.variables[0].scope = t.scopes.push_back({0, -1, "layer"});
        const node h = matmul(x, w);
        const node y = tanh(h + b) * 2;
        const node z = y + 1; // the last reader of y
        output(t, "z", matmul(z, z, {.transpose_b = true}));
        output(t, "s", sum(square(x), 1));
        assign(t, b, b * 0.5);
    }
};

struct convolutions {
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x", {8, 8, 4}), w = variable(t, "w", {3, 3, 2, 6});
        const node y = conv2d(x, w, {.groups = 2});
        output(t, "y", y);
        const auto g = tg::ir::gradient(t, y.id(), {x.id(), w.id()});
        t.outputs.push_back({"dx", g[0]});
        t.outputs.push_back({"dw", g[1]});
    }
};

bool has(const std::string& text, std::string_view what) { return text.find(what) != std::string::npos; }

} // namespace

TEST_CASE("explain: the most important figures come first") {
    const tg::ir::program_view& view = tg::ir::compile_program<small>();
    const std::string text = tg::explain(view, {.batch_size = 3});
    INFO(text);
    CHECK(has(text, "parameters  210 in 2 trainable variables; all 2 variables hold 1.7 kB\n"));
    CHECK(has(text, "a step      1.6 kFLOP, "));
    // 2*3*10*20 of products are more than anything else costs.
    const std::size_t calls = text.find("the calls predicted to cost most\n"), product = text.find("matmul"),
                      line = text.find("explain_test.cpp:");
    REQUIRE(calls != std::string::npos);
    CHECK(calls < product);
    // A call of an operation belongs to the layer of its variable.
    const std::size_t row = text.rfind('\n', product);
    CHECK(has(text.substr(row, product - row), " layer "));
    CHECK(product < line);
    CHECK(has(text, " operations in " + std::to_string(view.steps.size()) + " calls; fused, the longest first\n"));
    CHECK(has(text, "  1 call   add, tanh, multiply"));
    for (const char* detail : {"r0 = ", "dead nodes", "buffers of the arena", " <- "}) CHECK_FALSE(has(text, detail));
    CHECK(std::count(text.begin(), text.end(), '\n') < 20);
    // Nothing but numbers, if somebody wants no lists.
    const std::string numbers = tg::explain(view, {.batch_size = 3, .calls = 0});
    CHECK_FALSE(has(numbers, "matmul"));
    CHECK_FALSE(has(numbers, "tanh"));
    CHECK(has(numbers, "arena"));
}

TEST_CASE("explain: records are 32 and so is what else is known only at run time, and eight calls are shown") {
    const tg::explain_options o{};
    CHECK(o.batch_size == 32);
    CHECK(o.other_extents == 32);
    CHECK_FALSE(o.details);
    CHECK(o.calls == 8);
}

TEST_CASE("a plan in words") {
    const std::string text = tg::explain(tg::ir::compile_program<small>(), {.batch_size = 3, .details = true});
    INFO(text);
    CHECK(has(text, "trace"));
    CHECK(has(text, "dead nodes"));
    CHECK(has(text, "r0 = s0 + s1"));
    CHECK(has(text, "r1 = tanh(r0)"));
    CHECK(has(text, "matmul(x, layer/w)"));
    CHECK(has(text, "sum of region"));
    CHECK(has(text, "explain_test.cpp:"));
    CHECK(has(text, "b <- "));
    CHECK(has(text, ", in place"));
    CHECK(has(text, "written over %"));
    // 2 m n k of two products: 2*3*10*20 + 2*3*3*10; region of 4 instructions over 3x10; sum of squares of 3x20 and their
    // additions; the update of 10.
    CHECK(has(text, "floating-point operations  " + tg::ir::detail::report::number(1200 + 180 + 4 * 30 + 2 * 60 + 10)));
}

TEST_CASE("the cost of convolutions") {
    tg::ir::program p(tg::ir::compile_program<convolutions>());
    tg::ir::detail::bind_for(p, {.batch_size = 5});
    // Each of the three passes: 2 multiply-adds for every output element [5, 6, 6, 6] and its 3 x 3 x 2 inputs. The ones
    // that stand for the adjoint of y are broadcast by a region of one instruction.
    const double pass = 2.0 * 5 * 6 * 6 * 6 * 18, total = tg::ir::cost_of(p).flops;
    CHECK(total >= 3 * pass);
    CHECK(total <= 3 * pass + 5 * 6 * 6 * 6);
}

TEST_CASE("a plan as a picture") {
    const tg::ir::program_view& view = tg::ir::compile_program<small>();
    const std::string dot = tg::to_dot(view);
    INFO(dot);
    CHECK(dot.find("digraph program {") == 0);
    CHECK(has(dot, "subgraph cluster_"));
    CHECK(has(dot, "matmul\\nf64[?,10]"));
    CHECK(has(dot, "\"output z\""));
    CHECK(has(dot, "\"update of b\""));
    CHECK(std::count(dot.begin(), dot.end(), '{') == std::count(dot.begin(), dot.end(), '}'));
    CHECK(std::count(dot.begin(), dot.end(), '"') % 2 == 0);
    // Every node is declared once.
    for (int i = 0; i < view.nodes.size(); ++i) {
        const std::string declaration = " n" + std::to_string(i) + " [";
        const std::size_t first = dot.find(declaration);
        CHECK(first != std::string::npos);
        CHECK(dot.find(declaration, first + 1) == std::string::npos);
    }
}

} // namespace explain_test
