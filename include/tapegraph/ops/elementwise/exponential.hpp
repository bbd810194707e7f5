#pragma once

#include <tapegraph/core/math.hpp>
#include <tapegraph/ops/elementwise/arithmetic.hpp>

/// exp, exp2, expm1, log, log2, log10, log1p.

namespace tapegraph {

struct exp_op : series_op<1> {
    static constexpr std::string_view name = "exp";
    static constexpr bool vjp_rounds_once = true;
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::exp(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto y) { return dy * y; }
};

struct expm1_op : series_op<1> {
    static constexpr std::string_view name = "expm1";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::expm1(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto y) { return dy * (y + 1); }
    struct of_storage_types : series_op<1> {
        TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy * apply<exp_op>(x); }
    };
};

struct log_op : series_op<1> {
    static constexpr std::string_view name = "log";
    static constexpr bool vjp_rounds_once = true;
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::log(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy / x; }
};

struct log1p_op : series_op<1> {
    static constexpr std::string_view name = "log1p";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::log1p(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy / (1 + x); }
};

struct exp2_op : series_op<1> {
    static constexpr std::string_view name = "exp2";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::exp2(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto y) { return dy * (0.6931471805599453 * y); }
};

struct log2_op : series_op<1> {
    static constexpr std::string_view name = "log2";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::log2(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy / (0.6931471805599453 * x); }
};

struct log10_op : series_op<1> {
    static constexpr std::string_view name = "log10";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::log10(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy / (2.302585092994046 * x); }
};

/// e^x.
template <operand A>
TG_INLINE constexpr auto exp(const A& x) {
    return apply<exp_op>(x);
}
/// e^x - 1, without cancellation near 0.
template <operand A>
TG_INLINE constexpr auto expm1(const A& x) {
    return apply<expm1_op>(x);
}
/// The natural logarithm: -infinity at 0, NaN below.
template <operand A>
TG_INLINE constexpr auto log(const A& x) {
    return apply<log_op>(x);
}
/// log(1 + x), without cancellation near 0.
template <operand A>
TG_INLINE constexpr auto log1p(const A& x) {
    return apply<log1p_op>(x);
}
/// 2^x.
template <operand A>
TG_INLINE constexpr auto exp2(const A& x) {
    return apply<exp2_op>(x);
}
/// The logarithm to base 2.
template <operand A>
TG_INLINE constexpr auto log2(const A& x) {
    return apply<log2_op>(x);
}
/// The logarithm to base 10.
template <operand A>
TG_INLINE constexpr auto log10(const A& x) {
    return apply<log10_op>(x);
}

} // namespace tapegraph
