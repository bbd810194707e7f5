#pragma once

#include <tapegraph/graph/passes/rewrite.hpp>
#include <tapegraph/ops/activation.hpp>
#include <tapegraph/ops/convolution.hpp>

/// Convolution, bias and relu in one kernel: y leaves the convolution's registers finished, which saves a pass over it.
/// The additions and comparisons are the same ones in the same order, so bits are kept.

namespace tapegraph::ir {

namespace detail {

constexpr list<int> use_counts(const trace& t) {
    list<int> uses(t.nodes.size(), 0);
    for (const entry& e : t.nodes)
        for (int k = 0; k < e.arguments; ++k) ++uses[t.arguments[e.first_argument + k]];
    for (const output_entry& output : t.outputs) ++uses[output.node];
    for (const assignment_entry& update : t.assignments) ++uses[update.node];
    return uses;
}

/// Turns node i into a fused convolution over the operands of convolution c and the bias.
constexpr void fuse_into(trace& t, int i, const operation& op, int c, int bias) {
    const int args[3]{t.argument(c, 0), t.argument(c, 1), bias};
    entry& e = t.nodes[i];
    e.op = &op;
    e.words = t.nodes[c].words;
    e.first_argument = t.arguments.size();
    e.arguments = 3;
    e.sealed = true; // no longer elementwise: it has a buffer
    for (const int arg : args) t.arguments.push_back(arg);
}

} // namespace detail

template <class = void> // as in passes/simplify.hpp
constexpr void fuse_epilogues(trace& t) {
    static_assert(operation_binding<convolution_bias_op<false>>::bound && operation_binding<convolution_bias_op<true>>::bound);
    list<int> uses = detail::use_counts(t);
    for (int i = 0; i < t.nodes.size(); ++i) {
        const entry e = t.nodes[i];
        if (e.op == &record_of<add_op>) {
            for (int k = 0; k < 2; ++k) {
                const int c = t.argument(i, k), bias = t.argument(i, 1 - k);
                const entry& b = t.nodes[bias];
                if (t.nodes[c].op != &record_of<convolution_op> || uses[c] != 1 || b.rank != 1 || !t.same_shape(c, i) ||
                    t.pool[b.dims] != t.pool[e.dims + e.rank - 1])
                    continue;
                detail::fuse_into(t, i, record_of<convolution_bias_op<false>>, c, bias);
                uses[c] = 0;
                break;
            }
        } else if (e.op == &record_of<relu_op>) {
            const int c = t.argument(i, 0);
            if (t.nodes[c].op != &record_of<convolution_bias_op<false>> || uses[c] != 1) continue;
            detail::fuse_into(t, i, record_of<convolution_bias_op<true>>, c, t.argument(c, 2));
        }
    }
    note_pass(t, "epilogues");
}

} // namespace tapegraph::ir
