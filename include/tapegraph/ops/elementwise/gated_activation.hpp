#pragma once

#include <tapegraph/ops/elementwise/activation.hpp>

/// gelu, swish (silu), mish, hard_swish: the operand times a gate between 0 and 1.
///
/// For large |x| the gate is 0 or 1 and its slope 0, and infinity times 0 would be NaN. So slopes
/// are computed with x clipped to bounds beyond which they have vanished.

namespace tapegraph {

namespace detail {
// At this bound the gate is 0 in both types, and x finite.
template <class V>
TG_HD constexpr V not_far_below(V x) {
    return math::detail::select(x < V(-1000), V(-1000), x);
}
/// Clips an operand between numbers, but passes NaN to derivatives, so that those of any order are
/// NaN where the operand is.
struct near_op : clip_op {
    template <int I>
        requires(I == 0)
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto low, auto high, auto) {
        return where(x < low, 0, where(x > high, 0, dy));
    }
};
TG_INLINE constexpr auto not_far(auto x) { return apply<near_op>(x, -1000, 1000); }
} // namespace detail

namespace detail {

/// A gate's exponential, computed once for its value and its slope.
template <class V>
struct normal_gate {
    V value;   // P(x), P the distribution function of the standard normal distribution
    V density; // p(x)
    TG_HD constexpr explicit normal_gate(V x) {
        const V a = math::abs(x), e = math::detail::falling_exp(V(-0.5) * x * x);
        const V tail = math::detail::product(e, math::detail::scaled_normal_tail(a));
        value = math::detail::select(x < V(0), tail, V(1) - tail);
        density = V(0.3989422804014327) * e;
    }
};
// Values of float, and all of sigmoid, are computed of a = |x| and what is left of the gate at -a, its tail. Infinity is
// clipped: `magnitude_up_to`, which loses NaN, serves where x is added, this where it is not.
template <class V>
TG_HD constexpr V gate_magnitude(V x, V most) {
    const V a = math::abs(x);
    return math::detail::select(a > most, most, a);
}
/// x gate(x) = x - a gate(-a) above zero and -a gate(-a) below.
template <class V>
TG_HD constexpr V gated(V x, V tail) {
    return math::detail::select(x < V(0), V(0), x) - tail;
}
/// The slope of x gate(x) from that at -|x|: both add up to 1.
template <class V>
TG_HD constexpr V gated_slope(V x, V tail) {
    return math::detail::select(x < V(0), tail, V(1) - tail);
}
template <class V>
TG_HD constexpr V within_a_thousand(V x) {
    return math::detail::select(x > V(1000), V(1000), not_far_below(x));
}
/// sigmoid(-a)
template <class V>
TG_HD constexpr V logistic_tail(V a) {
    return V(1) / (V(1) + math::detail::rising_exp(a));
}
/// The argument of the tanh form's gate, 2 sqrt(2 / pi) (x + 0.044715 x^3), and its slope.
template <class V>
TG_HD constexpr V gate_argument(V x) {
    return math::detail::product(V(1.5957691216057308), math::detail::mul_add(V(0.044715), x * x * x, x));
}
template <class V>
TG_HD constexpr V gate_slope(V x) {
    return V(1.5957691216057308) * math::detail::mul_add(V(0.134145), x * x, V(1));
}
/// The argument becomes `rising_exp_most` here.
template <class V>
inline constexpr V gate_argument_most = sizeof(V) == sizeof(float) ? V(10.0514) : V(21.1569);

/// The slopes, as operations of their own: their exponentials are those of their gates.
struct gelu_slope_op : series_op<1> {
    static constexpr std::string_view name = "gelu_slope";
    template <class V>
    TG_HD static constexpr V value(V x) {
        if constexpr (sizeof(V) == sizeof(float)) {
            return gated_slope(x, math::detail::gelu_slope_tail(gate_magnitude(x, V(150))));
        } else {
            const V near = within_a_thousand(x);
            const normal_gate<V> gate(near);
            return math::detail::mul_add(near, gate.density, gate.value);
        }
    }
    // p(x) (2 - x^2)
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) {
        const auto near = not_far(x);
        return dy * (0.3989422804014327 * (2 - near * near) * apply<exp_op>(-0.5 * (near * near)));
    }
};
struct gelu_tanh_slope_op : series_op<1> {
    static constexpr std::string_view name = "gelu_tanh_slope";
    template <class V>
    TG_HD static constexpr V value(V x) {
        const V a = gate_magnitude(x, gate_argument_most<V>), tail = logistic_tail(gate_argument(a));
        const V inner = V(1) - math::detail::product(a * gate_slope(a), V(1) - tail);
        return gated_slope(x, math::detail::product(tail, inner));
    }
    // With u the gate's argument and s = sigmoid(u): s (1 - s) (2 u' + x u'' + x u'^2 (1 - 2 s))
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) {
        const auto near = not_far(x);
        const auto u = 1.5957691216057308 * (near + 0.044715 * (near * near * near));
        const auto slope = 1.5957691216057308 * (1 + 0.134145 * (near * near));
        const auto s = apply<sigmoid_op>(u);
        const auto rest = apply<sigmoid_op>(-u);
        return dy *
               (s * rest * (2 * slope + 0.42812889763560147 * (near * near) + near * (slope * slope) * (rest - s)));
    }
};
struct swish_slope_op : series_op<1> {
    static constexpr std::string_view name = "swish_slope";
    template <class V>
    TG_HD static constexpr V value(V x) {
        const V a = gate_magnitude(x, math::detail::rising_exp_most<V>), tail = logistic_tail(a);
        const V inner = V(1) - math::detail::product(a, V(1) - tail);
        return gated_slope(x, math::detail::product(tail, inner));
    }
    // s (1 - s) (2 + x (1 - 2 s))
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) {
        const auto near = not_far(x);
        const auto s = apply<sigmoid_op>(near);
        const auto rest = apply<sigmoid_op>(-near);
        return dy * (s * rest * (2 + near * (rest - s)));
    }
};

} // namespace detail

