#pragma once

#include <tapegraph/nn/losses/loss.hpp>

/// Overlap losses for segmentation: probabilities x and labels z in [0, 1] have the same shape; the
/// formulas are Keras 3's. There are two forms. `dice` and `tversky` are computed over the whole
/// batch, Keras's default, and have no loss per record; `dice_per_record` and `tversky_per_record`
/// sum over all axes but the first (Keras: `axis`), so that each record counts alike, and accept
/// weights.

namespace tapegraph {

namespace detail {

/// The sum over all axes, or over all but the first.
template <bool PerRecord>
constexpr auto overlap_sum(const auto& x) {
    if constexpr (!PerRecord) {
        return sum(x);
    } else {
        const shape from = shape_of(x);
        if (from.rank() < 2) return eval(x);
        shape rows;
        rows.attach(from.table());
        rows.push_back(from[0]);
        rows.push_back(from.size(1, from.rank()));
        return sum(invoke<reshape_op>({}, &rows, std::source_location::current(), eval(x)), -1);
    }
}

/// 1 - 2 sum(x z) / (sum(x) + sum(z) + 1e-7)
template <bool PerRecord>
struct basic_dice {
    static constexpr std::string_view name = "dice";
    constexpr auto operator()(const auto& x, const auto& z) const {
        const auto of = [](const auto&... all) {
            if constexpr (PerRecord)
                return mean(value(all...));
            else
                return value(all...);
        };
        return in_floats(of, x, z);
    }
    static constexpr auto per_record(const auto& x, const auto& z) requires PerRecord {
        return in_floats([](const auto&... all) { return value(all...); }, x, z);
    }
    static constexpr tensor_spec labels(dtype type, const shape& output) { return {type, output}; }

private:
    static constexpr auto value(const auto& x, const auto& z) {
        const auto labels = labels_like(x, z);
        const auto both = overlap_sum<PerRecord>(x * labels);
        const auto of_output = overlap_sum<PerRecord>(x);
        const auto of_labels = overlap_sum<PerRecord>(labels);
        return eval(1 - 2 * both / (of_labels + of_output + loss_epsilon));
    }
};

/// 1 - sum(x z) / (sum(x z) + alpha sum((1 - x) z) + beta sum(x (1 - z)) + 1e-7) (Salehi et al.
/// 2017): alpha weights false negatives and beta false positives, as in Keras. With 0.5 and 0.5 it
/// is dice.
template <bool PerRecord>
struct basic_tversky {
    double alpha = 0.5;
    double beta = 0.5;

    static constexpr std::string_view name = "tversky";
    static constexpr int count = 2;
    constexpr std::array<double, count> numbers() const {
        return {number_within("tversky", "alpha", alpha, 0), number_within("tversky", "beta", beta, 0)};
    }
    constexpr auto operator()(const auto& x, const auto& z) const { return (*this)(x, z, numbers()); }
    constexpr auto operator()(const auto& x, const auto& z, const auto& n) const {
        const auto of = [](const auto&... all) {
            if constexpr (PerRecord)
                return mean(value(all...));
            else
                return value(all...);
        };
        return in_floats(of, x, z, n);
    }
    static constexpr auto per_record(const auto& x, const auto& z, const auto& n) requires PerRecord {
        return in_floats([](const auto&... all) { return value(all...); }, x, z, n);
    }
    static constexpr tensor_spec labels(dtype type, const shape& output) { return {type, output}; }

private:
    static constexpr auto value(const auto& x, const auto& z, const auto& n) {
        const auto labels = labels_like(x, z);
        const auto both = overlap_sum<PerRecord>(x * labels);
        const auto missed = overlap_sum<PerRecord>((1 - x) * labels);
        const auto wrong = overlap_sum<PerRecord>(x * (1 - labels));
        return eval(1 - both / (both + missed * n[0] + wrong * n[1] + loss_epsilon));
    }
};

} // namespace detail

using dice = detail::basic_dice<false>;
using dice_per_record = detail::basic_dice<true>;
using tversky = detail::basic_tversky<false>;
using tversky_per_record = detail::basic_tversky<true>;

} // namespace tapegraph
