#pragma once

#include <tapegraph/expr/transforms.hpp>
#include <tapegraph/graph/kept_functions.hpp>
#include <tapegraph/ir/gradient.hpp>

#include <cstdint>
#include <type_traits>

/// Function transforms in graph mode. The gradient may be taken in a later constant evaluation, so
/// the information it needs about a transform is kept in an identity node of the graph: its value
/// is its first operand, and simplification removes it.

namespace tapegraph {

namespace ir {

/// Which of the kept functions (graph/kept_functions.hpp) a node calls.
struct kept_function_number {
    std::int64_t number = 0;
};

/// Whether a backward function is made again from its type. One with captures is kept instead,
/// which only a graph that is made at run time can do.
template <class B>
inline constexpr bool made_from_type = std::is_empty_v<B>&& std::is_default_constructible_v<B>;

/// The identity node of custom_gradient. Its operands are forward's value and forward's arguments;
/// its value is the first of them, and its derivatives, by the arguments alone, are those that B
/// returns.
template <class B, int Count>
struct custom_gradient_op : identity_node {
    static constexpr std::string_view name = "custom_gradient";
    static constexpr int arity = Count + 1;
    using attributes = std::conditional_t<made_from_type<B>, no_attributes, kept_function_number>;

    template <int I>
        requires(I > 0)
    static constexpr node vjp(const attributes& a, node dy, auto, auto... operands_and_value) {
        trace& t = dy.owner();
        const node x[]{operands_and_value...}; // the value is the last one
        const node y = x[Count];
        // All derivatives are traced at once, when the first of them is requested.
        if (t.flows.value != y.id() || t.flows.adjoint != dy.id()) {
            custom_flows flows{y.id(), dy.id(), {}};
            [&]<std::size_t... K>(std::index_sequence<K...>) {
                const auto all = called(a, dy, y, x[K]...);
                ((flows.nodes[K] = traced(t, tapegraph::detail::flow_at<K, Count>(all), x[K].id())), ...);
            }
            (std::make_index_sequence<static_cast<std::size_t>(Count)>{});
            t.flows = flows;
        }
        return {&t, t.flows.nodes[I - 1]};
    }

private:
    static constexpr auto called(const attributes& a, const auto&... given) {
        if constexpr (made_from_type<B>)
            return tapegraph::detail::call_backward(B{}, given...);
        else
            return tapegraph::detail::call_backward(kept_function<B>(a.number), given...);
    }
    template <class Flow>
    static constexpr int traced(trace& t, const Flow& flow, int argument) {
        if constexpr (std::is_same_v<Flow, no_gradient_t>) {
            return -1;
        } else {
            const int id = eval(flow).id();
            if (t.same_shape(id, argument) && t.nodes[id].type == t.nodes[argument].type) return id;
            const operand_info in[2]{t.info(id), t.info(argument)};
            t.fail(tapegraph::detail::wrong_flow, in, 2);
            return -1;
        }
    }
};

} // namespace ir

template <>
struct mode_transforms<graph> {
    template <class F, class B, class... Nodes>
    static constexpr graph_node custom(const F& f, const B& backward, std::source_location where, const Nodes&... x) {
        static_assert(sizeof...(Nodes) < ir::most_operands, "custom_gradient: at most 7 arguments");
        using op = ir::custom_gradient_op<B, sizeof...(Nodes)>;
        const graph_node value = eval(f(x...), where);
        typename op::attributes attributes{};
        if constexpr (!ir::made_from_type<B>) {
            if (!std::is_constant_evaluated()) attributes.number = ir::keep_function(backward);
            if (std::is_constant_evaluated() || attributes.number < 0) {
                ir::trace& t = value.owner();
                t.line = t.intern(where);
                t.fail("custom_gradient: in graph mode backward cannot capture: pass what it needs as an argument of "
                       "both functions, or take tg::traced");
                return value;
            }
        }
        return graph::invoke<op>(attributes, nullptr, where, value, x...);
    }

    template <class F, class... Nodes>
    static constexpr graph_node checkpoint(const F& f, std::source_location where, const Nodes&... x) {
        const int first = [](const graph_node& n, const auto&...) { return n.owner().nodes.size(); }(x...);
        const graph_node value = eval(f(x...), where);
        if (value.id() < first) return value; // f computed nothing
        return graph::invoke<ir::checkpoint_op>({first}, nullptr, where, value);
    }

    template <class Op>
    static constexpr void effect(const graph_node& x, std::source_location where) {
        graph::invoke<Op>({}, nullptr, where, x);
    }

    static constexpr void refuse(const graph_node& like, const char* what, const shape& first, const shape& second) {
        const operand_info in[2]{{like.type(), first}, {like.type(), second}};
        like.owner().fail(what, in, 2);
    }
};

} // namespace tapegraph
