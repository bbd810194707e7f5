#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/data/tables/encoding.hpp>
#include <tapegraph/data/tables/state.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Maps numbers to bins.

namespace tapegraph::data {

/// Quantiles of values that arrive in parts, in memory of about 1 / epsilon numbers: the summary of
/// Keras's Discretization, number for number in float32. A value's rank is correct to within
/// epsilon of the total.
class quantile_summary {
public:
    /// Throws argument_error for an epsilon outside (0, 1).
    explicit quantile_summary(double epsilon = 0.01) : epsilon_(epsilon) {
        if (!(epsilon > 0 && epsilon < 1))
            throw argument_error("quantile_summary: epsilon is " + number_text(epsilon) + ", outside (0, 1)");
    }

    /// Adds one part of the values. Throws numeric_error for a value that is not finite.
    template <class T>
    void add(std::span<const T> values) {
        std::vector<float> sorted(values.size());
        for (std::size_t i = 0; i < values.size(); ++i) {
            sorted[i] = static_cast<float>(values[i]);
            if (!std::isfinite(sorted[i]))
                throw numeric_error("quantile_summary: value " + std::to_string(i) + " is not finite");
        }
        std::sort(sorted.begin(), sorted.end());
        const double step = std::max(static_cast<double>(sorted.size()) / (1.0 / epsilon_), 1.0);
        for (auto i = static_cast<std::size_t>(step - 1); i < sorted.size(); i += static_cast<std::size_t>(step))
            entries_.push_back({sorted[i], static_cast<float>(step)});
        std::stable_sort(entries_.begin(), entries_.end(),
                         [](const entry& a, const entry& b) { return a.value < b.value; });
        entries_ = compressed(epsilon_);
    }
    /// The num_bins - 1 boundaries between bins of equally many values; fewer if there were fewer
    /// values. Throws argument_error for num_bins below 1, or if there were no values.
    std::vector<double> boundaries(std::int64_t num_bins) const;

private:
    struct entry {
        float value, weight; ///< `weight` is the number of values up to this one
    };

    static double interpolated(double x, const std::vector<double>& from, const std::vector<double>& to);
    std::vector<entry> compressed(double epsilon) const;

    double epsilon_;
    std::vector<entry> entries_;
};

/// Maps numbers to bins, like Keras's Discretization: bin k is [boundary k - 1, boundary k), and
/// the first and the last one are open. NaN falls into the last.
///
///     const data::discretization ages({0, 18, 65});              // 4 bins
///     ages.indices_of(std::vector<float>{17.5f, 18, 90}) == std::vector<std::int32_t>{1, 2, 3};
class discretization {
public:
    /// Uses given boundaries. Throws argument_error if they are not finite or not ascending, and
    /// for tf_idf.
    explicit discretization(std::vector<double> boundaries, output_mode mode = output_mode::index);
    /// Uses bins with equal numbers of the values seen.
    discretization(const quantile_summary& seen, std::int64_t num_bins, output_mode mode = output_mode::index)
        : discretization(seen.boundaries(num_bins), mode) {}

    /// The ends of the bins, in ascending order; n boundaries make n + 1 bins.
    const std::vector<double>& boundaries() const { return boundaries_; }
    /// How bins are encoded.
    output_mode mode() const { return mode_; }
    /// The number of bins.
    std::int64_t depth() const { return static_cast<std::int64_t>(boundaries_.size()) + 1; }
    /// The bin of a value. A float is compared with boundaries rounded to float.
    template <class T>
    std::int32_t index_of(T value) const {
        using compared = std::conditional_t<std::is_same_v<T, float>, float, double>;
        const auto place =
            std::upper_bound(boundaries_.begin(), boundaries_.end(), static_cast<compared>(value),
                             [](compared x, double boundary) { return x < static_cast<compared>(boundary); });
        return static_cast<std::int32_t>(value != value ? boundaries_.end() - boundaries_.begin()
                                                        : place - boundaries_.begin());
    }
    /// The bin of each value, from 0.
    template <class T>
    std::vector<std::int32_t> indices_of(const std::vector<T>& values) const {
        std::vector<std::int32_t> result;
        for (const T value : values) result.push_back(index_of(value));
        return result;
    }

