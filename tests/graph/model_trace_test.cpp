#include <support/builders.hpp>

#include <tapegraph/graph/compile.hpp>
#include <tapegraph/model/scope.hpp>
#include <tapegraph/nn/regularizer.hpp>

#include <doctest/doctest.h>

namespace model_trace_test {

// The record of a model beside its graph: what scopes write into it, and how far it is passed on.

using namespace builders;

namespace {

/// One variable in a scope, one at the top, and a node that nothing reads.
struct two_variables {
    static constexpr void build(tg::ir::model_trace& t) {
        t.training = false;
        const tg::graph_scope root(&t, 0);
        const tg::graph_node x(&t, t.input("x", dtype::f64, {3}));
        const auto w = (root / "layer" / 2).variable_like(x, "w", {3}, {.initializer = tg::init::constant{0.5}});
        const auto b = root.variable_like(x, "b", {3}, {.trainable = false, .collection = "kept"});
        eval(exp(x));
        output(t, "y", eval(x * w + b));
    }
};
struct continued {
    using previous = two_variables;
    static constexpr void build(tg::ir::model_trace& t) {
        const tg::graph_scope root(&t, 0);
        const tg::graph_node x(&t, t.inputs[0].node);
        root.variable_like(x, "b", {3}); // the record knows this path
        t.regularizers.push_back({0, 0, 1, 0, 0, 0});
    }
};
using traced = tg::ir::traced_stage<two_variables>;

// Every variable of the graph has a definition, every scope its members.
static_assert(traced::value.used.variables == 2 && traced::value.used.definitions == 2);
static_assert(traced::value.used.scopes == 3 && traced::value.used.members == 3); // the root, "layer", its 2
static_assert(traced::value.definitions[0].a == 0.5 && traced::value.definitions[1].collection == "kept");
static_assert(traced::value.variables[0].trainable && !traced::value.variables[1].trainable);
static_assert(traced::value.members[0].last_variable == 2 && traced::value.members[2].last_variable == 1);
static_assert(!traced::value.training);

// A builder that continues another one has its record.
static_assert(std::string_view(tg::ir::traced_stage<continued>::value.error.what) ==
              "variable: this path is already taken (scope.reuse() shares it)");
static_assert(tg::ir::traced_stage<continued>::value.used.regularizers == 1);

// Passes have the graph alone.
using simplified = tg::ir::compile_stage<tg::ir::detail::simplified<traced>>;
static_assert(simplified::value.used.variables == 2 && simplified::value.used.definitions == 0);
static_assert(simplified::value.used.scopes == 3 && simplified::value.used.members == 1); // a new trace's root
static_assert(simplified::value.variables[0].trainable); // programs count the trainable ones

} // namespace

TEST_CASE("a program names its variables, and a traced stage defines them") {
    const tg::ir::program_view& program = tg::ir::compile_program<two_variables>();
    REQUIRE(program.variables.size() == 2);
    CHECK(program.variables[0].name == "w");
    CHECK(program.variables[1].name == "b");
    const tg::ir::model_view model = tg::ir::stage_view<traced>();
    REQUIRE(model.definitions.size() == 2);
    CHECK(model.definitions[1].collection == "kept");
    CHECK(tg::ir::task_of_variable(model, 0).empty());
}

} // namespace model_trace_test
