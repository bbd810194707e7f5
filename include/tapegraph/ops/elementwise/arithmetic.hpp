#pragma once

#include <tapegraph/core/math/division.hpp>
#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/operation.hpp>

/// x + y, x - y, x * y, x / y, x % y, -x, with NumPy broadcasting.

namespace tapegraph {

namespace detail {

/// Integers wrap around on overflow: two's complement arithmetic is that of unsigned numbers.
template <class V>
inline constexpr bool wraps = std::is_integral_v<V> && std::is_signed_v<V>;

/// x / y; for integers the quotient rounded toward zero, and 0 for y = 0, where the processor would
/// end the program.
template <class V>
TG_HD constexpr V quotient(V x, V y) {
    if constexpr (std::is_same_v<V, bool>) {
        return x & y;
    } else if constexpr (std::is_floating_point_v<V>) {
        return x / y;
    } else {
        const bool special = y == V(0) || (std::is_signed_v<V> && y == V(-1)); // lowest / -1 overflows, too
        const V q = static_cast<V>(x / (special ? V(1) : y));
        if constexpr (std::is_signed_v<V>) {
            using word = std::make_unsigned_t<V>;
            return y == V(0) ? V(0) : (special ? static_cast<V>(word(0) - static_cast<word>(x)) : q);
        } else {
            return y == V(0) ? V(0) : q;
        }
    }
}

} // namespace detail

struct add_op : map_op<2> {
    static constexpr std::string_view name = "add";
    static constexpr bool vjp_rounds_once = true;
    static constexpr bool integers = true;
    static constexpr zero_adjoint zeros = zero_adjoint::passes;
    template <class V>
    TG_HD static constexpr V value(V x, V y) {
        if constexpr (detail::wraps<V>)
            return static_cast<V>(static_cast<std::make_unsigned_t<V>>(x) + static_cast<std::make_unsigned_t<V>>(y));
        else
            return x + y;
    }
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto, auto) {
        return dy;
    }
};

