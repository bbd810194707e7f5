#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/data/tables/state.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// Scales numbers to a common range, column by column.

namespace tapegraph::data {

/// Mean, variance and range of columns, one record at a time (Welford, 1962), so that no precision
/// is lost for a large mean. Those of two parts can be merged (Chan et al., 1979).
class column_statistics {
public:
    /// The number of columns; 0 before the first record.
    std::int64_t columns() const { return static_cast<std::int64_t>(mean_.size()); }
    std::int64_t count() const { return count_; } ///< records
    /// The mean of each column.
    const std::vector<double>& mean() const { return mean_; }
    /// The smallest value of each column.
    const std::vector<double>& minimum() const { return minimum_; }
    /// The largest value of each column.
    const std::vector<double>& maximum() const { return maximum_; }
    /// The population variance (divided by the number of records), as in Keras.
    std::vector<double> variance() const {
        std::vector<double> result;
        for (const double squares : squares_) result.push_back(count_ > 0 ? squares / static_cast<double>(count_) : 0);
        return result;
    }

    /// Adds one record. Throws shape_error if its number of values differs from the first one's,
    /// numeric_error for a value that is not finite; then nothing has changed.
    template <class T>
    void add(std::span<const T> record) {
        if (count_ == 0 && mean_.empty()) resize(record.size());
        if (record.size() != mean_.size())
            throw shape_error("column_statistics: record " + std::to_string(count_) + " has " +
                              std::to_string(record.size()) + " values, the first has " + std::to_string(mean_.size()));
        for (std::size_t c = 0; c < record.size(); ++c)
            if (!std::isfinite(static_cast<double>(record[c])))
                throw numeric_error("column_statistics: record " + std::to_string(count_) + ", column " +
                                    std::to_string(c) + ": the value is not finite");
        ++count_;
        for (std::size_t c = 0; c < record.size(); ++c) {
            const auto value = static_cast<double>(record[c]);
            const double before = value - mean_[c];
            mean_[c] += before / static_cast<double>(count_);
            squares_[c] += before * (value - mean_[c]);
            minimum_[c] = count_ == 1 ? value : std::min(minimum_[c], value);
            maximum_[c] = count_ == 1 ? value : std::max(maximum_[c], value);
        }
    }
    /// Adds consecutive records of `columns` values each. Throws shape_error if the values are not
    /// a whole number of records.
    template <class T>
    void add_rows(std::span<const T> values, std::int64_t columns) {
        if (columns < 1 || values.size() % static_cast<std::size_t>(columns) != 0)
            throw shape_error("column_statistics: " + std::to_string(values.size()) + " values are not records of " +
                              std::to_string(columns));
        for (std::size_t at = 0; at < values.size(); at += static_cast<std::size_t>(columns))
            add(values.subspan(at, static_cast<std::size_t>(columns)));
    }
    /// Adds the statistics of another part of the records. Throws shape_error if it has other
    /// columns.
    void merge(const column_statistics& other);

private:
    void resize(std::size_t columns) {
        mean_.resize(columns);
        squares_.resize(columns);
        minimum_.resize(columns);
        maximum_.resize(columns);
    }

    std::int64_t count_ = 0;
    std::vector<double> mean_, squares_, minimum_, maximum_;
};

/// y = x scale + shift for each column: the common base of normalization and min_max_scaling. A
/// record has as many values as there are columns; with one column, any number.
class column_scaling {
public:
    /// The number of columns of a record.
    std::int64_t columns() const { return static_cast<std::int64_t>(offset_.size()); }
    /// As many numbers as the record has.
    std::int64_t output_size(std::int64_t count) const { return count; }

