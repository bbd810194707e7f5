#include <support/builders.hpp>

#include <doctest/doctest.h>

namespace schedule_test {

namespace tg = tapegraph;
using namespace builders;
using tg::ir::kernel_kind;

namespace {

constexpr tg::ir::schedule planned(trace& t, bool fuse = true) {
    eliminate_dead_nodes(t);
    return make_schedule(t, fuse);
}
constexpr bool computed(const tg::ir::schedule& s, int node) {
    for (const tg::ir::step_entry& step : s.steps)
        for (int k = 0; k < step.outputs; ++k)
            if (s.values[step.first_value + step.inputs + k] == node) return true;
    return false;
}
// Values in memory; several may be one step's.
constexpr int results(const tg::ir::schedule& s) {
    int count = 0;
    for (const tg::ir::step_entry& step : s.steps) count += step.outputs;
    return count;
}

constexpr bool a_chain_is_one_region() {
    trace t;
    const node x = batch_input(t, "x", {3}), w = input(t, "w", {3});
    node h = x * w;
    h = tanh(h);
    h = h + 1;
    output(t, "y", exp(h) * x);
    const auto s = planned(t);
    return verify(t, s).ok() && s.steps.size() == 1 && s.steps[0].inputs == 3; // x, w and the number
}

constexpr bool what_several_kernels_read_has_a_buffer_when_sealed() {
    trace t;
    const node x = input(t, "x", {3});
    const node h = exp(x); // sealed: two kernels read it
    output(t, "a", h + 1);
    output(t, "b", h * 2);
    const auto s = planned(t);
    return verify(t, s).ok() && results(s) == 3;
}

// h is read by two kernels, and reading x instead costs them no more; exp is no instruction to repeat.
constexpr bool what_costs_no_more_than_its_operand_is_computed_again() {
    trace t;
    const node x = batch_input(t, "x", {3}), w = input(t, "w", {3});
    const node h = (x - w) * 2 + x;
    output(t, "a", exp(h));
    output(t, "b", max(h, 0));
    const auto s = planned(t);
    return verify(t, s).ok() && s.steps.size() == 2 && !computed(s, h.id());
}

constexpr bool what_reads_two_operands_or_takes_many_instructions_is_kept() {
    trace t;
    const node x = batch_input(t, "x", {3}), y = batch_input(t, "y", {3});
    const node both = x * y, many = (((x + 1) * 2 + 3) * 4 + 5), plain = x * 2, wider = negate(tanh(x));
    for (const node& h : {both, many, plain, wider}) {
        output(t, "a", exp(h));
        output(t, "b", tanh(h));
    }
    const auto s = planned(t);
    return verify(t, s).ok() && computed(s, both.id()) && computed(s, many.id()) && !computed(s, plain.id()) &&
           computed(s, wider.id());
}

// max is differentiated as a whole, so its operand is sealed; its kernel computes that operand all the same.
constexpr bool a_sealed_operand_is_fused_into_a_reduction() {
    trace t;
    const node x = batch_input(t, "x", {3}), w = input(t, "w", {3});
    const node best = max(x * w + 1, -1);
    output(t, "y", best);
    const auto s = planned(t);
    return verify(t, s).ok() && s.steps.size() == 1 && s.steps[0].inputs == 3 &&
           s.kernels[s.steps[0].kernel].kind == static_cast<int>(kernel_kind::reduction);
}

constexpr bool inner_nodes_of_a_formula_are_computed_again() {
    trace t;
    const node x = input(t, "x", {3});
    const node a = exp(x) + 1, b = exp(x) * 2;
    output(t, "a", a);
    output(t, "b", b);
    eliminate_common_subexpressions(t); // exp(x) is one node now, unsealed, and two kernels use it
    const auto s = planned(t);
    return verify(t, s).ok() && count<tg::exp_op>(t) == 1 && results(s) == 2;
}

constexpr bool other_operations_and_other_shapes_want_buffers() {
    trace t;
    const node x = input(t, "x", {3, 3}), v = input(t, "v", {3});
    const node product = matmul(tanh(x), x); // an operand of a matrix product
    const node row = exp(v);                 // read by a larger shape
    output(t, "y", product + row);
    const auto s = planned(t);
    return verify(t, s).ok() && s.steps.size() == 4;
}

constexpr bool a_reduction_takes_its_producer() {
    trace t;
    const node x = batch_input(t, "x", {3});
    output(t, "s", sum(square(x - 1), 1));
    const auto s = planned(t);
    return verify(t, s).ok() && s.steps.size() == 1 &&
           s.kernels[s.steps[0].kernel].kind == static_cast<int>(kernel_kind::reduction);
}

constexpr bool equal_regions_share_a_kernel() {
    trace t;
    node h = batch_input(t, "x", {3});
    for (int i = 0; i < 5; ++i) {
        const node w = variable(t, "w", {3, 3});
        h = tanh(matmul(h, w) * 0.5);
    }
    output(t, "y", h);
    const auto s = planned(t);
    return verify(t, s).ok() && s.steps.size() == 10 && s.kernels.size() == 2;
}

constexpr bool element_types_part_kernels() {
    trace t;
    output(t, "a", tanh(input(t, "x", {3})));
    output(t, "b", tanh(input(t, "y", {3}, dtype::f32)));
    const auto s = planned(t);
    return verify(t, s).ok() && s.kernels.size() == 2;
}

constexpr bool views_need_no_kernel() {
    trace t;
    const node x = input(t, "x", {2, 3});
    const node y = reshape(tanh(reshape(x, {6})), {3, 2});
    output(t, "y", y);
    const auto s = planned(t);
    const int at = t.outputs[0].node;
    return verify(t, s).ok() && s.steps.size() == 1 && s.alias[at] != at && !computed(s, at);
}

constexpr bool regions_stay_small_enough_for_a_kernel() {
    trace t;
    const node x = input(t, "x", {3});
    node h = x;
    for (int i = 0; i < 100; ++i) h = h * x + 1; // seals of one user each: all could be one region
    output(t, "y", h);
    eliminate_common_subexpressions(t);
    const auto s = planned(t);
    for (const tg::ir::kernel_entry& k : s.kernels)
        if (const tg::ir::region_view region{&s.kernel_words[k.first_word]};
            region.slots() > 24 || region.instructions() > 48)
            return false;
    return verify(t, s).ok() && results(s) > 2 && results(s) < 20;
}

// Sixty operands in one formula, and in one under a reduction: no kernel reads more than it can.
constexpr bool operands_of_a_region_are_limited() {
    trace t;
    node h = input(t, "x", {3}), product = input(t, "x", {3});
    for (int i = 0; i < 29; ++i) h = h + input(t, "w", {3}), product = product * input(t, "v", {3});
    output(t, "y", h);
    output(t, "s", sum(product * 2));
    for (tg::ir::entry& e : t.nodes) e.sealed = e.op->kind != tg::operation_kind::map; // as if written in one line
    const auto s = planned(t);
    for (const tg::ir::step_entry& step : s.steps)
        if (step.inputs > tg::ir::most_region_slots) return false;
    return verify(t, s).ok() && results(s) == 4;
}

constexpr bool unfused_every_node_has_a_step() {
    trace t;
    const node x = input(t, "x", {3});
    output(t, "y", sum(exp(x) * 2 + 1));
    const auto s = planned(t, false);
    return verify(t, s).ok() && s.steps.size() == 4;
}

constexpr bool fetched_nodes_are_computed() {
    trace t;
    const node x = input(t, "x", {3});
    const node inner = x * 2, y = inner + 1;
    output(t, "inner", inner);
    output(t, "y", y);
    output(t, "x", x);
    const auto s = planned(t);
    return verify(t, s).ok() && computed(s, t.outputs[0].node) && computed(s, t.outputs[1].node);
}

static_assert(a_chain_is_one_region());
static_assert(what_several_kernels_read_has_a_buffer_when_sealed());
static_assert(a_sealed_operand_is_fused_into_a_reduction());
static_assert(inner_nodes_of_a_formula_are_computed_again());
static_assert(what_costs_no_more_than_its_operand_is_computed_again());
static_assert(what_reads_two_operands_or_takes_many_instructions_is_kept());
static_assert(other_operations_and_other_shapes_want_buffers());
static_assert(a_reduction_takes_its_producer());
static_assert(equal_regions_share_a_kernel());
static_assert(element_types_part_kernels());
static_assert(views_need_no_kernel());
static_assert(regions_stay_small_enough_for_a_kernel());
static_assert(operands_of_a_region_are_limited());
static_assert(unfused_every_node_has_a_step());
static_assert(fetched_nodes_are_computed());

} // namespace

TEST_CASE("fusion and scheduling at run time") {
    CHECK(a_chain_is_one_region());
    CHECK(what_several_kernels_read_has_a_buffer_when_sealed());
    CHECK(inner_nodes_of_a_formula_are_computed_again());
    CHECK(what_costs_no_more_than_its_operand_is_computed_again());
    CHECK(what_reads_two_operands_or_takes_many_instructions_is_kept());
    CHECK(other_operations_and_other_shapes_want_buffers());
    CHECK(a_reduction_takes_its_producer());
    CHECK(equal_regions_share_a_kernel());
    CHECK(element_types_part_kernels());
    CHECK(views_need_no_kernel());
    CHECK(regions_stay_small_enough_for_a_kernel());
    CHECK(operands_of_a_region_are_limited());
    CHECK(unfused_every_node_has_a_step());
    CHECK(fetched_nodes_are_computed());
}

TEST_CASE("random graphs: schedules are sound") {
    std::uint32_t state = 3;
    const auto next = [&](int n) { return static_cast<int>((state = state * 1664525u + 1013904223u) >> 8) % n; };
    for (int round = 0; round < 40; ++round) {
        trace t;
        std::vector<node> wide{input(t, "x", {3, 3}), input(t, "y", {3, 3})}, rows{input(t, "v", {3})};
        for (int i = 0; i < 60; ++i) {
            const node a = wide[static_cast<std::size_t>(next(static_cast<int>(wide.size())))];
            const node b = wide[static_cast<std::size_t>(next(static_cast<int>(wide.size())))];
            const node r = rows[static_cast<std::size_t>(next(static_cast<int>(rows.size())))];
            switch (next(7)) {
            case 0: wide.push_back(a * b + 1); break;
            case 1: wide.push_back(tanh(a) - r); break;
            case 2: wide.push_back(matmul(a, b)); break;
            case 3: rows.push_back(sum(a * r, 0)); break;
            case 4: rows.push_back(exp(r) + r); break;
            case 5: wide.push_back(reshape(reshape(a, {9}), {3, 3})); break;
            default: wide.push_back(transpose(b) * r); break;
            }
        }
        output(t, "a", wide.back());
        output(t, "b", rows.back());
        REQUIRE(t.error.what == nullptr);
        REQUIRE(verify(t).ok());
        simplify(t);
        CHECK(verify(t).ok());
        eliminate_common_subexpressions(t);
        CHECK(verify(t).ok());
        eliminate_dead_nodes(t);
        CHECK(verify(t).ok());
        for (const bool fuse : {true, false}) {
            const auto s = make_schedule(t, fuse);
            CHECK(verify(t, s).ok());
        }
    }
}

} // namespace schedule_test
