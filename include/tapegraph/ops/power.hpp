#pragma once

#include <tapegraph/core/math.hpp>
#include <tapegraph/ops/exponential.hpp>
#include <tapegraph/ops/selection.hpp>

/// square, sqrt, rsqrt, pow.

namespace tapegraph {

struct square_op : map_op<1> {
    static constexpr std::string_view name = "square";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return x * x;
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

struct pow_op : map_op<2> {
    static constexpr std::string_view name = "pow";
    template <class V>
    TG_HD static constexpr V value(V x, V y) {
        return math::pow(x, y);
    }
    // By the base n x^(n - 1), zero for n = 0 also at x = 0, where the power is infinite. By the exponent x^y log x, zero
    // at x = 0 (its limit for y > 0).
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto exponent, auto y);
};

template <class A>
    requires operands<A>
TG_INLINE constexpr auto square(const A& x) {
    return apply<square_op>(x);
}
template <class A>
    requires operands<A>
TG_INLINE constexpr auto sqrt(const A& x) {
    return apply<sqrt_op>(x);
}
template <operand A>
TG_INLINE constexpr auto rsqrt(const A& x) {
    return apply<rsqrt_op>(x);
}
template <class A, class B>
    requires operands<A, B>
TG_INLINE constexpr auto pow(const A& x, const B& exponent) {
    return apply<pow_op>(x, exponent);
}

template <int I>
TG_INLINE constexpr auto pow_op::vjp(auto dy, auto x, auto exponent, auto y) {
    if constexpr (I == 0)
        return dy * where(exponent == 0, 0, exponent * apply<pow_op>(x, exponent - 1));
    else
        return dy * where(y == 0, 0 * x, y * apply<log_op>(where(x == 0, 0 * x + 1, x)));
}

} // namespace tapegraph
