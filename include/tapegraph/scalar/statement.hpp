#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/operation.hpp>
#include <tapegraph/scalar/recorder.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

/// Formulas of numbers that record. A formula has its value at once; its derivatives by the numbers in it are computed
/// when it becomes a number, which is one statement on the tape.

namespace tapegraph {

template <class T>
struct real;
template <class T, int N>
struct jet;
template <class Op, class T, class... X>
struct statement;

namespace scalars {

template <class T>
inline constexpr bool records = false;
template <class T>
inline constexpr bool records<real<T>> = true;
template <class Op, class T, class... X>
inline constexpr bool records<statement<Op, T, X...>> = true;

template <class T>
inline constexpr bool is_jet = false;
template <class T, int N>
inline constexpr bool is_jet<jet<T, N>> = true;

template <class T>
inline constexpr bool is_taylor = false; // scalar/taylor.hpp
/// Numbers and truths of recorded programs (scalar/program/symbol.hpp).
template <class T>
inline constexpr bool is_symbolic = false;
template <class T>
inline constexpr bool is_symbol = false;

/// The type of values of several operands: that of the first that records; of jets, the jet.
template <class... X>
struct recorded_value {}; // of operands of which none records
template <class T, int N>
struct recorded_value<jet<T, N>> {
    using type = jet<T, N>;
};
template <class T, int N, class Next, class... Rest>
struct recorded_value<jet<T, N>, Next, Rest...> {
    using type = jet<T, N>;
};
template <class First, class... Rest>
struct recorded_value<First, Rest...> : recorded_value<Rest...> {};
template <class T, class... Rest>
struct recorded_value<real<T>, Rest...> {
    using type = T;
};
template <class Op, class T, class... X, class... Rest>
struct recorded_value<statement<Op, T, X...>, Rest...> {
    using type = T;
};

/// An operand that is no number of a tape: a number, or the condition of `where`.
template <class V>
struct constant_operand {
    V number;
    static constexpr std::uint32_t operands = 0;
    constexpr bool on_a_tape() const { return false; }
};

/// The value of an operation, and its derivative by operand I times `seed`: those of the operation's own definition. In
/// scalar/standard.hpp functions of <cmath> take the standard library's instead.
template <class Op, class T>
struct scalar_rule {
    template <class... V>
    TG_INLINE static constexpr T value(const V&... x) {
        return T(apply<Op>(x...));
    }
    template <int I, class... V>
    TG_INLINE static constexpr T slope(const T& seed, const V&... x_and_value) {
        return T(vjp_for<Op, I>(seed, x_and_value...));
    }
};

} // namespace scalars

/// A number that records, or a formula of such numbers.
template <class X>
concept recording = scalars::records<X>;

/// A number that records, a formula of such numbers, a jet, a Taylor polynomial, or a number of a recorded program.
template <class X>
concept differential_number = recording<X> || scalars::is_jet<X> || scalars::is_taylor<X> || scalars::is_symbolic<X>;

template <differential_number X>
inline constexpr bool is_differential_scalar<X> = true;

/// Op of X..., which are numbers that record, statements and constants, kept by value: `auto y = a * b;` stays right
/// when a changes. T is the type of the value.
template <class Op, class T, class... X>
struct statement : detail::arguments<std::index_sequence_for<X...>, X...> {
    static constexpr std::uint32_t operands = (X::operands + ...);
    T number;

    TG_INLINE constexpr explicit statement(const T& value, const X&... x)
        : detail::arguments<std::index_sequence_for<X...>, X...>(x...), number(value) {}

    /// The statement's value.
    TG_INLINE constexpr T value() const { return number; }
    template <arithmetic N>
    TG_INLINE constexpr explicit operator N() const {
        return static_cast<N>(number);
    }

    /// Whether an operand was computed by a statement of a tape.
    constexpr bool on_a_tape() const {
        return [this]<std::size_t... I>(std::index_sequence<I...>) {
            return (detail::pick<I>(*this).on_a_tape() || ...);
        }
        (std::index_sequence_for<X...>{});
    }
    /// Writes the derivatives by all numbers in the formula, times `seed`.
    template <class Writer>
    TG_INLINE void write(Writer& writer, const T& seed) const {
        [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
            (write_operand<I>(writer, seed, detail::pick<I>(*this), detail::pick<I>(*this).number...), ...);
        }
        (std::index_sequence_for<X...>{});
    }

private:
    // Bug of g++ 12: two packs of one expression may not both come from the lambda's indices.
    template <std::size_t I, class Writer, class Operand, class... Values>
    TG_INLINE void write_operand(Writer& writer, const T& seed, const Operand& x, const Values&... values) const {
        if constexpr (Operand::operands > 0 && differentiable<Op, static_cast<int>(I), T, Values..., T>)
            x.write(writer, scalars::scalar_rule<Op, T>::template slope<static_cast<int>(I)>(seed, values..., number));
    }
};

namespace scalars {

template <class T, class X>
TG_INLINE constexpr auto operand_of_statement(const X& x) {
    if constexpr (records<X>)
        return x;
    else if constexpr (std::is_same_v<X, bool>)
        return constant_operand<bool>{x};
    else
        return constant_operand<T>{static_cast<T>(x)};
}

template <class Op, class T, class... X>
TG_INLINE constexpr auto make_statement(const X&... x) {
    return statement<Op, T, X...>(scalar_rule<Op, T>::value(x.number...), x...);
}

} // namespace scalars

/// Applies an elementwise operation to numbers, some of which record.
template <class Op, scalar... X>
    requires(recording<X> || ...)
TG_INLINE constexpr auto apply_scalar(const X&... x) {
    using T = typename scalars::recorded_value<X...>::type;
    return scalars::make_statement<Op, T>(scalars::operand_of_statement<T>(x)...);
}

} // namespace tapegraph
