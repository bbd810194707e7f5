#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/half.hpp>
#include <tapegraph/expr/differentiate.hpp>
#include <tapegraph/ir/compiled_operations.hpp>
#include <tapegraph/ir/guarded_arms.hpp>
#include <tapegraph/ir/recompute.hpp>
#include <tapegraph/ops/elementwise/cast.hpp>
#include <tapegraph/ops/movement/layout.hpp>

/// Reverse-mode differentiation of a trace. It appends ordinary nodes, so it can be applied again.
///
/// One formula (group) is differentiated at a time, over its leaves, its value and the incoming
/// adjoint, each occurrence of a leaf separately. The tape differentiates the same group with the
/// same function, so adjoints add in the same order in both modes.

namespace tapegraph::ir {

/// One occurrence of a leaf in a formula, with the adjoint of this occurrence (-1: none).
struct contribution {
    int leaf, adjoint;
};

namespace detail {

using tapegraph::is_floating;

/// The node, cast to the operand's element type.
constexpr int converted(trace& t, int at, dtype type) {
    if (t.nodes[at].type == type) return at;
#define TG_ROW(name, T, ...) static_assert(operation_binding<cast_op<T>>::bound);
    TG_FLOATING_TYPES(TG_ROW, )
#undef TG_ROW
    switch (type) {
#define TG_ROW(name, T, ...)                                                                                           \
    case dtype::name: return t.map(descriptor_of<cast_op<T>>, &at, 1);
        TG_FLOATING_TYPES(TG_ROW, )
#undef TG_ROW
    default: return t.map(descriptor_of<cast_op<float>>, &at, 1);
    }
}

constexpr node reshaped(trace& t, int at, const shape& target) {
    return invoke<reshape_op>({}, &target, std::source_location{}, node(&t, at));
}

/// A reduction's result, reshaped so that the reduced axes have extent 1 and it broadcasts against
/// the operand.
constexpr int with_kept_axes(trace& t, int reduced, int operand, std::int64_t axes) {
    if (t.nodes[reduced].rank == t.nodes[operand].rank) return reduced;
    const shape from = t.dims(operand);
    shape target;
    target.attach(&t.extents);
    for (int i = 0; i < from.rank(); ++i) target.push_back((axes >> i & 1) != 0 ? extent(1) : from[i]);
    return reshaped(t, reduced, target).id();
}

constexpr void own_group(trace& t, int first) {
    for (int i = first; i < t.nodes.size(); ++i) t.nodes[i].sealed = t.nodes[i].op->kind != operation_kind::map;
}

} // namespace detail

/// The first node of the formula that ends at `last`, or a leaf before it.
constexpr int group_begin(const trace& t, int last) {
    int first = last;
    while (first > 0 &&
           (t.nodes[first - 1].group == t.nodes[last].group || t.nodes[first - 1].op->kind == operation_kind::leaf))
        --first;
    return first;
}

/// Differentiates the formula that ends at `last`. `output` is its value and `adjoint` dL/d(value); both
/// may be nodes from elsewhere. Returns the occurrences of leaves in the order in which the formula
/// names them. `wanted(node)`: whether a leaf's adjoint is needed. `over_operand`: the adjoint of a
/// reduction is given over its operand instead of over its value (forward mode).
template <class Wanted>
constexpr list<contribution> differentiate_group(trace& t, int last, int output, int adjoint, const Wanted& wanted,
                                                 bool over_operand = false) {
    const auto in_group_of = [&](int end) {
        return [&t, end, begin = group_begin(t, end), group = t.nodes[end].group](int id) {
            return id >= begin && id < end && t.nodes[id].group == group;
        };
    };
    const int before = t.nodes.size();
    const guarded_formula guarded = with_guarded_arms(t, group_begin(t, last), last, false, in_group_of(last));
    last = guarded.last;
    const int first = last < before ? group_begin(t, last) : before;
    const int count = last - first + 1;
    const auto inside = in_group_of(last);

    // Inner values are recomputed from the leaves, as the tape does in registers; equal nodes are
    // merged later.
    list<int> copy(count, -1);
    list<int> wants(count, 0);
    for (int i = first; i <= last; ++i) {
        if (i < last && !inside(i)) continue;
        bool any = false;
        int args[4]{};
        for (int k = 0; k < t.nodes[i].arguments; ++k) {
            const int arg = t.argument(i, k);
            args[k] = inside(arg) ? copy[arg - first] : arg;
            any = any || (inside(arg) ? wants[arg - first] != 0 : wanted(arg));
        }
        wants[i - first] = any;
        if (i == last) break;
        const entry e = t.nodes[i];
        copy[i - first] = t.append(*e.op, e.type, e.rank, e.dims, args, e.arguments, e.words);
    }

    list<int> adjoints(count, -1);
    adjoints[count - 1] = adjoint;
    list<contribution> by_occurrence(count * 4, contribution{-1, -1});
    for (int i = last; i >= first; --i) {
        int above = adjoints[i - first];
        if (above < 0) continue;
        int args[4]{};
        const int arguments = t.nodes[i].arguments;
        for (int k = 0; k < arguments; ++k) {
            const int arg = t.argument(i, k);
            args[k] = inside(arg) ? copy[arg - first] : arg;
        }
        int value = i == last ? output : copy[i - first];
        if (t.nodes[i].op->kind == operation_kind::reduce) {
            const std::int64_t axes = t.words_of(i)[0];
            if (!over_operand) above = detail::with_kept_axes(t, above, args[0], axes);
            value = detail::with_kept_axes(t, value, args[0], axes);
        }
        for (int k = 0; k < arguments; ++k) {
            const int arg = t.argument(i, k);
            if (!detail::is_floating(t.nodes[arg].type)) continue;
            if (inside(arg) ? wants[arg - first] == 0 : !wanted(arg)) continue;
            const int own = t.nodes.size();
            int flow = guarded.is_root(arg) ? above : t.nodes[i].op->vjp(t, t.words_of(i), k, above, args, value);
            if (flow < 0) continue;
            if (flow >= own) {
                const auto computed = [&](int id) { return t.nodes[id].op->kind != operation_kind::leaf; };
                flow = with_guarded_arms(t, own, flow, true, computed).last;
            }
            flow = detail::converted(t, flow, t.nodes[arg].type);
            if (inside(arg))
                adjoints[arg - first] = flow;
            else
                by_occurrence[(i - first) * 4 + k] = {arg, flow};
        }
    }
    detail::own_group(t, before);

    list<contribution> result;
    for (int i = 0; i < by_occurrence.size(); ++i)
        if (by_occurrence[i].leaf >= 0) result.push_back(by_occurrence[i]);
    return result;
}

namespace detail {

/// Sums an adjoint of the formula's full shape down to the shape of its leaf.
constexpr int fitted(trace& t, int flow, int domain, int leaf) {
    if (!t.same_shape(flow, domain)) {
        const shape target = t.dims(domain);
        flow = invoke<broadcast_op>({}, &target, std::source_location{}, node(&t, flow)).id();
        t.nodes[flow].sealed = false;
    }
    if (t.same_shape(flow, leaf)) {
        t.nodes[flow].sealed = true;
        return flow;
    }
    return sum_to(node(&t, flow), t.dims(leaf), std::source_location{}).id();
}

constexpr int accumulated(trace& t, int sum, int flow) {
    if (sum < 0) return flow;
    const int args[2]{sum, flow};
    static_assert(operation_binding<add_op>::bound);
    return t.map(descriptor_of<add_op>, args, 2);
}

} // namespace detail

// pullback when the program runs.
list<int> pullback_at_run_time(trace& t, const list<int>& ys, const list<int>& seeds, const list<int>& sources,
                               int first);

namespace detail {
constexpr list<int> traced_pullback(trace& t, const list<int>& ys, const list<int>& seeds, const list<int>& sources,
                                    int first) {
    t.differentiated = true;
    const int place = t.place, task = t.computing_task;
    int count = 0;
    for (int y : ys) count = y >= count ? y + 1 : count;
    list<int> depends(count, 0), adjoint(count, -1);
    for (int source : sources)
        if (source < count) depends[source] = 1;
    for (int i = first; i < count; ++i)
        for (int k = 0; k < t.nodes[i].arguments && depends[i] == 0; ++k)
            depends[i] = detail::is_floating(t.nodes[i].type) && depends[t.argument(i, k)] != 0;
    list<int> result(sources.size(), -1);
    for (int k = 0; k < ys.size(); ++k) {
        const int y = ys[k];
        if (depends[y] == 0) continue;
        int seed = seeds[k];
        if (seed < 0) {
            seed = t.constant(1, t.nodes[y].type);
            if (t.nodes[y].rank > 0) seed = detail::fitted(t, seed, y, y);
        }
        adjoint[y] = detail::accumulated(t, adjoint[y], seed);
    }
    recomputation again(t, count);
    const auto wanted = [&](int id) {
        const int origin = again.origin_of(id);
        return origin < count && depends[origin] != 0;
    };
    const auto add = [&](int to, int flow) {
        int& sum = adjoint[again.origin_of(to)];
        sum = detail::accumulated(t, sum, flow);
    };
    for (int i = count - 1; i >= first; --i) {
        if (adjoint[i] < 0 || depends[i] == 0 || t.nodes[i].arguments == 0) continue;
        const operation& op = *t.nodes[i].op;
        t.scope = t.nodes[i].scope;
        t.line = t.nodes[i].line;
        t.compute_where(i);
        if (t.is(i, descriptor_of<checkpoint_op>)) again.repeat(i);
        const int at = again.copy_of(i); // where values are read; the same node outside checkpoints
        if (op.in_formula()) {
            // The domain of a formula under a reduction is the reduction's operand.
            const int domain = op.kind == operation_kind::reduce ? t.argument(at, 0) : at;
            const list<contribution> flows = differentiate_group(t, at, at, adjoint[i], wanted);
            for (const contribution& c : flows) add(c.leaf, detail::fitted(t, c.adjoint, domain, c.leaf));
            continue;
        }
        list<int> args(t.nodes[i].arguments);
        for (int k = 0; k < t.nodes[i].arguments; ++k) args[k] = t.argument(at, k);
        std::uint64_t wanted_operands = 0;
        for (int k = 0; k < t.nodes[i].arguments && k < 64; ++k)
            if (wanted(args[k]) && detail::is_floating(t.nodes[args[k]].type)) wanted_operands |= std::uint64_t{1} << k;
        for (int k = 0; k < t.nodes[i].arguments; ++k) {
            if (!wanted(args[k]) || !detail::is_floating(t.nodes[args[k]].type)) continue;
            t.wanted = wanted_operands;
            const int flow = op.vjp(t, t.words_of(at), k, adjoint[i], args.begin(), at);
            if (flow >= 0) add(args[k], flow);
        }
        t.wanted = ~std::uint64_t{0};
    }
    t.place = place;
    t.computing_task = task;
    for (int s = 0; s < sources.size(); ++s)
        if (sources[s] < count) result[s] = adjoint[sources[s]];
    return result;
}
} // namespace detail

/// The sum over k of seeds[k] times d(ys[k])/d(source) for each source, as nodes of the same trace; -1
/// where nothing depends on a source. A seed has the shape of its y; -1 stands for ones. Nodes before
/// `first`, which precede the call of the differentiated function, are constants.
constexpr list<int> pullback(trace& t, const list<int>& ys, const list<int>& seeds, const list<int>& sources,
                             int first = 0) {
    if (TG_RUNS_HERE) // g++ 12 loses the list of a conditional expression
        return detail::traced_pullback(t, ys, seeds, sources, first);
    else
        return pullback_at_run_time(t, ys, seeds, sources, first);
}
#if TG_DEFINES(graph)
TG_DEFINITION list<int> pullback_at_run_time(trace& t, const list<int>& ys, const list<int>& seeds,
                                             const list<int>& sources, int first) {
    return detail::traced_pullback(t, ys, seeds, sources, first);
}
#endif

/// d(sum of y)/d(source) for each source.
constexpr list<int> gradient(trace& t, int y, const list<int>& sources, int first = 0) {
    return pullback(t, list<int>{y}, list<int>{-1}, sources, first);
}

namespace detail {

/// Zeros of a node's shape: the derivative by a source that a value does not depend on.
constexpr int zeros_like(trace& t, int like) {
    const shape target = t.dims(like);
    const node zero(&t, t.constant(0, t.nodes[like].type));
    return target.rank() == 0 ? zero.id() : invoke<broadcast_op>({}, &target, std::source_location{}, zero).id();
}

} // namespace detail

} // namespace tapegraph::ir

namespace tapegraph {

template <class F, tensor_like... Args>
constexpr auto graph::value_and_gradient(const F& f, const Args&... args) {
    ir::trace& t = first_owner(args...);
    // Arguments become nodes of their own, so that a node that f captures is not mistaken for an
    // argument. Simplification removes them.
    const node sources[]{ir::detail::reshaped(t, seal(args, std::source_location{}).id(), shape_of(args))...};
    const int first = t.nodes.size();
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        const node y = eval(f(sources[I]...));
        list<int> ids;
        (ids.push_back(sources[I].id()), ...);
        list<int> found = ir::gradient(t, y.id(), ids, first);
        for (int i = 0; i < found.size(); ++i)
            if (found[i] < 0) found[i] = ir::detail::zeros_like(t, ids[i]);
        auto result = detail::unwrapped(std::tuple{node(&t, found[static_cast<int>(I)])...});
        return value_with_gradient<node, decltype(result)>{y, result};
    }
    (std::index_sequence_for<Args...>{});
}

} // namespace tapegraph
