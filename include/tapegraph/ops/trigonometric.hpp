#pragma once

#include <tapegraph/core/math.hpp>
#include <tapegraph/ops/arithmetic.hpp>

/// sin, cos (radians).

namespace tapegraph {

struct cos_op : map_op<1> {
    static constexpr std::string_view name = "cos";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::cos(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto);
};

struct sin_op : map_op<1> {
    static constexpr std::string_view name = "sin";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::sin(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy * apply<cos_op>(x); }
};

TG_INLINE constexpr auto cos_op::vjp(auto dy, auto x, auto) { return -(dy * apply<sin_op>(x)); }

template <class A>
    requires operands<A>
TG_INLINE constexpr auto sin(const A& x) {
    return apply<sin_op>(x);
}
template <class A>
    requires operands<A>
TG_INLINE constexpr auto cos(const A& x) {
    return apply<cos_op>(x);
}

} // namespace tapegraph
