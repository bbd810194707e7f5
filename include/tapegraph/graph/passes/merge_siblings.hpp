#pragma once

#include <tapegraph/graph/passes/merge_updates.hpp>
#include <tapegraph/runtime/kernel.hpp>

/// Merges elementwise kernels over one shape into one pass: derivatives of a formula by its
/// operands read the same values, and common subexpressions are computed once. The rounding is that
/// of separate kernels.

namespace tapegraph::ir {

namespace detail {

/// Moves a step down into the next one over its shape that reads its result or shares an operand of
/// that shape, if nothing reads its result in between. For small shapes calls dominate the cost,
/// and nothing has to be shared.
struct sibling_merger : update_merger {
    /// Fewer than one kernel could hold, because each is a memory stream.
    static constexpr int most_results = 6, most_slots = 16, most_instructions = 48;
    /// The maximum distance that a step moves down; its operands live longer for it.
    static constexpr int most_steps_between = 8;
    static constexpr std::int64_t few_elements = 512;

    using update_merger::update_merger;

    /// A step that computes a variable's next value does not move: a value that is read after it
    /// could not be updated in place.
    constexpr bool is_update(int step) const {
        const step_entry& e = s.steps[step];
        for (int k = 0; k < e.outputs; ++k)
            if (assigned[s.values[e.first_value + e.inputs + k]] != 0) return true;
        return false;
    }
    constexpr bool is_free(int step) const { return is_region(step) && s.steps[step].outputs == 1 && !is_update(step); }
    constexpr bool is_small(int step) const {
        const shape dims = t.dims(result[step]);
        const extent size = dims.size();
        return size.known() && size.value <= few_elements;
    }
    constexpr bool share_an_operand(int a, int b) const {
        const step_entry &x = s.steps[a], &y = s.steps[b];
        for (int k = 0; k < x.inputs; ++k) {
            const int node = s.values[x.first_value + k];
            if (!t.same_shape(node, result[a])) continue;
            for (int l = 0; l < y.inputs; ++l)
                if (s.values[y.first_value + l] == node) return true;
        }
        return false;
    }

    constexpr bool merge(int step, int host) {
        list<int> nodes = results_of(step);
        const int reader = next_reader(step, nodes);
        if ((reader >= 0 && reader < host) || reads_view_of(host, nodes)) return false;
        if (t.nodes[result[step]].type != t.nodes[result[host]].type ||
            (reader != host && !is_small(step) && !share_an_operand(step, host)))
            return false;
        const list<int> of_host = results_of(host);
        for (const int node : of_host) nodes.push_back(node);
        if (nodes.size() > most_results) return false;
        const region_code code = together(nodes);
        if (code.slots.size() > most_slots || code.instructions > most_instructions) return false;
        int last = step;
        while (members[last] >= 0) last = members[last];
        members[last] = members[host];
        members[host] = step;
        moved[step] = 1;
        return true;
    }

    constexpr bool find() {
        bool any = false;
        for (int step = 0; step < s.steps.size(); ++step) {
            if (!is_free(step)) continue;
            for (int host = step + 1; host < s.steps.size() && host <= step + most_steps_between; ++host) {
                if (is_update(host)) break;
                if (!is_free(host) || !t.same_shape(result[step], result[host]) || !merge(step, host)) continue;
                any = true;
                break;
            }
        }
        return any;
    }
};

} // namespace detail

/// For programs that run only on the CPU; it has not been measured on devices.
constexpr void merge_siblings(trace& t, const list<int>& buffered, schedule& s) {
    if constexpr (!runtime::has_backend) {
        detail::sibling_merger merger(t, buffered, s);
        if (merger.find()) merger.rewrite();
    }
}

} // namespace tapegraph::ir
