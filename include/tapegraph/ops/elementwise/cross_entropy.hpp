#pragma once

#include <tapegraph/ops/elementwise/activation.hpp>

/// sigmoid_cross_entropy_with_logits, used by losses. It is one operation because it is smooth:
/// written with `maximum` and `abs`, its derivatives at x = 0 would be those of their kinks.

namespace tapegraph {

/// sigmoid(x) - z. For a label of 0 or 1 the difference keeps all its digits, however small it is.
struct sigmoid_residual_op : series_op<2> {
    static constexpr std::string_view name = "sigmoid_residual";
    template <class V>
    TG_HD static constexpr V value(V x, V z) {
        const V lack = math::sigmoid(-math::abs(x)); // 1 - sigmoid(|x|)
        return math::detail::select(x > V(0), (V(1) - z) - lack, lack - z);
    }
    // sigmoid'(x) = sigmoid(x) sigmoid(-x)
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto, auto) {
        if constexpr (I == 0)
            return dy * (apply<sigmoid_op>(x) * apply<sigmoid_op>(-x));
        else
            return -dy;
    }
};

/// log(1 + e^x) - x z, as |x| times (1 - z above 0, z below) + log(1 + e^-|x|): no overflow, no cancellation for labels z in [0, 1].
struct sigmoid_cross_entropy_op : series_op<2> {
    static constexpr std::string_view name = "sigmoid_cross_entropy_with_logits";
    template <class V>
    TG_HD static constexpr V value(V x, V z) {
        const V a = math::abs(x), wrong = math::detail::select(x > V(0), V(1) - z, z);
        const V linear = math::detail::select(wrong == V(0), V(0), math::detail::product(a, wrong)); // infinity * 0
        return linear + math::log1p(math::detail::falling_exp(-a));
    }
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto z, auto) {
        if constexpr (I == 0)
            return dy * apply<sigmoid_residual_op>(x, z);
        else
            return -(dy * x);
    }
};

/// -z log(sigmoid(x)) - (1 - z) log(1 - sigmoid(x)), the binary cross-entropy of logits x and
/// labels z in [0, 1]: TensorFlow's function of this name, PyTorch's
/// binary_cross_entropy_with_logits. Its mean is the loss sigmoid_cross_entropy.
template <operand A, operand B>
TG_INLINE constexpr auto sigmoid_cross_entropy_with_logits(const A& logits, const B& labels) {
    return apply<sigmoid_cross_entropy_op>(logits, labels);
}

} // namespace tapegraph
