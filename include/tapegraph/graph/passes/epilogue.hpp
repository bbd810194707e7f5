#pragma once

#include <tapegraph/ir/rewrite.hpp>
#include <tapegraph/ops/elementwise/activation.hpp>
#include <tapegraph/ops/pooling/pooling.hpp>
#include <tapegraph/ops/product/matmul.hpp>

/// Fuses bias, relu and pooling into the kernel of the preceding convolution or matrix product: the
/// result is complete when it leaves the registers, which saves passes over it. The additions and
/// comparisons are the same ones in the same order, so bits are kept. Gradients were taken before;
/// values that they read keep their buffers and are not fused.

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

/// Marks the nodes that must be in memory however the program is fused.
constexpr list<int> read_from_memory(const trace& t) {
    list<int> marks(t.nodes.size(), 0);
    for (int i = 0; i < t.nodes.size(); ++i) {
        const entry& e = t.nodes[i];
        const bool map = e.op->kind == operation_kind::map, reduce = e.op->kind == operation_kind::reduce;
        for (int k = 0; k < e.arguments; ++k)
            if (!(map || reduce) || (map && !t.same_shape(t.argument(i, k), i))) marks[t.argument(i, k)] = 1;
    }
    for (const output_entry& output : t.outputs) marks[output.node] = 1;
    for (const assignment_entry& update : t.assignments) marks[update.node] = 1;
    return marks;
}

/// Turns node i into `op` with the operands and attributes of node c, and optionally a bias after
/// them.
constexpr void fuse_into(trace& t, int i, const operation& op, int c, int bias = -1) {
    const entry from = t.nodes[c];
    entry& e = t.nodes[i];
    e.op = &op;
    e.words = from.words;
    e.first_argument = t.arguments.size();
    e.arguments = from.arguments + (bias < 0 ? 0 : 1);
    e.sealed = true; // no longer elementwise: it has a buffer
    for (int k = 0; k < from.arguments; ++k) t.arguments.push_back(int{t.arguments[from.first_argument + k]});
    if (bias >= 0) t.arguments.push_back(bias);
}

/// If node i adds a bias along the last axis to a value of `op` that nothing else reads, returns
/// the operand (0 or 1) that is this value; otherwise -1.
constexpr int sum_with_bias(const trace& t, int i, const operation& op, const list<int>& uses) {
    const entry& e = t.nodes[i];
    for (int k = 0; k < 2; ++k) {
        const int c = t.argument(i, k);
        const entry& b = t.nodes[t.argument(i, 1 - k)];
        if (t.nodes[c].is(op) && uses[c] == 1 && b.rank == 1 && t.same_shape(c, i) &&
            t.pool[b.dims] == t.pool[e.dims + e.rank - 1])
            return k;
    }
    return -1;
}

constexpr bool halves_images(const trace& t, int i) {
    if (t.nodes[i].rank != 4 || (t.nodes[i].type != dtype::f32 && t.nodes[i].type != dtype::f64)) return false;
    const auto a = attributes_from_words<max_pool_op>(t.words_of(i));
    for (int axis = 0; axis < 2; ++axis)
        if (a.window[axis] != 2 || a.stride[axis] != 2 || a.dilation[axis] != 1 || a.before[axis] != 0 ||
            a.after[axis] != 0)
            return false;
    return a.mode != static_cast<std::int64_t>(padding_mode::same);
}

} // namespace detail

constexpr void fuse_epilogues(trace& t) {
    static_assert(operation_binding<convolution_bias_op<false>>::bound &&
                  operation_binding<convolution_bias_op<true>>::bound &&
                  operation_binding<matmul_bias_op<false>>::bound && operation_binding<matmul_bias_op<true>>::bound &&
                  operation_binding<convolution_bias_pool_op<false>>::bound &&
                  operation_binding<convolution_bias_pool_op<true>>::bound);
    list<int> uses = detail::use_counts(t);
    const list<int> in_memory = detail::read_from_memory(t);
    for (int i = 0; i < t.nodes.size(); ++i) {
        const entry e = t.nodes[i];
        // `sum`: an addition of c and a bias, or -1. Node i replaces both, and c becomes dead.
        const auto take = [&](int sum, const operation& plain, const operation& fused) {
            const int k = detail::sum_with_bias(t, sum, plain, uses);
            if (k < 0) return false;
            const int c = t.argument(sum, k);
            detail::fuse_into(t, i, fused, c, t.argument(sum, 1 - k));
            uses[c] = 0;
            return true;
        };
        if (e.is(descriptor_of<add_op>)) {
            if (take(i, descriptor_of<convolution_op>, descriptor_of<convolution_bias_op<false>>)) continue;
            // A sum that lives only in registers of the next elementwise kernel stays there: on a
            // device, a product's kernel may need a second launch for it
            // (cuda/ops/product/gemm.cuh).
            if (in_memory[i] != 0) take(i, descriptor_of<matmul_op>, descriptor_of<matmul_bias_op<false>>);
        } else if (e.is(descriptor_of<relu_op>)) {
            const int c = t.argument(i, 0);
            if (uses[c] != 1) continue;
            if (t.nodes[c].is(descriptor_of<convolution_bias_op<false>>))
                detail::fuse_into(t, i, descriptor_of<convolution_bias_op<true>>, c);
            else if (t.nodes[c].is(descriptor_of<add_op>) && in_memory[i] != 0)
                take(c, descriptor_of<matmul_op>, descriptor_of<matmul_bias_op<true>>);
        } else if (e.is(descriptor_of<max_pool_op>)) {
            const int c = t.argument(i, 0);
            if (uses[c] != 1 || !detail::halves_images(t, i)) continue;
            if (t.nodes[c].is(descriptor_of<convolution_bias_op<false>>))
                detail::fuse_into(t, i, descriptor_of<convolution_bias_pool_op<false>>, c);
            else if (t.nodes[c].is(descriptor_of<convolution_bias_op<true>>))
                detail::fuse_into(t, i, descriptor_of<convolution_bias_pool_op<true>>, c);
        }
    }
    note_pass(t, "epilogues");
}

} // namespace tapegraph::ir
