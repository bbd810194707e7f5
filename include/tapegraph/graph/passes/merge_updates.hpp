#pragma once

#include <tapegraph/graph/passes/steps.hpp>

/// Merges updates into one kernel: an optimizer's moments, the variable and a moving average of it
/// are computed from one another, element by element, so one pass can read and write each of them
/// once. The rounding is that of separate kernels, because regions are compiled without
/// contraction.

namespace tapegraph::ir {

/// The maximum number of results that a fused kernel writes (cpu::most_results), and of
/// instructions in a merged one.
inline constexpr int most_region_results = 12, most_merged_instructions = 96;

namespace detail {

/// A step that computes a variable's next value moves into the first step that reads it, if that is
/// elementwise and over the same shape. Its operands live longer for it; but updates come at the
/// end of a step, after all gradients.
struct update_merger {
    trace& t;
    const list<int>& buffered;
    schedule& s;
    schedule_index index;
    region_marks marks{};
    list<int> result{};               // per step: the node that it computes
    list<int> assigned;               // per node: whether it is a variable's next value
    list<int> first_use;              // per node: an index into use_step, whose entries ascend; -1: none
    list<int> use_step{}, use_next{}; // the step that reads it, and its next use
    // Per step: the last of those that moved into it, or -1; for a moved step: the one before it
    list<int> members;
    list<int> moved; // per step: whether another one computes its result

    constexpr update_merger(trace& source, const list<int>& buffers, schedule& target)
        : t(source),
          buffered(buffers),
          s(target),
          index(target),
          assigned(source.nodes.size(), 0),
          first_use(source.nodes.size(), -1),
          members(target.steps.size(), -1),
          moved(target.steps.size(), 0) {
        for (const assignment_entry& update : t.assignments) assigned[update.node] = 1;
        for (const step_entry& step : s.steps) result.push_back(step.node);
        for (int at = s.steps.size(); at-- > 0;)
            for (int k = 0; k < s.steps[at].inputs; ++k) {
                const int node = s.alias[s.values[s.steps[at].first_value + k]];
                use_next.push_back(first_use[node]);
                first_use[node] = use_step.push_back(at);
            }
    }

    constexpr bool is_region(int step) const {
        return s.kernels[s.steps[step].kernel].kind == static_cast<int>(kernel_kind::region);
    }

    /// The results of a step and of those that moved into it, in the order of the trace.
    constexpr list<int> results_of(int step) const {
        list<int> nodes;
        for (int at = step; at >= 0; at = members[at]) nodes.push_back(int{result[at]});
        for (int i = 1; i < nodes.size(); ++i)
            for (int k = i; k > 0 && nodes[k - 1] > nodes[k]; --k) {
                const int later = nodes[k - 1];
                nodes[k - 1] = nodes[k];
                nodes[k] = later;
            }
        return nodes;
    }

    /// The first step after `step` that reads one of the nodes, or -1.
    constexpr int next_reader(int step, const list<int>& nodes) const {
        int next = -1;
        for (const int node : nodes) {
            int use = first_use[node];
            while (use >= 0 && use_step[use] <= step) use = use_next[use];
            if (use >= 0 && (next < 0 || use_step[use] < next)) next = use_step[use];
        }
        return next;
    }

    /// Whether a step reads a view of one of the nodes; only the nodes themselves are in registers.
    constexpr bool reads_view_of(int step, const list<int>& nodes) const {
        const step_entry& e = s.steps[step];
        for (int k = 0; k < e.inputs; ++k)
            for (const int node : nodes)
                if (const int read = s.values[e.first_value + k]; read != node && s.alias[read] == node) return true;
        return false;
    }

    constexpr region_code together(const list<int>& nodes) {
        const auto slot = [&](int node) {
            for (const int wanted : nodes)
                if (wanted == node) return false;
            return buffered[node] != 0;
        };
        const auto op_index = [&](const operation* op) { return index.operation_index(op); };
        return encode_region(t, nodes, slot, op_index, marks);
    }

    /// Whether a step may be part of a merged one.
    constexpr bool valid(const list<int>& nodes) {
        if (nodes.size() > most_region_results) return false;
        const region_code code = together(nodes);
        return code.slots.size() <= most_region_slots && code.instructions <= most_merged_instructions;
    }

    constexpr bool find() {
        bool any = false;
        for (int step = 0; step < s.steps.size(); ++step) {
            if (!is_region(step) || assigned[result[step]] == 0) continue;
            list<int> nodes = results_of(step);
            const int reader = next_reader(step, nodes);
            if (reader < 0 || !is_region(reader) || !t.same_shape(result[step], result[reader]) ||
                reads_view_of(reader, nodes))
                continue;
            const list<int> read = results_of(reader);
            for (const int node : read) nodes.push_back(node);
            if (!valid(nodes)) continue;
            int last = step;
            while (members[last] >= 0) last = members[last];
            members[last] = members[reader];
            members[reader] = step;
            moved[step] = 1;
            any = true;
        }
        return any;
    }

    constexpr void rewrite() {
        rewrite_steps(s, index, moved, [&](int at, step_entry& step, const kernel_entry& k) {
            if (members[at] < 0) return false;
            const list<int> nodes = results_of(at);
            const region_code code = together(nodes);
            for (const int node : code.slots) s.values.push_back(node);
            for (const int node : nodes) s.values.push_back(node);
            step.node = nodes[0];
            step.inputs = code.slots.size();
            step.outputs = nodes.size();
            step.kernel = index.kernel_index(kernel_kind::region, -1, static_cast<dtype>(k.type), code.words);
            return true;
        });
    }
};

} // namespace detail

constexpr void merge_updates(trace& t, const list<int>& buffered, schedule& s) {
    detail::update_merger merger(t, buffered, s);
    if (merger.find()) merger.rewrite();
}

} // namespace tapegraph::ir
