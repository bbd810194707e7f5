#pragma once

#include <tapegraph/ops/elementwise/arithmetic.hpp>
#include <tapegraph/ops/elementwise/comparison.hpp>
#include <tapegraph/ops/elementwise/rounding.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>
#include <tapegraph/scalar/functions.hpp>
#include <tapegraph/scalar/limits.hpp>
#include <tapegraph/scalar/program/symbol_graph.hpp>

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <type_traits>

namespace tapegraph {

/// A number whose operations are recorded, for tg::record: it takes the place of double in code that is a template of its
/// number's type. It has the value of the input that is recorded at, by which branches are taken.
template <class T = double>
struct symbol {
    using value_type = T;
    T number{};
    std::uint32_t at = 0;    ///< the node, 0 of a constant
    std::uint32_t graph = 0; ///< the number of its graph

    constexpr symbol() = default;
    // NOLINTBEGIN: constants are numbers
    template <arithmetic N>
    constexpr symbol(N constant) : number(static_cast<T>(constant)) {}
    // NOLINTEND
    constexpr symbol(T value, std::uint32_t node, std::uint32_t graph_number)
        : number(value), at(node), graph(graph_number) {}

    /// The value while it is recorded. What is computed from it is a constant of the program, and not checked.
    constexpr T value() const { return number; }
    /// A conversion makes a constant, so the program checks that it is the same for other inputs: for integers that
    /// the number without its fraction is, for bool that it is 0 or not, for others that the number is.
    template <arithmetic N>
    explicit operator N() const;

    symbol& operator+=(const symbol& x) { return *this = *this + x; }
    symbol& operator-=(const symbol& x) { return *this = *this - x; }
    symbol& operator*=(const symbol& x) { return *this = *this * x; }
    symbol& operator/=(const symbol& x) { return *this = *this / x; }
    symbol& operator++() { return *this = *this + 1; }
    symbol& operator--() { return *this = *this - 1; }
    symbol operator++(int) {
        const symbol before = *this;
        ++*this;
        return before;
    }
    symbol operator--(int) {
        const symbol before = *this;
        --*this;
        return before;
    }
};

/// The result of a comparison of symbols. As the condition of `where` it is part of the program. As a bool, in `if` and
/// `?:`, it is what it was when it was recorded, and the program checks that it is the same for other inputs.
template <class T>
struct symbol_truth {
    bool truth = false;
    std::uint32_t at = 0, graph = 0;

