#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/core/shape.hpp>
#include <tapegraph/train/log_list.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace tapegraph {

template <class T>
class tensor;

/// The measurements of one training step.
struct step_result {
    double loss = 0;
    double accuracy = 0; ///< 0 if the loss defines none
};

/// A metric's state of several numbers, such as the counts of a confusion matrix.
struct metric_numbers {
    std::string metric, state;
    std::vector<std::int64_t> extents;
    std::vector<double> values; ///< row by row
};

/// The measurements of `evaluate` for a model with metrics.
struct measured_result : step_result {
    std::vector<named_value> metrics;
    std::vector<metric_numbers> arrays{}; ///< what metrics have accumulated, if that is more than a number
    /// A metric by its name. Throws argument_error, which lists the existing ones, for one that
    /// does not exist.
    double operator[](std::string_view name) const { return value_of(metrics, name); }

    /// What a metric has accumulated: `measured.tensor("confusion_matrix")`, whose rows are labels
    /// and columns predictions; for a named output `tensor("class_confusion_matrix")`. If there are
    /// several states, name one after the metric, "r2_score/residual". Throws argument_error, which
    /// lists what exists, for what does not. Needs <tapegraph/tensor.hpp>.
    template <class T = double>
    tapegraph::tensor<T> tensor(std::string_view name) const {
        const metric_numbers& found = array_of(arrays, name);
        return {found.values, shape(static_cast<int>(found.extents.size()), found.extents.data())};
    }

    /// The array of that metric or state. Throws argument_error, which lists what exists, for another name.
    static const metric_numbers& array_of(const std::vector<metric_numbers>& known, std::string_view name);
    /// The number of that name. Throws argument_error, which lists what exists, for another name.
    static double value_of(const std::vector<named_value>& known, std::string_view name);
};

/// The measurements of one epoch of `fit`. Seconds are wall clock.
struct epoch_result {
    double loss = 0, accuracy = 0;
    double validation_loss = 0, validation_accuracy = 0; ///< 0 without validation
    double seconds = 0;                                  ///< training, without validation
    double ingestion_seconds = 0;                        ///< of these: spent waiting for the data set
    std::int64_t steps = 0, records = 0;
    std::vector<named_value> metrics{}, validation_metrics{}; ///< of models that have metrics
    std::int64_t epoch = 0;                                   ///< its number, from 0
    log_list logs{}; ///< all values by name: "loss", "val_loss", those of metrics, and what callbacks added
};

/// Which direction of a value is better.
enum class better {
    automatic, ///< more of accuracies, areas under curves, precision, recall, F1, IoU, R2 and top-k, less of everything else
    less,
    more
};

namespace detail {

bool more_is_better(std::string_view name, better which);

/// Writes a file. Throws data_error that names it and the reason; then its old contents are
/// untouched.
void write_text_file(const std::string& path, const std::string& text);

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION bool more_is_better(std::string_view name, better which) {
    if (which != better::automatic) return which == better::more;
    for (const std::string_view part : {"acc", "auc", "precision", "recall", "f1", "iou", "r2", "top_k"})
        if (name.find(part) != name.npos) return true;
    return false;
}

#endif

} // namespace detail

/// What `fit` returns.
struct history {
    std::vector<epoch_result> epochs; ///< in the order in which they were trained
    bool interrupted = false;         ///< ended early, by Ctrl-C or a time limit; it may be resumed
    std::string stopped_by{};         ///< why it ended early: "early_stopping: ..."; otherwise empty

    /// A value over the epochs, NaN in those that lack it (validation_freq). Throws argument_error
    /// for a name that no epoch has; the message lists those of the last one.
    std::vector<double> operator[](std::string_view name) const;
    /// The index in `epochs` of the best value, the first one if several are equal. Throws
    /// argument_error as operator[] does, and if all values are NaN.
    std::size_t best_epoch(std::string_view name = "val_loss", better which = better::automatic) const;
    /// Names of all values, in the order of their first appearance.
    std::vector<std::string> names() const;
    /// A table with a line per epoch, counted from 1.
    std::string text() const;
    /// A line of names, then one per epoch, with all digits (number_text); a value that an epoch lacks is empty.
    std::string csv() const;
    /// Writes csv() to a file, which appears whole or not at all. Throws data_error, with the
    /// reason, if that fails.
    void write_csv(const std::string& path) const;
};

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION const metric_numbers& measured_result::array_of(const std::vector<metric_numbers>& known,
                                                              std::string_view name) {
    const metric_numbers* found = nullptr;
    int count = 0;
    for (const metric_numbers& each : known) {
        const std::string path = each.metric + '/' + each.state;
        if (path == name) return each;
        if (each.metric == name) ++count, found = &each;
    }
    if (count == 1) return *found;
    std::string text =
        (count == 0 ? "no metric with a tensor '" : "several tensors of metric '") + std::string(name) + "'";
    const char* before = ", there are '";
    for (const metric_numbers& each : known) {
        if (count > 0 && each.metric != name) continue;
        text.append(before).append(each.metric).append("/").append(each.state).append("'");
        before = ", '";
    }
    throw argument_error(text);
}

