#pragma once

#include <tapegraph/ir/rewrite.hpp>

namespace tapegraph::ir {

/// Dead-node elimination: keeps every node that outputs and updates need, and every input and
/// variable.
constexpr void eliminate_dead_nodes(trace& t) {
    compact(t, live_nodes(t));
    note_pass(t, "dead nodes");
}

namespace detail {

constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
    return (hash ^ value) * 0x9E3779B97F4A7C15u ^ (hash >> 29);
}

constexpr std::uint64_t hash_of(const trace& t, int i, int op_index) {
    const entry& e = t.nodes[i];
    std::uint64_t hash = mixed(static_cast<std::uint64_t>(op_index), static_cast<std::uint64_t>(e.type) + 1);
    for (int k = 0; k < e.arguments; ++k) hash = mixed(hash, static_cast<std::uint64_t>(t.argument(i, k)));
    for (int k = 0; k < e.rank; ++k) hash = mixed(hash, static_cast<std::uint64_t>(t.pool[e.dims + k]));
    const int words = e.op->kind == operation_kind::leaf ? 1 : e.op->words;
    for (int k = 0; k < words; ++k) hash = mixed(hash, static_cast<std::uint64_t>(t.words[e.words + k]));
    return hash;
}

constexpr bool equal_nodes(const trace& t, int a, int b) {
    const entry &x = t.nodes[a], &y = t.nodes[b];
    if (!same_operation(x.op, y.op) || x.type != y.type || x.arguments != y.arguments || !t.same_shape(a, b))
        return false;
    for (int k = 0; k < x.arguments; ++k)
        if (t.argument(a, k) != t.argument(b, k)) return false;
    const int words = x.op->kind == operation_kind::leaf ? 1 : x.op->words;
    for (int k = 0; k < words; ++k)
        if (t.words[x.words + k] != t.words[y.words + k]) return false;
    return true;
}

} // namespace detail

/// Common-subexpression elimination by hashing. Random nodes, effects, inputs and variables are never merged.
constexpr void eliminate_common_subexpressions(trace& t) {
    const int count = t.nodes.size();
    int buckets = 16;
    while (buckets < 2 * count) buckets *= 2;
    list<int> head(buckets, -1), next(count, -1), target(count, 0);
    list<const operation*> ops;
    for (int i = 0; i < count; ++i) {
        target[i] = i;
        const entry& e = t.nodes[i];
        for (int k = 0; k < e.arguments; ++k) {
            int& argument = t.arguments[e.first_argument + k];
            argument = target[argument];
        }
        if (e.op->kind == operation_kind::random || e.op->kind == operation_kind::effect ||
            e.is(descriptor_of<input_op>) || e.is(descriptor_of<variable_op>))
            continue;
        int op_index = 0; // addresses cannot be hashed in constant evaluation
        while (op_index < ops.size() && !same_operation(ops[op_index], e.op)) ++op_index;
        if (op_index == ops.size()) ops.push_back(e.op);
        int& bucket = head[static_cast<int>(detail::hash_of(t, i, op_index) & static_cast<std::uint64_t>(buckets - 1))];
        int same = bucket;
        while (same >= 0 && !detail::equal_nodes(t, i, same)) same = next[same];
        if (same >= 0) {
            target[i] = same;
            t.nodes[same].sealed = t.nodes[same].sealed || e.sealed;
        } else {
            next[i] = bucket;
            bucket = i;
        }
    }
    redirect(t, target);
    note_pass(t, "common subexpressions");
}

} // namespace tapegraph::ir
