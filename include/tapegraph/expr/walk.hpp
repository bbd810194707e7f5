#pragma once

#include <tapegraph/expr/expr.hpp>

#include <tuple>

/// The one traversal of a formula. Traces, the code of eager formulas and the values passed to it
/// must agree on the order of leaves and numbers, so all of them use this walk.

namespace tapegraph {

/// Stands for a formula of which only the type is known, for walks before there are values.
template <class E>
struct formula_type {};
template <class Op, class... Args>
struct formula_type<expr<Op, Args...>> {
    template <std::size_t I>
    constexpr auto get() const {
        return formula_type<std::tuple_element_t<I, std::tuple<Args...>>>{};
    }
};

namespace detail {

template <class E>
struct walked { // a leaf or a number
    static constexpr bool leaf = handle<E>;
};
template <class E>
struct walked<formula_type<E>> : walked<E> {};

template <class Visitor, class E>
constexpr int walk_operand(Visitor&, const E&);

template <class Visitor, class E, class Op, class... Args>
constexpr int walk_operation(Visitor& visitor, const E& e, std::type_identity<expr<Op, Args...>>) {
    constexpr int count = sizeof...(Args);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        int ids[count]{};
        ((ids[I] = walk_operand(visitor, e.template get<I>())), ...);
        const auto settle = [&]<std::size_t K, class Arg>(std::integral_constant<std::size_t, K>,
                                                          std::type_identity<Arg>) {
            if constexpr (std::is_same_v<Arg, number>)
                ids[K] = visitor.template number_of<Op>(e.template get<K>(), static_cast<int>(K), ids, count);
        };
        (settle(std::integral_constant<std::size_t, I>{}, std::type_identity<Args>{}), ...);
        return visitor.template operation<Op>(ids, count);
    }
    (std::index_sequence_for<Args...>{});
}
template <class Op, class... Args>
struct walked<expr<Op, Args...>> {
    static constexpr bool leaf = false;
    using formula = expr<Op, Args...>;
};

template <class Visitor, class E>
constexpr int walk_operand(Visitor& visitor, const E& e) {
    if constexpr (requires { typename walked<E>::formula; })
        return walk_operation(visitor, e, std::type_identity<typename walked<E>::formula>{});
    else if constexpr (walked<E>::leaf)
        return visitor.leaf(e);
    else
        return -1; // a number is resolved after its neighbours
}

} // namespace detail

/// Visits a formula depth first, operands in the order in which they are written. `visitor.leaf(h)`
/// and, once all operands of an operation have been visited, `visitor.operation<Op>(ids, count)`
/// return an id. In between, `visitor.number_of<Op>(value, k, ids, count)` returns the id of a
/// number that is operand k; ids not known yet are -1. `e` is a formula or a formula_type.
template <class Visitor, class E>
constexpr int walk_formula(Visitor& visitor, const E& e) {
    return detail::walk_operand(visitor, e);
}

} // namespace tapegraph
