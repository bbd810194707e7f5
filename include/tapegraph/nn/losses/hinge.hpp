#pragma once

#include <tapegraph/nn/losses/loss.hpp>

/// Hinge losses, with Keras 3's formulas.

namespace tapegraph {

namespace detail {
/// Labels of -1 and 1. If all labels of the batch are 0 or 1, 0 becomes -1.
constexpr auto signs_of(const auto& z) {
    const auto binary = all_of(logical_or(z == 0, z == 1));
    return eval(where(binary, 2 * z - 1, z));
}
constexpr auto signs_agree(const auto& x, const auto& z) {
    check_labels(x, z);
    return cast<float>((x > 0) == (z > 0));
}
} // namespace detail

/// max(1 - z x, 0), for scores x and labels of -1 and 1, or 0 and 1.
struct hinge : detail::loss_of_elements<hinge> {
    static constexpr std::string_view name = "hinge";
    static constexpr auto each(const auto& x, const auto& z) {
        detail::check_labels(x, z);
        return maximum(1 - detail::signs_of(z) * x, 0);
    }
    static constexpr auto right(const auto& x, const auto& z) { return detail::signs_agree(x, z); }
    static constexpr auto accuracy(const auto& x, const auto& z) { return mean(right(x, z)); }
};

/// max(1 - z x, 0)^2
struct squared_hinge : detail::loss_of_elements<squared_hinge> {
    static constexpr std::string_view name = "squared_hinge";
    static constexpr auto each(const auto& x, const auto& z) {
        detail::check_labels(x, z);
        return square(maximum(1 - detail::signs_of(z) * x, 0));
    }
    static constexpr auto right(const auto& x, const auto& z) { return detail::signs_agree(x, z); }
    static constexpr auto accuracy(const auto& x, const auto& z) { return mean(right(x, z)); }
};

/// max(1 + max((1 - z) x) - sum(z x), 0) over the last axis, for scores [batch..., classes] and
/// one-hot labels.
struct categorical_hinge : detail::loss_of_records<categorical_hinge> {
    static constexpr std::string_view name = "categorical_hinge";
    static constexpr auto per_record(const auto& x, const auto& z) {
        const auto of = [](const auto& output, const auto& given) {
            const auto labels = detail::labels_like(output, given);
            const auto right = sum(labels * output, -1);
            const auto wrong = max((1 - labels) * output, -1);
            return eval(maximum(wrong - right + 1, 0));
        };
        return detail::in_floats(of, x, z);
    }
    static constexpr auto right(const auto& x, const auto& z) { return softmax_cross_entropy::right(x, z); }
    static constexpr auto accuracy(const auto& x, const auto& z) { return mean(right(x, z)); }
};

} // namespace tapegraph
