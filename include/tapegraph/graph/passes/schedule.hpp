#pragma once

#include <tapegraph/graph/passes/merge_siblings.hpp>
#include <tapegraph/graph/passes/merge_sums.hpp>
#include <tapegraph/graph/passes/merge_updates.hpp>
#include <tapegraph/graph/passes/steps.hpp>
#include <tapegraph/ops/elementwise/arithmetic.hpp>
#include <tapegraph/ops/movement/view.hpp>

/// Fusion and scheduling: decides which nodes get buffers, and builds the straight line of kernel
/// calls that fills them. The functions are templates, so that programs without graphs do not
/// compile them.

namespace tapegraph::ir {

namespace detail {

/// Whether every kernel that reads a value recomputes it: it is computed from one operand of its
/// own size by a few instructions, so that reading the operand costs as much as reading the value,
/// writing the value is saved, and one of the two has to live on. Batch normalization's gradient
/// has two such values, each of which was written once and read twice.
constexpr bool cheap_again(const trace& t, int i, const list<int>& buffered) {
    constexpr int most_instructions = 4;
    if (is_storage_type(t.nodes[i].type)) return false;
    int operand = -1, instructions = 0, open[2 * most_instructions] = {i};
    for (int left = 1; left > 0;) {
        const int node = open[--left];
        if (!t.is(node, descriptor_of<add_op>) && !t.is(node, descriptor_of<subtract_op>) &&
            !t.is(node, descriptor_of<multiply_op>) && !t.is(node, descriptor_of<negate_op>))
            return false;
        if (++instructions > most_instructions) return false;
        for (int k = 0; k < t.nodes[node].arguments; ++k) {
            const int argument = t.argument(node, k);
            if (!t.same_shape(argument, i) || argument == operand) continue;
            if (t.nodes[argument].op->kind == operation_kind::map && buffered[argument] == 0)
                open[left++] = argument;
            else if (operand < 0)
                operand = argument;
            else
                return false;
        }
    }
    return operand >= 0;
}

/// Decides which elementwise nodes live only in registers. Such a node is computed inside every
/// kernel that uses it.
///
/// A node stays virtual when all its users run over its own shape and either only one kernel uses
/// it, or it is an inner node of a formula: those are recomputed where needed, exactly as on the
/// tape. The same holds for values that cost no more to compute than to read.
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
        for (int k = 0; k < e.arguments; ++k) { // nodes in memory anyway are not part of the kernel
            const int argument = t.argument(i, k);
            if (buffered[argument] == 0 && t.same_shape(argument, i)) size[i] += size[argument];
        }
        if (size[i] >= largest_region) {
            buffered[i] = 1;
            size[i] = 0;
        }
    }
    for (int i = count - 1; i >= 0; --i) {
        const entry& e = t.nodes[i];
        const bool map = e.op->kind == operation_kind::map, reduce = e.op->kind == operation_kind::reduce;
        if (map && (kernel_of[i] == none || (kernel_of[i] == several && e.sealed && !cheap_again(t, i, buffered))))
            buffered[i] = 1;
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

/// Emits steps in order. Nodes that do not fit into a kernel get buffers on the way.
struct scheduler {
    trace& t;
    list<int>& buffered;
    schedule& s;
    schedule_index index;
    region_marks marks{};
    list<int> roots{};

    constexpr scheduler(trace& source, list<int>& buffers, schedule& target)
        : t(source), buffered(buffers), s(target), index(target) {}

    constexpr region_code encoded(int root, int i) {
        const auto slot = [&](int node) { return node != i && buffered[node] != 0; };
        const auto op_index = [&](const operation* op) { return index.operation_index(op); };
        roots.clear();
        roots.push_back(root);
        return encode_region(t, roots, slot, op_index, marks);
    }

    // The largest part of a formula that one kernel can hold.
    constexpr int largest_part(int node) {
        for (;;) {
            int best = -1, most = 0;
            for (int k = 0; k < t.nodes[node].arguments; ++k) {
                const int argument = t.argument(node, k);
                if (buffered[argument] != 0) continue;
                const int reads = encoded(argument, argument).slots.size();
                if (reads > most) best = argument, most = reads;
            }
            if (most <= most_region_slots) return best;
            node = best;
        }
    }

    // A kernel reads a limited number of operands: parts of larger formulas are computed
    // beforehand.
    constexpr region_code fused(int root, int i) {
        region_code r = encoded(root, i);
        while (r.slots.size() > most_region_slots) {
            const int part = largest_part(root);
            buffered[part] = 1;
            emit(part);
            r = encoded(root, i);
        }
        return r;
    }

    constexpr void emit(int i) {
        const entry e = t.nodes[i];
        const bool reduce = e.op->kind == operation_kind::reduce;
        step_entry step{0, i, i, 0, 0, 1};
        if (e.op->kind == operation_kind::map || reduce) {
            step.domain = reduce ? t.argument(i, 0) : i;
            const region_code r = fused(step.domain, i);
            step.inputs = r.slots.size();
            step.first_value = s.values.size();
            for (int node : r.slots) s.values.push_back(node);
            step.kernel = reduce
                              ? index.kernel_index(kernel_kind::reduction, index.operation_index(e.op), e.type, r.words)
                              : index.kernel_index(kernel_kind::region, -1, e.type, r.words);
        } else {
            step.first_value = s.values.size();
            // An operand that the kernel does not read is replaced by one that it reads, so that
            // the former's buffer need not live longer.
            int instead = 0;
            while ((e.op->unread >> instead & 1) != 0) ++instead;
            for (int k = 0; k < e.arguments; ++k)
                s.values.push_back(t.argument(i, (e.op->unread >> k & 1) != 0 ? instead : k));
            step.inputs = e.arguments;
            const dtype type = e.arguments > 0 ? t.nodes[t.argument(i, 0)].type : e.type;
            list<int> own;
            if (e.op->per_node_kernel) own.push_back(i);
            step.kernel = index.kernel_index(kernel_kind::operation, index.operation_index(e.op), type, own);
        }
        s.values.push_back(i);
        s.steps.push_back(step);
    }
};

} // namespace detail

/// Lowers a trace to a schedule of kernel calls. Without `fuse` every node has a buffer and a kernel call of its own: the
/// same bits, computed node by node.
constexpr schedule make_schedule(trace& t, bool fuse = true) {
    schedule s;
    list<int> buffered = detail::buffered_nodes(t);
    for (int& b : buffered) b = fuse ? b : 1;
    detail::scheduler run(t, buffered, s);
    s.alias.resize(t.nodes.size());
    for (int i = 0; i < t.nodes.size(); ++i) s.alias[i] = i;
    for (int i = 0; i < t.nodes.size(); ++i) {
        if (buffered[i] == 0 || t.nodes[i].op->kind == operation_kind::leaf) continue;
        if (t.nodes[i].op->kind == operation_kind::view)
            s.alias[i] = s.alias[t.argument(i, 0)];
        else
            run.emit(i);
    }
    if (fuse) {
        merge_updates(t, buffered, s);
        merge_sums(t, buffered, s);
        merge_siblings(t, buffered, s);
    }
    return s;
}

} // namespace tapegraph::ir
