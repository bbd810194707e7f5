#pragma once

#include <tapegraph/expr/jacobian.hpp>
#include <tapegraph/ir/jvp.hpp>
#include <tapegraph/ops/movement/concat.hpp>

/// vjp, jvp, hvp, jacobian and hessian in graph mode: nodes of the trace that the function is traced into.

namespace tapegraph {

namespace ir {

/// The maximum number of sweeps that a Jacobian may unroll into a graph.
inline constexpr std::int64_t most_unrolled_sweeps = 64;

/// The nodes [first, last) that tracing a function added, with its sources and results, as needed
/// by both kinds of sweep.
class traced_function {
public:
    using handles = list<int>;

    constexpr explicit traced_function(trace& owner) : t(owner) {}

    constexpr list<int> push(const list<int>& tangents) {
        const list<int> all = push_forward(t, first_, last_, sources_, tangents);
        list<int> found;
        for (int y : results_) found.push_back(all[y] >= 0 ? all[y] : detail::zeros_like(t, y));
        return found;
    }
    constexpr list<int> pull(const list<int>& cotangents) { return pull(results_, cotangents); }

    constexpr list<std::int64_t> result_sizes() { return sizes(results_); }
    constexpr list<std::int64_t> source_sizes() { return sizes(sources_); }
    constexpr list<int> pull_one(int k, std::int64_t i) {
        return pull(list<int>{results_[k]}, list<int>{one_hot(results_[k], i)});
    }
    constexpr list<int> push_one(int j, std::int64_t i) {
        list<int> tangents(sources_.size(), -1);
        tangents[j] = one_hot(sources_[j], i);
        return push(tangents);
    }
    constexpr bool allows(std::int64_t sweeps) {
        if (sweeps > most_unrolled_sweeps)
            fail("jacobian: more than 64 rows or columns to unroll", results_[0], sources_[0]);
        return t.error.what == nullptr;
    }
    constexpr int block(const list<int>& lines, int k, int j, bool forward) {
        const shape y = t.dims(results_[k]), x = t.dims(sources_[j]);
        shape target = y;
        target.attach(&t.extents);
        for (int i = 0; i < x.rank(); ++i) target.push_back(x[i]);
        if (target.overflow()) return fail("jacobian: rank above 8", results_[k], sources_[j]);
        const dtype type = t.nodes[sources_[j]].type;
        if (lines.empty() || !detail::is_floating(t.nodes[results_[k]].type)) {
            const node zero(&t, t.constant(0, type));
            return invoke<broadcast_op>({}, &target, std::source_location{}, zero).id();
        }
        list<node> parts;
        const shape line{1, t.dims(lines[0]).size().value};
        for (int each : lines) parts.push_back(node(&t, reshaped(detail::converted(t, each, type), line)));
        int all = invoke_list<concat_op>({0}, std::source_location{}, parts.begin(), parts.size()).id();
        if (forward && lines.size() > 1 && line[1].value != 1) all = transpose(node(&t, all)).id();
        return reshaped(all, target);
    }

    trace& t;

protected:
    constexpr int own(int argument, const char* integer) {
        if (!detail::is_floating(t.nodes[argument].type)) fail(integer, argument, argument);
        // The argument becomes a node of its own, so that a node that the function captures is not mistaken for it.
        sources_.push_back(detail::reshaped(t, argument, t.dims(argument)).id());
        return sources_.back();
    }
    constexpr int fail(const char* what, int first, int second) {
        const operand_info in[2]{t.info(first), t.info(second)};
        t.fail(what, in, 2);
        return second;
    }

