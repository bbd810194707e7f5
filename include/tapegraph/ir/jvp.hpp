#pragma once

#include <tapegraph/ir/gradient.hpp>

/// Forward-mode differentiation of a trace: computes the tangents of nodes from the tangents of the
/// sources that they depend on. It appends ordinary nodes, so it can be applied again and to
/// gradients (forward over reverse).
///
/// It needs nothing but each operation's vjp. A formula (group) is differentiated as a whole, as in
/// reverse: it is elementwise, so its Jacobian by one leaf is one factor per element, which is the
/// adjoint for an adjoint of 1. Linear operations are applied to tangents. Any other operation has
/// a vjp that is linear in the adjoint; differentiating it once more, by the adjoint, gives its
/// transpose.

namespace tapegraph::ir {

namespace detail {

/// a * b, where a is a factor that may turn out to be 1 or 1 * c.
constexpr int weighted(trace& t, int factor, int tangent) {
    static_assert(operation_binding<multiply_op>::bound);
    const auto is_one = [&](int id) {
        return t.is(id, descriptor_of<constant_op>) && std::bit_cast<double>(t.words_of(id)[0]) == 1;
    };
    if (is_one(factor)) return tangent;
    if (t.is(factor, descriptor_of<multiply_op>)) {
        if (is_one(t.argument(factor, 0)))
            factor = t.argument(factor, 1);
        else if (is_one(t.argument(factor, 1)))
            factor = t.argument(factor, 0);
    }
    const int args[2]{factor, tangent};
    return t.map(descriptor_of<multiply_op>, args, 2);
}

/// Counts the occurrences of leaves that have a tangent in a formula, and finds one of these
/// leaves.
template <class TangentOf>
constexpr int active_occurrences(const trace& t, int last, const TangentOf& tangent_of, int& leaf) {
    int count = 0;
    for (int i = group_begin(t, last); i <= last; ++i) {
        if (t.nodes[i].group != t.nodes[last].group) continue;
        for (int k = 0; k < t.nodes[i].arguments; ++k) {
            const int arg = t.argument(i, k);
            if (arg >= group_begin(t, last) && t.nodes[arg].group == t.nodes[last].group) continue;
            if (tangent_of(arg) < 0) continue;
            leaf = arg;
            ++count;
        }
    }
    return count;
}

} // namespace detail

/// The tangent of the formula (or reduction of one) that ends at `last`; -1 if no leaf has one. `output`
/// is its value, `tangent_of(leaf)` the leaf's tangent or -1. Eager mode computes the same factors and
/// terms in the same order.
template <class TangentOf>
constexpr int formula_tangent(trace& t, int last, int output, const TangentOf& tangent_of) {
    static_assert(operation_binding<sum_op>::bound);
    const bool reduction = t.nodes[last].op->kind == operation_kind::reduce;
    const dtype type = t.nodes[last].type;
    const int domain = reduction ? t.argument(last, 0) : last;
    const int start = t.nodes.size();
    const auto wanted = [&](int id) { return tangent_of(id) >= 0; };
    int only = -1;
    const int active = detail::active_occurrences(t, last, tangent_of, only);
    if (active == 0) return -1;

    // One tangent takes the adjoint's place; several are weighted by their factors.
    list<contribution> flows;
    if (active > 1) {
        flows = differentiate_group(t, last, output, t.constant(1, type), wanted, true);
        if (flows.size() == 1) only = flows[0].leaf;
    }
    if (active == 1 || flows.size() == 1)
        flows = differentiate_group(t, last, output, detail::converted(t, tangent_of(only), type), wanted, true);
    int sum = -1;
    for (const contribution& c : flows) {
        int term = detail::converted(t, c.adjoint, type);
        if (flows.size() > 1) term = detail::weighted(t, term, detail::converted(t, tangent_of(c.leaf), type));
        sum = detail::accumulated(t, sum, term);
    }
    if (sum < 0) return -1;
    if (!t.same_shape(sum, domain)) {
        const shape target = t.dims(domain);
        sum = invoke<broadcast_op>({}, &target, std::source_location{}, node(&t, sum)).id();
    }
    if (reduction) {
        const std::int64_t words[2]{t.words_of(last)[0], t.words_of(last)[1]};
        sum = t.invoke(descriptor_of<sum_op>, words, nullptr, &sum, 1);
    }
    detail::own_group(t, start);
    t.nodes[sum].sealed = true;
    return sum;
}

namespace detail {

/// The tangent of a linear operation: the operation, applied to tangents.
constexpr int linear_tangent(trace& t, int i, const list<int>& tangent) {
    const entry e = t.nodes[i];
    list<int> args(e.arguments), ways(e.arguments);
    for (int k = 0; k < e.arguments; ++k) {
        args[k] = t.argument(i, k);
        ways[k] = args[k] < tangent.size() ? tangent[args[k]] : -1;
    }
    if (e.op->linear == linearity::joint) {
        bool any = false;
        for (int k = 0; k < e.arguments; ++k) any = any || ways[k] >= 0;
        if (!any) return -1;
        for (int k = 0; k < e.arguments; ++k)
            if (is_floating(t.nodes[args[k]].type)) args[k] = ways[k] >= 0 ? ways[k] : zeros_like(t, args[k]);
        return t.append(*e.op, e.type, e.rank, e.dims, args.begin(), e.arguments, e.words);
    }
    int sum = -1;
    for (int k = 0; k < e.arguments; ++k) {
        if (ways[k] < 0) continue;
        const int kept = args[k];
        args[k] = ways[k];
        sum = accumulated(t, sum, t.append(*e.op, e.type, e.rank, e.dims, args.begin(), e.arguments, e.words));
        args[k] = kept;
    }
    return sum;
}

/// The tangent of any other operation: each vjp is a linear function of the adjoint, and pulling
/// the tangent back through it to the adjoint is the transpose of the transpose. The adjoint is a
/// placeholder that no result reads.
constexpr int transposed_tangent(trace& t, int i, const list<int>& tangent) {
    list<int> args(t.nodes[i].arguments);
    for (int k = 0; k < t.nodes[i].arguments; ++k) args[k] = t.argument(i, k);
    int sum = -1;
    for (int k = 0; k < t.nodes[i].arguments; ++k) {
        const int way = args[k] < tangent.size() ? tangent[args[k]] : -1;
        if (way < 0) continue;
        const int adjoint = zeros_like(t, i);
        const int start = t.nodes.size();
        const int flow = t.nodes[i].op->vjp(t, t.words_of(i), k, adjoint, args.begin(), i);
        if (flow < 0) continue;
        const int term = pullback(t, list<int>{flow}, list<int>{way}, list<int>{adjoint}, start)[0];
        if (term >= 0) sum = accumulated(t, sum, term);
    }
    return sum;
}

} // namespace detail

/// The tangents of the nodes of [first, last), given those of the sources; -1 for a node that no
/// tangent reaches. Nodes before `first` other than the sources are constants.
constexpr list<int> push_forward(trace& t, int first, int last, const list<int>& sources, const list<int>& tangents) {
    t.differentiated = true;
    list<int> tangent(last, -1);
    for (int k = 0; k < sources.size(); ++k) tangent[sources[k]] = tangents[k];
    const int scope = t.scope, line = t.line;
    for (int i = first; i < last; ++i) {
        const entry e = t.nodes[i];
        if (e.arguments == 0 || !detail::is_floating(e.type)) continue;
        t.scope = e.scope;
        t.line = e.line;
        if (!e.op->in_formula()) {
            tangent[i] = e.op->linear != linearity::none ? detail::linear_tangent(t, i, tangent)
                                                         : detail::transposed_tangent(t, i, tangent);
            continue;
        }
        int next = i + 1; // inner nodes of a formula are handled with its last one
        while (next < last && t.nodes[next].op->kind == operation_kind::leaf) ++next;
        if (next < last && t.nodes[next].group == e.group) continue;
        tangent[i] = formula_tangent(t, i, i, [&](int id) { return id < last ? tangent[id] : -1; });
    }
    t.scope = scope;
    t.line = line;
    return tangent;
}

} // namespace tapegraph::ir
