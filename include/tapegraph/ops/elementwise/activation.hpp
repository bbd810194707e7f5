#pragma once

#include <tapegraph/core/math.hpp>
#include <tapegraph/ops/elementwise/power.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>

/// relu, relu6, leaky_relu, elu, selu, sigmoid, hard_sigmoid, log_sigmoid, tanh, softplus,
/// softsign, erf, erfc. Activations that multiply their operand by a gate are in
/// gated_activation.hpp.

namespace tapegraph {

/// max(x, 0); the derivative at 0 is 0.
struct relu_op : map_op<1> {
    static constexpr std::string_view name = "relu";
    static constexpr bool finite_slopes = true;
    static constexpr bool vjp_rounds_once = true;
    static constexpr std::string_view layer_name = "relu";
    static constexpr bool integers = true;
    template <class V>
    TG_HD static constexpr V value(V x) {
        return detail::choose((x > V(0)) | (x != x), x, V(0)); // NaN stays NaN
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto y) { return where(y > 0, dy, 0); }
};

/// min(max(x, 0), 6); the derivative at 0 and at 6 is 0.
struct relu6_op : map_op<1> {
    static constexpr std::string_view name = "relu6";
    static constexpr bool vjp_rounds_once = true;
    static constexpr bool integers = true;
    template <class V>
    TG_HD static constexpr V value(V x) {
        return detail::smaller(relu_op::value(x), V(6));
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto y) { return where(y > 0, where(y < 6, dy, 0), 0); }
};

/// x above 0, alpha x below; the derivative at 0 is alpha. With a tensor for alpha, the parametric relu.
struct leaky_relu_op : map_op<2> {
    static constexpr std::string_view name = "leaky_relu";
    static constexpr bool vjp_rounds_once = true;
    template <class V>
    TG_HD static constexpr V value(V x, V alpha) {
        return detail::choose(x > V(0), x, alpha * x);
    }
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto alpha, auto) {
        if constexpr (I == 0)
            return dy * where(x > 0, 1, alpha);
        else
            return where(x > 0, 0, dy * x);
    }
};

/// x above 0, alpha (e^x - 1) below; the derivative at 0 is alpha.
struct elu_op : series_op<2> {
    static constexpr std::string_view name = "elu";
    template <class V>
    TG_HD static constexpr V value(V x, V alpha) {
        return detail::choose(x > V(0), x, alpha * math::expm1(detail::choose(x > V(0), V(0), x)));
    }
    // The exponential of the positive side may be infinite; `where` also keeps it out of
    // derivatives.
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto alpha, auto) {
        if constexpr (I == 0)
            return dy * where(x > 0, 1, alpha * apply<exp_op>(x));
        else
            return dy * apply<expm1_op>(where(x > 0, 0, x));
    }
};

/// x / (1 + |x|)
struct softsign_op : map_op<1> {
    static constexpr std::string_view name = "softsign";
    template <class V>
    TG_HD static constexpr V value(V x) {
        const V a = math::abs(x);
        return math::detail::select(a == math::detail::traits<V>::infinity, math::copysign(V(1), x), x / (V(1) + a));
    }
    // dy / (1 + |x|)^2, divided twice, because the square may overflow.
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) {
        const auto denominator = 1 + apply<abs_op>(x);
        return dy / denominator / denominator;
    }
};

/// 1 / (1 + exp(-x))
struct sigmoid_op : series_op<1> {
    static constexpr std::string_view name = "sigmoid";
    static constexpr bool finite_slopes = true;
    static constexpr std::string_view layer_name = "sigmoid";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::sigmoid(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto y) { return dy * (y * (1 - y)); }
    struct of_storage_types : series_op<1> { // computes 1 - y without the digits that y has lost near 1
        TG_INLINE static constexpr auto vjp(auto dy, auto x, auto y) { return dy * (y * apply<sigmoid_op>(-x)); }
    };
};

