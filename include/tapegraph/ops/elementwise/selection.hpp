#pragma once

#include <tapegraph/core/math.hpp>
#include <tapegraph/ops/elementwise/arithmetic.hpp>
#include <tapegraph/ops/elementwise/comparison.hpp>

/// where, maximum, minimum, clip, abs, sign, stop_gradient.

namespace tapegraph {

namespace detail {
// A plain `?:` lets g++ move the computation of its arms into branches, and then nothing
// vectorises.
template <class V>
TG_HD constexpr V choose(bool condition, V x, V y) {
    if constexpr (std::is_floating_point_v<V>)
        return math::detail::select(condition, x, y);
    else
        return condition ? x : y;
}
// Integers have no NaN and no sign bit to inspect.
template <class V>
TG_HD constexpr V larger(V x, V y) {
    if constexpr (std::is_floating_point_v<V>)
        return math::maximum(x, y);
    else
        return x > y ? x : y;
}
template <class V>
TG_HD constexpr V smaller(V x, V y) {
    if constexpr (std::is_floating_point_v<V>)
        return math::minimum(x, y);
    else
        return x < y ? x : y;
}
template <class V>
TG_HD constexpr V magnitude(V x) {
    if constexpr (std::is_floating_point_v<V>)
        return math::abs(x);
    else if constexpr (std::is_unsigned_v<V>)
        return x;
    else
        return x < V(0) ? negate_op::value(x) : x;
}
} // namespace detail

/// condition ? x : y, element by element.
struct where_op : map_op<3> {
    static constexpr std::string_view name = "where";
    static constexpr bool vjp_rounds_once = true;
    static constexpr bool integers = true;
    static constexpr int condition_operands = 1;
    template <class V>
    TG_HD static constexpr V value(bool condition, V x, V y) {
        return detail::choose(condition, x, y);
    }
    template <int I>
        requires(I > 0)
    TG_INLINE static constexpr auto vjp(auto dy, auto condition, auto, auto, auto);
};

template <operand C, operand A, operand B>
TG_INLINE constexpr auto where(const C& condition, const A& x, const B& y) {
    return apply<where_op>(condition, x, y);
}

template <int I>
    requires(I > 0)
TG_INLINE constexpr auto where_op::vjp(auto dy, auto condition, auto, auto, auto) {
    if constexpr (I == 1)
        return where(condition, dy, 0);
    else
        return where(condition, 0, dy);
}

/// The larger operand; NaN if either is. A tie passes half of the derivative to each operand, as in
/// PyTorch and JAX; NaN passes none.
struct maximum_op : map_op<2> {
    static constexpr std::string_view name = "maximum";
    static constexpr bool finite_slopes = true;
    static constexpr bool vjp_rounds_once = true;
    static constexpr bool integers = true;
    template <class V>
    TG_HD static constexpr V value(V x, V y) {
        return detail::larger(x, y);
    }
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto y, auto) {
        if constexpr (I == 0)
            return where(x > y, dy, where(x == y, dy * 0.5, 0));
        else
            return where(y > x, dy, where(x == y, dy * 0.5, 0));
    }
};

struct minimum_op : map_op<2> {
    static constexpr std::string_view name = "minimum";
    static constexpr bool finite_slopes = true;
    static constexpr bool vjp_rounds_once = true;
    static constexpr bool integers = true;
    template <class V>
    TG_HD static constexpr V value(V x, V y) {
        return detail::smaller(x, y);
    }
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto y, auto) {
        if constexpr (I == 0)
            return where(x < y, dy, where(x == y, dy * 0.5, 0));
        else
            return where(y < x, dy, where(x == y, dy * 0.5, 0));
    }
};

/// x clipped to [low, high]: minimum(maximum(x, low), high). The derivative passes to x within and
/// on the bounds, and to a bound beyond it, as in TensorFlow; PyTorch and JAX pass less on the
/// bounds (docs/operations/elementwise.md).
struct clip_op : map_op<3> {
    static constexpr std::string_view name = "clip";
    static constexpr bool finite_slopes = true;
    static constexpr bool vjp_rounds_once = true;
    static constexpr bool integers = true;
    template <class V>
    TG_HD static constexpr V value(V x, V low, V high) {
        return detail::smaller(detail::larger(x, low), high);
    }
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto low, auto high, auto) {
        if constexpr (I == 0)
            return where(x >= low, where(x <= high, dy, 0), 0);
        else if constexpr (I == 1)
            return where(x < low, where(low <= high, dy, 0), 0);
        else
            return where(x > high, dy, where(low > high, dy, 0));
    }
};

/// -1, 0 or 1 (NaN for NaN); derivative zero everywhere.
struct sign_op : map_op<1> {
    static constexpr std::string_view name = "sign";
    static constexpr bool integers = true;
    template <class V>
    TG_HD static constexpr V value(V x) {
        if constexpr (std::is_unsigned_v<V>) // includes bool
            return x > V(0);
        else
            return detail::choose(x > V(0), V(1), detail::choose(x < V(0), V(-1), static_cast<V>(x + V(0)))); // -0 + 0 is 0
    }
};

/// -1, 0 or 1. Its derivative is 0.
template <operand A>
TG_INLINE constexpr auto sign(const A& x) {
    return apply<sign_op>(x);
}

struct abs_op : map_op<1> {
    static constexpr std::string_view name = "abs";
    static constexpr bool finite_slopes = true;
    static constexpr bool vjp_rounds_once = true;
    static constexpr bool integers = true;
    template <class V>
    TG_HD static constexpr V value(V x) {
        return detail::magnitude(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy * sign(x); }
};

/// The operand unchanged; no derivative passes.
struct stop_gradient_op : map_op<1> {
    static constexpr std::string_view name = "stop_gradient";
    static constexpr zero_adjoint zeros = zero_adjoint::passes;
    static constexpr bool vjp_rounds_once = true;
    static constexpr bool integers = true;
    template <class V>
    TG_HD static constexpr V value(V x) {
        return x;
    }
};

/// The larger of both, element by element with broadcasting; NaN if one of them is.
template <operand A, operand B>
TG_INLINE constexpr auto maximum(const A& x, const B& y) {
    return apply<maximum_op>(x, y);
}
/// The smaller of both, element by element with broadcasting; NaN if one of them is.
template <operand A, operand B>
TG_INLINE constexpr auto minimum(const A& x, const B& y) {
    return apply<minimum_op>(x, y);
}
/// x where it lies between low and high, otherwise the nearer of them, with broadcasting.
template <operand A, operand B, operand C>
TG_INLINE constexpr auto clip(const A& x, const B& low, const C& high) {
    return apply<clip_op>(x, low, high);
}
/// |x|. The derivative at 0 is 0.
template <operand A>
TG_INLINE constexpr auto abs(const A& x) {
    return apply<abs_op>(x);
}
/// x as a constant: no derivative passes through it.
template <operand A>
TG_INLINE constexpr auto stop_gradient(const A& x) {
    return apply<stop_gradient_op>(x);
}

} // namespace tapegraph
