#pragma once

#include <tapegraph/scalar/program/symbol.hpp>
#include <tapegraph/scalar/rounding.hpp>

#include <cmath>
#include <iosfwd>
#include <limits>

/// Functions of <cmath> of symbols that scalar/rounding.hpp answers for numbers whose values are known. A program has to
/// compute them again; integers that they give are constants that it checks.

namespace tapegraph {

/// To the nearest integer, halves away from 0, as std::round; tapegraph's own `round` is to even.
struct round_away_op : map_op<1> {
    static constexpr std::string_view name = "round";
    template <class V>
    static V value(V x) {
        return std::round(x);
    }
};
struct logb_op : map_op<1> {
    static constexpr std::string_view name = "logb";
    template <class V>
    static V value(V x) {
        return std::logb(x);
    }
};
/// The next number from x toward y, which moves as x does.
struct nextafter_op : map_op<2> {
    static constexpr std::string_view name = "nextafter";
    static constexpr zero_adjoint zeros = zero_adjoint::passes;
    template <class V>
    static V value(V x, V y) {
        return std::nextafter(x, y);
    }
    template <int I>
        requires(I == 0)
    static constexpr auto vjp(auto dy, auto, auto, auto) { return dy; }
};
struct is_normal_op : predicate_op<1> {
    static constexpr std::string_view name = "isnormal";
    template <class V>
    static bool value(V x) {
        return std::isnormal(x);
    }
};
struct signbit_op : predicate_op<1> {
    static constexpr std::string_view name = "signbit";
    template <class V>
    static bool value(V x) {
        return std::signbit(x);
    }
};

/// pow's derivatives. Where the exponent is a number, as it mostly is, the base's is one power more.
template <>
struct scalars::symbolic_rule<pow_op> {
    template <int I>
    static auto slope(const auto& dy, const auto& x, const auto& exponent, const auto& y) {
        if constexpr (I == 0) {
            const auto slope = dy * (exponent * apply<pow_op>(x, exponent - 1));
            return exponent.at == 0 && exponent.number != 0 ? slope : where(exponent != 0, slope, 0);
        } else {
            return where(logical_or(y == 0, x == 0), 0, dy * (y * apply<log_op>(x)));
        }
    }
};

#define TG_STEP(word, operation)                                                                                       \
    template <class T>                                                                                                 \
    symbol<T> word(const symbol<T>& x) {                                                                               \
        return apply<operation>(x);                                                                                    \
    }
TG_STEP(round, round_away_op)
TG_STEP(rint, round_op)
TG_STEP(nearbyint, round_op)
TG_STEP(logb, logb_op)
#undef TG_STEP

#define TG_INTEGER(word, number, type)                                                                                 \
    template <class T>                                                                                                 \
    type word(const symbol<T>& x) {                                                                                    \
        return static_cast<type>(number(x));                                                                           \
    }
TG_INTEGER(lround, round, long)
TG_INTEGER(llround, round, long long)
TG_INTEGER(lrint, rint, long)
TG_INTEGER(llrint, rint, long long)
#undef TG_INTEGER
/// std::ilogb of the value; the program checks that it is the same in every call.
template <class T>
int ilogb(const symbol<T>& x) {
    static_cast<void>(static_cast<bool>(logb(x) == std::logb(x.value())));
    return std::ilogb(x.value());
}

#define TG_QUESTION(word, operation)                                                                                   \
    template <class T>                                                                                                 \
    symbol_truth<T> word(const symbol<T>& x) {                                                                         \
        return apply<operation>(x);                                                                                    \
    }
TG_QUESTION(isnan, is_nan_op)
TG_QUESTION(isinf, is_inf_op)
TG_QUESTION(isfinite, is_finite_op)
TG_QUESTION(isnormal, is_normal_op)
TG_QUESTION(signbit, signbit_op)
#undef TG_QUESTION
/// std::fpclassify of the value; the program checks that it is the same in every call.
template <class T>
int fpclassify(const symbol<T>& x) {
    // Asked one after the other, so that the program checks what the answer depends on.
    if (isnan(x)) return FP_NAN;
    if (isinf(x)) return FP_INFINITE;
    if (isnormal(x)) return FP_NORMAL;
    return x == 0 ? FP_ZERO : FP_SUBNORMAL;
}

/// x = fraction 2^exponent with 0.5 <= |fraction| < 1; the exponent is a constant that the program checks.
template <class T>
symbol<T> frexp(const symbol<T>& x, int* exponent) {
    const T fraction = std::frexp(x.value(), exponent);
    if (!isfinite(x) || x == 0) return x;
    static_cast<void>(static_cast<bool>(logb(x) == std::logb(x.value())));
    static_cast<void>(fraction);
    const int half = -*exponent / 2; // in two steps, because 2^1074 is no double
    return ldexp(ldexp(x, half), -*exponent - half);
}
/// x = whole + rest, both with the sign of x
template <class T>
symbol<T> modf(const symbol<T>& x, symbol<T>* whole) {
    *whole = trunc(x);
    return where(is_inf(x), copysign(symbol<T>(0), x), x - *whole);
}
template <class T, scalar Y>
symbol<T> nextafter(const symbol<T>& x, const Y& y) {
    return apply<nextafter_op>(x, y);
}
template <scalar X, class T>
    requires arithmetic<X> symbol<T> nextafter(const X& x, const symbol<T>& y) { return apply<nextafter_op>(x, y); }

/// What std::max and std::min do: the first of equal numbers. They branch; `maximum` and `minimum` do not.
template <class X, class Y>
    requires(scalars::is_symbol<X>&& scalar<Y>)
|| (scalars::is_symbol<Y> && scalar<X>)auto max(const X& x, const Y& y) {
    using result = symbol<scalars::symbol_value_t<X, Y>>;
    return x < y ? result(y) : result(x);
}
template <class X, class Y>
    requires(scalars::is_symbol<X>&& scalar<Y>)
|| (scalars::is_symbol<Y> && scalar<X>)auto min(const X& x, const Y& y) {
    using result = symbol<scalars::symbol_value_t<X, Y>>;
    return y < x ? result(y) : result(x);
}

template <class C, class Traits, class T>
    requires requires(std::basic_ostream<C, Traits>& stream, const T& number) { stream << number; }
std::basic_ostream<C, Traits>& operator<<(std::basic_ostream<C, Traits>& out, const symbol<T>& x) {
    return out << x.number;
}

} // namespace tapegraph

// NOLINTBEGIN: meant to be specialised for such types
template <class T>
struct std::numeric_limits<tapegraph::symbol<T>> : tapegraph::scalars::limits_as<tapegraph::symbol<T>, T> {};
// NOLINTEND