struct tanh_op : series_op<1> {
    static constexpr std::string_view name = "tanh";
    static constexpr bool finite_slopes = true;
    static constexpr std::string_view layer_name = "tanh";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::tanh(x);
    }
    // d tanh(x) = 1 - tanh(x)^2, from the output
    TG_INLINE static constexpr auto vjp(auto dy, auto, auto y) { return dy * (1 - y * y); }
    struct of_storage_types : series_op<1> { // 4 sigmoid(2 x) sigmoid(-2 x)
        TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) {
            return dy * (4 * apply<sigmoid_op>(2 * x) * apply<sigmoid_op>(-2 * x));
        }
    };
};

/// log(1 + exp(x)), without overflow
struct softplus_op : series_op<1> {
    static constexpr std::string_view name = "softplus";
    static constexpr bool finite_slopes = true;
    static constexpr bool vjp_rounds_once = true;
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::softplus(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy * apply<sigmoid_op>(x); }
};

struct erf_op : series_op<1> {
    static constexpr std::string_view name = "erf";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::erf(x);
    }
    // d erf(x) = 2 / sqrt(pi) exp(-x^2)
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy * (1.1283791670955126 * apply<exp_op>(-(x * x))); }
};

/// 1 - erf(x)
struct erfc_op : series_op<1> {
    static constexpr std::string_view name = "erfc";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return math::erfc(x);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy * (-1.1283791670955126 * apply<exp_op>(-(x * x))); }
};

/// max(x, 0). The derivative at 0 is 0.
template <operand A>
TG_INLINE constexpr auto relu(const A& x) {
    return apply<relu_op>(x);
}
/// 1 / (1 + exp(-x)); it neither overflows nor loses digits near 0.
template <operand A>
TG_INLINE constexpr auto sigmoid(const A& x) {
    return apply<sigmoid_op>(x);
}
/// The hyperbolic tangent.
template <operand A>
TG_INLINE constexpr auto tanh(const A& x) {
    return apply<tanh_op>(x);
}
/// log(1 + exp(x)), which does not overflow.
template <operand A>
TG_INLINE constexpr auto softplus(const A& x) {
    return apply<softplus_op>(x);
}
/// 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.
template <operand A>
TG_INLINE constexpr auto erf(const A& x) {
    return apply<erf_op>(x);
}
/// min(max(x, 0), 6).
template <operand A>
TG_INLINE constexpr auto relu6(const A& x) {
    return apply<relu6_op>(x);
}
/// x / (1 + |x|).
template <operand A>
TG_INLINE constexpr auto softsign(const A& x) {
    return apply<softsign_op>(x);
}
/// 1 - erf(x), without cancellation for large x.
template <operand A>
TG_INLINE constexpr auto erfc(const A& x) {
    return apply<erfc_op>(x);
}
/// x for positive x, otherwise alpha x.
template <operand A, operand B = double>
TG_INLINE constexpr auto leaky_relu(const A& x, const B& alpha = 0.2) {
    return apply<leaky_relu_op>(x, alpha);
}
/// x for positive x, otherwise alpha (exp(x) - 1).
template <operand A, operand B = double>
TG_INLINE constexpr auto elu(const A& x, const B& alpha = 1.0) {
    return apply<elu_op>(x, alpha);
}
/// scale * elu(x, alpha) with the constants that keep mean 0 and variance 1 (Klambauer et al., 2017).
template <operand A>
TG_INLINE constexpr auto selu(const A& x) {
    return 1.0507009873554805 * apply<elu_op>(x, 1.6732632423543772);
}
/// log(sigmoid(x)) = -softplus(-x)
template <operand A>
TG_INLINE constexpr auto log_sigmoid(const A& x) {
    return -apply<softplus_op>(-x);
}
/// relu6(x + 3) / 6, as in PyTorch and Keras 3; the derivative at -3 and 3 is 0.
template <operand A>
TG_INLINE constexpr auto hard_sigmoid(const A& x) {
    return apply<relu6_op>(x + 3.0) / 6.0;
}

} // namespace tapegraph