    /// Throws shape_error if the record's number of values differs from the number of columns.
    template <class T, class Out>
    void apply(std::span<const T> record, std::span<Out> out) const {
        check(record.size(), out.size());
        for (std::size_t i = 0; i < record.size(); ++i) {
            const std::size_t c = offset_.size() == 1 ? 0 : i;
            out[i] = static_cast<Out>((static_cast<double>(record[i]) - offset_[c]) * factor_[c] + low_);
        }
    }
    /// Inverts `apply`.
    template <class T, class Out>
    void invert(std::span<const T> scaled, std::span<Out> out) const {
        check(scaled.size(), out.size());
        for (std::size_t i = 0; i < scaled.size(); ++i) {
            const std::size_t c = offset_.size() == 1 ? 0 : i;
            out[i] = static_cast<Out>((static_cast<double>(scaled[i]) - low_) / factor_[c] + offset_[c]);
        }
    }
    /// The scaled record.
    template <class T>
    std::vector<float> operator()(const std::vector<T>& record) const {
        std::vector<float> out(record.size());
        apply(std::span<const T>(record), std::span<float>(out));
        return out;
    }

protected:
    column_scaling(std::vector<double> offset, std::vector<double> factor, double low)
        : offset_(std::move(offset)), factor_(std::move(factor)), low_(low) {}

private:
    void check(std::size_t record, std::size_t out) const {
        if (record != out || (offset_.size() != 1 && record != offset_.size()))
            throw shape_error("column scaling: a record of " + std::to_string(record) + " values for " +
                              std::to_string(offset_.size()) + " columns, into " + std::to_string(out));
    }
    std::vector<double> offset_, factor_; ///< (x - offset) factor + low
    double low_;
};

/// (x - mean) / max(sqrt(variance), 1e-7) for each column, like Keras's Normalization.
///
///     data::column_statistics seen;
///     for (const auto& record : train) seen.add(std::span<const float>(record));
///     const data::normalization scaled(seen);
class normalization : public column_scaling {
public:
    /// Uses the statistics of the records seen. Throws argument_error if there were none.
    explicit normalization(const column_statistics& seen) : normalization(seen.mean(), seen.variance()) {}
    /// Uses given statistics, one per column, or one for all. Throws argument_error for none,
    /// different numbers, a negative variance, and numbers that are not finite.
    normalization(std::vector<double> mean, std::vector<double> variance)
        : column_scaling(mean, factors(mean, variance), 0), mean_(std::move(mean)), variance_(std::move(variance)) {}

    /// What is subtracted from each column.
    const std::vector<double>& mean() const { return mean_; }
    /// The square of what each column is divided by.
    const std::vector<double>& variance() const { return variance_; }

    /// The state as JSON, which `from_json` reads.
    std::string to_json() const {
        detail::state_writer state("normalization");
        state.numbers("mean", mean_);
        state.numbers("variance", variance_);
        return state.text();
    }
    /// Throws data_error.
    static normalization from_json(std::string_view text, const std::string& origin = "normalization");

private:
    static std::vector<double> factors(const std::vector<double>& mean, const std::vector<double>& variance);
    std::vector<double> mean_, variance_;
};

/// Scales each column to [low, high]: (x - minimum) / (maximum - minimum) (high - low) + low. A
/// constant column becomes low. Values outside the range that was seen are outside [low, high].
class min_max_scaling : public column_scaling {
public:
    /// Throws argument_error if no record was seen, or low is not below high.
    explicit min_max_scaling(const column_statistics& seen, double low = 0, double high = 1)
        : min_max_scaling(seen.minimum(), seen.maximum(), low, high) {}
    min_max_scaling(std::vector<double> minimum, std::vector<double> maximum, double low = 0, double high = 1)
        : column_scaling(minimum, factors(minimum, maximum, low, high), low),
          minimum_(std::move(minimum)),
          maximum_(std::move(maximum)),
          low_(low),
          high_(high) {}

    /// The value of each column that becomes `low`.
    const std::vector<double>& minimum() const { return minimum_; }
    /// The value of each column that becomes `high`.
    const std::vector<double>& maximum() const { return maximum_; }
    /// The lower end of the scaled values.
    double low() const { return low_; }
    /// The upper end of the scaled values.
    double high() const { return high_; }

