#include <support/builders.hpp>

#include <doctest/doctest.h>

namespace eliminate_test {

namespace tg = tapegraph;
using namespace builders;

namespace {

constexpr bool equal_formulas_become_one() {
    trace t;
    const node x = input(t, "x", {3}), y = input(t, "y", {3});
    output(t, "a", tanh(x * y + 2));
    output(t, "b", tanh(x * y + 2));
    output(t, "c", sum(x, 0));
    output(t, "d", sum(x, 0));
    eliminate_common_subexpressions(t);
    if (!verify(t).ok()) return false;
    eliminate_dead_nodes(t);
    return verify(t).ok() && t.outputs[0].node == t.outputs[1].node && t.outputs[2].node == t.outputs[3].node &&
           count<tg::tanh_op>(t) == 1 && count<tg::multiply_op>(t) == 1 && count<tg::ir::constant_op>(t) == 1;
}

constexpr bool different_ones_stay_apart() {
    trace t;
    const node x = input(t, "x", {3, 3}), y = input(t, "y", {3, 3});
    output(t, "a", x - y);
    output(t, "b", y - x);                            // another order
    output(t, "c", sum(x, 0));
    output(t, "d", sum(x, 1));                        // other attributes
    output(t, "e", reshape(x, {9}));
    output(t, "f", reshape(x, {9, 1}));               // another target
    output(t, "g", x * 2);
    output(t, "h", x * 3);                            // another constant
    output(t, "i", tg::cast<float>(x));
    output(t, "j", tg::cast<int>(x));                 // another type
    const int before = t.nodes.size();
    eliminate_common_subexpressions(t);
    eliminate_dead_nodes(t);
    return verify(t).ok() && t.nodes.size() == before;
}

constexpr bool minus_zero_is_not_zero() {
    trace t;
    const node x = input(t, "x");
    output(t, "a", x * 0.0);
    output(t, "b", x * -0.0);
    eliminate_common_subexpressions(t);
    return t.outputs[0].node != t.outputs[1].node;
}

constexpr bool random_numbers_inputs_and_variables_are_never_merged() {
    trace t;
    const shape s{4};
    using random = tg::random_op<double>;
    static_assert(tg::ir::operation_binding<random>::bound);
    const random::attributes a{};
    const auto words = tg::attributes_to_words<random>(a);
    // Equal to the last word, on purpose.
    const node r(&t, t.invoke(tg::ir::descriptor_of<random>, words.value, &s, nullptr, 0));
    const node q(&t, t.invoke(tg::ir::descriptor_of<random>, words.value, &s, nullptr, 0));
    const node x = input(t, "x", {4}), y = input(t, "x", {4}), v = variable(t, "v", {4}), w = variable(t, "v", {4});
    output(t, "random", r - q);
    output(t, "inputs", x - y);
    output(t, "variables", v - w);
    eliminate_common_subexpressions(t);
    eliminate_dead_nodes(t);
    return verify(t).ok() && count<random>(t) == 2 && count<tg::ir::input_op>(t) == 2 &&
           count<tg::ir::variable_op>(t) == 2 && count<tg::subtract_op>(t) == 3;
}

constexpr bool what_nobody_needs_goes() {
    trace t;
    const node x = input(t, "x", {3}), unused = input(t, "unused", {3}), v = variable(t, "v", {3});
    const node dead = exp(x) + 1, live = x * 2;
    output(t, "y", live);
    assign(t, v, live + 1);
    eliminate_dead_nodes(t);
    // Inputs and variables keep their places in the tables, used or not.
    return verify(t).ok() && dead.id() > 0 && unused.id() > 0 && count<tg::exp_op>(t) == 0 && t.inputs.size() == 2 &&
           t.variables.size() == 1 && count<tg::ir::input_op>(t) == 2 && count<tg::add_op>(t) == 1;
}

static_assert(equal_formulas_become_one());
static_assert(different_ones_stay_apart());
static_assert(minus_zero_is_not_zero());
static_assert(random_numbers_inputs_and_variables_are_never_merged());
static_assert(what_nobody_needs_goes());

} // namespace

TEST_CASE("elimination at run time") {
    CHECK(equal_formulas_become_one());
    CHECK(different_ones_stay_apart());
    CHECK(minus_zero_is_not_zero());
    CHECK(random_numbers_inputs_and_variables_are_never_merged());
    CHECK(what_nobody_needs_goes());
}

TEST_CASE("many nodes: merging does not depend on the number of buckets") {
    trace t;
    const node x = input(t, "x");
    node sums[2]{x, x};
    for (node& s : sums)
        for (int i = 0; i < 500; ++i) s = s * 2 + static_cast<double>(i);
    output(t, "a", sums[0]);
    output(t, "b", sums[1]);
    eliminate_common_subexpressions(t);
    eliminate_dead_nodes(t);
    CHECK(t.outputs[0].node == t.outputs[1].node);
    CHECK(count<tg::add_op>(t) == 500);
    CHECK(verify(t).ok());
}

} // namespace eliminate_test
