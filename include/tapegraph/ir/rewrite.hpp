#pragma once

// Before any operation is named, because clang instantiates its derivative at that point
#include <tapegraph/ir/node.hpp>

/// Functions shared by all passes, which replace nodes and remove unused ones.

namespace tapegraph::ir {

/// Redirects every reference from node i to target[i].
constexpr void redirect(trace& t, const list<int>& target) {
    for (int& argument : t.arguments) argument = target[argument];
    for (output_entry& output : t.outputs) output.node = target[output.node];
    for (assignment_entry& update : t.assignments) update.node = target[update.node];
}

/// Removes the nodes for which keep[i] is 0; no kept node may refer to a removed one.
constexpr void compact(trace& t, const list<int>& keep) {
    list<int> moved(t.nodes.size(), -1);
    list<int> arguments;
    int next = 0;
    for (int i = 0; i < t.nodes.size(); ++i) {
        if (keep[i] == 0) continue;
        entry e = t.nodes[i];
        const int first = arguments.size();
        for (int k = 0; k < e.arguments; ++k) arguments.push_back(moved[t.arguments[e.first_argument + k]]);
        e.first_argument = first;
        t.nodes[next] = e;
        moved[i] = next++;
    }
    t.nodes.resize(next);
    t.arguments = static_cast<list<int>&&>(arguments);
    for (input_entry& input : t.inputs) input.node = moved[input.node];
    for (variable_entry& variable : t.variables) variable.node = moved[variable.node];
    for (output_entry& output : t.outputs) output.node = moved[output.node];
    for (assignment_entry& update : t.assignments) update.node = moved[update.node];
}

/// Marks the nodes that outputs, updates and effects need, and every input and variable.
constexpr list<int> live_nodes(const trace& t) {
    list<int> live(t.nodes.size(), 0);
    for (const output_entry& output : t.outputs) live[output.node] = 1;
    for (const assignment_entry& update : t.assignments) live[update.node] = 1;
    for (const input_entry& input : t.inputs) live[input.node] = 1;
    for (const variable_entry& variable : t.variables) live[variable.node] = 1;
    for (int i = t.nodes.size() - 1; i >= 0; --i) {
        const entry& e = t.nodes[i];
        if (e.op->kind == operation_kind::effect) live[i] = 1;
        if (live[i] == 0) continue;
        for (int k = 0; k < e.arguments; ++k) live[t.arguments[e.first_argument + k]] = 1;
    }
    return live;
}

/// Records the number of live nodes; a pass that redirects leaves others behind.
constexpr void note_pass(trace& t, std::string_view name) {
    int count = 0;
    const list<int> live = live_nodes(t); // named because of nvcc: see core/list.hpp
    for (const int each : live) count += each;
    t.history.push_back({name, count});
}

} // namespace tapegraph::ir
