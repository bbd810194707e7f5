#pragma once

#include <tapegraph/graph/lower.hpp>
#include <tapegraph/graph/scan_program.hpp>

#include <bit>

/// The step of a scan as a trace of its own, for programs that the compiler makes (graph/scan_kernel.hpp)
/// and for those that are made at run time (graph/traced_scan.hpp).

namespace tapegraph::ir::detail {

/// The trace's inputs, variables, updates and outputs are those of the step, in its order.
constexpr void name_step_values(trace& t, const scan_step& step, scan_table& slots) {
    t.inputs.clear();
    for (const scan_input& input : step.inputs) {
        entry& e = t.nodes[input.node];
        if (input.role == scan_role::carry) {
            e.op = &descriptor_of<variable_op>;
            e.words = t.words.push_back(t.variables.size());
            slots.inputs.push_back({input.role, input.operand, 0, t.variables.size()});
            t.assignments.push_back({t.variables.size(), input.next});
            t.variables.push_back({0, "state", input.node});
        } else {
            e.words = t.words.push_back(t.inputs.size());
            slots.inputs.push_back({input.role, input.operand, input.axis, t.inputs.size()});
            t.inputs.push_back({"", input.node, false});
        }
    }
    for (const scan_output& output : step.outputs) {
        const bool carry = output.role == scan_role::carry;
        const int index = carry ? slots.inputs.at[output.node].index : t.outputs.size();
        slots.outputs.push_back({output.role, -1, output.axis, index});
        if (!carry) t.outputs.push_back({"", output.node});
    }
}

struct has_scan_attributes {
    using attributes = scan_attributes;
};

/// The step of scan `number` of a trace. Carries are variables, which are updated at the end of the step.
constexpr void trace_scan_step(const step_builder& builder, const program_view& outer, int number, trace& t,
                               scan_table& slots) {
    static_assert(operation_binding<variable_op>::bound && operation_binding<input_op>::bound);
    for (const auto& each : outer.atoms) t.extents.atoms.push_back(each);
    for (const auto& each : outer.monomials) t.extents.monomials.push_back(each);
    for (const auto& each : outer.polynomials) t.extents.polynomials.push_back(each);
    const entry scan = outer.nodes[number];
    list<operand_info> in(scan.arguments);
    for (int k = 0; k < scan.arguments; ++k) {
        const entry& e = outer.nodes[outer.arguments[scan.first_argument + k]];
        in[k] = {e.type, shape(e.rank, outer.pool.begin() + e.dims, &t.extents)};
    }
    constexpr int words = attribute_words<has_scan_attributes>;
    tapegraph::detail::words<words> attributes{};
    for (int i = 0; i < words; ++i) attributes.value[i] = outer.words[scan.words + i];
    slots.attributes = std::bit_cast<scan_attributes>(attributes);
    slots.backwards = builder.depth % 2 != 0;
    scan_step step;
    builder.build(t, in.begin(), slots.attributes, step);
    name_step_values(t, step, slots);
}

/// The same for graphs that are made when the program runs.
void trace_scan_step_at_run_time(const step_builder& builder, const program_view& outer, int number, trace& t,
                                 scan_table& slots);
#if TG_DEFINES_FOR_HOST(graph)
TG_DEFINITION void trace_scan_step_at_run_time(const step_builder& builder, const program_view& outer, int number,
                                               trace& t, scan_table& slots) {
    trace_scan_step(builder, outer, number, t, slots);
}
#endif

} // namespace tapegraph::ir::detail
