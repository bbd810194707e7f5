#pragma once

#include <tapegraph/nn/metrics/metric.hpp>

/// Fractions of correct answers, as weighted means over all records seen.

namespace tapegraph {

/// The fraction of elements for which x > threshold agrees with z > 0.5. With `from_logits` x is
/// passed through a sigmoid first.
struct binary_accuracy {
    double threshold = 0.5;
    bool from_logits = false;

    static constexpr std::string_view name = "binary_accuracy";
    static constexpr int count = 2;
    constexpr std::array<double, count> numbers() const { return detail::threshold_numbers("binary_accuracy", *this); }
    static constexpr void update(const auto& state, const auto& x, const auto& z, const auto& weights, const auto& n) {
        const auto p = eval(detail::probabilities(x, n[1]));
        const auto labels = detail::labels_like(x, z);
        detail::add_mean_of(state, eval(cast<double>((p > n[0]) == (labels > 0.5))), weights);
    }
    static double result(const auto& v) { return detail::mean_from(v); }
};

/// The fraction of records whose largest output is their class: outputs [batch..., classes], labels
/// class numbers [batch...].
struct sparse_categorical_accuracy {
    static constexpr std::string_view name = "sparse_categorical_accuracy";
    static constexpr void update(const auto& state, const auto& x, const auto& z, const auto& weights, const auto&) {
        const auto predicted = argmax(x, -1);
        const auto labels = detail::class_numbers_of(x, z);
        detail::add_mean_of(state, eval(cast<double>(predicted == labels)), weights);
    }
    static double result(const auto& v) { return detail::mean_from(v); }
};

/// The same for one-hot labels.
struct categorical_accuracy : sparse_categorical_accuracy {
    static constexpr std::string_view name = "categorical_accuracy";
};

namespace detail {
struct top_k_texts {
    static constexpr const char* text(std::int64_t) {
        return "top_k_categorical_accuracy: k is above the number of classes";
    }
};
} // namespace detail

/// The fraction of records for which fewer than K outputs are larger than that of their class;
/// equal outputs rank after it, as in Keras. A class's output that is NaN is wrong. Labels are
/// class numbers or one-hot.
template <int K = 5>
struct sparse_top_k_categorical_accuracy {
    static_assert(K > 0, "top_k_categorical_accuracy: k must be at least 1");

    static constexpr std::string_view name = "sparse_top_k_categorical_accuracy";
    static constexpr void update(const auto& state, const auto& x, const auto& z, const auto& weights, const auto&) {
        const auto outputs = checked(eval(x));
        const auto chosen = take_along(outputs, expand_dims(detail::class_numbers_of(outputs, z), -1));
        const auto larger = sum(cast<std::int32_t>(outputs > chosen), -1);
        const auto value = detail::without_last_axis(chosen);
        detail::add_mean_of(state, eval(cast<double>(logical_and(larger < K, value == value))), weights);
    }
    static double result(const auto& v) { return detail::mean_from(v); }

private:
    template <handle X>
    static constexpr X checked(const X& x) {
        const shape from = shape_of(x);
        const extent classes = from.rank() > 0 ? from[from.rank() - 1] : extent(0);
        if (at_least_or_required(classes, K, "top_k_categorical_accuracy")) return x;
        return static_cast<X>(detail::refuse<detail::top_k_texts>(0, std::source_location::current(), x));
    }
};

/// `sparse_top_k_categorical_accuracy` by Keras's name for one-hot labels; either takes both kinds.
template <int K = 5>
struct top_k_categorical_accuracy : sparse_top_k_categorical_accuracy<K> {
    static constexpr std::string_view name = "top_k_categorical_accuracy";
};

} // namespace tapegraph
