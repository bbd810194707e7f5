#pragma once

#include <tapegraph/core/math.hpp>
#include <tapegraph/ops/arithmetic.hpp>

/// exp, expm1, log, log1p.

namespace tapegraph {

struct exp_op : map_op<1> {
    static constexpr std::string_view name = "exp";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::exp(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto y) { return dy * y; }
};

struct expm1_op : map_op<1> {
    static constexpr std::string_view name = "expm1";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::expm1(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto y) { return dy * (y + 1); }
};

struct log_op : map_op<1> {
    static constexpr std::string_view name = "log";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::log(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy / x; }
};

struct log1p_op : map_op<1> {
    static constexpr std::string_view name = "log1p";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::log1p(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy / (1 + x); }
};

template <class A>
    requires operands<A>
TG_INLINE constexpr auto exp(const A& x) {
    return apply<exp_op>(x);
}
template <class A>
    requires operands<A>
TG_INLINE constexpr auto expm1(const A& x) {
    return apply<expm1_op>(x);
}
template <class A>
    requires operands<A>
TG_INLINE constexpr auto log(const A& x) {
    return apply<log_op>(x);
}
template <class A>
    requires operands<A>
TG_INLINE constexpr auto log1p(const A& x) {
    return apply<log1p_op>(x);
}

} // namespace tapegraph
