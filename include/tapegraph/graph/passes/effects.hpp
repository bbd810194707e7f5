#pragma once

#include <tapegraph/ir/rewrite.hpp>

namespace tapegraph::ir {

namespace detail {
/// Replaces an effect by a constant that nothing reads.
constexpr void drop_effect(trace& t, entry& e) {
    e.op = &descriptor_of<constant_op>;
    e.arguments = 0;
    e.words = t.words.push_back(0);
}
} // namespace detail

/// Drops all effects, where a program repeats the work of another one.
constexpr void drop_effects(trace& t) {
    for (entry& e : t.nodes)
        if (e.op->kind == operation_kind::effect) detail::drop_effect(t, e);
}

/// For programs that run only what their outputs need, such as a session's fetch: replaces effects
/// on other values by constants that nothing reads.
constexpr void drop_unneeded_effects(trace& t) {
    list<int> needed(t.nodes.size(), 0);
    for (const output_entry& output : t.outputs) needed[output.node] = 1;
    for (const assignment_entry& update : t.assignments) needed[update.node] = 1;
    for (int i = t.nodes.size() - 1; i >= 0; --i)
        for (int k = 0; needed[i] != 0 && k < t.nodes[i].arguments; ++k) needed[t.argument(i, k)] = 1;
    for (int i = 0; i < t.nodes.size(); ++i) {
        entry& e = t.nodes[i];
        if (e.op->kind == operation_kind::effect && needed[t.argument(i, 0)] == 0) detail::drop_effect(t, e);
    }
}

} // namespace tapegraph::ir
