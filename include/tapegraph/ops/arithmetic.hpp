#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/operation.hpp>

/// x + y, x - y, x * y, x / y, -x, with NumPy broadcasting.

namespace tapegraph {

struct add_op : map_op<2> {
    static constexpr std::string_view name = "add";
    template <class V>
    TG_HD static constexpr V value(V x, V y) {
        return x + y;
    }
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto, auto) {
        return dy;
    }
};

struct subtract_op : map_op<2> {
    static constexpr std::string_view name = "subtract";
    template <class V>
    TG_HD static constexpr V value(V x, V y) {
        return x - y;
    }
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto, auto) {
        if constexpr (I == 0)
            return dy;
        else
            return -dy;
    }
};

struct multiply_op : map_op<2> {
    static constexpr std::string_view name = "multiply";
    template <class V>
    TG_HD static constexpr V value(V x, V y) {
        return x * y;
    }
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto y, auto) {
        if constexpr (I == 0)
            return dy * y;
        else
            return dy * x;
    }
};

struct divide_op : map_op<2> {
    static constexpr std::string_view name = "divide";
    template <class V>
    TG_HD static constexpr V value(V x, V y) {
        return x / y;
    }
    // q = x / y: dq/dx = 1 / y, dq/dy = -q / y
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto y, auto q) {
        if constexpr (I == 0)
            return dy / y;
        else
            return -(dy * q) / y;
    }
};

struct negate_op : map_op<1> {
    static constexpr std::string_view name = "negate";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return -x;
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto) { return -dy; }
};

template <class A, class B>
    requires operands<A, B>
TG_INLINE constexpr auto operator+(const A& x, const B& y) {
    return apply<add_op>(x, y);
}
template <class A, class B>
    requires operands<A, B>
TG_INLINE constexpr auto operator-(const A& x, const B& y) {
    return apply<subtract_op>(x, y);
}
template <class A, class B>
    requires operands<A, B>
TG_INLINE constexpr auto operator*(const A& x, const B& y) {
    return apply<multiply_op>(x, y);
}
template <class A, class B>
    requires operands<A, B>
TG_INLINE constexpr auto operator/(const A& x, const B& y) {
    return apply<divide_op>(x, y);
}
template <class A>
    requires operands<A>
TG_INLINE constexpr auto operator-(const A& x) {
    return apply<negate_op>(x);
}
template <class A>
    requires operands<A>
TG_INLINE constexpr auto operator+(const A& x) {
    return x;
}

} // namespace tapegraph
