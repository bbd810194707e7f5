#pragma once

#include <tapegraph/graph/passes/epilogue.hpp>
#include <tapegraph/ops/elementwise/arithmetic.hpp>
#include <tapegraph/ops/movement/graph_slices.hpp>
#include <tapegraph/runtime/kernel.hpp>

/// Slices without copies, and their gradients without padding. The functions are templates, so that
/// programs without graphs do not compile them.
///
/// For programs that run only on the CPU: a device's kernels read vectors of 16 bytes, and a view
/// may begin anywhere; its sums are those of other kernels.

namespace tapegraph::ir {

namespace detail {

/// Whether the elements of a slice are contiguous in its operand: single elements of some axes, a
/// run of the next one, and all of the following axes.
constexpr bool in_one_piece(const trace& t, int slice) {
    const auto a = attributes_from_words<slice_op>(t.words_of(slice));
    const entry &part = t.nodes[slice], &whole = t.nodes[t.argument(slice, 0)];
    int axis = 0;
    while (axis < part.rank && t.pool[part.dims + axis] == 1) ++axis;
    bool valid = axis == part.rank || a.step[axis] == 1;
    while (++axis < part.rank)
        valid = valid && a.step[axis] == 1 && t.pool[part.dims + axis] == t.pool[whole.dims + axis];
    return valid;
}

/// Whether a view is better than a copy: it keeps its whole buffer in memory as long as it is read.
/// Inputs and variables stay in memory anyway; of a computed value a view must be at least an
/// eighth, or the value only a few pages.
constexpr bool is_worth_keeping(trace& t, int slice) {
    constexpr std::int64_t least_part = 8, few_elements = 4096;
    int owner = t.argument(slice, 0);
    while (t.nodes[owner].op->kind == operation_kind::view) owner = t.argument(owner, 0);
    if (t.nodes[owner].op->kind == operation_kind::leaf) return true;
    const extent part = t.dims(slice).size(), whole = t.dims(owner).size();
    if (!part.known()) return true;
    return whole.known() && (whole.value <= few_elements || whole.value <= least_part * part.value);
}

} // namespace detail

/// Turns contiguous slices into views.
constexpr void view_slices(trace& t) {
    static_assert(operation_binding<slice_view_op>::bound);
    for (int i = 0; !runtime::has_backend && i < t.nodes.size(); ++i)
        if (t.is(i, descriptor_of<slice_op>) && detail::in_one_piece(t, i) && detail::is_worth_keeping(t, i))
            t.nodes[i].op = &descriptor_of<slice_view_op>;
}

namespace detail {

/// Joins sums of adjoints of a tensor's parts. `a + (b padded with zeros) + (c padded with zeros)`
/// becomes one kernel that reads a, b and c and writes the sum.
struct pad_joiner {
    trace& t;
    list<int> uses;

    constexpr explicit pad_joiner(trace& source) : t(source), uses(use_counts(source)) {}

    constexpr bool adds(int node, int shape_of) const {
        return t.is(node, descriptor_of<add_op>) && t.same_shape(node, shape_of) &&
               t.nodes[node].type == t.nodes[shape_of].type;
    }

    /// The terms of a chain of sums that nothing else reads, in its order; the order of two
    /// operands does not matter to a sum.
    constexpr list<int> terms_of(int root) const {
        list<int> backwards, terms;
        for (int node = root;;) {
            int first = t.argument(node, 0), second = t.argument(node, 1);
            const auto chain_continues = [&](int k) { return uses[k] == 1 && adds(k, root); };
            if (!chain_continues(first) && chain_continues(second)) {
                const int other = first;
                first = second;
                second = other;
            }
            backwards.push_back(second);
            if (backwards.size() < placed_sum_op::most - 1 && chain_continues(first)) {
                node = first;
                continue;
            }
            backwards.push_back(first);
            break;
        }
        for (int k = backwards.size(); k-- > 0;) terms.push_back(int{backwards[k]});
        return terms;
    }

    /// The axis along which a node is padded with zeros, or -1 if it is not padded, is padded along
    /// several axes, or has other readers.
    constexpr int padded_axis(int node) const {
        if (!t.is(node, descriptor_of<pad_op>) || uses[node] != 1) return -1;
        const auto a = attributes_from_words<pad_op>(t.words_of(node));
        if (std::bit_cast<std::int64_t>(a.fill) != 0) return -1;
        const entry &result = t.nodes[node], &part = t.nodes[t.argument(node, 0)];
        int axis = -1;
        for (int i = 0; i < result.rank; ++i) {
            if (a.step[i] != 1) return -1;
            if (t.pool[result.dims + i] == t.pool[part.dims + i]) continue;
            if (axis >= 0) return -1;
            axis = i;
        }
        return axis;
    }

    constexpr bool join(int root) {
        const dtype type = t.nodes[root].type;
        if (!adds(root, root) || (type != dtype::f32 && type != dtype::f64)) return false;
        list<int> terms = terms_of(root);
        placed_sum_op::attributes a;
        int axis = -1, padded = 0;
        for (int k = 0; k < terms.size(); ++k) {
            if (!t.same_shape(terms[k], root)) return false;
            const int its = padded_axis(terms[k]);
            if (its < 0) continue; // covers the whole axis
            if (padded > 0 && its != axis) return false;
            axis = its;
            a.begin[k] = attributes_from_words<pad_op>(t.words_of(terms[k])).begin[axis];
            terms[k] = t.argument(terms[k], 0);
            ++padded;
        }
        // Terms without padding now have to be in memory, perhaps only for this.
        if (padded < 2 || 2 * padded <= terms.size()) return false;
        a.axis = axis;
        const auto words = attributes_to_words<placed_sum_op>(a);
        const int first_word = t.words.size(), first_argument = t.arguments.size();
        for (const std::int64_t word : words.value) t.words.push_back(word);
        for (int k = 0; k < terms.size(); ++k) t.arguments.push_back(int{terms[k]});
        entry& e = t.nodes[root];
        e.op = &descriptor_of<placed_sum_op>;
        e.words = first_word;
        e.first_argument = first_argument;
        e.arguments = terms.size();
        e.sealed = true;
        return true;
    }
};

} // namespace detail

/// Joins sums of padded tensors. Their operands may be dead afterwards. The bits are those of the
/// original sums: where a tensor is padded, its +0 is added, too.
constexpr void join_pads(trace& t) {
    static_assert(operation_binding<placed_sum_op>::bound);
    if constexpr (!runtime::has_backend) {
        detail::pad_joiner joiner(t);
        for (int i = t.nodes.size(); i-- > 0;) joiner.join(i);
    }
}

} // namespace tapegraph::ir
