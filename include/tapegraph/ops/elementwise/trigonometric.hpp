#pragma once

#include <tapegraph/core/math.hpp>
#include <tapegraph/ops/elementwise/power.hpp>

/// sin, cos, tan, asin, acos, atan, atan2, in radians, and hypot.

namespace tapegraph {

struct cos_op : series_op<1> {
    static constexpr std::string_view name = "cos";
    static constexpr bool finite_slopes = true;
    static constexpr bool vjp_rounds_once = true;
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::cos(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto);
};

struct sin_op : series_op<1> {
    static constexpr std::string_view name = "sin";
    static constexpr bool finite_slopes = true;
    static constexpr bool vjp_rounds_once = true;
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::sin(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy * apply<cos_op>(x); }
};

TG_INLINE constexpr auto cos_op::vjp(auto dy, auto x, auto) { return -(dy * apply<sin_op>(x)); }

struct tan_op : series_op<1> {
    static constexpr std::string_view name = "tan";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::tan(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto y) { return dy * (1 + y * y); }
};

namespace detail {
/// 1 - x^2 without cancellation near -1 and 1. Differentiating its factors separately gives
/// infinity times 0 at the ends of asin, acos and atanh, whose second derivatives are infinite
/// there, so its derivative is defined as a whole.
struct one_minus_square_op : map_op<1> {
    static constexpr std::string_view name = "one_minus_square";
    static constexpr bool finite_slopes = true;
    template <class V>
    TG_HD static constexpr V value(V x) {
        return (V(1) - x) * (V(1) + x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy * (-2 * x); }
};
} // namespace detail

/// The derivative is infinite at -1 and 1.
struct asin_op : series_op<1> {
    static constexpr std::string_view name = "asin";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::asin(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) {
        return dy * apply<rsqrt_op>(apply<detail::one_minus_square_op>(x));
    }
};

struct acos_op : series_op<1> {
    static constexpr std::string_view name = "acos";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::acos(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) {
        return -(dy * apply<rsqrt_op>(apply<detail::one_minus_square_op>(x)));
    }
};

struct atan_op : series_op<1> {
    static constexpr std::string_view name = "atan";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::atan(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy / (1 + x * x); }
};

/// sqrt(x^2 + y^2) without intermediate overflow; all derivatives at the origin are 0.
struct hypot_op : series_op<2> {
    static constexpr std::string_view name = "hypot";
    template <class V>
    TG_HD static constexpr V value(V x, V y) {
        return math::hypot(x, y);
    }
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto y, auto r) {
        if constexpr (I == 0)
            return dy * where(r == 0, 0, x / where(r == 0, 1, r));
        else
            return dy * where(r == 0, 0, y / where(r == 0, 1, r));
    }
};

/// The angle of the point (x, y), in (-pi, pi]; all derivatives at the origin are 0.
struct atan2_op : series_op<2> {
    static constexpr std::string_view name = "atan2";
    template <class V>
    TG_HD static constexpr V value(V y, V x) {
        return math::atan2(y, x);
    }
    // d/dy = x / r^2, d/dx = -y / r^2, divided twice by r, because its square may overflow
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dz, auto y, auto x, auto) {
        const auto length = apply<hypot_op>(x, y);
        const auto r = where(length == 0, 1, length);
        if constexpr (I == 0)
            return dz * where(length == 0, 0, x / r / r);
        else
            return -(dz * where(length == 0, 0, y / r / r));
    }
};

/// The sine of radians.
template <operand A>
TG_INLINE constexpr auto sin(const A& x) {
    return apply<sin_op>(x);
}
/// The cosine of radians.
template <operand A>
TG_INLINE constexpr auto cos(const A& x) {
    return apply<cos_op>(x);
}
/// The tangent of radians.
template <operand A>
TG_INLINE constexpr auto tan(const A& x) {
    return apply<tan_op>(x);
}
/// The inverse sine in radians; NaN beyond -1 and 1.
template <operand A>
TG_INLINE constexpr auto asin(const A& x) {
    return apply<asin_op>(x);
}
/// The inverse cosine in radians; NaN beyond -1 and 1.
template <operand A>
TG_INLINE constexpr auto acos(const A& x) {
    return apply<acos_op>(x);
}
/// The inverse tangent in radians.
template <operand A>
TG_INLINE constexpr auto atan(const A& x) {
    return apply<atan_op>(x);
}
/// The angle of the point (x, y) in radians, from -pi to pi.
template <operand A, operand B>
TG_INLINE constexpr auto atan2(const A& y, const B& x) {
    return apply<atan2_op>(y, x);
}
/// sqrt(x^2 + y^2), which neither overflows nor underflows on the way.
template <operand A, operand B>
TG_INLINE constexpr auto hypot(const A& x, const B& y) {
    return apply<hypot_op>(x, y);
}

} // namespace tapegraph
