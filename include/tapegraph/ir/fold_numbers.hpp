#pragma once

#include <tapegraph/ir/simplify.hpp>

/// Folds numbers that have axes. The derivative of a sum over all axes begins with a 1 reshaped to
/// axes of extent 1, and values computed from it and other numbers are compile-time constants.

namespace tapegraph::ir {

namespace detail {

/// Gets the value of a number that is a constant up to axes of extent 1; returns false for other
/// nodes.
constexpr bool shaped_constant(const trace& t, int node, double& value) {
    while (t.is(node, descriptor_of<reshape_op>) || t.is(node, descriptor_of<broadcast_op>)) node = t.argument(node, 0);
    return constant_value(t, node, value);
}

constexpr bool is_one_element(const trace& t, int node) {
    const entry& e = t.nodes[node];
    for (int axis = 0; axis < e.rank; ++axis)
        if (t.pool[e.dims + axis] != 1) return false;
    return true;
}

/// Whether an operation is elementwise and gets its shape from an operand that is not `known`.
constexpr bool has_shape_without(const trace& t, int user, const list<int>& known) {
    bool has = false;
    for (int k = 0; k < t.nodes[user].arguments; ++k)
        has = has || (known[t.argument(user, k)] == 0 && t.same_shape(t.argument(user, k), user));
    return has && t.nodes[user].op->kind == operation_kind::map;
}

} // namespace detail

/// Replaces values of one element that are computed from constants, and such constants themselves,
/// by constants without axes, where all readers are elementwise and get their shape from another
/// operand or are replaced themselves.
constexpr void fold_numbers(trace& t) {
    const int count = t.nodes.size();
    list<int> known(count, 0), needed(count, 0);
    list<double> number(count, 0.0);
    for (int i = 0; i < count; ++i) {
        const entry& e = t.nodes[i];
        if (!is_floating(e.type) || e.rank == 0 || !detail::is_one_element(t, i)) continue;
        if (detail::shaped_constant(t, i, number[i])) {
            known[i] = 1;
        } else if (e.op->kind == operation_kind::map && e.arguments > 0 && e.arguments <= 2) {
            double x = 0, y = 0;
            const auto operand = [&](int k, double& value) {
                const int argument = t.argument(i, k);
                if (known[argument] != 0) value = number[argument];
                return known[argument] != 0 || detail::constant_value(t, argument, value);
            };
            known[i] =
                operand(0, x) && (e.arguments == 1 || operand(1, y)) && detail::folded_value(t, i, x, y, number[i]) ? 1
                                                                                                                    : 0;
            number[i] = detail::rounded_to(e.type, number[i]);
        }
    }
    for (const output_entry& output : t.outputs) needed[output.node] = 1;
    for (const assignment_entry& update : t.assignments) needed[update.node] = 1;
    for (int i = count - 1; i >= 0; --i) {
        const bool replaced = known[i] != 0 && needed[i] == 0;
        if (!replaced) {
            const bool reads_numbers = detail::has_shape_without(t, i, known);
            for (int k = 0; k < t.nodes[i].arguments && !reads_numbers; ++k) needed[t.argument(i, k)] = 1;
            continue;
        }
        entry& e = t.nodes[i];
        e.op = &descriptor_of<constant_op>;
        e.arguments = 0;
        e.rank = 0;
        e.words = t.words.push_back(std::bit_cast<std::int64_t>(number[i]));
    }
}

} // namespace tapegraph::ir