    /// The number of output values for a record of `count`, and the record encoded by the mode.
    std::int64_t output_size(std::int64_t count) const { return encoded_size(mode_, count, depth()); }
    /// Encodes a record into `out`, which has `output_size` elements.
    template <class T, class Out>
    void apply(std::span<const T> record, std::span<Out> out) const {
        const auto indices = indices_of(std::vector<T>(record.begin(), record.end()));
        encode_indices(std::span<const std::int32_t>(indices), mode_, depth(), out);
    }
    /// The encoded record.
    template <class T>
    std::vector<float> operator()(const std::vector<T>& record) const {
        std::vector<float> out(static_cast<std::size_t>(output_size(static_cast<std::int64_t>(record.size()))));
        apply(std::span<const T>(record), std::span<float>(out));
        return out;
    }

    /// The state as JSON, which `from_json` reads.
    std::string to_json() const {
        detail::state_writer state("discretization");
        state.numbers("boundaries", boundaries_);
        state.word("mode", name_of(mode_));
        return state.text();
    }
    /// The layer of a state. Throws data_error, which names `origin`, for text that is none.
    static discretization from_json(std::string_view text, const std::string& origin = "discretization");

private:
    std::vector<double> boundaries_;
    output_mode mode_;
};

#if TG_DEFINES(data)

TG_DEFINITION std::vector<double> quantile_summary::boundaries(std::int64_t num_bins) const {
    if (num_bins < 1 || entries_.empty())
        throw argument_error("quantile_summary: " + std::to_string(num_bins) + " bins of " +
                             (entries_.empty() ? "no values" : "values"));
    const auto bins = compressed(1.0 / static_cast<double>(num_bins));
    std::vector<double> result;
    for (std::size_t i = 0; i + 1 < bins.size(); ++i) result.push_back(bins[i].value);
    return result;
}

TG_DEFINITION double quantile_summary::interpolated(double x, const std::vector<double>& from,
                                                    const std::vector<double>& to) {
    if (x < from.front()) return to.front();
    const auto next = std::upper_bound(from.begin(), from.end(), x);
    if (next == from.end()) return to.back();
    const auto i = static_cast<std::size_t>(next - from.begin()) - 1;
    if (from[i] == x) return to[i];
    return (to[i + 1] - to[i]) / (from[i + 1] - from[i]) * (x - from[i]) + to[i];
}

TG_DEFINITION std::vector<quantile_summary::entry> quantile_summary::compressed(double epsilon) const {
    if (static_cast<double>(entries_.size()) * epsilon < 1) return entries_;
    std::vector<double> values, sums, shares;
    float sum = 0;
    for (const entry& each : entries_) {
        sum += each.weight;
        values.push_back(each.value);
        sums.push_back(sum);
    }
    for (const double each : sums) shares.push_back(static_cast<float>(each) / sum);
    std::vector<entry> result;
    double before = 0;
    const auto count = static_cast<std::int64_t>(std::ceil(1.0 / epsilon));
    for (std::int64_t i = 0; i < count; ++i) {
        const double share = epsilon + static_cast<double>(i) * epsilon;
        const double up_to = interpolated(share, shares, sums);
        result.push_back({static_cast<float>(interpolated(share, shares, values)), static_cast<float>(up_to - before)});
        before = up_to;
    }
    return result;
}

TG_DEFINITION discretization::discretization(std::vector<double> boundaries, output_mode mode)
    : boundaries_(std::move(boundaries)), mode_(mode) {
    if (mode == output_mode::tf_idf) throw argument_error("discretization: tf_idf is a mode of lookups");
    for (std::size_t i = 0; i < boundaries_.size(); ++i)
        if (!std::isfinite(boundaries_[i]) || (i > 0 && boundaries_[i] < boundaries_[i - 1]))
            throw argument_error("discretization: boundary " + std::to_string(i) + " is " +
                                 number_text(boundaries_[i]) +
                                 (i > 0 ? ", the one before it " + number_text(boundaries_[i - 1]) : ""));
}

TG_DEFINITION discretization discretization::from_json(std::string_view text, const std::string& origin) {
    std::vector<double> boundaries;
    output_mode mode = output_mode::index;
    detail::read_state(text, origin, "discretization", [&](const std::string& name, io::json_reader& json) {
        if (name == "boundaries") return detail::read_numbers(json, boundaries);
        if (name == "mode") return detail::read_mode(json, mode);
        return false;
    });
    return detail::restored(origin, [&] { return discretization(std::move(boundaries), mode); });
}

#endif

} // namespace tapegraph::data
