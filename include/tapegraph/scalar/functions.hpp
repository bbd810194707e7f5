#pragma once

#include <tapegraph/ops/elementwise/rounding.hpp>
#include <tapegraph/scalar/gamma.hpp>
#include <tapegraph/scalar/number.hpp>
#include <tapegraph/scalar/standard.hpp>

#include <cmath>
#include <type_traits>

/// Functions of <cmath> that the library does not have for tensors, or has with another meaning, for
/// numbers that record and for jets. All are found by argument-dependent lookup: `using std::sqrt;
/// sqrt(x)`, or sqrt(x) alone. Their values are the standard library's.

namespace tapegraph {

/// x - n y, with n rounded toward zero (fmod) or to the nearest (remainder). The derivative by y is -n.
template <bool Nearest>
struct division_rest_op : map_op<2> {
    static constexpr std::string_view name = Nearest ? "ieee_remainder" : "fmod";
    template <class V>
    static V value(V x, V y) {
        return Nearest ? std::remainder(x, y) : std::fmod(x, y);
    }
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto y, auto r) {
        if constexpr (I == 0)
            return dy;
        else
            return -(dy * apply<round_op>((x - r) / y));
    }
};

/// The operand that is not NaN, otherwise the library's maximum and minimum, whose derivative ties share evenly.
template <bool Larger>
struct standard_extreme_op : map_op<2> {
    static constexpr std::string_view name = Larger ? "fmax" : "fmin";
    template <class V>
    static V value(V x, V y) {
        return Larger ? std::fmax(x, y) : std::fmin(x, y);
    }
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto y, auto z) {
        if constexpr (I == 0)
            return where(x == y, dy * 0.5, where(x == z, dy, 0));
        else
            return where(x == y, dy * 0.5, where(y == z, dy, 0));
    }
};

/// max(x - y, 0); the derivative where x = y is 0, as that of relu.
struct fdim_op : map_op<2> {
    static constexpr std::string_view name = "fdim";
    template <class V>
    static V value(V x, V y) {
        return std::fdim(x, y);
    }
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto y, auto) {
        if constexpr (I == 0)
            return where(x > y, dy, 0);
        else
            return where(x > y, -dy, 0);
    }
};

/// |x| with the sign of y, by which it has no derivative.
struct copysign_op : map_op<2> {
    static constexpr std::string_view name = "copysign";
    template <class V>
    static V value(V x, V y) {
        return std::copysign(x, y);
    }
    template <int I>
        requires(I == 0)
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto, auto z) {
        return where(x == 0, 0, where(z == x, dy, -dy));
    }
};

/// x y + z, rounded once
struct fma_op : map_op<3> {
    static constexpr std::string_view name = "fma";
    template <class V>
    static V value(V x, V y, V z) {
        return std::fma(x, y, z);
    }
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto y, auto, auto) {
        if constexpr (I == 0)
            return dy * y;
        else if constexpr (I == 1)
            return dy * x;
        else
            return dy;
    }
};

/// sqrt(x^2 + y^2 + z^2); all derivatives at the origin are 0.
struct hypot3_op : map_op<3> {
    static constexpr std::string_view name = "hypot3";
    template <class V>
    static V value(V x, V y, V z) {
        return std::hypot(x, y, z);
    }
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto y, auto z, auto r) {
        if constexpr (I == 0)
            return dy * where(r == 0, 0, x / where(r == 0, 1, r));
        else if constexpr (I == 1)
            return dy * where(r == 0, 0, y / where(r == 0, 1, r));
        else
            return dy * where(r == 0, 0, z / where(r == 0, 1, r));
    }
};

/// Operands of functions of which at least one records, or is a jet.
template <class... X>
concept differential_operands = (scalar<X> && ...) && (differential_number<X> || ...);

#define TG_SCALAR_1(word, operation)                                                                                   \
    template <operand X>                                                                                               \
    requires differential_number<X> TG_INLINE constexpr auto word(const X& x) { return apply<operation>(x); }
#define TG_SCALAR_2(word, operation)                                                                                   \
    template <operand X, operand Y>                                                                                    \
    requires differential_operands<X, Y> TG_INLINE constexpr auto word(const X& x, const Y& y) {                       \
        return apply<operation>(x, y);                                                                                 \
    }
#define TG_SCALAR_3(word, operation)                                                                                   \
    template <operand X, operand Y, operand Z>                                                                         \
    requires differential_operands<X, Y, Z> TG_INLINE constexpr auto word(const X& x, const Y& y, const Z& z) {        \
        return apply<operation>(x, y, z);                                                                              \
    }
TG_SCALAR_1(fabs, abs_op)
TG_SCALAR_1(lgamma, lgamma_op)
TG_SCALAR_1(tgamma, tgamma_op)
TG_SCALAR_1(digamma, polygamma_op<0>)
TG_SCALAR_2(fmod, division_rest_op<false>)
TG_SCALAR_2(remainder, division_rest_op<true>)
TG_SCALAR_2(fmax, standard_extreme_op<true>)
TG_SCALAR_2(fmin, standard_extreme_op<false>)
TG_SCALAR_2(fdim, fdim_op)
TG_SCALAR_2(copysign, copysign_op)
TG_SCALAR_3(fma, fma_op)
TG_SCALAR_3(hypot, hypot3_op)
#undef TG_SCALAR_1
#undef TG_SCALAR_2
#undef TG_SCALAR_3

} // namespace tapegraph
