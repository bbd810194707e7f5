#pragma once

#include <tapegraph/core/math.hpp>
#include <tapegraph/ops/exponential.hpp>
#include <tapegraph/ops/selection.hpp>

/// relu, sigmoid, tanh, softplus, erf.

namespace tapegraph {

/// max(x, 0); the derivative at 0 is 0.
struct relu_op : map_op<1> {
    static constexpr std::string_view name = "relu";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return detail::choose((x > V(0)) | (x != x), x, V(0)); // NaN stays NaN
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto y) { return where(y > 0, dy, 0); }
};

/// 1 / (1 + exp(-x))
struct sigmoid_op : map_op<1> {
    static constexpr std::string_view name = "sigmoid";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::sigmoid(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto y) { return dy * (y * (1 - y)); }
};

struct tanh_op : map_op<1> {
    static constexpr std::string_view name = "tanh";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::tanh(x);
    }
    // d tanh(x) = 1 - tanh(x)^2, from the output
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto y) { return dy * (1 - y * y); }
};

/// log(1 + exp(x)), without overflow
struct softplus_op : map_op<1> {
    static constexpr std::string_view name = "softplus";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::softplus(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy * apply<sigmoid_op>(x); }
};

struct erf_op : map_op<1> {
    static constexpr std::string_view name = "erf";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::erf(x);
    }
    // d erf(x) = 2 / sqrt(pi) exp(-x^2)
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy * (1.1283791670955126 * apply<exp_op>(-(x * x))); }
};

template <operand A>
TG_INLINE constexpr auto relu(const A& x) {
    return apply<relu_op>(x);
}
template <operand A>
TG_INLINE constexpr auto sigmoid(const A& x) {
    return apply<sigmoid_op>(x);
}
template <class A>
    requires operands<A>
TG_INLINE constexpr auto tanh(const A& x) {
    return apply<tanh_op>(x);
}
template <operand A>
TG_INLINE constexpr auto softplus(const A& x) {
    return apply<softplus_op>(x);
}
template <class A>
    requires operands<A>
TG_INLINE constexpr auto erf(const A& x) {
    return apply<erf_op>(x);
}

} // namespace tapegraph
