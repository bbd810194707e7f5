#include <support/builders.hpp>

#include <doctest/doctest.h>

#include <string_view>

namespace trace_test {

namespace tg = tapegraph;
using namespace builders;
using tg::operation_kind;

namespace {

constexpr bool a_formula_is_one_group_sealed_at_its_end() {
    trace t;
    const node x = input(t, "x", {3}), y = input(t, "y", {3});
    const node z = tanh(x * y + 1);
    const node u = z - x;
    int sealed = 0, inside = 0;
    for (int i = 0; i < t.nodes.size(); ++i) {
        if (t.nodes[i].op->kind == operation_kind::leaf) continue;
        sealed += t.nodes[i].sealed ? 1 : 0;
        inside += t.nodes[i].group == t.nodes[z.id()].group ? 1 : 0;
    }
    return sealed == 2 && inside == 3 && t.nodes[z.id()].sealed && t.nodes[z.id()].group != t.nodes[u.id()].group;
}

constexpr bool a_reduction_takes_its_formula_into_its_group() {
    trace t;
    const node x = input(t, "x", {3, 4});
    const node s = sum(square(x) * 2, 0);
    const int argument = t.argument(s.id(), 0);
    return t.nodes[argument].group == t.nodes[s.id()].group && !t.nodes[argument].sealed && t.nodes[s.id()].sealed &&
           t.dims(s.id()) == shape{4} && t.dims(argument) == shape{3, 4};
}

constexpr bool numbers_take_the_type_beside_them() {
    trace t;
    const node x = input(t, "x", {2}, dtype::f32), y = input(t, "y", {2}, dtype::f64);
    const node a = 2 * x + 0.5, b = tg::where(x > 1, 0, y);
    for (const tg::ir::entry& e : t.nodes) {
        if (!e.is(tg::ir::descriptor_of<tg::ir::constant_op>)) continue;
        const double value = std::bit_cast<double>(t.words[e.words]);
        if (e.type != (value == 0 ? dtype::f64 : dtype::f32)) return false;
    }
    return a.type() == dtype::f32 && b.type() == dtype::f64 && t.error.what == nullptr && count<tg::ir::constant_op>(t) == 4;
}

constexpr bool shapes_broadcast_with_symbols() {
    trace t;
    const node x = batch_input(t, "x", {4}), w = input(t, "w", {4}), c = input(t, "c", {1});
    const node y = x * w + c;
    return y.shape() == x.shape() && y.rank() == 2 && !y.shape().known() && t.extents.requirements.empty();
}

constexpr bool the_first_error_stays() {
    trace t;
    const node x = input(t, "x", {2}), y = input(t, "y", {3});
    enter(t, "layer");
    const node z = x + y;
    const unsigned line = std::source_location::current().line() - 1;
    const node after = matmul(z, y);
    return after.id() > 0 && std::string_view(t.error.what) == "shapes do not broadcast" &&
           t.error.operation == "add" && t.error.operands == 2 && t.error.first.dims == shape{2} &&
           t.error.second.dims == shape{3} && t.error.scope == 1 &&
           t.lines[t.error.line].line == static_cast<int>(line);
}

constexpr bool types_must_agree() {
    trace t;
    const node x = input(t, "x", {2}, dtype::f32), y = input(t, "y", {2}, dtype::f64);
    const node z = x * y;
    return z.id() > 0 && std::string_view(t.error.what) == "element types differ" && t.error.operation == "multiply";
}

constexpr bool conditions_are_bool() {
    trace t;
    const node x = input(t, "x", {2});
    const node z = tg::where(x, x, 0);
    return z.id() > 0 && std::string_view(t.error.what) == "the condition must be bool";
}

constexpr bool rules_report_what_does_not_fit() {
    trace t;
    const node x = input(t, "x", {2, 3}), y = input(t, "y", {2, 3});
    const node z = matmul(x, y);
    return z.id() > 0 && std::string_view(t.error.what) == "matmul: inner extents differ" && t.error.operation.empty();
}

// Of several operands the first, and the one that does not fit.
constexpr bool of_several_operands_the_one_that_does_not_fit() {
    trace t;
    const node x = input(t, "x", {2, 3}), y = input(t, "y", {4, 3}), z = input(t, "z", {2, 5});
    const node joined = tg::concat({x, y, z, y}, 0);
    return joined.id() > 0 && std::string_view(t.error.what) == "concat: extents differ off the axis" &&
           t.error.first.dims == shape{2, 3} && t.error.second.dims == shape{2, 5};
}

static_assert(of_several_operands_the_one_that_does_not_fit());
static_assert(a_formula_is_one_group_sealed_at_its_end());
static_assert(a_reduction_takes_its_formula_into_its_group());
static_assert(numbers_take_the_type_beside_them());
static_assert(shapes_broadcast_with_symbols());
// [batch, 2] is not always a whole number of rows of six: whether it is is checked when the batch is known.
constexpr bool an_open_extent_must_come_out_even() {
    trace t;
    const node x = batch_input(t, "x", {2});
    const bool even = reshape(x, {-1, 2}).id() > 0 && reshape(x, {2, -1}).id() > 0;
    const int before = t.extents.requirements.size();
    const node odd = reshape(x, {6, -1});
    return even && before == 0 && odd.id() > 0 && t.error.what == nullptr && t.extents.requirements.size() == 1;
}

static_assert(the_first_error_stays());
static_assert(an_open_extent_must_come_out_even());
static_assert(types_must_agree());
static_assert(conditions_are_bool());
static_assert(rules_report_what_does_not_fit());

} // namespace

TEST_CASE("traces at run time are those of constant evaluation") {
    CHECK(a_formula_is_one_group_sealed_at_its_end());
    CHECK(a_reduction_takes_its_formula_into_its_group());
    CHECK(numbers_take_the_type_beside_them());
    CHECK(shapes_broadcast_with_symbols());
    CHECK(the_first_error_stays());
    CHECK(types_must_agree());
    CHECK(conditions_are_bool());
    CHECK(rules_report_what_does_not_fit());
}

TEST_CASE("places with the same line in two files stay apart") {
    trace t;
    const auto here = std::source_location::current();
    const int a = t.intern(here), b = t.intern(std::source_location::current()), c = t.intern(here);
    CHECK(a == c);
    CHECK(a != b);
}

} // namespace trace_test
