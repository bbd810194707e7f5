#pragma once

#include <tapegraph/nn/metrics/metric.hpp>

#include <algorithm>
#include <cmath>

namespace tapegraph {

/// The curve below which the area is measured.
enum class auc_curve {
    roc, ///< recall over the false positive rate
    pr   ///< precision over recall
};
/// Between two thresholds the curve is interpolated linearly (for precision as in Davis and
/// Goadrich 2006), or takes the smaller or larger value.
enum class auc_summation { interpolation, minoring, majoring };

/// The area under a curve for predictions x > t and labels z > 0.5, over `Thresholds` evenly spaced
/// values of t from 0 to 1, by Keras's formulas. x are probabilities, clipped to [0, 1], with NaN
/// as 0; `from_logits` applies a sigmoid first. The program counts the positives and negatives
/// between adjacent thresholds, so the cost of a batch does not depend on the number of thresholds.
template <int Thresholds>
struct basic_auc {
    static_assert(Thresholds > 1, "auc: at least two thresholds are needed");

    auc_curve curve = auc_curve::roc;
    auc_summation summation = auc_summation::interpolation;
    bool from_logits = false;

    static constexpr std::string_view name = "auc";
    static constexpr int count = 1;
    constexpr std::array<double, count> numbers() const { return {from_logits ? 1.0 : 0.0}; }
    static constexpr void update(const auto& state, const auto& x, const auto& z, const auto& weights, const auto& n) {
        const auto p = eval(detail::probabilities(x, n[0]));
        const auto within = where(p >= 0, minimum(p, 1), 0);
        // The bin between thresholds i and i + 1 holds values above i and not above i + 1.
        const auto place = eval(cast<std::int32_t>(maximum(ceil(within * (Thresholds - 1)) - 1, 0)));
        const auto places = ravel(place);
        const auto labels = detail::labels_like(x, z);
        const auto positives = ravel(eval(detail::weighted_values(labels > 0.5, weights)));
        const auto negatives = ravel(eval(detail::weighted_values(labels <= 0.5, weights)));
        state.add("positives", {Thresholds}, scatter_add(positives, places, {Thresholds}, 0));
        state.add("negatives", {Thresholds}, scatter_add(negatives, places, {Thresholds}, 0));
    }
    double result(const auto& v) const {
        // True and false positives at threshold i: the sum of all bins from there on.
        double tp[Thresholds + 1]{}, fp[Thresholds + 1]{};
        const auto positives = v.all("positives"), negatives = v.all("negatives");
        for (std::size_t i = Thresholds; i-- > 0;) {
            tp[i] = tp[i + 1] + positives[i];
            fp[i] = fp[i + 1] + negatives[i];
        }
        double area = 0;
        for (std::size_t i = 0; i + 1 < Thresholds; ++i)
            area += curve == auc_curve::pr && summation == auc_summation::interpolation
                        ? precision_between(tp + i, fp + i, tp[0])
                        : between(tp + i, fp + i, tp[0], fp[0]);
        return area;
    }

private:
    struct point {
        double x, y;
    };
    point at(double tp, double fp, double all_positive, double all_negative) const {
        const double hits = detail::ratio(tp, all_positive);
        if (curve == auc_curve::roc) return {detail::ratio(fp, all_negative), hits};
        return {hits, detail::ratio(tp, tp + fp)};
    }
    double between(const double* tp, const double* fp, double all_positive, double all_negative) const {
        const point a = at(tp[0], fp[0], all_positive, all_negative), b = at(tp[1], fp[1], all_positive, all_negative);
        const double height = summation == auc_summation::interpolation ? (a.y + b.y) / 2
                              : summation == auc_summation::minoring    ? std::min(a.y, b.y)
                                                                        : std::max(a.y, b.y);
        return (a.x - b.x) * height;
    }
    /// The integral of precision over recall, where true positives grow linearly with the number
    /// predicted positive.
    static double precision_between(const double* tp, const double* fp, double all_positive) {
        const double here = tp[0] + fp[0], next = tp[1] + fp[1];
        const double slope = detail::ratio(tp[0] - tp[1], here - next), intercept = tp[1] - slope * next;
        const double grows = here > 0 && next > 0 ? here / next : 1;
        return detail::ratio(slope * (tp[0] - tp[1] + intercept * std::log(grows)), all_positive);
    }
};

using auc = basic_auc<200>;

} // namespace tapegraph
