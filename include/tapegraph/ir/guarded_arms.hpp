#pragma once

#include <tapegraph/ir/trace.hpp>

/// Guards for selections in differentiated functions: the arm that is not taken must not reach
/// derivatives of any order.
///
/// In `where(x > 0, log(x), 0)` at x = 0 the adjoint of the logarithm is 0, its slope infinite, and
/// 0 * infinity is NaN; so are the products in derivatives of that product. Only finite slopes help
/// at every order. So where the arm is not taken, an operation within it receives a number at which
/// it is regular: `log(where(x > 0, x, 0.5))`. Values where the arm is taken keep their bits. All
/// operands of the arm pass through such a selection, whose own derivative is +0 where the arm is
/// not taken, so the selection at the arm's root need not choose between adjoints.

namespace tapegraph::ir {

/// A formula whose arms are guarded.
struct guarded_formula {
    int last = 0;      ///< its last node
    list<int> roots{}; ///< roots of guarded arms, which receive the selection's adjoint unchanged
    constexpr bool is_root(int id) const {
        for (const int root : roots)
            if (root == id) return true;
        return false;
    }
};

namespace detail {

/// An operand of a selection, within the arm `outer` of another one (-1: none).
struct selected_arm {
    int selection = 0, operand = 0, outer = -1;
    bool guarded = false; // it contains an operation with slopes that are not all finite, or not fixed
};

constexpr bool is_number(const trace& t, int id) {
    return t.is(id, descriptor_of<constant_op>) || t.is(id, descriptor_of<extent_op>) ||
           (t.is(id, descriptor_of<input_op>) && t.inputs[static_cast<int>(t.words_of(id)[0])].scalar_parameter);
}

/// Whether an adjoint of 0 gives operands an adjoint of 0, whatever their values are. `numbers`:
/// also next to a number; formulas cannot tell in both modes that an operand is one.
constexpr bool passes_zeros(const trace& t, int i, bool numbers) {
    const operation& op = *t.nodes[i].op;
    if (op.kind != operation_kind::map || op.conditions > 0 || !is_floating(t.nodes[i].type)) return true;
    return op.zeros == zero_adjoint::passes ||
           (numbers && op.zeros == zero_adjoint::passes_beside_number && is_number(t, t.argument(i, 1)));
}

} // namespace detail

/// The formula that ends at `last` with guarded arms, as new nodes, or unchanged where nothing has
/// to be guarded. `inside(node)` says which nodes of [first, last) belong to it. `of_vjp`: the
/// formula is a derivative's, each of whose nodes is a group; otherwise the nodes are one group.
template <class Inside>
constexpr guarded_formula with_guarded_arms(trace& t, int first, int last, bool of_vjp, const Inside& inside) {
    const int count = last - first + 1;
    guarded_formula result{last};
    bool selects = false;
    for (int i = last; i >= first && !selects; --i) selects = t.nodes[i].op->conditions > 0;
    if (!selects) return result;

    // Walks the tree from `last` down. A node with several readers is a leaf here, because it may
    // be within several arms.
    list<int> readers(count, 0), in_tree(count, 0), arm(count, -1); // `arm`: the innermost arm of a node
    list<detail::selected_arm> arms;
    for (int i = first; i <= last; ++i)
        for (int k = 0; k < t.nodes[i].arguments; ++k)
            if (const int arg = t.argument(i, k); arg >= first) ++readers[arg - first];
    in_tree[count - 1] = 1;
    bool any = false;
    for (int i = last; i >= first; --i) {
        if (in_tree[i - first] == 0) continue;
        const int within = arm[i - first], conditions = t.nodes[i].op->conditions;
        if (within >= 0 && !detail::passes_zeros(t, i, of_vjp))
            for (int a = within; a >= 0; a = arms[a].outer) any = arms[a].guarded = true;
        for (int k = 0; k < t.nodes[i].arguments; ++k) {
            const int arg = t.argument(i, k);
            if (arg < first || !inside(arg) || readers[arg - first] != 1) continue;
            in_tree[arg - first] = 1;
            if (k >= conditions) arm[arg - first] = conditions > 0 ? arms.push_back({i, k, within}) : within;
        }
    }
    if (!any) return result;

    list<int> copy(count, -1);
    const auto copied = [&](int id) { return id >= first && in_tree[id - first] != 0 ? copy[id - first] : id; };
    const auto guarded = [&](int id, int within, double otherwise) {
        for (int a = within; a >= 0; a = arms[a].outer) {
            if (!arms[a].guarded) continue;
            const int selection = arms[a].selection, number = t.constant(otherwise, t.nodes[id].type);
            const int operands[3]{copied(t.argument(selection, 0)), arms[a].operand == 1 ? id : number,
                                  arms[a].operand == 1 ? number : id};
            id = t.map(*t.nodes[selection].op, operands, 3);
        }
        return id;
    };
    const int start = t.nodes.size();
    for (int i = first; i <= last; ++i) {
        if (in_tree[i - first] == 0) continue;
        const entry e = t.nodes[i];
        const bool regular = e.op->finite_slopes || detail::passes_zeros(t, i, true);
        int args[4]{};
        for (int k = 0; k < e.arguments; ++k) {
            const int arg = t.argument(i, k);
            args[k] = copied(arg);
            if (k < e.op->conditions || !is_floating(t.nodes[arg].type) || detail::is_number(t, arg)) continue;
            if (!regular || args[k] == arg) args[k] = guarded(args[k], arm[i - first], e.op->regular_at);
        }
        const int made = e.op->kind == operation_kind::map
                             ? t.map(*e.op, args, e.arguments)
                             : t.append(*e.op, e.type, e.rank, e.dims, args, e.arguments, e.words);
        copy[i - first] = made;
        for (const detail::selected_arm& each : arms)
            if (each.guarded && t.argument(each.selection, each.operand) == i) result.roots.push_back(made);
    }
    const int group = of_vjp ? 0 : t.groups++;
    for (int i = start; !of_vjp && i < t.nodes.size(); ++i)
        if (t.nodes[i].op->kind != operation_kind::leaf) t.nodes[i].group = group;
    result.last = copy[count - 1];
    return result;
}

} // namespace tapegraph::ir
