#pragma once

#include <tapegraph/core/kept_text.hpp>
#include <tapegraph/graph/model_trace.hpp>

#include <string_view>

/// Names of scopes in a trace: what graph_scope's paths are made of.

namespace tapegraph::detail {

/// The index that reads as `name`; -1 for other names, such as 07.
constexpr int index_of_name(std::string_view name) {
    if (name.empty() || name.size() > 9 || (name[0] == '0' && name.size() > 1)) return -1;
    int index = 0;
    for (const char c : name) {
        if (c < '0' || c > '9') return -1;
        index = 10 * index + (c - '0');
    }
    return index;
}

/// The scope below `parent` with a name and an index (-1 for none), which is added to the trace
/// when it is first requested. Returns its index in the trace.
constexpr int child_scope(ir::model_trace& t, int parent, std::string_view name, int index) {
    const int newest = t.members[parent].last_child;
    for (int i = newest; i > 0; i = t.members[i - 1].previous_sibling)
        if (t.scopes[i - 1].index == index && t.scopes[i - 1].name == name) return i - 1;
    const int made = t.add_scope({parent, index, kept_text(name)}, {0, 0, newest});
    t.members[parent].last_child = made + 1;
    return made;
}

} // namespace tapegraph::detail
