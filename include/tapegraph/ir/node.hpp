#pragma once

#include <tapegraph/core/half.hpp>
#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/indexable.hpp>
#include <tapegraph/expr/walk.hpp>
#include <tapegraph/ir/trace.hpp>
#include <tapegraph/ops/elementwise/cast.hpp>

#include <source_location>
#include <utility>

/// The handle of graph mode. Sealing, invoking and reducing append nodes to a trace.

namespace tapegraph {

/// A value inside a graph being traced: `graph::node`. It borrows the trace, which lives for the
/// evaluation. It is a member of this namespace, not of `ir`, so that argument-dependent lookup
/// finds operators.
class graph_node : public indexable<graph_node> {
public:
    constexpr graph_node() = default;
    constexpr graph_node(ir::trace* owner, int id) : owner_(owner), id_(id) {}
    /// Seals a formula; errors in it name the line of the seal.
    template <expression E>
    // NOLINTNEXTLINE: implicit, so that models can write h = relu(h)
    constexpr graph_node(const E& e, std::source_location where = std::source_location::current());

    /// Seals a formula for `x += y`, whose operator cannot capture its line: errors name the line
    /// of the preceding operation.
    template <expression E>
    static constexpr graph_node sealed(const E& e);

    /// The trace that it belongs to.
    constexpr ir::trace& owner() const { return *owner_; }
    /// Its number in the trace.
    constexpr int id() const { return id_; }
    /// The extents of its axes, which may be symbols.
    constexpr tapegraph::shape shape() const { return owner_->dims(id_); }
    /// The number of axes; 0 for a scalar.
    constexpr int rank() const { return owner_->nodes[id_].rank; }
    /// The type of its elements.
    constexpr dtype type() const { return owner_->nodes[id_].type; }

#ifdef TG_REFUSED
    template <detail::condition Bool>
    TG_REFUSED(TG_NO_VALUES_IN_A_MODEL)
    constexpr operator Bool() const { // NOLINT
        owner_->fail(TG_NO_VALUES_IN_A_MODEL);
        return false;
    }
#endif

private:
    ir::trace* owner_ = nullptr;
    int id_ = -1;
};

/// Element type and shape: "f32[?, 3]".
inline std::string to_string(const graph_node& x) { return name_of(x.type()) + to_string(x.shape()); }
template <>
inline constexpr bool has_text<graph_node> = true;

constexpr void refuse(const graph_node& x, const char* what) {
    const operand_info about{x.type(), x.shape()};
    x.owner().fail(what, &about, 1);
}

struct graph;

template <>
struct handle_traits<graph_node> {
    using mode = graph;
};

namespace ir {

using node = graph_node;

constexpr trace* owner_of(const node& n) { return &n.owner(); }
constexpr trace* owner_of(const number&) { return nullptr; }
template <class Op, class... Args>
constexpr trace* owner_of(const expr<Op, Args...>& e) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        trace* owner = nullptr;
        ((owner = owner != nullptr ? owner : owner_of(e.template get<I>())), ...);
        return owner;
    }
    (std::index_sequence_for<Args...>{});
}

/// The element type that a number, operand k of an operation, takes from the operands that have an
/// id.
template <class Op>
constexpr dtype operand_type(const trace& t, int k, const int* ids, int count) {
    if (k < Op::condition_operands) return dtype::boolean;
    dtype common = dtype::f32;
    for (int i = count - 1; i >= Op::condition_operands; --i)
        if (ids[i] >= 0) common = t.nodes[ids[i]].type;
    return common;
}

/// Appends the nodes of a formula; numbers become constants of their neighbours' element type.
struct node_writer {
    trace& t;

    constexpr int leaf(const node& n) { return n.id(); }
    template <class Op>
    constexpr int number_of(const number& n, int k, const int* ids, int count) {
        return t.constant(n.value, operand_type<Op>(t, k, ids, count));
    }
    template <class Op>
    constexpr int operation(const int* ids, int count) {
        static_assert(operation_binding<Op>::bound);
        return t.map(descriptor_of<Op>, ids, count);
    }
};

template <class E>
constexpr int put(trace& t, const E& e) {
    node_writer writer{t};
    return walk_formula(writer, e);
}

/// Appends a formula as one group: its nodes are differentiated together, its last node is the sealed one.
template <class E>
constexpr int seal(trace& t, const E& e) {
    const int first = t.nodes.size();
    const int last = put(t, e);
    const int group = t.groups++;
    for (int i = first; i <= last; ++i) {
        if (t.nodes[i].op->kind == operation_kind::leaf) continue;
        t.nodes[i].group = group;
        t.nodes[i].sealed = i == last;
    }
    return last;
}

