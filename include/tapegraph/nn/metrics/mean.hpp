#pragma once

#include <tapegraph/nn/losses/regression.hpp>
#include <tapegraph/nn/metrics/metric.hpp>

#include <cmath>

/// Weighted means of losses, and metrics derived from such means.

namespace tapegraph {

/// The mean of any loss with `per_record`, under its name: `loss_mean<mean_absolute_error>{}`,
/// `loss_mean<huber>{{.delta = 2}}`.
template <class Loss>
struct loss_mean {
    Loss loss{};

    static constexpr std::string_view name = Loss::name;
    static constexpr int count = [] {
        if constexpr (detail::has_numbers<Loss>)
            return Loss::count;
        else
            return 0;
    }();
    constexpr std::array<double, count> numbers() const {
        if constexpr (count > 0)
            return loss.numbers();
        else
            return {};
    }
    static constexpr void update(const auto& state, const auto& x, const auto& z, const auto& weights, const auto& n) {
        if constexpr (count > 0)
            detail::add_mean_of(state, eval(Loss::per_record(x, z, n)), weights);
        else
            detail::add_mean_of(state, eval(Loss::per_record(x, z)), weights);
    }
    static double result(const auto& v) { return detail::mean_from(v); }
};

/// The root of the mean of squared differences.
struct root_mean_squared_error {
    static constexpr std::string_view name = "root_mean_squared_error";
    static constexpr void update(const auto& state, const auto& x, const auto& z, const auto& weights, const auto&) {
        const auto labels = detail::labels_like(x, z);
        detail::add_mean_of(state, eval(square(x - labels)), weights);
    }
    static double result(const auto& v) { return std::sqrt(detail::mean_from(v)); }
};

/// The mean cosine of the angle between output and labels along the last axis: 1 where they agree.
struct mean_cosine_similarity {
    static constexpr std::string_view name = "cosine_similarity";
    static constexpr void update(const auto& state, const auto& x, const auto& z, const auto& weights, const auto&) {
        detail::add_mean_of(state, detail::cosine(x, z), weights);
    }
    static double result(const auto& v) { return detail::mean_from(v); }
};

/// Perplexity: exp of the mean cross-entropy of logits [batch..., classes] and class numbers
/// [batch...], the effective number of classes among which the model chooses. Labels that are
/// `Ignored` do not count.
template <int Ignored>
struct basic_perplexity {
    static constexpr std::string_view name = "perplexity";
    static constexpr void update(const auto& state, const auto& x, const auto& z, const auto& weights, const auto&) {
        const auto labels = eval(z);
        const auto counts = eval(labels != Ignored);
        const auto losses = sparse_softmax_cross_entropy::per_record(x, eval(where(counts, labels, 0)));
        state.add("total", {}, detail::weighted_sum(where(counts, losses, 0), weights));
        state.add("count", {}, detail::weighted_sum(counts, weights));
    }
    static double result(const auto& v) { return std::exp(detail::mean_from(v)); }
};
using perplexity = basic_perplexity<-1>;

/// How the R2 of several outputs are combined: their mean, or their mean weighted by the variances
/// of the labels.
enum class r2_aggregation { uniform_average, variance_weighted_average };

/// The coefficient of determination, 1 - residual / variance of the labels, of outputs [batch...,
/// outputs]. If all labels are equal, it is 1 for exact predictions and 0 otherwise.
struct r2_score {
    r2_aggregation aggregation = r2_aggregation::uniform_average;

    static constexpr std::string_view name = "r2_score";
    static constexpr void update(const auto& state, const auto& x, const auto& z, const auto& weights, const auto&) {
        const auto outputs = detail::with_outputs(eval(x));
        const auto labels = detail::with_outputs(detail::labels_like(x, z));
        const auto exact = eval(cast<double>(labels));
        const auto each = detail::all_but_last(outputs);
        const shape dims = detail::of_outputs(outputs);
        state.add("sum", dims, detail::weighted_sum(exact, weights, each));
        state.add("squared_sum", dims, detail::weighted_sum(square(exact), weights, each));
        state.add("residual", dims, detail::weighted_sum(square(cast<double>(outputs) - exact), weights, each));
        state.add("count", dims, detail::weighted_sum(ones_like(outputs), weights, each));
    }
    double result(const auto& v) const {
        const auto sums = v.all("sum"), squares = v.all("squared_sum"), residuals = v.all("residual"),
                   counts = v.all("count");
        double total = 0, weight = 0;
        for (std::size_t i = 0; i < sums.size(); ++i) {
            const double variance = squares[i] - detail::ratio(sums[i] * sums[i], counts[i]);
            const double share = aggregation == r2_aggregation::uniform_average ? 1 : variance;
            const double score = variance > 0 ? 1 - residuals[i] / variance : (residuals[i] == 0 ? 1 : 0);
            total += share * score;
            weight += share;
        }
        return detail::ratio(total, weight);
    }
};

} // namespace tapegraph
