#include <support/builders.hpp>

#include <doctest/doctest.h>

#include <string_view>

namespace verify_test {

namespace tg = tapegraph;
using namespace builders;

namespace {

// A graph without fault; each case breaks one thing.
constexpr void build(trace& t) {
    const node x = batch_input(t, "x", {3}), w = variable(t, "w", {3, 3});
    const node y = tanh(matmul(x, w)) + 1;
    output(t, "y", y);
    output(t, "s", sum(y * x));
    assign(t, w, w * 0.5);
}

template <class Break>
constexpr std::string_view complaint(const Break& break_it) {
    trace t;
    build(t);
    break_it(t);
    const tg::ir::finding f = verify(t);
    return f.ok() ? std::string_view() : f.what;
}
template <class Break>
constexpr std::string_view schedule_complaint(const Break& break_it) {
    trace t;
    build(t);
    tg::ir::schedule s = make_schedule(t);
    break_it(t, s);
    const tg::ir::finding f = verify(t, s);
    return f.ok() ? std::string_view() : f.what;
}
constexpr int last(const trace& t) { return t.nodes.size() - 1; }
constexpr int at(const trace& t, const tg::ir::operation& op) {
    for (int i = 0; i < t.nodes.size(); ++i)
        if (t.is(i, op)) return i;
    return -1;
}

static_assert(complaint([](trace&) {}) == "");
static_assert(complaint([](trace& t) { t.arguments[t.nodes[last(t)].first_argument] = last(t); }) ==
              "an argument does not precede its user");
static_assert(complaint([](trace& t) { t.nodes[last(t)].arguments = 1; }) ==
              "the number of arguments is not the operation's");
static_assert(complaint([](trace& t) { t.nodes[last(t)].first_argument = 10000; }) == "arguments are outside the pool");
static_assert(complaint([](trace& t) { t.nodes[last(t)].dims = t.pool.size(); }) == "extents are outside the pool");
static_assert(complaint([](trace& t) { t.nodes[last(t)].type = dtype::f32; }) ==
              "the element type is not the operation's");
static_assert(complaint([](trace& t) { t.nodes[last(t)].rank = 1; }) ==
              "the shape is not that of the broadcast operands");
static_assert(complaint([](trace& t) { t.nodes[at(t, tg::ir::descriptor_of<tg::matmul_op>)].rank = 1; }) ==
              "the shape is not that of the shape rule");
static_assert(complaint([](trace& t) {
                  const int product = at(t, tg::ir::descriptor_of<tg::matmul_op>);
                  t.arguments[t.nodes[product].first_argument] = t.argument(product, 1);
              }) == "the shape is not that of the shape rule");
static_assert(complaint([](trace& t) { t.nodes[at(t, tg::ir::descriptor_of<tg::matmul_op>)].sealed = false; }) ==
              "a value that is not elementwise is not sealed");
static_assert(complaint([](trace& t) { t.nodes[last(t)].scope = 7; }) == "the scope is unknown");
static_assert(complaint([](trace& t) {
                  t.scopes.push_back({1, -1, "own parent"});
              }) == "a scope does not follow its parent");
static_assert(complaint([](trace& t) { t.scopes.push_back({0, -1, "layer"}); }) == "");
static_assert(complaint([](trace& t) { t.nodes[last(t)].line = -1; }) == "the source line is unknown");
static_assert(complaint([](trace& t) { t.nodes[last(t)].group = t.groups; }) == "the group is unknown");
static_assert(complaint([](trace& t) { t.pool[t.nodes[last(t)].dims] = -5; }) ==
              "an extent is neither a number nor known to the table");
static_assert(complaint([](trace& t) { t.inputs[0].node = 1; }) == "the table of inputs names another node");
static_assert(complaint([](trace& t) { t.words[t.nodes[0].words] = 3; }) == "an input's index is outside the table");
static_assert(complaint([](trace& t) { t.outputs[0].node = 1000; }) == "an output is not a node");
static_assert(complaint([](trace& t) { t.assignments[0].node = 0; }) ==
              "an assigned value does not have the variable's shape and type");
static_assert(complaint([](trace& t) { t.assignments.push_back(t.assignments[0]); }) == "a variable is assigned twice");

static_assert(schedule_complaint([](trace&, tg::ir::schedule&) {}) == "");
static_assert(schedule_complaint([](trace&, tg::ir::schedule& s) {
                  const tg::ir::step_entry first = s.steps[0];
                  s.steps[0] = s.steps[1];
                  s.steps[1] = first;
              }) == "a step reads what has not been computed");
static_assert(schedule_complaint([](trace&, tg::ir::schedule& s) { s.steps[1] = s.steps[0]; }) ==
              "a value is computed twice");
static_assert(schedule_complaint([](trace&, tg::ir::schedule& s) { s.steps.pop_back(); }) ==
              "an assigned value is not computed");
static_assert(schedule_complaint([](trace& t, tg::ir::schedule& s) { s.alias[last(t)] = 0; }) ==
              "only views share a buffer");
static_assert(schedule_complaint([](trace&, tg::ir::schedule& s) { s.alias.pop_back(); }) ==
              "aliases and nodes differ in number");

// What passes make of slices and their gradients.
static_assert([] {
    trace t;
    const node columns = slice(batch_input(t, "x", {3}), {tg::all, {0, 2}});
    t.nodes[columns.id()].op = &tg::ir::descriptor_of<tg::slice_view_op>;
    return verify(t).what == std::string_view("a view's elements are not in one piece");
}());
static_assert([] {
    trace t;
    const node x = input(t, "x", {2}), y = pad(x, {{0, 1}}) + pad(x, {{1, 0}});
    join_pads(t);
    t.words[t.nodes[y.id()].words + 1] = 2; // where the first one begins
    return verify(t).what == std::string_view("placed_sum: an operand lies outside the result");
}());
static_assert([] {
    trace t;
    const node x = input(t, "x", {4}), part = slice(x, {{1, 3}});
    output(t, "y", part);
    tg::ir::schedule s = make_schedule(t);
    s.alias[part.id()] = x.id(); // though it has a kernel
    return verify(t, s).what == std::string_view("only views share a buffer");
}());

} // namespace

TEST_CASE("the verifier leaves a trace as it was") {
    trace t;
    build(t);
    const int requirements = t.extents.requirements.size(), polynomials = t.extents.polynomials.size(),
              nodes = t.nodes.size();
    CHECK(verify(t).ok());
    CHECK(t.extents.requirements.size() == requirements);
    CHECK(t.extents.polynomials.size() == polynomials);
    CHECK(t.nodes.size() == nodes);
    CHECK(complaint([](trace& broken) { broken.nodes[last(broken)].scope = 7; }) == "the scope is unknown");
}

} // namespace verify_test
