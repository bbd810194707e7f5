#pragma once

#include <tapegraph/graph/trace.hpp>

/// What passes share: replacing nodes and closing the gaps.

namespace tapegraph::ir {

/// Redirects every reference from node i to target[i].
constexpr void redirect(trace& t, const list<int>& target) {
    for (int& argument : t.arguments) argument = target[argument];
    for (output_entry& output : t.outputs) output.node = target[output.node];
    for (assignment_entry& update : t.assignments) update.node = target[update.node];
}

/// Keeps the nodes for which keep[i] != 0; everything kept may refer only to what is kept.
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
    t.layers.clear(); // the layer table is of the model as it was written
}

constexpr void note_pass(trace& t, std::string_view name) { t.history.push_back({name, t.nodes.size()}); }

} // namespace tapegraph::ir