namespace detail {
template <class Op, int I, class... Args>
constexpr int vjp_of_operand(trace& t, [[maybe_unused]] const std::int64_t* words, const Args&... args) {
    if constexpr (Op::kind == operation_kind::map) {
        if constexpr (differentiable<Op, I, Args...>) return put(t, vjp_for<Op, I>(args...));
    } else if constexpr (Op::kind == operation_kind::reduce && !whole_reduction<Op>) {
        return put(t, Op::vjp(args...));
    } else if constexpr (tapegraph::detail::has_indexed_vjp<Op, I, typename Op::attributes, Args...>) {
        return put(t, Op::template vjp<I>(attributes_from_words<Op>(words), args...));
    }
    return -1;
}

template <class Op, int... I, class... Args>
constexpr int vjp_node(std::integer_sequence<int, I...>, trace& t, [[maybe_unused]] const std::int64_t* words,
                       int which, const Args&... args) {
    int result = -1;
    ((which == I ? void(result = vjp_of_operand<Op, I>(t, words, args...)) : void()), ...);
    return result;
}
} // namespace detail

namespace detail {
/// Whether the derivative on 16-bit elements is computed in float and rounded once, from the value
/// in float. As separate operations its steps would each round, overflow in half where the result
/// does not, and cancel against a rounded value.
template <class Op>
inline constexpr bool derivative_in_float = [] {
    if constexpr (Op::kind == operation_kind::map)
        return !Op::vjp_rounds_once;
    else
        return false;
}();

/// Converts a node's 16-bit elements to float; other nodes (conditions) stay as they are.
constexpr int widened(trace& t, int id);

template <class Op>
constexpr int vjp_of_operands(trace& t, const std::int64_t* words, int which, int adjoint, const int* inputs,
                              int output) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return vjp_node<Op>(std::make_integer_sequence<int, Op::arity>{}, t, words, which, node(&t, adjoint),
                            node(&t, inputs[I])..., node(&t, output));
    }
    (std::make_index_sequence<static_cast<std::size_t>(Op::arity)>{});
}

template <class Op>
constexpr int vjp_in_float(trace& t, int which, int adjoint, const int* inputs) {
    int wide[Op::arity]{};
    for (int k = 0; k < Op::arity; ++k) wide[k] = widened(t, inputs[k]);
    const int above = widened(t, adjoint), value = t.map(descriptor_of<Op>, wide, Op::arity);
    if constexpr (requires { typename Op::of_storage_types; })
        return vjp_of_operands<typename Op::of_storage_types>(t, nullptr, which, above, wide, value);
    else
        return vjp_of_operands<Op>(t, nullptr, which, above, wide, value);
}

template <class Op>
constexpr int trace_vjp(trace& t, const std::int64_t* words, int which, int adjoint, const int* inputs, int output) {
    if constexpr (requires { &Op::trace_flow; }) { // derivatives that need all operands, for any number of operands
        return Op::trace_flow(t, attributes_from_words<Op>(words), which, adjoint, inputs, output);
    } else if constexpr (Op::arity == any_arity) {
        list<shape> shapes; // one for each operand of the value's node
        for (int k = 0; k < t.nodes[output].arguments; ++k) shapes.push_back(t.dims(inputs[k]));
        return put(t,
                   Op::vjp(attributes_from_words<Op>(words), node(&t, adjoint), shapes.begin(), shapes.size(), which));
    } else {
        if constexpr (derivative_in_float<Op>)
            if (is_storage_type(t.nodes[output].type)) return vjp_in_float<Op>(t, which, adjoint, inputs);
        return vjp_of_operands<Op>(t, words, which, adjoint, inputs, output);
    }
}

// Names a descriptor, and so trace_vjp, which clang evaluates only if its definition comes first.
constexpr int widened(trace& t, int id) {
    if (!is_storage_type(t.nodes[id].type)) return id;
    static_assert(operation_binding<cast_op<float>>::bound);
    return t.map(descriptor_of<cast_op<float>>, &id, 1);
}
} // namespace detail

} // namespace ir

template <expression E>
constexpr graph_node::graph_node(const E& e, std::source_location where) : owner_(ir::owner_of(e)) {
    owner_->line = owner_->intern(where);
    id_ = ir::seal(*owner_, e);
}

template <expression E>
constexpr graph_node graph_node::sealed(const E& e) {
    ir::trace* const owner = ir::owner_of(e);
    return {owner, ir::seal(*owner, e)};
}

/// Graph mode. `graph::node` is the handle that models see.
struct graph {
    using node = graph_node;

    /// The node of a formula: its operations are added to the trace as one group.
    template <tensor_like E>
    static constexpr node seal(const E& e, std::source_location where) {
        if constexpr (handle<E>)
            return e;
        else
            return node(e, where);
    }