    /// The state as JSON, which `from_json` reads.
    std::string to_json() const {
        detail::state_writer state("min_max_scaling");
        state.numbers("minimum", minimum_);
        state.numbers("maximum", maximum_);
        state.numbers("range", {low_, high_});
        return state.text();
    }
    /// The scaling of a state. Throws data_error, which names `origin`, for text that is none.
    static min_max_scaling from_json(std::string_view text, const std::string& origin = "min_max_scaling");

private:
    static std::vector<double> factors(const std::vector<double>& minimum, const std::vector<double>& maximum,
                                       double low, double high);
    std::vector<double> minimum_, maximum_;
    double low_, high_;
};

#if TG_DEFINES(data)

TG_DEFINITION void column_statistics::merge(const column_statistics& other) {
    if (other.count_ == 0) return;
    if (count_ == 0) {
        *this = other;
        return;
    }
    if (other.columns() != columns())
        throw shape_error("column_statistics: " + std::to_string(columns()) + " columns and " +
                          std::to_string(other.columns()));
    const auto ours = static_cast<double>(count_), theirs = static_cast<double>(other.count_), all = ours + theirs;
    for (std::size_t c = 0; c < mean_.size(); ++c) {
        const double distance = other.mean_[c] - mean_[c];
        mean_[c] += distance * (theirs / all);
        squares_[c] += other.squares_[c] + distance * distance * (ours * theirs / all);
        minimum_[c] = std::min(minimum_[c], other.minimum_[c]);
        maximum_[c] = std::max(maximum_[c], other.maximum_[c]);
    }
    count_ += other.count_;
}

TG_DEFINITION normalization normalization::from_json(std::string_view text, const std::string& origin) {
    std::vector<double> mean, variance;
    detail::read_state(text, origin, "normalization", [&](const std::string& name, io::json_reader& json) {
        if (name == "mean") return detail::read_numbers(json, mean);
        if (name == "variance") return detail::read_numbers(json, variance);
        return false;
    });
    return detail::restored(origin, [&] { return normalization(std::move(mean), std::move(variance)); });
}

TG_DEFINITION std::vector<double> normalization::factors(const std::vector<double>& mean,
                                                         const std::vector<double>& variance) {
    if (mean.empty() || mean.size() != variance.size())
        throw argument_error("normalization: " + std::to_string(mean.size()) + " means, " +
                             std::to_string(variance.size()) + " variances");
    std::vector<double> result;
    for (std::size_t c = 0; c < mean.size(); ++c) {
        if (!std::isfinite(mean[c]) || !std::isfinite(variance[c]) || variance[c] < 0)
            throw argument_error("normalization: column " + std::to_string(c) + ": mean " + number_text(mean[c]) +
                                 ", variance " + number_text(variance[c]));
        result.push_back(1 / std::max(std::sqrt(variance[c]), 1e-7));
    }
    return result;
}

TG_DEFINITION min_max_scaling min_max_scaling::from_json(std::string_view text, const std::string& origin) {
    std::vector<double> minimum, maximum, range;
    detail::read_state(text, origin, "min_max_scaling", [&](const std::string& name, io::json_reader& json) {
        if (name == "minimum") return detail::read_numbers(json, minimum);
        if (name == "maximum") return detail::read_numbers(json, maximum);
        if (name == "range") return detail::read_numbers(json, range);
        return false;
    });
    if (range.size() != 2)
        throw data_error(origin + ": the range has " + std::to_string(range.size()) + " numbers, not 2");
    return detail::restored(
        origin, [&] { return min_max_scaling(std::move(minimum), std::move(maximum), range[0], range[1]); });
}

TG_DEFINITION std::vector<double> min_max_scaling::factors(const std::vector<double>& minimum,
                                                           const std::vector<double>& maximum, double low,
                                                           double high) {
    if (minimum.empty() || minimum.size() != maximum.size() || !(low < high) || !std::isfinite(high - low))
        throw argument_error("min_max_scaling: " + std::to_string(minimum.size()) + " minima, " +
                             std::to_string(maximum.size()) + " maxima, to [" + number_text(low) + ", " +
                             number_text(high) + "]");
    std::vector<double> result;
    for (std::size_t c = 0; c < minimum.size(); ++c) {
        const double range = maximum[c] - minimum[c];
        if (!std::isfinite(range) || range < 0)
            throw argument_error("min_max_scaling: column " + std::to_string(c) + ": from " + number_text(minimum[c]) +
                                 " to " + number_text(maximum[c]));
        const double factor = (high - low) / range;
        result.push_back(std::isfinite(factor) ? factor : high - low);
    }
    return result;
}

#endif

} // namespace tapegraph::data