    list<int> sources_, results_;
    int first_ = 0, last_ = 0;

private:
    constexpr int reshaped(int at, const shape& target) { return detail::reshaped(t, at, target).id(); }
    constexpr list<int> pull(const list<int>& ys, const list<int>& cotangents) {
        list<int> found = pullback(t, ys, cotangents, sources_, first_);
        for (int i = 0; i < found.size(); ++i)
            if (found[i] < 0) found[i] = detail::zeros_like(t, sources_[i]);
        return found;
    }
    constexpr list<std::int64_t> sizes(const list<int>& of) {
        list<std::int64_t> result;
        for (int at : of) {
            const extent size = t.dims(at).size();
            if (!size.known()) fail("jacobian: extents must be numbers", at, at);
            result.push_back(size.known() ? size.value : 0);
        }
        return result;
    }
    // A node of the given node's shape that is one at element i and zero elsewhere.
    constexpr int one_hot(int like, std::int64_t i) {
        const shape target = t.dims(like);
        const node one(&t, t.constant(1, t.nodes[like].type));
        const extent size = target.size();
        if (target.rank() == 0) return one.id();
        if (size.value == 1) return invoke<broadcast_op>({}, &target, std::source_location{}, one).id();
        const shape single{1}, flat{size.value};
        pad_op::attributes at;
        for (int axis = 0; axis < max_rank; ++axis) at.step[axis] = 1;
        at.begin[0] = i;
        const node placed = invoke<pad_op>(at, &flat, std::source_location{},
                                           invoke<broadcast_op>({}, &single, std::source_location{}, one));
        return reshaped(placed.id(), target);
    }
};

} // namespace ir

namespace detail {

template <class F, class... X>
struct linearization<graph, F, X...> : ir::traced_function {
    static constexpr int arity = sizeof...(X);
    struct sealer {
        constexpr graph_node operator()(const auto& y) const { return eval(y); }
    };
    template <std::size_t... I>
    static constexpr auto called(const F& f, const list<int>& ids, ir::trace& t, std::index_sequence<I...>) {
        return map_results(sealer{}, f(graph_node(&t, ids[static_cast<int>(I)])...));
    }
    using value_type =
        decltype(called(std::declval<const F&>(), {}, std::declval<ir::trace&>(), std::index_sequence_for<X...>{}));

    constexpr explicit linearization(const F& f, const X&... x)
        : traced_function(*owner(x...)), value((enter(x...), called(f, sources_, t, std::index_sequence_for<X...>{}))) {
        last_ = t.nodes.size();
        map_results([this](const graph_node& y) { return results_.push_back(y.id()); }, value);
    }

    template <class Directions>
    constexpr auto push(const Directions& directions, const char*) {
        const list<int> found =
            traced_function::push(matched(directions, sources_, tapegraph::detail::direction_words));
        int k = 0;
        return map_results([&](const graph_node&) { return graph_node(&t, found[k++]); }, value);
    }
    template <class Cotangents>
    constexpr auto pull(const Cotangents& cotangents, const char*) {
        return typed(traced_function::pull(matched(cotangents, results_, tapegraph::detail::cotangent_words)), 0,
                     std::index_sequence_for<X...>{});
    }
    constexpr auto jacobian(sweep_direction direction) {
        const list<int> blocks = jacobian_blocks(*this, direction);
        int k = 0;
        return map_results(
            [&](const graph_node&) { return unwrapped(typed(blocks, arity * k++, std::index_sequence_for<X...>{})); },
            value);
    }

private:
    template <class First, class... Rest>
    static constexpr ir::trace* owner(const First& first, const Rest&... rest) {
        ir::trace* const mine = ir::owner_of(first);
        if constexpr (sizeof...(Rest) > 0)
            return mine != nullptr ? mine : owner(rest...);
        else
            return mine;
    }
    constexpr void enter(const X&... x) {
        const int given[]{eval(x).id()...};
        for (int argument : given) own(argument, "only floating-point arguments have derivatives");
        first_ = t.nodes.size();
    }
    template <std::size_t... I>
    constexpr auto typed(const list<int>& ids, int from, std::index_sequence<I...>) {
        return std::make_tuple(graph_node(&t, ids[from + static_cast<int>(I)])...);
    }
    // The nodes of a structure, one for each of `like`.
    template <class Given>
    constexpr list<int> matched(const Given& given, const list<int>& like, const like_words& words) {
        list<int> ids;
        map_results(
            [&](const auto& each) {
                if constexpr (scalar<std::remove_cvref_t<decltype(each)>>)
                    return ids.push_back(t.constant(static_cast<double>(each), t.nodes[like[0]].type));
                else
                    return ids.push_back(eval(each).id());
            },
            given);
        if (ids.size() != like.size()) {
            fail(words.number, like[0], like[0]);
            return like;
        }
        for (int i = 0; i < ids.size(); ++i) {
            if (t.dims(ids[i]) == t.dims(like[i]) && t.nodes[ids[i]].type == t.nodes[like[i]].type) continue;
            if (ir::detail::is_floating(t.nodes[like[i]].type)) fail(words.shape, ids[i], like[i]);
            ids[i] = like[i];
        }
        return ids;
    }

public:
    value_type value;
};

} // namespace detail

} // namespace tapegraph
