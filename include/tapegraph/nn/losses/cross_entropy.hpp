#pragma once

#include <tapegraph/nn/losses/loss.hpp>
#include <tapegraph/ops/movement/fill.hpp>

/// Cross-entropies of probabilities, and label smoothing. nn/losses/basic.hpp has those of logits.

namespace tapegraph {

namespace detail {
/// Logarithms of probabilities that are clipped to [1e-7, 1 - 1e-7] as in Keras.
constexpr auto clipped_log(const auto& p) { return log(clip(p, loss_epsilon, 1 - loss_epsilon)); }
/// The same of probabilities [..., classes] divided by their sum.
constexpr auto log_of_probabilities(const auto& p) {
    const auto total = sum(p, -1, {.keepdims = true});
    return eval(clipped_log(p / total));
}
/// The elements of x [..., classes] that class numbers z [...] choose.
constexpr auto chosen_of(const auto& x, const auto& z) {
    check_classes(x, z);
    return without_last_axis(take_along(x, expand_dims(z, -1)));
}
} // namespace detail

/// -sum z log p over the last axis, of probabilities p [batch..., classes] and distributions z.
struct categorical_cross_entropy : detail::loss_of_records<categorical_cross_entropy> {
    static constexpr std::string_view name = "categorical_cross_entropy";
    static constexpr auto per_record(const auto& p, const auto& z) {
        const auto of = [](const auto& output, const auto& given) {
            const auto labels = detail::labels_like(output, given);
            return sum(-(labels * detail::log_of_probabilities(output)), -1);
        };
        return detail::in_floats(of, p, z);
    }
    static constexpr auto right(const auto& p, const auto& z) { return softmax_cross_entropy::right(p, z); }
    static constexpr auto accuracy(const auto& p, const auto& z) { return mean(right(p, z)); }
};

/// -log p of the class, of probabilities p [batch..., classes] and int32 class numbers [batch...].
struct sparse_categorical_cross_entropy : detail::loss_of_records<sparse_categorical_cross_entropy> {
    static constexpr std::string_view name = "sparse_categorical_cross_entropy";
    static constexpr auto per_record(const auto& p, const auto& z) {
        const auto of = [](const auto& output, const auto& classes) {
            const auto chosen = detail::chosen_of(output, classes),
                       total = eval(sum(output, -1)); // named: in one order
            return eval(-detail::clipped_log(chosen / total));
        };
        return detail::in_floats(of, p, z);
    }
    static constexpr tensor_spec labels(dtype, const shape& output) {
        return {dtype::i32, detail::dims_without_last(output)};
    }
    static constexpr auto right(const auto& p, const auto& z) { return sparse_softmax_cross_entropy::right(p, z); }
    static constexpr auto accuracy(const auto& p, const auto& z) { return mean(right(p, z)); }
};

namespace detail {
/// How the labels of a loss are smoothed. A custom loss declares it in a member `smoothing`.
enum class label_smoothing_kind { none, binary, categorical, sparse_logits, sparse_probabilities };

template <class Loss>
constexpr label_smoothing_kind smoothing_of() {
    if constexpr (std::is_same_v<Loss, sigmoid_cross_entropy> || std::is_same_v<Loss, binary_cross_entropy>)
        return label_smoothing_kind::binary;
    else if constexpr (std::is_same_v<Loss, softmax_cross_entropy> || std::is_same_v<Loss, categorical_cross_entropy>)
        return label_smoothing_kind::categorical;
    else if constexpr (std::is_same_v<Loss, sparse_softmax_cross_entropy>)
        return label_smoothing_kind::sparse_logits;
    else if constexpr (std::is_same_v<Loss, sparse_categorical_cross_entropy>)
        return label_smoothing_kind::sparse_probabilities;
    else if constexpr (requires { Loss::smoothing; })
        return Loss::smoothing;
    else
        return label_smoothing_kind::none;
}
} // namespace detail

/// A cross-entropy with label smoothing (Szegedy et al. 2016): labels are z (1 - s) + s / 2 for
/// binary losses and z (1 - s) + s / classes for the others, s = `label_smoothing` in [0, 1].
/// `smoothed<softmax_cross_entropy>{.label_smoothing = 0.1}`. Accuracy uses the original labels.
template <class Loss>
struct smoothed {
    Loss loss{};
    double label_smoothing = 0.1;

    static constexpr std::string_view name = "smoothed";
    static constexpr int count = [] {
        if constexpr (detail::has_numbers<Loss>)
            return Loss::count + 1;
        else
            return 1;
    }();
    constexpr std::array<double, count> numbers() const {
        std::array<double, count> n{detail::number_within("smoothed", "label_smoothing", label_smoothing, 0, 1)};
        if constexpr (detail::has_numbers<Loss>) {
            const auto of_loss = loss.numbers();
            for (std::size_t i = 0; i < of_loss.size(); ++i) n[i + 1] = of_loss[i];
        }
        return n;
    }
    constexpr auto operator()(const auto& x, const auto& z) const { return (*this)(x, z, numbers()); }
    constexpr auto operator()(const auto& x, const auto& z, const auto& n) const {
        return detail::mean_of_records<smoothed>(x, z, n);
    }
    static constexpr auto per_record(const auto& x, const auto& z, const auto& n) {
        return detail::in_floats([](const auto&... operands) { return of_records(operands...); }, x, z, n);
    }
    static constexpr tensor_spec labels(dtype type, const shape& output) { return Loss::labels(type, output); }
    static constexpr auto right(const auto& x, const auto& z) requires requires { Loss::right(x, z); }
    { return Loss::right(x, z); }
    static constexpr auto accuracy(const auto& x, const auto& z) requires requires { Loss::accuracy(x, z); }
    { return Loss::accuracy(x, z); }

private:
    static constexpr auto of_records(const auto& x, const auto& z, const auto& n) {
        using enum detail::label_smoothing_kind;
        constexpr auto kind = detail::smoothing_of<Loss>();
        static_assert(kind != none, "smoothed: this loss has no labels to smooth; a cross-entropy has");
        if constexpr (kind == binary) {
            return of_loss(x, eval(z * (1 - n[0]) + 0.5 * n[0]), n);
        } else if constexpr (kind == categorical) {
            const auto labels = eval(z);
            const auto share = extent_number(labels, detail::reduced_size(labels, -1));
            return of_loss(x, eval(labels * (1 - n[0]) + n[0] * (ones_like(labels) / share)), n);
        } else {
            const auto logs = [&] {
                if constexpr (kind == sparse_logits)
                    return log_softmax(x);
                else
                    return detail::log_of_probabilities(x);
            }();
            const auto right = detail::chosen_of(logs, z);
            const auto others = mean(logs, -1);
            return eval(-((1 - n[0]) * right + n[0] * others));
        }
    }
    static constexpr auto of_loss(const auto& x, const auto& z, const auto& n) {
        if constexpr (detail::has_numbers<Loss>)
            return Loss::per_record(x, z, detail::part_of_numbers<1, static_cast<std::size_t>(Loss::count)>(n));
        else
            return Loss::per_record(x, z);
    }
};

} // namespace tapegraph
