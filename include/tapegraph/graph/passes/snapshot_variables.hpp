#pragma once

#include <tapegraph/ir/node.hpp>
#include <tapegraph/ir/rewrite.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>

namespace tapegraph::ir {

namespace detail {

/// The variable whose memory a node shares, looking through views; -1 when there is none.
constexpr int underlying_variable(const trace& t, int node) {
    while (t.nodes[node].op->kind == operation_kind::view) node = t.argument(node, 0);
    return t.is(node, descriptor_of<variable_op>) ? static_cast<int>(t.words[t.nodes[node].words]) : -1;
}

} // namespace detail

/// A read of a variable gives its value from the start of the step. An output that is the variable
/// itself, or an update of another variable by it (as when two exchange their values), would read
/// its memory after its own update, so these read a copy. The pass runs after simplification, which
/// would remove the copy.
constexpr void snapshot_variables(trace& t) {
    list<int> updated(t.variables.size(), 0), copies(t.nodes.size(), -1);
    for (const assignment_entry& update : t.assignments) updated[update.variable] = 1;
    static_assert(operation_binding<stop_gradient_op>::bound);
    const auto held = [&](int id) {
        if (copies[id] < 0) copies[id] = t.map(descriptor_of<stop_gradient_op>, &id, 1);
        return copies[id];
    };
    for (output_entry& output : t.outputs)
        if (const int v = detail::underlying_variable(t, output.node); v >= 0 && updated[v] != 0)
            output.node = held(output.node);
    for (assignment_entry& update : t.assignments)
        if (const int v = detail::underlying_variable(t, update.node);
            v >= 0 && v != update.variable && updated[v] != 0)
            update.node = held(update.node);
}

} // namespace tapegraph::ir