    // NOLINTNEXTLINE: comparisons are conditions
    operator bool() const {
        if (at == 0) return truth;
        scalars::symbol_graph<T>* const active = scalars::active_graph<T>;
        if (active == nullptr || active->number() != graph) scalars::refuse_symbol();
        if (!active->has_values()) scalars::refuse_branch_on_derivative();
        active->guard(at, truth);
        return truth;
    }
};

namespace scalars {

template <class T>
inline constexpr bool is_symbolic<symbol<T>> = true;
template <class T>
inline constexpr bool is_symbolic<symbol_truth<T>> = true;
template <class T>
inline constexpr bool is_symbol<symbol<T>> = true;

template <class... X>
struct symbol_value {}; // T of the first symbol or truth; of others there is none
template <class First, class... Rest>
struct symbol_value<First, Rest...> : symbol_value<Rest...> {};
template <class T, class... Rest>
struct symbol_value<symbol<T>, Rest...> {
    using type = T;
};
template <class T, class... Rest>
struct symbol_value<symbol_truth<T>, Rest...> {
    using type = T;
};
template <class... X>
using symbol_value_t = typename symbol_value<X...>::type;

/// An operand's value, and its node in the active graph.
template <class T>
struct symbol_operand {
    T value;
    std::uint32_t at, graph;
};
template <class T, class X>
symbol_operand<T> operand_of_symbol(const X& x) {
    if constexpr (is_symbol<X>)
        return {x.number, x.at, x.graph};
    else if constexpr (is_symbolic<X>)
        return {static_cast<T>(x.truth), x.at, x.graph};
    else
        return {static_cast<T>(x), 0, 0};
}

/// Applies an operation: to constants at once, otherwise in the active graph.
template <class T>
symbol_operand<T> apply_to_symbols(const operation_row<T>& row, std::array<symbol_operand<T>, 3> x) {
    if (x[0].at == 0 && x[1].at == 0 && x[2].at == 0) return {row.value(x[0].value, x[1].value, x[2].value), 0, 0};
    symbol_graph<T>* const graph = active_graph<T>;
    std::array<std::uint32_t, 3> at{};
    for (std::size_t i = 0; i < row.operands; ++i) {
        if (x[i].at != 0 && (graph == nullptr || x[i].graph != graph->number())) refuse_symbol();
        at[i] = x[i].at != 0 ? x[i].at : graph->constant(x[i].value);
    }
    if (graph->has_values()) graph->count_statement();
    const std::uint32_t y = graph->operation(row, at);
    if (graph->is_constant(y)) return {graph->constant_value(y), 0, 0};
    const T value = graph->has_values() ? row.value(x[0].value, x[1].value, x[2].value) : T(0);
    return {value, y, graph->number()};
}

// The type is spelled out: derivatives of operations refer to one another in circles.
template <class Op, class T>
using symbolic_result = std::conditional_t<is_predicate<Op, T>, symbol_truth<T>, symbol<T>>;

template <class Op, class T, class... X>
symbolic_result<Op, T> apply_symbolic(const X&... x) {
    const auto y = apply_to_symbols<T>(row_of<Op, T>, {operand_of_symbol<T>(x)...});
    if constexpr (is_predicate<Op, T>)
        return symbol_truth<T>{y.value != T(0), y.at, y.graph};
    else
        return symbol<T>(y.value, y.at, y.graph);
}

// The operation's vjp on symbols.
template <class Op, std::size_t I, class T>
symbolic_operand<Op, I, T> symbolic_operand_of(const symbol<T>& x) {
    if constexpr (static_cast<int>(I) < Op::condition_operands)
        return {x.number != T(0), x.at, x.graph};
    else
        return x;
}
template <class Op, class T, std::size_t... I>
symbol<T> symbolic_slope(int operand, const symbol<T>& seed, const symbol<T>* x, const symbol<T>& y,
                         std::index_sequence<I...>) {
    symbol<T> slope;
    const auto try_operand = [&]<int K>(std::integral_constant<int, K>) {
        if constexpr (differentiable<Op, K, symbol<T>, symbolic_operand<Op, I, T>..., symbol<T>>)
            if (operand == K)
                slope = symbol<T>(symbolic_rule<Op>::template slope<K>(seed, symbolic_operand_of<Op, I>(x[I])..., y));
    };
    (try_operand(std::integral_constant<int, static_cast<int>(I)>{}), ...);
    return slope;
}

} // namespace scalars

template <class T>
inline constexpr bool is_conditional_scalar<symbol<T>> = true;
template <class T>
inline constexpr bool is_conditional_scalar<symbol_truth<T>> = true;

/// Applies an elementwise operation to numbers, some of which are symbols.
template <class Op, scalar... X>
    requires(scalars::is_symbolic<X> || ...)
scalars::symbolic_result<Op, scalars::symbol_value_t<X...>> apply_scalar(const X&... x) {
    return scalars::apply_symbolic<Op, scalars::symbol_value_t<X...>>(x...);
}

#define TG_COMPARES(sign, word)                                                                                        \
    template <class A, class B>                                                                                        \
        requires(scalars::is_symbol<A> && scalar<B>)                                                                   \
    || (scalars::is_symbol<B> && scalar<A>)inline auto operator sign(const A& x, const B& y) {                         \
        return apply<word##_op>(x, y);                                                                                 \
    }
TG_COMPARES(<, less)
TG_COMPARES(<=, less_equal)
TG_COMPARES(>, greater)
TG_COMPARES(>=, greater_equal)
TG_COMPARES(==, equal)
TG_COMPARES(!=, not_equal)
#undef TG_COMPARES

template <class T>
template <arithmetic N>
symbol<T>::operator N() const {
    if (at == 0) return static_cast<N>(number);
    if constexpr (std::is_same_v<N, bool>)
        return static_cast<bool>(*this != 0);
    else if constexpr (std::is_integral_v<N>)
        static_cast<void>(static_cast<bool>(trunc(*this) == std::trunc(number)));
    else
        static_cast<void>(static_cast<bool>(*this == number));
    return static_cast<N>(number);
}

} // namespace tapegraph
