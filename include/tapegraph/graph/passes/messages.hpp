#pragma once

#include <tapegraph/graph/passes/epilogue.hpp>
#include <tapegraph/ops/elementwise/arithmetic.hpp>
#include <tapegraph/ops/gather/gather_scatter.hpp>
#include <tapegraph/runtime/kernel.hpp>

/// Messages along the edges of a graph network that only their sums read: scatter_add(gather(table,
/// from), to) becomes one kernel, which adds each row of the table where its edge ends. So do
/// gradients, which are the same with the ends exchanged. Values are added in the same order, so bits
/// are kept. For programs that run only on the CPU; whether it is faster on a GPU is not known.

namespace tapegraph::ir {

namespace detail {

/// Whether the values of `weights` are one for each edge of `gather`: the axes of its indices, and
/// extents of 1 behind them.
constexpr bool is_one_for_each_edge(const trace& t, int weights, int gather) {
    const auto a = attributes_from_words<gather_op>(t.words_of(gather));
    const entry &w = t.nodes[weights], &indices = t.nodes[t.argument(gather, 1)];
    if (a.batch != a.axis || w.rank != t.nodes[gather].rank || w.type != t.nodes[gather].type) return false;
    for (int i = 0; i < w.rank; ++i)
        if (i < indices.rank ? t.pool[w.dims + i] != t.pool[indices.dims + i] : t.pool[w.dims + i] != 1) return false;
    return true;
}

/// The operand (0 or 1) of a product that is a gather which nothing else reads, the other being a
/// weight for each edge; -1 where there is none. 16-bit products are rounded before they are added.
constexpr int weighted_gather(const trace& t, int product, const list<int>& uses) {
    if (!t.is(product, descriptor_of<multiply_op>)) return -1;
    const dtype type = t.nodes[product].type;
    for (int k = 0; k < 2 && (type == dtype::f32 || type == dtype::f64); ++k) {
        const int gather = t.argument(product, k);
        if (t.is(gather, descriptor_of<gather_op>) && uses[gather] == 1 && t.same_shape(gather, product) &&
            is_one_for_each_edge(t, t.argument(product, 1 - k), gather))
            return k;
    }
    return -1;
}

/// Turns the scatter_add at node i into the sum of what `gather` would give, times weights if there
/// are any.
constexpr void fuse_messages(trace& t, int i, int gather, int weights) {
    const int operands[]{t.argument(gather, 0), t.argument(gather, 1), t.argument(i, 1), weights};
    entry& e = t.nodes[i];
    e.op = weights < 0 ? &descriptor_of<gather_scatter_add_op<false>> : &descriptor_of<gather_scatter_add_op<true>>;
    e.first_argument = t.arguments.size();
    e.arguments = weights < 0 ? 3 : 4;
    for (int k = 0; k < e.arguments; ++k) t.arguments.push_back(int{operands[k]});
}

} // namespace detail

/// Fuses sums of messages. Gathers and products may be dead afterwards.
constexpr void fuse_messages(trace& t) {
    static_assert(operation_binding<gather_scatter_add_op<false>>::bound &&
                  operation_binding<gather_scatter_add_op<true>>::bound);
    if constexpr (!runtime::has_backend) {
        const list<int> uses = detail::use_counts(t);
        for (int i = 0; i < t.nodes.size(); ++i) {
            if (!t.is(i, descriptor_of<scatter_add_op>)) continue;
            const int messages = t.argument(i, 0);
            if (uses[messages] != 1) continue;
            const int k = detail::weighted_gather(t, messages, uses);
            const int gather = k < 0 ? messages : t.argument(messages, k);
            if (!t.is(gather, descriptor_of<gather_op>)) continue;
            const auto taken = attributes_from_words<gather_op>(t.words_of(gather));
            const auto added = attributes_from_words<gather_op>(t.words_of(i));
            if (taken.axis == added.axis && taken.batch == added.batch &&
                t.same_shape(t.argument(gather, 1), t.argument(i, 1)))
                detail::fuse_messages(t, i, gather, k < 0 ? -1 : t.argument(messages, 1 - k));
        }
    }
}

} // namespace tapegraph::ir
