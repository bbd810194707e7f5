#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/core/dtype.hpp>
#include <tapegraph/core/shape.hpp>
#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/core/stream.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace tapegraph {

/// Names the mode a handle type belongs to: `handle_traits<H>::mode`. Modes specialise it for their handles.
template <class T>
struct handle_traits;

/// A leaf of an expression that stands for a tensor: a node of a graph being traced, or an eager tensor.
template <class T>
concept handle = requires { typename handle_traits<T>::mode; };

/// A number in an expression. It takes the element type of its neighbour: float_tensor * 0.25 stays
/// float.
struct number {
    double value = 0;
};

/// A number that keeps an element type: arithmetic with it is rounded to T, like that of a graph's
/// scalars. In a formula with a tensor it is a number. Optimizers receive such numbers in eager
/// mode.
template <class T>
struct typed_number {
    T value{};
};
template <class T>
inline constexpr bool is_typed_number = false;
template <class T>
inline constexpr bool is_typed_number<typed_number<T>> = true;

template <class Op, class... Args>
struct expr;

namespace detail {
template <std::size_t I, class T>
struct argument {
    T value;
};

template <class Sequence, class... Args>
struct arguments;
template <std::size_t... I, class... Args>
struct arguments<std::index_sequence<I...>, Args...> : argument<I, Args>... {
    constexpr explicit arguments(const Args&... args) : argument<I, Args>{args}... {}
};

template <std::size_t I, class T>
constexpr const T& pick(const argument<I, T>& holder) {
    return holder.value;
}

template <class T>
inline constexpr bool is_expr = false;
template <class Op, class... Args>
inline constexpr bool is_expr<expr<Op, Args...>> = true;
} // namespace detail

struct graph;

namespace detail {
// The mode of an expression is the mode of its leaves; numbers have none.
struct no_mode {};
template <class T>
struct mode_of {
    using type = no_mode;
};
template <handle T>
struct mode_of<T> {
    using type = typename handle_traits<T>::mode;
};
template <class T, class Mode>
concept of_mode = std::is_same_v<typename mode_of<T>::type, Mode>;

// What conversions to bool are for, and to no other number.
template <class Bool>
concept condition = std::is_same_v<Bool, bool>;
} // namespace detail

/// What `if (x > 0)` says of a value in a model, or of a formula of such values.
#define TG_NO_VALUES_IN_A_MODEL                                                                                        \
    "a model has no values yet: write tg::where(condition, a, b) for if and ?:, tg::scan for loops"

/// An elementwise formula that spells itself as a type. Nothing has been computed; operands are kept by value.
template <class Op, class... Args>
struct expr : detail::arguments<std::index_sequence_for<Args...>, Args...> {
    using operation = Op;
    static constexpr int arity = sizeof...(Args);

    using detail::arguments<std::index_sequence_for<Args...>, Args...>::arguments;
    constexpr expr(const expr&) = default;

    /// Refuses assignment: `auto h = relu(x)` is a formula, not a tensor, and cannot hold another
    /// formula.
    template <class Other>
    constexpr expr& operator=(const Other&) {
        static_assert(always_false<Other>,
                      "an expression cannot be assigned to: it is a formula without a value. Write "
                      "`auto h = tg::eval(...)` or name the type, `tg::tensor<float> h = ...`, to give h a value first");
        return *this;
    }

    // NOLINTBEGIN: conditions convert as comparisons of numbers do
    /// Of tensors: `if (sum(x) > 0)`. Throws shape_error where there is not one element.
    template <detail::condition Bool>
        requires(!detail::of_mode<expr, graph>)
    operator Bool() const {
        return static_cast<bool>(eval(*this));
    }
#ifdef TG_REFUSED
    template <detail::condition Bool>
        requires detail::of_mode<expr, graph>
    TG_REFUSED(TG_NO_VALUES_IN_A_MODEL)
    constexpr operator Bool() const {
        refuse(eval(*this), TG_NO_VALUES_IN_A_MODEL); // so that nothing more is reported of this trace
        return false;
    }
#endif
    // NOLINTEND

    /// Operand I.
    template <std::size_t I>
    constexpr const auto& get() const {
        return detail::pick<I>(*this);
    }
};

/// A formula that has no values yet.
template <class T>
concept expression = detail::is_expr<T>;
template <expression E>
inline constexpr bool has_text<E> = true;

/// A handle, or a formula of handles.
template <class T>
concept tensor_like = handle<T> || expression<T>;

namespace detail {
template <class First, class Second>
struct one_mode {
    static_assert(std::is_same_v<First, Second>, "a graph node and an eager tensor cannot meet in one expression");
    using type = First;
};
template <class First>
struct one_mode<First, no_mode> {
    using type = First;
};
template <class Second>
struct one_mode<no_mode, Second> {
    using type = Second;
};
template <>
struct one_mode<no_mode, no_mode> {
    using type = no_mode;
};
template <class... Args>
struct mode_of_all;
template <>
struct mode_of_all<> {
    using type = no_mode;
};
template <class First, class... Rest>
struct mode_of_all<First, Rest...> {
    using type =
        typename one_mode<typename mode_of<First>::type, typename mode_of_all<Rest...>::type>::type;
};
template <class Op, class... Args>
struct mode_of<expr<Op, Args...>> : mode_of_all<Args...> {};
} // namespace detail

/// The mode of handles and expressions: `graph` or `eager`.
template <class... Args>
using mode_of_t = typename detail::mode_of_all<Args...>::type;

} // namespace tapegraph
