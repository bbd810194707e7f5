#pragma once

#include <tapegraph/core/half.hpp>
#include <tapegraph/core/math.hpp>
#include <tapegraph/ir/compiled_operations.hpp>
#include <tapegraph/ir/gradient.hpp>
#include <tapegraph/ir/rewrite.hpp>
#include <tapegraph/ops/elementwise/arithmetic.hpp>
#include <tapegraph/ops/elementwise/cast.hpp>
#include <tapegraph/ops/elementwise/power.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>
#include <tapegraph/ops/movement/layout.hpp>
#include <tapegraph/ops/movement/view.hpp>
#include <tapegraph/ops/product/matmul.hpp>

/// Constant folding and algebraic simplification. Every rule preserves bits: no reassociation, no x
/// * 0, no x + 0 (it would turn -0 into 0), and folding only of exactly rounded operations.

namespace tapegraph::ir {

namespace detail {

/// A constant as a kernel reads it, rounded if its type is narrower.
constexpr double rounded_to(dtype type, double value) {
    switch (type) {
#define TG_ROW(name, T, ...)                                                                                           \
    case dtype::name: return static_cast<double>(static_cast<T>(value));
        TG_FLOATING_TYPES(TG_ROW, )
#undef TG_ROW
    default: return value;
    }
}
constexpr bool constant_value(const trace& t, int node, double& value) {
    if (!t.is(node, descriptor_of<constant_op>)) return false;
    value = rounded_to(t.nodes[node].type, std::bit_cast<double>(t.words_of(node)[0]));
    return true;
}

// Rounding a double result to float equals the float operation for these (53 >= 2 * 24 + 2 bits). A
// 16-bit result is rounded twice, as in kernels: here to float, and then by its reader.
constexpr bool folded_value(const trace& t, int i, double x, double y, double& result) {
    const entry& e = t.nodes[i];
    if (t.is(i, descriptor_of<add_op>))
        result = x + y;
    else if (t.is(i, descriptor_of<subtract_op>))
        result = x - y;
    else if (t.is(i, descriptor_of<multiply_op>))
        result = x * y;
    else if (t.is(i, descriptor_of<divide_op>) && y != 0)
        result = x / y;
    else if (t.is(i, descriptor_of<negate_op>))
        result = -x;
    else if (t.is(i, descriptor_of<square_op>))
        result = x * x;
    else if (t.is(i, descriptor_of<sqrt_op>) && x >= 0)
        result = math::sqrt(x);
    else
        return false;
    if (is_storage_type(e.type)) {
        constexpr double largest = std::numeric_limits<float>::max();
        if (!(result >= -largest && result <= largest)) return false;
        result = static_cast<double>(static_cast<float>(result));
    }
    return true;
}
constexpr bool folded(const trace& t, int i, double& result) {
    double x = 0, y = 0;
    const entry& e = t.nodes[i];
    if (e.arguments == 0 || !is_floating(e.type) || e.rank != 0 || !constant_value(t, t.argument(i, 0), x))
        return false;
    if (e.arguments == 2 && !constant_value(t, t.argument(i, 1), y)) return false;
    return folded_value(t, i, x, y, result);
}

/// The operand that an elementwise identity passes through, or -1.
constexpr int identity_operand(const trace& t, int i) {
    if (t.nodes[i].op->identity || t.is(i, descriptor_of<stop_gradient_op>) || t.is(i, descriptor_of<broadcast_op>) ||
        t.is(i, descriptor_of<reshape_op>) || t.is(i, descriptor_of<cast_op<float>>) ||
        t.is(i, descriptor_of<cast_op<double>>))
        return t.argument(i, 0);
    double value = 0;
    if (t.is(i, descriptor_of<multiply_op>)) {
        if (constant_value(t, t.argument(i, 1), value) && value == 1) return t.argument(i, 0);
        if (constant_value(t, t.argument(i, 0), value) && value == 1) return t.argument(i, 1);
    }
    if (t.is(i, descriptor_of<divide_op>) && constant_value(t, t.argument(i, 1), value) && value == 1)
        return t.argument(i, 0);
    if (t.is(i, descriptor_of<subtract_op>) && constant_value(t, t.argument(i, 1), value) && value == 0 &&
        std::bit_cast<std::int64_t>(value) == 0)
        return t.argument(i, 0);
    if (t.is(i, descriptor_of<negate_op>) && t.is(t.argument(i, 0), descriptor_of<negate_op>))
        return t.argument(t.argument(i, 0), 0);
    return -1;
}

/// Whether a transpose only swaps the last two axes.
constexpr bool swaps_last_axes(const trace& t, int i) {
    if (!t.is(i, descriptor_of<transpose_op>)) return false;
    const auto a = attributes_from_words<transpose_op>(t.words_of(i));
    for (int k = 0; k + 2 < a.rank; ++k)
        if (a.permutation[k] != k) return false;
    return a.rank >= 2 && a.permutation[a.rank - 1] == a.rank - 2;
}

/// Whether a product has more than one row and column for all values of its symbols. Packed kernels
/// sum in one order however their operands are stored; those of a matrix and a vector sum along a
/// row or across rows.
constexpr bool has_rows_and_columns(const trace& t, int product) {
    const entry& e = t.nodes[product];
    for (int k = 1; k <= 2; ++k)
        if (const std::int64_t extent = t.pool[e.dims + e.rank - k]; is_symbolic(extent) || extent == 1) return false;
    return true;
}

} // namespace detail

constexpr void simplify(trace& t) {
    list<int> target(t.nodes.size(), 0);
    for (int i = 0; i < t.nodes.size(); ++i) {
        target[i] = i;
        entry& e = t.nodes[i];
        for (int k = 0; k < e.arguments; ++k) {
            int& argument = t.arguments[e.first_argument + k];
            argument = target[argument];
        }
        if (t.is(i, descriptor_of<reshape_op>) && t.is(t.argument(i, 0), descriptor_of<reshape_op>))
            t.arguments[e.first_argument] = t.argument(t.argument(i, 0), 0);
        // A transposed operand is read transposed instead of copied.
        if (t.is(i, descriptor_of<matmul_op>) && detail::has_rows_and_columns(t, i)) {
            for (int k = 0; k < 2; ++k) {
                const int from = t.argument(i, k);
                if (!detail::swaps_last_axes(t, from)) continue;
                const int word = t.words.size();
                for (int w = 0; w < 2; ++w) t.words.push_back(w == k ? !t.words[e.words + w] : t.words[e.words + w]);
                e.words = word;
                t.arguments[e.first_argument + k] = t.argument(from, 0);
            }
        }
        double value = 0;
        if (detail::folded(t, i, value)) {
            e.op = &descriptor_of<constant_op>;
            e.arguments = 0;
            e.words = t.words.push_back(std::bit_cast<std::int64_t>(value));
            continue;
        }
        const int same = detail::identity_operand(t, i);
        if (same >= 0 && t.nodes[same].type == e.type && t.same_shape(same, i)) {
            target[i] = same;
            t.nodes[same].sealed = t.nodes[same].sealed || e.sealed;
        }
    }
    redirect(t, target);
    note_pass(t, "simplify");
}

} // namespace tapegraph::ir