struct subtract_op : map_op<2> {
    static constexpr std::string_view name = "subtract";
    static constexpr bool vjp_rounds_once = true;
    static constexpr bool integers = true;
    static constexpr zero_adjoint zeros = zero_adjoint::passes;
    template <class V>
    TG_HD static constexpr V value(V x, V y) {
        if constexpr (detail::wraps<V>)
            return static_cast<V>(static_cast<std::make_unsigned_t<V>>(x) - static_cast<std::make_unsigned_t<V>>(y));
        else
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
    static constexpr bool finite_slopes = true;
    static constexpr bool vjp_rounds_once = true;
    static constexpr bool integers = true;
    static constexpr zero_adjoint zeros = zero_adjoint::passes_beside_number;
    template <class V>
    TG_HD static constexpr V value(V x, V y) {
        if constexpr (detail::wraps<V> && sizeof(V) >= sizeof(int)) // shorter types promote to int, unsigned or not
            return static_cast<V>(static_cast<std::make_unsigned_t<V>>(x) * static_cast<std::make_unsigned_t<V>>(y));
        else if constexpr (std::is_same_v<V, bool>)
            return x & y;
        else
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
    static constexpr bool integers = true;
    static constexpr zero_adjoint zeros = zero_adjoint::passes_beside_number;
    template <class V>
    TG_HD static constexpr V value(V x, V y) {
        return detail::quotient(x, y);
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
    static constexpr bool vjp_rounds_once = true;
    static constexpr bool integers = true;
    static constexpr zero_adjoint zeros = zero_adjoint::passes;
    template <class V>
    TG_HD static constexpr V value(V x) {
        if constexpr (std::is_integral_v<V>)
            return subtract_op::value(V(0), x);
        else
            return -x;
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto) { return -dy; }
};

/// floor(x / y); for integers y = 0 gives 0.
struct floor_divide_op : map_op<2> {
    static constexpr std::string_view name = "floor_divide";
    static constexpr bool integers = true;
    template <class V>
    TG_HD static constexpr V value(V x, V y) {
        if constexpr (std::is_floating_point_v<V>) {
            return math::floor_divide(x, y);
        } else if constexpr (detail::wraps<V>) {
            const V q = detail::quotient(x, y), r = subtract_op::value(x, multiply_op::value(q, y));
            const bool below = y != V(0) && r != V(0) && (r < V(0)) != (y < V(0));
            return static_cast<V>(q - static_cast<V>(below));
        } else {
            return detail::quotient(x, y);
        }
    }
};

/// x - floor(x / y) y, with the sign of y as in NumPy and Python; for integers y = 0 gives 0.
struct remainder_op : map_op<2> {
    static constexpr std::string_view name = "remainder";
    static constexpr bool integers = true;
    template <class V>
    TG_HD static constexpr V value(V x, V y) {
        if constexpr (std::is_floating_point_v<V>)
            return math::remainder(x, y);
        else
            return y == V(0) ? V(0) : subtract_op::value(x, multiply_op::value(floor_divide_op::value(x, y), y));
    }
    // Between its jumps: dr/dx = 1, dr/dy = -floor(x / y)
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto y, auto) {
        if constexpr (I == 0)
            return dy;
        else
            return -(dy * apply<floor_divide_op>(x, y));
    }
};

/// (x - y)^2
struct squared_difference_op : map_op<2> {
    static constexpr std::string_view name = "squared_difference";
    static constexpr bool finite_slopes = true;
    static constexpr bool integers = true;
    template <class V>
    TG_HD static constexpr V value(V x, V y) {
        const V d = subtract_op::value(x, y);
        return multiply_op::value(d, d);
    }
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto y, auto) {
        if constexpr (I == 0)
            return dy * (2 * apply<subtract_op>(x, y));
        else
            return dy * (2 * apply<subtract_op>(y, x));
    }
};

/// x + t (y - x)
struct lerp_op : map_op<3> {
    static constexpr std::string_view name = "lerp";
    static constexpr bool finite_slopes = true;
    template <class V>
    TG_HD static constexpr V value(V x, V y, V t) {
        return math::detail::mul_add(t, y - x, x);
    }
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto y, auto t, auto) {
        if constexpr (I == 0)
            return dy * (1 - t);
        else if constexpr (I == 1)
            return dy * t;
        else
            return dy * (y - x);
    }
};

#define TG_BINARY(word, sign)                                                                                          \
    template <class A, class B>                                                                                        \
        requires operands<A, B>                                                                                        \
    TG_INLINE constexpr auto operator sign(const A& x, const B& y) {                                                   \
        return apply<word##_op>(x, y);                                                                                 \
    }                                                                                                                  \
    template <operand A, operand B>                                                                                    \
    TG_INLINE constexpr auto word(const A& x, const B& y) {                                                            \
        return apply<word##_op>(x, y);                                                                                 \
    }

TG_BINARY(add, +)
TG_BINARY(subtract, -)
TG_BINARY(multiply, *)
TG_BINARY(divide, /)
TG_BINARY(remainder, %)
#undef TG_BINARY

/// -x.
template <class A>
    requires operands<A>
TG_INLINE constexpr auto operator-(const A& x) {
    return apply<negate_op>(x);
}
/// x itself.
template <class A>
    requires operands<A>
TG_INLINE constexpr auto operator+(const A& x) {
    return x;
}
/// -x.
template <operand A>
TG_INLINE constexpr auto negate(const A& x) {
    return apply<negate_op>(x);
}
/// The largest whole number not above x / y, as Python's //.
template <operand A, operand B>
TG_INLINE constexpr auto floor_divide(const A& x, const B& y) {
    return apply<floor_divide_op>(x, y);
}
/// (x - y)^2, with broadcasting.
template <operand A, operand B>
TG_INLINE constexpr auto squared_difference(const A& x, const B& y) {
    return apply<squared_difference_op>(x, y);
}
/// x + t (y - x), with broadcasting.
template <operand A, operand B, operand C>
TG_INLINE constexpr auto lerp(const A& x, const B& y, const C& t) {
    return apply<lerp_op>(x, y, t);
}

} // namespace tapegraph
