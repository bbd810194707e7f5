#pragma once

#include <tapegraph/graph/passes/merge_updates.hpp>
#include <tapegraph/ops/convolution/convolution.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>
#include <tapegraph/runtime/kernel.hpp>

/// Merges sums into one pass: several sums over the same axes of one shape that read the same
/// operand become one kernel, and so does a sum with the elementwise kernel that computes its
/// operand. Batch normalization's gradient has three sums of dy; a bias's gradient is the sum of
/// the result of an elementwise kernel.

namespace tapegraph::ir {

/// The maximum number of sums in one kernel (cpu::most_reduced).
inline constexpr int most_sums = 4;

namespace detail {

/// A sum moves up into an earlier step over its domain, its host, if all its operands are available
/// there. Results of sums are small, so it costs nothing that they live longer; it saves a pass
/// over the common operands, or over the host's result.
struct sum_merger {
    trace& t;
    const list<int>& buffered;
    schedule& s;
    schedule_index index;
    region_marks marks{};
    enum role { other, sum, region };
    list<int> result, role_of; // per step
    list<int> maker;           // per node: the step that computes it, or -1
    list<int> last_use;        // per node: an index into use_step; -1: no sum or region of its shape has read it
    list<int> use_step{}, use_before{};
    list<int> host;    // per step: the one that computes its result, usually itself
    list<int> members; // per step: the last of the sums that moved into it, or -1; for a moved sum: the one before it
    list<int> moved;   // per step: whether it has a host
    list<int> alone;   // per step: whether it is a sum of a formula down columns, which is added up as it is computed

    constexpr sum_merger(trace& source, const list<int>& buffers, schedule& target)
        : t(source),
          buffered(buffers),
          s(target),
          index(target),
          maker(source.nodes.size(), -1),
          last_use(source.nodes.size(), -1),
          members(target.steps.size(), -1),
          moved(target.steps.size(), 0),
          alone(target.steps.size(), 0) {
        list<int> assigned(t.nodes.size(), 0);
        for (const assignment_entry& update : t.assignments) assigned[update.node] = 1;
        for (const step_entry& step : s.steps) {
            host.push_back(result.size());
            result.push_back(step.node);
            // A variable's next value is written in place, which only regions support.
            const kernel_entry& k = s.kernels[step.kernel];
            const auto type = static_cast<dtype>(k.type);
            const bool adds = k.kind == static_cast<int>(kernel_kind::reduction) &&
                              same_operation(s.ops[k.op], &descriptor_of<sum_op>);
            const bool is_region = k.kind == static_cast<int>(kernel_kind::region) && step.outputs == 1;
            role_of.push_back(adds && (type == dtype::f32 || type == dtype::f64) ? sum
                              : is_region && assigned[step.node] == 0            ? region
                                                                                 : other);
        }
    }

    constexpr int sums_of(int step) const {
        int count = role_of[step] == sum ? 1 : 0;
        for (int at = members[step]; at >= 0; at = members[at]) ++count;
        return count;
    }
    /// The results of a step and of those that moved into it: sums, in the order of the steps, then
    /// written results.
    constexpr list<int> results_of(int step) const {
        int left = sums_of(step);
        list<int> nodes(left, 0);
        for (int at = members[step]; at >= 0; at = members[at]) nodes[--left] = result[at];
        if (role_of[step] == sum)
            nodes[0] = result[step];
        else
            nodes.push_back(int{result[step]});
        return nodes;
    }

    constexpr region_code together(const list<int>& results, int sums) {
        const int written = sums < results.size() ? results[sums] : -1;
        const auto slot = [&](int node) { return node != written && buffered[node] != 0; };
        const auto op_index = [&](const operation* op) { return index.operation_index(op); };
        list<int> roots;
        for (int k = 0; k < results.size(); ++k) roots.push_back(k < sums ? t.argument(results[k], 0) : written);
        return encode_region(t, roots, slot, op_index, marks);
    }

    /// Whether the operands of a sum exist when `step` runs, or are computed by it element by
    /// element.
    constexpr bool is_ready(int at, int step) const {
        for (int k = 0; k < s.steps[at].inputs; ++k) {
            const int node = s.values[s.steps[at].first_value + k], by = maker[s.alias[node]];
            if (by < 0 || host[by] < step) continue;
            if (by != step || role_of[by] != region || node != result[by]) return false;
        }
        return true;
    }
    constexpr bool alike(int a, int b) const {
        const entry &x = t.nodes[result[a]], &y = t.nodes[result[b]];
        return x.type == y.type && t.words[x.words] == t.words[y.words]; // the first attribute is the axes
    }

