#pragma once

#include <tapegraph/nn/losses/cross_entropy.hpp>

/// Focal losses (Lin et al. 2017): cross-entropies whose terms are weighted by (1 - probability of
/// the right answer)^gamma, so that confident right answers count little. The formulas are Keras
/// 3's; from logits they need no clipping, since nothing overflows there.

namespace tapegraph {

namespace detail {

/// q^gamma with the power's derivatives. At q = 0, where they are infinite for a gamma that is no
/// integer, it is 0.
constexpr auto focus(const auto& q, const auto& gamma) {
    return where(logical_or(q > 0, gamma == floor(gamma)), pow(q, gamma), 0);
}

template <bool Logits>
struct binary_focal {
    bool apply_class_balancing = false; ///< weights alpha and 1 - alpha of labels 1 and 0
    double alpha = 0.25;
    double gamma = 2;

    static constexpr std::string_view name = Logits ? "sigmoid_focal_cross_entropy" : "binary_focal_cross_entropy";
    static constexpr auto smoothing = label_smoothing_kind::binary;
    static constexpr int count = 3;
    constexpr std::array<double, count> numbers() const {
        const double share = number_within("binary_focal_cross_entropy", "alpha", alpha, 0, 1);
        return {apply_class_balancing ? share : 1, apply_class_balancing ? 1 - share : 1,
                number_within("binary_focal_cross_entropy", "gamma", gamma, 0)};
    }
    constexpr auto operator()(const auto& x, const auto& z) const { return (*this)(x, z, numbers()); }
    constexpr auto operator()(const auto& x, const auto& z, const auto& n) const {
        return mean_of_elements<binary_focal>(x, z, n);
    }
    static constexpr auto per_record(const auto& x, const auto& z, const auto& n) {
        return record_means_of<binary_focal>(x, z, n);
    }
    static constexpr tensor_spec labels(dtype type, const shape& output) { return {type, output}; }
    static constexpr auto each(const auto& x, const auto& z, const auto& n) {
        check_labels(x, z);
        const auto weight = n[0] * z + n[1] * (1 - z);
        if constexpr (Logits) {
            const auto wrong = eval(z * sigmoid(-x) + (1 - z) * sigmoid(x)); // without cancellation
            return weight * focus(wrong, n[2]) * sigmoid_cross_entropy_with_logits(x, z);
        } else {
            const auto q = eval(clip(x, loss_epsilon, 1 - loss_epsilon));
            const auto wrong = eval(z * (1 - x) + (1 - z) * x);
            return weight * focus(wrong, n[2]) * -(z * log(q) + (1 - z) * log(1 - q));
        }
    }
    static constexpr auto right(const auto& x, const auto& z) {
        check_labels(x, z);
        return cast<float>((x > (Logits ? 0 : 0.5)) == (z > 0.5));
    }
    static constexpr auto accuracy(const auto& x, const auto& z) { return mean(right(x, z)); }
};

template <bool Logits>
struct categorical_focal {
    double alpha = 0.25;
    double gamma = 2;

    static constexpr std::string_view name = Logits ? "softmax_focal_cross_entropy" : "categorical_focal_cross_entropy";
    static constexpr auto smoothing = label_smoothing_kind::categorical;
    static constexpr int count = 2;
    constexpr std::array<double, count> numbers() const {
        return {number_within("categorical_focal_cross_entropy", "alpha", alpha, 0),
                number_within("categorical_focal_cross_entropy", "gamma", gamma, 0)};
    }
    constexpr auto operator()(const auto& x, const auto& z) const { return (*this)(x, z, numbers()); }
    constexpr auto operator()(const auto& x, const auto& z, const auto& n) const {
        return mean_of_records<categorical_focal>(x, z, n);
    }
    static constexpr tensor_spec labels(dtype type, const shape& output) { return {type, output}; }
    static constexpr auto per_record(const auto& x, const auto& z, const auto& n) {
        const auto of = [](const auto& output, const auto& given, const auto& number) {
            const auto labels = labels_like(output, given);
            const auto logs = [&] {
                if constexpr (Logits)
                    return log_softmax(output);
                else
                    return log_of_probabilities(output);
            }();
            const auto wrong = eval(-expm1(logs));
            return sum(number[0] * focus(wrong, number[1]) * -(labels * logs), -1);
        };
        return in_floats(of, x, z, n);
    }
    static constexpr auto right(const auto& x, const auto& z) { return softmax_cross_entropy::right(x, z); }
    static constexpr auto accuracy(const auto& x, const auto& z) { return mean(right(x, z)); }
};

} // namespace detail

/// Of probabilities, clipped to [1e-7, 1 - 1e-7], and labels 0 and 1 of their shape.
using binary_focal_cross_entropy = detail::binary_focal<false>;
/// The same of logits.
using sigmoid_focal_cross_entropy = detail::binary_focal<true>;
/// Of probabilities [batch..., classes] and one-hot labels.
using categorical_focal_cross_entropy = detail::categorical_focal<false>;
/// The same of logits.
using softmax_focal_cross_entropy = detail::categorical_focal<true>;

} // namespace tapegraph
