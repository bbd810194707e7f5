#pragma once

#include <tapegraph/scalar/functions.hpp>

#include <cmath>
#include <concepts>
#include <type_traits>

/// Functions of <cmath> that decompose, round and classify numbers. Steps count as constants, which they
/// are between their jumps, so numbers that carry derivatives lose them here.

namespace tapegraph {

namespace scalars {

/// The plain number under a number that records, of numbers that carry derivatives of others or not.
template <class T>
TG_INLINE constexpr auto innermost(const T& x) {
    if constexpr (records<T>)
        return innermost(x.value());
    else if constexpr (arithmetic<T>)
        return x;
    else if constexpr (is_symbol<T> || is_taylor<T>)
        return x.value();
    else
        return innermost(x.value);
}
template <class... X>
concept has_recorded_value = requires {
    typename recorded_value<X...>::type;
};
template <class... X>
struct number_of_operands {};
template <class... X>
    requires has_recorded_value<X...>
struct number_of_operands<X...> {
    using type = real<typename recorded_value<X...>::type>;
};
template <class... X>
    requires(has_recorded_value<X...>)
&&(is_jet<typename recorded_value<X...>::type> ||
   is_taylor<typename recorded_value<X...>::type>)&&(!recording<X> && ...) struct number_of_operands<X...> {
    using type = typename recorded_value<X...>::type;
};
/// The number that a formula of X... becomes; there is none where nothing records.
template <class... X>
using number_of = typename number_of_operands<X...>::type;

} // namespace scalars

/// Numbers whose values are known for good; those of symbols are other ones when the program runs.
template <class X>
concept known_number = differential_number<X> && !scalars::is_symbolic<X>;

// A constant of the same type.
#define TG_STEP(word)                                                                                                  \
    template <operand X>                                                                                               \
        requires known_number<X>                                                                                       \
    inline scalars::number_of<X> word(const X& x) { return scalars::number_of<X>(std::word(scalars::innermost(x))); }
TG_STEP(round)
TG_STEP(rint)
TG_STEP(nearbyint)
TG_STEP(logb)
#undef TG_STEP

// An integer or a truth.
#define TG_QUESTION(word)                                                                                              \
    template <operand X>                                                                                               \
        requires known_number<X>                                                                                       \
    inline auto word(const X& x) { return std::word(scalars::innermost(x)); }
TG_QUESTION(lround)
TG_QUESTION(llround)
TG_QUESTION(lrint)
TG_QUESTION(llrint)
TG_QUESTION(ilogb)
TG_QUESTION(isnan)
TG_QUESTION(isinf)
TG_QUESTION(isfinite)
TG_QUESTION(isnormal)
TG_QUESTION(signbit)
TG_QUESTION(fpclassify)
#undef TG_QUESTION

/// x 2^exponent
template <differential_number X>
TG_INLINE auto ldexp(const X& x, int exponent) {
    using plain = std::remove_cvref_t<decltype(scalars::innermost(x))>;
    return x * std::ldexp(plain(1), exponent);
}
/// x 2^exponent, as `ldexp`.
template <differential_number X>
TG_INLINE auto scalbn(const X& x, int exponent) {
    return ldexp(x, exponent);
}
/// x = fraction 2^exponent with 0.5 <= |fraction| < 1
template <known_number X>
inline scalars::number_of<X> frexp(const X& x, int* exponent) {
    const auto fraction = std::frexp(scalars::innermost(x), exponent);
    if (!std::isfinite(fraction) || fraction == 0) return x;
    // In two steps, because 2^1074 is no double.
    const int half = -*exponent / 2;
    return ldexp(ldexp(x, half), -*exponent - half);
}
/// x = whole + rest, both with the sign of x
template <recording X, class T>
inline scalars::number_of<X> modf(const X& x, real<T>* whole) {
    using std::trunc;
    const auto steps = std::trunc(scalars::innermost(x));
    *whole = scalars::number_of<X>(steps);
    if (std::isinf(steps)) return scalars::number_of<X>(std::copysign(decltype(steps)(0), steps));
    return x - steps;
}
/// The next number from x toward y, which moves as x does.
template <recording X, scalar Y>
inline scalars::number_of<X> nextafter(const X& x, const Y& y) {
    const auto from = scalars::innermost(x);
    const auto to = static_cast<decltype(from)>(scalars::innermost(y));
    return x + (std::nextafter(from, to) - from);
}

/// What std::max and std::min do of two numbers of one type, of formulas, too: the first of equal ones.
template <class X, class Y>
    requires differential_operands<X, Y> && scalars::has_recorded_value<X, Y>
inline auto max(const X& x, const Y& y) {
    using result = scalars::number_of<X, Y>;
    return x < y ? result(y) : result(x);
}
template <class X, class Y>
    requires differential_operands<X, Y> && scalars::has_recorded_value<X, Y>
inline auto min(const X& x, const Y& y) {
    using result = scalars::number_of<X, Y>;
    return y < x ? result(y) : result(x);
}

} // namespace tapegraph
