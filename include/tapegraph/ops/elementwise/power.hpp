#pragma once

#include <tapegraph/core/math.hpp>
#include <tapegraph/ops/elementwise/exponential.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>

/// square, sqrt, rsqrt, cbrt, reciprocal, pow, pow<n>.
///
/// pow(x, 2) is the general power: a number is not part of a formula's type, so it cannot select
/// another instruction. For a constant integer exponent, pow<2>(x) multiplies instead.

namespace tapegraph {

struct square_op : map_op<1> {
    static constexpr std::string_view name = "square";
    static constexpr bool finite_slopes = true;
    static constexpr bool integers = true;
    template <class V>
    TG_HD static constexpr V value(V x) {
        return multiply_op::value(x, x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy * (2 * x); }
};

struct sqrt_op : map_op<1> {
    static constexpr std::string_view name = "sqrt";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::sqrt(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto y) { return dy * 0.5 / y; }
};

/// 1 / sqrt(x)
struct rsqrt_op : map_op<1> {
    static constexpr std::string_view name = "rsqrt";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::rsqrt(x);
    }
    // d x^(-1/2) = -1/2 x^(-3/2) = -1/2 y^3
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto y) { return dy * -0.5 * (y * y * y); }
};

struct pow_op : series_op<2> {
    static constexpr std::string_view name = "pow";
    template <class V>
    TG_HD static constexpr V value(V x, V y) {
        return math::pow(x, y);
    }
    // By the base n x^(n - 1), which is zero for n = 0 also at and near x = 0, where the power is
    // infinite. By the exponent x^y log x, which is zero at x = 0 (its limit for y > 0).
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto exponent, auto y);
};

/// 1 / x
struct reciprocal_op : map_op<1> {
    static constexpr std::string_view name = "reciprocal";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return V(1) / x;
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto y) { return -(dy * (y * y)); }
};

struct cbrt_op : series_op<1> {
    static constexpr std::string_view name = "cbrt";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::cbrt(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto y) { return dy / (3 * (y * y)); }
};

/// x^N by multiplications; x^-N is 1 / x^N.
template <int N>
struct integer_power_op : map_op<1> {
    static constexpr std::string_view name = "integer_power";
    static constexpr bool integers = N >= 0;
    template <class V>
    TG_HD static constexpr V value(V x) {
        if constexpr (N == 0) {
            return V(1);
        } else if constexpr (N == 1) {
            return x;
        } else if constexpr (N < 0) {
            return V(1) / integer_power_op<-N>::value(x);
        } else if constexpr (N % 2 == 0) {
            const V half = integer_power_op<N / 2>::value(x);
            return multiply_op::value(half, half);
        } else {
            return multiply_op::value(integer_power_op<N - 1>::value(x), x);
        }
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, [[maybe_unused]] auto y) requires(N != 0) {
        if constexpr (N == 1)
            return dy;
        else if constexpr (N < 0)
            return dy * (N * y / x);
        else
            return dy * (N * apply<integer_power_op<N - 1>>(x));
    }
};

/// x^2.
template <operand A>
TG_INLINE constexpr auto square(const A& x) {
    return apply<square_op>(x);
}
/// The square root; NaN for negative x.
template <operand A>
TG_INLINE constexpr auto sqrt(const A& x) {
    return apply<sqrt_op>(x);
}
/// 1 / sqrt(x).
template <operand A>
TG_INLINE constexpr auto rsqrt(const A& x) {
    return apply<rsqrt_op>(x);
}
template <operand A, operand B>
TG_INLINE constexpr auto pow(const A& x, const B& exponent) {
    return apply<pow_op>(x, exponent);
}

/// 1 / x.
template <operand A>
TG_INLINE constexpr auto reciprocal(const A& x) {
    return apply<reciprocal_op>(x);
}
/// The cube root, negative for negative x.
template <operand A>
TG_INLINE constexpr auto cbrt(const A& x) {
    return apply<cbrt_op>(x);
}
/// x to a constant integer power, pow<3>(x): one instruction of a few multiplications.
template <int N, operand A>
TG_INLINE constexpr auto pow(const A& x) {
    return apply<integer_power_op<N>>(x);
}

template <int I>
TG_INLINE constexpr auto pow_op::vjp(auto dy, auto x, auto exponent, auto y) {
    // For exponent 0 the derivative by x is 0, even where the powers in its own derivatives are
    // infinite.
    if constexpr (I == 0)
        return dy * where(logical_or(exponent != 0, is_finite(apply<pow_op>(x, exponent - 4))),
                          exponent * apply<pow_op>(x, exponent - 1), 0);
    else
        return dy * where(logical_or(y == 0, x == 0), 0, y * apply<log_op>(x));
}

} // namespace tapegraph
