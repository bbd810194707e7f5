#pragma once

#include <tapegraph/nn/metrics/metric.hpp>
#include <tapegraph/ops/movement/concat.hpp>

/// Confusion matrices, and intersections over unions of classes. The largest of the outputs
/// [batch..., classes] is the prediction; labels are class numbers [batch...] or one-hot.

namespace tapegraph {

namespace detail {

struct confusion_texts {
    static constexpr const char* text(std::int64_t) {
        return "confusion_matrix, io_u: the output's last axis must have as many elements as the metric has classes";
    }
};
/// Adds to "confusion_matrix": rows are labels, columns predictions. A label outside [0, classes) is a range_error.
template <int Classes>
constexpr void add_confusions(const auto& state, const auto& x, const auto& z, const auto& weights) {
    const auto outputs = eval(x);
    const shape from = shape_of(outputs);
    const bool valid = from.rank() > 0 && equal_or_required(from[from.rank() - 1], extent(Classes));
    const auto here = std::source_location::current();
    const auto checked =
        valid ? outputs
              : static_cast<std::remove_const_t<decltype(outputs)>>(refuse<confusion_texts>(0, here, outputs));
    const auto predicted = argmax(checked, -1);
    const auto labels = class_numbers_of(checked, z);
    const auto pairs = stack({ravel(labels), ravel(predicted)}, -1);
    const auto each = ravel(eval(weighted_values(ones_like(predicted), weights)));
    state.add("confusion_matrix", {Classes, Classes}, scatter_nd(each, pairs, {Classes, Classes}));
}

/// Intersection over union of one class, and whether it occurred at all.
struct class_overlap {
    double value;
    bool seen;
};
inline class_overlap overlap_of(const auto& matrix, int classes, int which) {
    const auto at = [&](int label, int predicted) {
        return matrix[static_cast<std::size_t>(label * classes + predicted)];
    };
    double either = -at(which, which);
    for (int i = 0; i < classes; ++i) either += at(which, i) + at(i, which);
    return {ratio(at(which, which), either), either > 0};
}

} // namespace detail

/// Counts of each pair of class and prediction: `evaluate(...).tensor("confusion_matrix")`, rows
/// are labels and columns predictions. Its result is the fraction on the diagonal.
template <int Classes>
struct confusion_matrix {
    static_assert(Classes > 1, "confusion_matrix: at least two classes are needed");

    static constexpr std::string_view name = "confusion_matrix";
    static constexpr void update(const auto& state, const auto& x, const auto& z, const auto& weights, const auto&) {
        detail::add_confusions<Classes>(state, x, z, weights);
    }
    static double result(const auto& v) {
        const auto matrix = v.all("confusion_matrix");
        double right = 0, total = 0;
        for (std::size_t i = 0; i < matrix.size(); ++i) {
            total += matrix[i];
            if (i % (Classes + 1) == 0) right += matrix[i];
        }
        return detail::ratio(right, total);
    }
};

/// Intersection over union of one class: true positives divided by the number of records of that
/// class or predicted as it.
template <int Classes>
struct io_u {
    static_assert(Classes > 1, "io_u: at least two classes are needed");
    int target_class_id = 1;

    static constexpr std::string_view name = "io_u";
    static constexpr int count = 1;
    constexpr std::array<double, count> numbers() const {
        return {detail::number_within("io_u", "target_class_id", target_class_id, 0, Classes - 1)};
    }
    static constexpr void update(const auto& state, const auto& x, const auto& z, const auto& weights, const auto&) {
        detail::add_confusions<Classes>(state, x, z, weights);
    }
    double result(const auto& v) const {
        return detail::overlap_of(v.all("confusion_matrix"), Classes, target_class_id).value;
    }
};

/// The mean of all classes' intersections over unions; classes that occur neither in labels nor in
/// predictions do not count.
template <int Classes>
struct mean_io_u {
    static_assert(Classes > 1, "mean_io_u: at least two classes are needed");

    static constexpr std::string_view name = "mean_io_u";
    static constexpr void update(const auto& state, const auto& x, const auto& z, const auto& weights, const auto&) {
        detail::add_confusions<Classes>(state, x, z, weights);
    }
    static double result(const auto& v) {
        const auto matrix = v.all("confusion_matrix");
        double total = 0, seen = 0;
        for (int i = 0; i < Classes; ++i) {
            const auto overlap = detail::overlap_of(matrix, Classes, i);
            total += overlap.value;
            seen += overlap.seen;
        }
        return detail::ratio(total, seen);
    }
};

} // namespace tapegraph