TG_DEFINITION double measured_result::value_of(const std::vector<named_value>& known, std::string_view name) {
    std::string text = "no metric '" + std::string(name) + "'";
    for (const named_value& each : known) {
        if (each.name == name) return each.value;
        text.append(&each == known.data() ? ", there are '" : ", '").append(each.name).append("'");
    }
    throw argument_error(text);
}

TG_DEFINITION void history::write_csv(const std::string& path) const { detail::write_text_file(path, csv()); }

TG_DEFINITION std::vector<std::string> history::names() const {
    log_list each;
    for (const epoch_result& e : epochs)
        for (const named_value& v : e.logs) each.set(v.name, v.value);
    std::vector<std::string> result;
    for (const named_value& v : each) result.push_back(v.name);
    return result;
}

TG_DEFINITION std::vector<double> history::operator[](std::string_view name) const {
    std::vector<double> result;
    bool known = epochs.empty();
    for (const epoch_result& e : epochs) {
        const double* const value = e.logs.find(name);
        known = known || value != nullptr;
        result.push_back(value != nullptr ? *value : std::nan(""));
    }
    if (!known) epochs.back().logs.refuse("history", name);
    return result;
}

TG_DEFINITION std::size_t history::best_epoch(std::string_view name, better which) const {
    const std::vector<double> values = (*this)[name];
    const bool more = detail::more_is_better(name, which);
    std::size_t best = values.size();
    for (std::size_t e = 0; e < values.size(); ++e)
        if (!std::isnan(values[e]) &&
            (best == values.size() || (more ? values[e] > values[best] : values[e] < values[best])))
            best = e;
    if (best == values.size())
        throw argument_error("history: no epoch has a number as its '" + std::string(name) + "'");
    return best;
}

TG_DEFINITION std::string history::text() const {
    const std::vector<std::string> columns = names();
    std::string result = "epoch";
    char text[32];
    const auto add = [&](std::size_t width) {
        const std::string_view value = text;
        result.append(width > value.size() ? width - value.size() : 0, ' ').append(value);
    };
    const auto width = [](const std::string& name) { return (name.size() < 8 ? 8 : name.size()) + 2; };
    for (const std::string& name : columns) result.append(width(name) - name.size(), ' ').append(name);
    result += "   seconds\n";
    for (const epoch_result& e : epochs) {
        std::snprintf(text, sizeof text, "%lld", static_cast<long long>(e.epoch + 1));
        add(5);
        for (const std::string& name : columns) {
            const double* const value = e.logs.find(name);
            if (value != nullptr)
                std::snprintf(text, sizeof text, "%.5g", *value);
            else
                std::snprintf(text, sizeof text, "-");
            add(width(name));
        }
        std::snprintf(text, sizeof text, "%.3g", e.seconds);
        add(10);
        result += '\n';
    }
    if (!stopped_by.empty()) result.append("stopped by ").append(stopped_by).append("\n");
    return result;
}

TG_DEFINITION std::string history::csv() const {
    const std::vector<std::string> columns = names();
    std::string result = "epoch";
    for (const std::string& name : columns) result.append(",").append(name);
    result += ",seconds\n";
    for (const epoch_result& e : epochs) {
        result += std::to_string(e.epoch + 1);
        for (const std::string& name : columns) {
            result += ',';
            if (const double* const value = e.logs.find(name)) result += number_text(*value);
        }
        result.append(",").append(number_text(e.seconds)).append("\n");
    }
    return result;
}

#endif

} // namespace tapegraph

#if TG_DEFINES(nn)
#include <tapegraph/formats/file.hpp>

namespace tapegraph::detail {

TG_DEFINITION void write_text_file(const std::string& path, const std::string& text) {
    io::atomic_file file(path);
    file.write(text);
    file.commit();
}

} // namespace tapegraph::detail
#endif
