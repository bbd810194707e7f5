#pragma once

#include <tapegraph/nn/metrics/metric.hpp>

/// Binary metrics: outputs x above a threshold compared with labels z > 0.5 of the same shape,
/// element by element. With `from_logits` x is passed through a sigmoid first. A result with
/// denominator 0 is 0.

namespace tapegraph {

namespace detail {

/// Predictions and labels as bools.
template <class P, class Z>
struct answers {
    P predicted;
    Z actual;
};
constexpr auto answers_of(const auto& x, const auto& z, const auto& n) {
    const auto predicted = eval(probabilities(x, n[1]) > n[0]);
    const auto actual = eval(labels_like(x, z) > 0.5);
    return answers<std::remove_const_t<decltype(predicted)>, std::remove_const_t<decltype(actual)>>{predicted, actual};
}
/// The weighted number of elements for which both hold.
constexpr auto count_both(const auto& a, const auto& b, const auto& weights, axes over = {}) {
    return weighted_sum(logical_and(a, b), weights, over);
}

} // namespace detail

/// True positives divided by all predicted positives.
struct precision {
    double threshold = 0.5;
    bool from_logits = false;

    static constexpr std::string_view name = "precision";
    static constexpr int count = 2;
    constexpr std::array<double, count> numbers() const { return detail::threshold_numbers("precision", *this); }
    static constexpr void update(const auto& state, const auto& x, const auto& z, const auto& weights, const auto& n) {
        const auto [predicted, actual] = detail::answers_of(x, z, n);
        state.add("true_positives", {}, detail::count_both(predicted, actual, weights));
        state.add("false_positives", {}, detail::count_both(predicted, logical_not(actual), weights));
    }
    static double result(const auto& v) {
        return detail::ratio(v["true_positives"], v["true_positives"] + v["false_positives"]);
    }
};

/// True positives divided by all positives; also called sensitivity.
struct recall {
    double threshold = 0.5;
    bool from_logits = false;

    static constexpr std::string_view name = "recall";
    static constexpr int count = 2;
    constexpr std::array<double, count> numbers() const { return detail::threshold_numbers("recall", *this); }
    static constexpr void update(const auto& state, const auto& x, const auto& z, const auto& weights, const auto& n) {
        const auto [predicted, actual] = detail::answers_of(x, z, n);
        state.add("true_positives", {}, detail::count_both(predicted, actual, weights));
        state.add("false_negatives", {}, detail::count_both(logical_not(predicted), actual, weights));
    }
    static double result(const auto& v) {
        return detail::ratio(v["true_positives"], v["true_positives"] + v["false_negatives"]);
    }
};

/// True negatives divided by all negatives.
struct specificity {
    double threshold = 0.5;
    bool from_logits = false;

    static constexpr std::string_view name = "specificity";
    static constexpr int count = 2;
    constexpr std::array<double, count> numbers() const { return detail::threshold_numbers("specificity", *this); }
    static constexpr void update(const auto& state, const auto& x, const auto& z, const auto& weights, const auto& n) {
        const auto [predicted, actual] = detail::answers_of(x, z, n);
        state.add("true_negatives", {}, detail::count_both(logical_not(predicted), logical_not(actual), weights));
        state.add("false_positives", {}, detail::count_both(predicted, logical_not(actual), weights));
    }
    static double result(const auto& v) {
        return detail::ratio(v["true_negatives"], v["true_negatives"] + v["false_positives"]);
    }
};

/// How the scores of several outputs are combined: from all predictions together; their mean; their
/// mean weighted by the number of positives of each.
enum class averaging { micro, macro, weighted };

/// (1 + beta^2) precision recall / (beta^2 precision + recall) for each of the outputs [batch...,
/// outputs], and their average. With `largest` the largest output is the prediction (Keras:
/// threshold None), instead of those above the threshold.
struct fbeta_score {
    double beta = 1;
    double threshold = 0.5;
    bool from_logits = false;
    bool largest = false;
    averaging average = averaging::macro;

    static constexpr std::string_view name = "fbeta_score";
    static constexpr int count = 3;
    constexpr std::array<double, count> numbers() const {
        detail::number_within("fbeta_score", "beta", beta, std::numeric_limits<double>::min());
        const auto n = detail::threshold_numbers("fbeta_score", *this);
        return {n[0], n[1], largest ? 1.0 : 0.0};
    }
    static constexpr void update(const auto& state, const auto& x, const auto& z, const auto& weights, const auto& n) {
        const auto outputs = detail::with_outputs(eval(x));
        const auto labels = detail::with_outputs(detail::labels_like(x, z));
        const auto above = detail::answers_of(outputs, labels, n);
        const auto best = max(outputs, -1, {.keepdims = true});
        const auto predicted =
            eval(logical_or(logical_and(n[2] > 0, outputs == best), logical_and(n[2] <= 0, above.predicted)));
        const auto each = detail::all_but_last(outputs);
        const shape dims = detail::of_outputs(outputs);
        state.add("true_positives", dims, detail::count_both(predicted, above.actual, weights, each));
        state.add("false_positives", dims, detail::count_both(predicted, logical_not(above.actual), weights, each));
        state.add("false_negatives", dims, detail::count_both(logical_not(predicted), above.actual, weights, each));
    }
    double result(const auto& v) const {
        const auto hits = v.all("true_positives"), wrong = v.all("false_positives"), missed = v.all("false_negatives");
        double sums[3]{}, total = 0, weight = 0;
        for (std::size_t i = 0; i < hits.size(); ++i) {
            const double share = average == averaging::weighted ? hits[i] + missed[i] : 1;
            total += share * score(hits[i], wrong[i], missed[i]);
            weight += share;
            sums[0] += hits[i], sums[1] += wrong[i], sums[2] += missed[i];
        }
        return average == averaging::micro ? score(sums[0], sums[1], sums[2]) : detail::ratio(total, weight);
    }

private:
    double score(double hits, double wrong, double missed) const {
        const double square = beta * beta;
        return detail::ratio((1 + square) * hits, (1 + square) * hits + square * missed + wrong);
    }
};

/// fbeta_score with beta = 1: the harmonic mean of precision and recall.
struct f1_score {
    double threshold = 0.5;
    bool from_logits = false;
    bool largest = false;
    averaging average = averaging::macro;

    static constexpr std::string_view name = "f1_score";
    static constexpr int count = fbeta_score::count;
    constexpr std::array<double, count> numbers() const { return whole().numbers(); }
    static constexpr void update(const auto& state, const auto& x, const auto& z, const auto& weights, const auto& n) {
        fbeta_score::update(state, x, z, weights, n);
    }
    double result(const auto& v) const { return whole().result(v); }

private:
    constexpr fbeta_score whole() const {
        return {.beta = 1, .threshold = threshold, .from_logits = from_logits, .largest = largest, .average = average};
    }
};

} // namespace tapegraph