    /// Adds an operation that is not elementwise; `target` is its shape where it needs one.
    template <class Op, class... Args>
    static constexpr node invoke(const typename Op::attributes& attributes, const shape* target,
                                 std::source_location where, const Args&... args) {
        static_assert(ir::operation_binding<Op>::bound);
        ir::trace& t = first_owner(args...);
        const node sealed[]{seal(args, where)...};
        t.line = t.intern(where);
        int ids[sizeof...(Args)]{};
        for (std::size_t i = 0; i < sizeof...(Args); ++i) ids[i] = sealed[i].id();
        if constexpr (attribute_words<Op> == 0) {
            return {&t, t.invoke(ir::descriptor_of<Op>, nullptr, target, ids, sizeof...(Args))};
        } else {
            const auto words = attributes_to_words<Op>(attributes);
            return {&t, t.invoke(ir::descriptor_of<Op>, words.value, target, ids, sizeof...(Args))};
        }
    }

    /// The same for operands in an array.
    template <class Op>
    static constexpr node invoke_list(const typename Op::attributes& attributes, std::source_location where,
                                      const node* parts, int count) {
        static_assert(ir::operation_binding<Op>::bound);
        ir::trace& t = parts[0].owner();
        t.line = t.intern(where);
        list<int> ids;
        for (int i = 0; i < count; ++i) ids.push_back(parts[i].id());
        const auto words = attributes_to_words<Op>(attributes);
        return {&t, t.invoke(ir::descriptor_of<Op>, words.value, nullptr, ids.begin(), count)};
    }

    /// The formula's nodes and the reduction form one group.
    template <class Op, tensor_like E>
    static constexpr node reduce(const typename Op::attributes& attributes, std::source_location where, const E& e) {
        static_assert(ir::operation_binding<Op>::bound);
        ir::trace& t = *ir::owner_of(e);
        t.line = t.intern(where);
        const int first = t.nodes.size();
        const int argument = ir::put(t, e);
        const auto words = attributes_to_words<Op>(attributes);
        const int last = t.invoke(ir::descriptor_of<Op>, words.value, nullptr, &argument, 1);
        for (int i = first; i < last; ++i) {
            if (t.nodes[i].op->kind == operation_kind::leaf) continue;
            t.nodes[i].group = t.nodes[last].group;
            t.nodes[i].sealed = false;
        }
        return {&t, last};
    }

    /// Random nodes are numbered in the order of the trace.
    template <class Op>
    static constexpr node draw(typename Op::attributes attributes, const shape& dims, std::source_location where,
                               const node& like) {
        static_assert(ir::operation_binding<Op>::bound);
        ir::trace& t = like.owner();
        t.line = t.intern(where);
        attributes.ordinal = t.draw();
        return {&t, t.invoke(ir::descriptor_of<Op>, attributes_to_words<Op>(attributes).value, &dims, nullptr, 0)};
    }
    /// Adds random numbers by Op's law in the shape `dims`, of the element type of `like`.
    template <template <class> class Op>
    static constexpr node draw_like(const typename Op<float>::attributes& attributes, const shape& dims,
                                    std::source_location where, const node& like) {
        if (like.type() == dtype::f64) return draw<Op<double>>(attributes, dims, where, like);
        if (!is_floating(like.type())) like.owner().fail("random: numbers are floating, like their example");
        return draw<Op<float>>(attributes, dims, where, like);
    }

    /// An extent as a number that formulas take; a symbolic one becomes a node.
    static constexpr node extent_number(const node& like, extent value) {
        return {&like.owner(), like.owner().extent_value(value, like.type())};
    }

    /// The shape of a node.
    static constexpr tapegraph::shape shape_of(const node& n) { return n.shape(); }
    static constexpr tapegraph::shape shape_of(const number&) { return {}; }
    template <class Op, class... Args>
    static constexpr tapegraph::shape shape_of(const expr<Op, Args...>& e) {
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            tapegraph::shape result = shape_of(e.template get<0>());
            bool ok = true;
            ((result = I == 0 ? result : broadcast(result, shape_of(e.template get<I>()), ok)), ...);
            return result;
        }
        (std::index_sequence_for<Args...>{});
    }

    /// The value of f and its gradient as nodes of the same trace. In ir/gradient.hpp.
    template <class F, tensor_like... Args>
    static constexpr auto value_and_gradient(const F& f, const Args&... args);

private:
    template <class First, class... Rest>
    static constexpr ir::trace& first_owner(const First& first, const Rest&... rest) {
        if constexpr (sizeof...(Rest) == 0)
            return *ir::owner_of(first);
        else
            return ir::owner_of(first) != nullptr ? *ir::owner_of(first) : first_owner(rest...);
    }
};

} // namespace tapegraph
