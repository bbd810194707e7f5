#pragma once

#include <tapegraph/ops/elementwise/activation.hpp>
#include <tapegraph/ops/elementwise/hyperbolic.hpp>
#include <tapegraph/ops/elementwise/power.hpp>
#include <tapegraph/ops/elementwise/trigonometric.hpp>
#include <tapegraph/scalar/statement.hpp>

#include <cmath>
#include <concepts>

/// Functions of <cmath> that are operations of the library, for plain numbers. The value is the standard
/// library's, so that a program gives the same bits with `double` and with `tg::real`; it is also faster
/// than the library's own function, which is written for vectors. Derivatives are those of the
/// operations, which may call the standard library here, too.

namespace tapegraph::scalars {

#define TG_STANDARD_VALUE(word)                                                                                        \
    template <std::floating_point T>                                                                                   \
    struct scalar_rule<word##_op, T> {                                                                                 \
        template <std::same_as<T>... V>                                                                                \
        TG_INLINE static T value(V... x) {                                                                             \
            return std::word(x...);                                                                                    \
        }                                                                                                              \
        template <int I, std::same_as<T>... V>                                                                         \
        TG_INLINE static T slope(T seed, V... x_and_value) {                                                           \
            return vjp_for<word##_op, I>(seed, x_and_value...);                                                        \
        }                                                                                                              \
    };
TG_STANDARD_VALUE(tan)
TG_STANDARD_VALUE(asin)
TG_STANDARD_VALUE(acos)
TG_STANDARD_VALUE(atan)
TG_STANDARD_VALUE(atan2)
TG_STANDARD_VALUE(hypot)
TG_STANDARD_VALUE(tanh)
TG_STANDARD_VALUE(asinh)
TG_STANDARD_VALUE(acosh)
TG_STANDARD_VALUE(atanh)
TG_STANDARD_VALUE(exp)
TG_STANDARD_VALUE(exp2)
TG_STANDARD_VALUE(expm1)
TG_STANDARD_VALUE(log)
TG_STANDARD_VALUE(log2)
TG_STANDARD_VALUE(log10)
TG_STANDARD_VALUE(log1p)
TG_STANDARD_VALUE(cbrt)
TG_STANDARD_VALUE(erf)
TG_STANDARD_VALUE(erfc)
#undef TG_STANDARD_VALUE

template <std::floating_point T>
struct scalar_rule<sin_op, T> {
    TG_INLINE static T value(T x) { return std::sin(x); }
    template <int I>
    TG_INLINE static T slope(T seed, T x, T) {
        return seed * std::cos(x);
    }
};
template <std::floating_point T>
struct scalar_rule<cos_op, T> {
    TG_INLINE static T value(T x) { return std::cos(x); }
    template <int I>
    TG_INLINE static T slope(T seed, T x, T) {
        return -(seed * std::sin(x));
    }
};
template <std::floating_point T>
struct scalar_rule<sinh_op, T> {
    TG_INLINE static T value(T x) { return std::sinh(x); }
    template <int I>
    TG_INLINE static T slope(T seed, T x, T) {
        return seed * std::cosh(x);
    }
};
template <std::floating_point T>
struct scalar_rule<cosh_op, T> {
    TG_INLINE static T value(T x) { return std::cosh(x); }
    template <int I>
    TG_INLINE static T slope(T seed, T x, T) {
        return seed * std::sinh(x);
    }
};

/// pow_op's derivatives; a quotient takes the place of a second power where the first is neither 0 nor infinite.
template <std::floating_point T>
struct scalar_rule<pow_op, T> {
    TG_INLINE static T value(T x, T exponent) { return std::pow(x, exponent); }
    template <int I>
    TG_INLINE static T slope(T seed, T x, T exponent, T y) {
        if constexpr (I == 0) {
            if (exponent == T(0)) return T(0);
            if (y != T(0) && std::isfinite(y) && std::isfinite(x)) return seed * (exponent * (y / x));
            return seed * (exponent * std::pow(x, exponent - T(1)));
        } else {
            return y == T(0) || x == T(0) ? T(0) : seed * (y * std::log(x));
        }
    }
};

} // namespace tapegraph::scalars
