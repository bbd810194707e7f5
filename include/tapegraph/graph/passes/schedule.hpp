#pragma once

#include <tapegraph/graph/passes/rewrite.hpp>
#include <tapegraph/graph/passes/spell.hpp>

/// Fusion and scheduling: which nodes get buffers, and the straight line of kernel calls that fills them.

namespace tapegraph::ir {

enum class kernel_kind : int { operation, region, reduction };

struct kernel_entry {
    int kind; // kernel_kind
    int op;   // index in schedule::ops (operation and reduction)
    int type; // dtype the kernel is instantiated for
    int first_word, words;
};

struct step_entry {
    int kernel;
    int node;         // the (first) result
    int domain;       // a node of the shape over which a region or reduction runs
    int first_value;  // in schedule::values: inputs, then results
    int inputs, outputs;
};

struct schedule {
    list<const operation*> ops;
    list<kernel_entry> kernels;
    list<int> kernel_words;
    list<step_entry> steps;
    list<int> values;
    list<int> alias; // per node: the node whose buffer it views, or itself

    constexpr int index_of(const operation* op) {
        for (int i = 0; i < ops.size(); ++i)
            if (ops[i] == op) return i;
        return ops.push_back(op);
    }
};

namespace detail {

/// Decides which elementwise nodes live in registers only. Such a node is computed inside every kernel that uses it.
///
/// A node stays virtual when all its users run over its own shape and either one kernel alone uses it, or it is an inner
/// node of a formula: those are computed again where needed, exactly as the tape does.
constexpr list<int> buffered_nodes(trace& t) {
    constexpr int none = -1, several = -2, largest_region = 48;
    const int count = t.nodes.size();
    list<int> kernel_of(count, none), buffered(count, 0), size(count, 0);
    for (const output_entry& output : t.outputs) buffered[output.node] = 1;
    for (const assignment_entry& update : t.assignments) buffered[update.node] = 1;
    for (int i = 0; i < count; ++i) {
        const entry& e = t.nodes[i];
        if (e.op->kind != operation_kind::map) continue;
        size[i] = 1;
        for (int k = 0; k < e.arguments; ++k) size[i] += size[t.argument(i, k)];
        if (size[i] >= largest_region) {
            buffered[i] = 1;
            size[i] = 0;
        }
    }
    for (int i = count - 1; i >= 0; --i) {
        const entry& e = t.nodes[i];
        const bool map = e.op->kind == operation_kind::map, reduce = e.op->kind == operation_kind::reduce;
        if (map && (kernel_of[i] == none || (kernel_of[i] == several && e.sealed))) buffered[i] = 1;
        if (!map) buffered[i] = 1;
        const int kernel = buffered[i] != 0 ? i : kernel_of[i];
        for (int k = 0; k < e.arguments; ++k) {
            const int argument = t.argument(i, k);
            if (!(map || reduce) || (map && !t.same_shape(argument, i))) {
                buffered[argument] = 1;
                continue;
            }
            int& user = kernel_of[argument];
            user = user == none || user == kernel ? kernel : several;
        }
    }
    return buffered;
}

constexpr int kernel_index(schedule& s, kernel_kind kind, int op, dtype type, const list<int>& words) {
    for (int i = 0; i < s.kernels.size(); ++i) {
        const kernel_entry& k = s.kernels[i];
        bool same = k.kind == static_cast<int>(kind) && k.op == op && k.type == static_cast<int>(type) &&
                    k.words == words.size();
        for (int w = 0; same && w < words.size(); ++w) same = s.kernel_words[k.first_word + w] == words[w];
        if (same) return i;
    }
    const int first = s.kernel_words.size();
    for (int word : words) s.kernel_words.push_back(word);
    return s.kernels.push_back({static_cast<int>(kind), op, static_cast<int>(type), first, words.size()});
}

} // namespace detail

/// Lowers a trace to a schedule of kernel calls.
constexpr schedule make_schedule(trace& t) {
    schedule s;
    const list<int> buffered = detail::buffered_nodes(t);
    const auto is_slot = [&](int node) { return buffered[node] != 0; };
    const auto op_index = [&](const operation* op) { return s.index_of(op); };
    s.alias.resize(t.nodes.size());
    for (int i = 0; i < t.nodes.size(); ++i) {
        const entry e = t.nodes[i];
        s.alias[i] = i;
        if (buffered[i] == 0 || e.op->kind == operation_kind::leaf) continue;
        if (e.op->kind == operation_kind::view) {
            s.alias[i] = s.alias[t.argument(i, 0)];
            continue;
        }
        step_entry step{0, i, i, s.values.size(), 0, 1};
        if (e.op->kind == operation_kind::map || e.op->kind == operation_kind::reduce) {
            const bool reduce = e.op->kind == operation_kind::reduce;
            list<int> root;
            root.push_back(reduce ? t.argument(i, 0) : i);
            // The root itself is buffered, yet it is what this kernel computes.
            const auto slot = [&](int node) { return node != i && is_slot(node); };
            const spelled_region r = spell(t, root, slot, op_index);
            step.domain = root[0];
            step.inputs = r.slots.size();
            for (int node : r.slots) s.values.push_back(node);
            step.kernel = reduce ? detail::kernel_index(s, kernel_kind::reduction, s.index_of(e.op), e.type, r.words)
                                 : detail::kernel_index(s, kernel_kind::region, -1, e.type, r.words);
        } else {
            for (int k = 0; k < e.arguments; ++k) s.values.push_back(t.argument(i, k));
            step.inputs = e.arguments;
            const dtype type = e.arguments > 0 ? t.nodes[t.argument(i, 0)].type : e.type;
            step.kernel = detail::kernel_index(s, kernel_kind::operation, s.index_of(e.op), type, {});
        }
        s.values.push_back(i);
        s.steps.push_back(step);
    }
    return s;
}

} // namespace tapegraph::ir