/// x P(x), P the distribution function of the standard normal distribution: x erfc(-x / sqrt 2) / 2
struct gelu_op : series_op<1> {
    static constexpr std::string_view name = "gelu";
    template <class V>
    TG_HD static constexpr V value(V x) {
        if constexpr (sizeof(V) == sizeof(float)) {
            return detail::gated(x, math::detail::normal_tail_times(math::detail::magnitude_up_to(x, V(40))));
        } else {
            const V near = detail::not_far_below(x);
            return near * detail::normal_gate<V>(near).value;
        }
    }
    // P(x) + x p(x), p the density
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy * apply<detail::gelu_slope_op>(x); }
};

/// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 = x sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3))
struct gelu_tanh_op : series_op<1> {
    static constexpr std::string_view name = "gelu_tanh";
    template <class V>
    TG_HD static constexpr V value(V x) {
        const V a = math::detail::magnitude_up_to(x, detail::gate_argument_most<V>);
        return detail::gated(x, a / (V(1) + math::detail::rising_exp(detail::gate_argument(a))));
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy * apply<detail::gelu_tanh_slope_op>(x); }
};

/// x sigmoid(x)
struct swish_op : series_op<1> {
    static constexpr std::string_view name = "swish";
    template <class V>
    TG_HD static constexpr V value(V x) {
        const V a = math::detail::magnitude_up_to(x, math::detail::rising_exp_most<V>);
        return detail::gated(x, a / (V(1) + math::detail::rising_exp(a)));
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy * apply<detail::swish_slope_op>(x); }
};

/// x tanh(softplus(x)) = x n / (n + 2), n = e^x (e^x + 2)
struct mish_op : series_op<1> {
    static constexpr std::string_view name = "mish";
    template <class V>
    TG_HD static constexpr V value(V x) {
        const V e = math::exp(math::detail::select(x > V(20), V(20), x)); // the gate rounds to 1
        const V n = e * (e + V(2));
        return detail::not_far_below(x) * (n / (n + V(2)));
    }
    // n / (n + 2) + x 4 e^x (e^x + 1) / (n + 2)^2
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) {
        const auto near = apply<detail::near_op>(x, -1000, 25); // from there the slope rounds to 1
        const auto e = apply<exp_op>(near);
        const auto n = e * (e + 2);
        return dy * (n / (n + 2) + 4 * near * (e * (e + 1) / (n + 2)) / (n + 2));
    }
};

/// x relu6(x + 3) / 6; the derivative is 0 up to -3 and 1 from 3 on.
struct hard_swish_op : map_op<1> {
    static constexpr std::string_view name = "hard_swish";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return detail::larger(x, V(-3)) * relu6_op::value(x + V(3)) / V(6);
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) {
        return dy * where(x <= -3, 0, where(x < 3, x / 3 + 0.5, 1));
    }
};

/// The argument that selects gelu's tanh approximation.
struct approximate_t {};
inline constexpr approximate_t approximate{};

template <operand A>
TG_INLINE constexpr auto gelu(const A& x) {
    return apply<gelu_op>(x);
}
/// gelu(x, tg::approximate): Keras' approximate=True, PyTorch's approximate="tanh".
template <operand A>
TG_INLINE constexpr auto gelu(const A& x, approximate_t) {
    return apply<gelu_tanh_op>(x);
}
/// x sigmoid(x).
template <operand A>
TG_INLINE constexpr auto swish(const A& x) {
    return apply<swish_op>(x);
}
/// `swish` by PyTorch's name.
template <operand A>
TG_INLINE constexpr auto silu(const A& x) {
    return apply<swish_op>(x);
}
/// x tanh(softplus(x)).
template <operand A>
TG_INLINE constexpr auto mish(const A& x) {
    return apply<mish_op>(x);
}
/// x relu6(x + 3) / 6.
template <operand A>
TG_INLINE constexpr auto hard_swish(const A& x) {
    return apply<hard_swish_op>(x);
}

} // namespace tapegraph
