#pragma once

#include <tapegraph/ops/elementwise/arithmetic.hpp>
#include <tapegraph/scalar/statement.hpp>

#include <concepts>
#include <cstdint>
#include <iterator>
#include <type_traits>

namespace tapegraph {

/// A number that records: a double (or float, or a number that carries derivatives) in code that is a template of its
/// number's type. While a tape is active in this thread, every assignment of a formula in which a number of that tape
/// occurs is one statement on the tape.
template <class T = double>
struct real {
    using value_type = T;
    static constexpr std::uint32_t operands = 1;
    T number{};
    scalars::place place{};

    constexpr real() = default;
    // NOLINTBEGIN: constants and formulas are numbers
    TG_INLINE constexpr real(const T& constant) : number(constant) {}
    template <arithmetic N>
        requires(!std::is_same_v<N, T>)
    TG_INLINE constexpr real(N constant) : number(static_cast<T>(constant)) {}
    template <class Op, class... X>
    TG_INLINE real(const statement<Op, T, X...>& formula)
        : number(formula.number), place(scalars::record<T>(formula, statement<Op, T, X...>::operands)) {}
    // NOLINTEND
    constexpr real(const T& value, scalars::place where) : number(value), place(where) {}

    template <class Op, class... X>
    TG_INLINE real& operator=(const statement<Op, T, X...>& formula) {
        place = scalars::record<T>(formula, statement<Op, T, X...>::operands);
        number = formula.number;
        return *this;
    }

    /// The value, which is a constant.
    TG_INLINE constexpr const T& value() const { return number; }
    /// Conversions drop the derivative, so they are explicit.
    template <arithmetic N>
    TG_INLINE constexpr explicit operator N() const {
        return static_cast<N>(number);
    }

    template <scalar X>
    TG_INLINE real& operator+=(const X& x) {
        return *this = *this + x;
    }
    template <scalar X>
    TG_INLINE real& operator-=(const X& x) {
        return *this = *this - x;
    }
    template <scalar X>
    TG_INLINE real& operator*=(const X& x) {
        return *this = *this * x;
    }
    template <scalar X>
    TG_INLINE real& operator/=(const X& x) {
        return *this = *this / x;
    }
    TG_INLINE real& operator++() { return *this += 1; }
    TG_INLINE real& operator--() { return *this -= 1; }
    TG_INLINE real operator++(int) {
        const real before = *this;
        *this += 1;
        return before;
    }
    TG_INLINE real operator--(int) {
        const real before = *this;
        *this -= 1;
        return before;
    }

    // The interface that formulas use.
    /// Whether a tape follows the number.
    constexpr bool on_a_tape() const { return place.at != 0; }
    /// Hands the number's place on the tape to what records a statement.
    template <class Writer>
    TG_INLINE void write(Writer& writer, const T& seed) const {
        writer(place, seed);
    }
};

namespace scalars {
template <class X>
TG_INLINE constexpr auto plain_value(const X& x) {
    if constexpr (records<X>)
        return x.value();
    else
        return x;
}
/// A vector, array, span or the like of numbers of type X.
template <class R, class X>
concept range_of = requires(R& range) {
    { *std::begin(range) } -> std::convertible_to<const X&>;
    std::size(range);
    requires std::same_as<std::remove_cvref_t<decltype(*std::begin(range))>, X>;
};
template <class A, class B>
concept comparable = (records<A> && scalar<B>) || (records<B> && scalar<A>);
} // namespace scalars

// Comparisons are of values.
#define TG_COMPARES(sign)                                                                                              \
    template <class A, class B>                                                                                        \
    requires scalars::comparable<A, B> TG_INLINE constexpr bool operator sign(const A& x, const B& y) {                \
        return scalars::plain_value(x) sign scalars::plain_value(y);                                                   \
    }
TG_COMPARES(<)
TG_COMPARES(<=)
TG_COMPARES(>)
TG_COMPARES(>=)
TG_COMPARES(==)
TG_COMPARES(!=)
#undef TG_COMPARES

} // namespace tapegraph
