#pragma once

#include <tapegraph/core/math.hpp>
#include <tapegraph/ops/elementwise/trigonometric.hpp>

/// sinh, cosh, asinh, acosh, atanh. (tanh is in activation.hpp.)

namespace tapegraph {

struct cosh_op : series_op<1> {
    static constexpr std::string_view name = "cosh";
    static constexpr bool vjp_rounds_once = true;
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::cosh(x);
    }
    static constexpr auto vjp(auto dy, auto x, auto);
};

struct sinh_op : series_op<1> {
    static constexpr std::string_view name = "sinh";
    static constexpr bool vjp_rounds_once = true;
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::sinh(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy * apply<cosh_op>(x); }
};

TG_INLINE constexpr auto cosh_op::vjp(auto dy, auto x, auto) { return dy * apply<sinh_op>(x); }

/// The derivative, 1 / sqrt(1 + x^2), does not overflow on the way.
struct asinh_op : series_op<1> {
    static constexpr std::string_view name = "asinh";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::asinh(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy / apply<hypot_op>(x, 1); }
};

/// The derivative is infinite at 1.
struct acosh_op : series_op<1> {
    static constexpr std::string_view name = "acosh";
    static constexpr double regular_at = 2;
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::acosh(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy * (apply<rsqrt_op>(x - 1) * apply<rsqrt_op>(x + 1)); }
};

/// The derivative is infinite at -1 and 1.
struct atanh_op : series_op<1> {
    static constexpr std::string_view name = "atanh";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::atanh(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy / apply<detail::one_minus_square_op>(x); }
};

/// The hyperbolic sine.
template <operand A>
TG_INLINE constexpr auto sinh(const A& x) {
    return apply<sinh_op>(x);
}
/// The hyperbolic cosine.
template <operand A>
TG_INLINE constexpr auto cosh(const A& x) {
    return apply<cosh_op>(x);
}
/// The inverse hyperbolic sine.
template <operand A>
TG_INLINE constexpr auto asinh(const A& x) {
    return apply<asinh_op>(x);
}
/// The inverse hyperbolic cosine; NaN below 1.
template <operand A>
TG_INLINE constexpr auto acosh(const A& x) {
    return apply<acosh_op>(x);
}
/// The inverse hyperbolic tangent; NaN beyond -1 and 1.
template <operand A>
TG_INLINE constexpr auto atanh(const A& x) {
    return apply<atanh_op>(x);
}

} // namespace tapegraph