    /// Moves sum `at` into `step`, if one kernel can hold both.
    constexpr bool takes(int step, int at) {
        const int sums = sums_of(step), last = members[step];
        if (sums == most_sums || !t.same_shape(s.steps[step].domain, s.steps[at].domain) || !is_ready(at, step) ||
            (sums > 0 && !alike(last >= 0 ? last : step, at)))
            return false;
        members[at] = last;
        members[step] = at;
        const region_code code = together(results_of(step), sums + 1);
        if (code.instructions > 0 && code.instructions <= most_merged_instructions &&
            code.slots.size() <= most_region_slots) {
            host[at] = step;
            return true;
        }
        members[step] = last;
        members[at] = -1;
        return false;
    }

    /// Whether a step runs part by part inside the depthwise convolution before it (runtime/continuation.hpp), which a
    /// sum cannot: in a cache the step costs a pass over memory less than merging it with the sum saves.
    constexpr bool continues(int step) const {
        if (step == 0) return false;
        const step_entry &e = s.steps[step], &before = s.steps[step - 1];
        const auto is = [&](const operation& op) { return t.nodes[before.node].is(op); };
        if (!is(descriptor_of<convolution_op>) && !is(descriptor_of<convolution_bias_op<false>>) &&
            !is(descriptor_of<convolution_bias_op<true>>))
            return false;
        for (int k = 0; k < e.inputs; ++k)
            if (s.values[e.first_value + k] == before.node && t.same_shape(before.node, e.domain))
                return attributes_from_words<convolution_op>(t.words_of(before.node)).groups > 1;
        return false;
    }

    constexpr bool find_host(int at) {
        constexpr int most_tried = 8; // a limit, because a value that hundreds of steps read would make this quadratic
        const step_entry& e = s.steps[at];
        for (int k = 0; !runtime::has_backend && k < e.inputs; ++k) {
            const int node = s.values[e.first_value + k], by = maker[s.alias[node]];
            if (!t.same_shape(node, e.domain)) continue;
            if (by >= 0 && role_of[by] == region && !continues(by) && takes(by, at)) return true;
            int use = last_use[s.alias[node]];
            for (int tried = 0; use >= 0 && tried < most_tried; ++tried, use = use_before[use])
                if (takes(use_step[use], at)) return true;
        }
        return false;
    }

    constexpr bool is_down_columns(int at) const {
        const step_entry& e = s.steps[at];
        const entry& domain = t.nodes[e.domain];
        const region_view formula{s.kernel_words.begin() + s.kernels[e.kernel].first_word};
        return domain.rank > 1 && formula.instructions() > 0 &&
               (t.words[t.nodes[e.node].words] >> (domain.rank - 1) & 1) == 0;
    }

    constexpr bool find() {
        bool any = false;
        for (int at = 0; at < s.steps.size(); ++at) {
            const step_entry& e = s.steps[at];
            if (role_of[at] == sum) {
                moved[at] = find_host(at) ? 1 : 0;
                alone[at] = moved[at] == 0 && is_down_columns(at) ? 1 : 0;
                any = any || moved[at] != 0 || alone[at] != 0;
            }
            for (int k = 0; k < e.outputs; ++k) maker[s.values[e.first_value + e.inputs + k]] = at;
            for (int k = 0; k < e.inputs && role_of[at] != other; ++k) {
                const int node = s.values[e.first_value + k];
                if (!t.same_shape(node, e.domain)) continue;
                use_before.push_back(int{last_use[s.alias[node]]});
                last_use[s.alias[node]] = use_step.push_back(int{host[at]});
            }
        }
        return any;
    }

    constexpr void rewrite() {
        rewrite_steps(s, index, moved, [&](int at, step_entry& step, const kernel_entry&) {
            if (members[at] < 0 && alone[at] == 0) return false;
            const list<int> results = results_of(at);
            const int sums = sums_of(at);
            region_code code = together(results, sums);
            code.words.push_back(sums);
            for (const int node : code.slots) s.values.push_back(node);
            for (const int node : results) s.values.push_back(node);
            step.node = results[0];
            step.inputs = code.slots.size();
            step.outputs = results.size();
            step.kernel = index.kernel_index(kernel_kind::sums, index.operation_index(&descriptor_of<sum_op>),
                                             t.nodes[step.node].type, code.words);
            return true;
        });
    }
};

} // namespace detail

/// Programs that may run on a device keep one kernel per sum, because devices have no kernels for
/// several.
constexpr void merge_sums(trace& t, const list<int>& buffered, schedule& s) {
    detail::sum_merger merger(t, buffered, s);
    if (merger.find()) merger.rewrite();
}

} // namespace tapegraph::ir
