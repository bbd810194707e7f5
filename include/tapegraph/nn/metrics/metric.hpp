#pragma once

#include <tapegraph/model/metric_values.hpp>
#include <tapegraph/nn/losses/loss.hpp>
#include <tapegraph/ops/movement/fill.hpp>

/// Building blocks of metrics. A metric is a plain struct with
///
///     static constexpr std::string_view name;
///     static constexpr void update(const auto& state, const auto& x, const auto& z, const auto& weights, const auto& n);
///     double result(const auto& values) const;                     // on the host; values are a metric_values
///     static constexpr int count; constexpr std::array<double, count> numbers() const;      // if its update has numbers
///
/// `update` is traced into the program: `state.add("total", {}, value)` adds to a double of its
/// state, or to an array of doubles, which are 0 at the start of every epoch. x is the output, z the
/// labels, `weights` the weights of records, [batch], or an object that is not a tensor if there are
/// none.
/// Sums are in double, and exact over batches of unequal sizes.

namespace tapegraph::detail {

struct weight_texts {
    static constexpr const char* text(std::int64_t) {
        return "metric: weights must have the first extents of what they weigh; one weight per record is [batch]";
    }
};

/// Weights [batch] followed by axes of 1, so that they broadcast over values [batch, ...]. Weights
/// without axes weight all alike.
template <handle W>
constexpr W weights_over(const W& weights, const shape& values) {
    const shape from = shape_of(weights);
    const auto here = std::source_location::current();
    bool valid = from.rank() <= values.rank();
    for (int i = 0; valid && i < from.rank(); ++i) valid = equal_or_required(from[i], values[i]);
    if (!valid) return static_cast<W>(refuse<weight_texts>(0, here, weights));
    shape target = from;
    while (target.rank() < values.rank()) target.push_back(1);
    return invoke<reshape_op>({}, &target, here, weights);
}

/// values * weights as doubles, a formula; just the values where there are no weights.
constexpr auto weighted_values(const auto& values, const auto& weights) {
    if constexpr (tensor_like<std::remove_cvref_t<decltype(weights)>>) {
        const auto beside = weights_over(eval(weights), shape_of(values));
        return cast<double>(values) * cast<double>(beside);
    } else {
        return cast<double>(values);
    }
}
constexpr auto weighted_sum(const auto& values, const auto& weights, axes over = {}) {
    return sum(weighted_values(values, weights), over);
}

/// Adds a weighted mean of values [batch, ...] to "total" and "count".
constexpr void add_mean_of(const auto& state, const auto& values, const auto& weights) {
    state.add("total", {}, weighted_sum(values, weights));
    state.add("count", {}, weighted_sum(ones_like(values), weights));
}
/// x / y, 0 where y is 0.
constexpr double ratio(double x, double y) { return y == 0 ? 0 : x / y; }
constexpr double mean_from(const auto& v) { return ratio(v["total"], v["count"]); }

/// The numbers of metrics with a threshold for probabilities, which may be given as logits.
template <class Metric>
constexpr std::array<double, 2> threshold_numbers(const char* who, const Metric& metric) {
    return {number_within(who, "threshold", metric.threshold, 0, 1), metric.from_logits ? 1.0 : 0.0};
}
/// x as probabilities; if `from_logits` is not 0, it is converted from logits.
constexpr auto probabilities(const auto& x, const auto& from_logits) { return where(from_logits > 0, sigmoid(x), x); }

/// x with an axis of outputs: [batch] as [batch, 1].
template <handle X>
constexpr auto with_outputs(const X& x) {
    return shape_of(x).rank() == 1 ? expand_dims(x, -1) : eval(x);
}
/// All axes but the last.
template <tensor_like X>
constexpr axes all_but_last(const X& x) {
    axes over;
    over.all = false;
    for (int i = 0; i + 1 < shape_of(x).rank(); ++i) over.index[over.count++] = static_cast<std::int8_t>(i);
    return over;
}
/// The shape of one number per output of x.
template <tensor_like X>
constexpr shape of_outputs(const X& x) {
    const shape from = shape_of(x);
    return {from[from.rank() - 1].value};
}

/// Class numbers, int32; for one-hot labels, which have x's shape, the positions of their largest
/// elements.
template <tensor_like X, tensor_like Z>
constexpr auto class_numbers_of(const X& x, const Z& z) {
    const auto labels = eval(z);
    const shape output = shape_of(x), given = shape_of(labels);
    const bool one_hot = given.rank() == output.rank();
    if (!same_shape_or_required(one_hot ? output : dims_without_last(output), given)) refuse_labels(4, x, labels);
    if (one_hot) return argmax(labels, -1);
    return eval(cast<std::int32_t>(labels));
}

} // namespace tapegraph::detail
