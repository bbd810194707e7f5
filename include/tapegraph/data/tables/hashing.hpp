#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/data/tables/encoding.hpp>
#include <tapegraph/data/tables/fingerprint.hpp>
#include <tapegraph/data/tables/state.hpp>

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Categories without a vocabulary: the bin of a hash. The bins are exactly TensorFlow's.

namespace tapegraph::data {

/// Options of `hashing`.
struct hashing_options {
    std::int64_t num_bins = 0;               ///< including that of mask_value
    std::optional<std::string> mask_value{}; ///< gets bin 0, the others then those from 1 on
    std::optional<std::array<std::uint64_t, 2>>
        salt{}; ///< uses SipHash with this key instead of FarmHash; Keras's salt=7 is {7, 7}
    output_mode mode = output_mode::index;
};

/// Maps words and integers to bins, like Keras's Hashing: numbers are hashed as text ("-12"), and
/// reals lose their fraction first.
///
///     const data::hashing bins({.num_bins = 3});
///     bins.index_of("A") == 1;
class hashing {
public:
    /// Throws argument_error for num_bins below 1 and for tf_idf.
    template <class Mistake = no_such_option_in<hashing_options>>
    explicit hashing(...) = delete;
    explicit hashing(hashing_options options);

    /// The options it was made with.
    const hashing_options& options() const { return options_; }
    /// The number of bins.
    std::int64_t depth() const { return options_.num_bins; }
    std::int64_t index_of(std::string_view word) const;
    std::int64_t index_of(std::integral auto number) const {
        return index_of(std::string_view(std::to_string(number)));
    }
    /// Throws range_error for a number that is not finite, or beyond 64 bits.
    std::int64_t index_of(std::floating_point auto number) const {
        if (!(std::fabs(number) < 0x1p63))
            throw range_error("hashing: " + std::to_string(number) + " is not a whole number");
        return index_of(static_cast<std::int64_t>(number));
    }
    /// The bin of each value, from 0.
    template <class T>
    std::vector<std::int64_t> indices_of(const std::vector<T>& values) const {
        std::vector<std::int64_t> result;
        for (const T& value : values) result.push_back(index_of(value));
        return result;
    }

    /// Numbers of an encoded record of `count` values.
    std::int64_t output_size(std::int64_t count) const { return encoded_size(options_.mode, count, depth()); }
    /// Encodes a record into `out`, which has `output_size` elements.
    template <class T, class Out>
    void apply(std::span<const T> record, std::span<Out> out) const {
        std::vector<std::int64_t> indices;
        for (const T& value : record) indices.push_back(index_of(value));
        encode_indices(std::span<const std::int64_t>(indices), options_.mode, depth(), out);
    }
    /// The encoded record.
    template <class T>
    std::vector<float> operator()(const std::vector<T>& record) const {
        std::vector<float> out(static_cast<std::size_t>(output_size(static_cast<std::int64_t>(record.size()))));
        apply(std::span<const T>(record), std::span<float>(out));
        return out;
    }

private:
    hashing_options options_;
};

/// A category of one column, for a cross of several: a word or an integer.
class crossed_value {
public:
    crossed_value(std::string_view word) : hash_(fingerprint64(word)) {}
    crossed_value(const std::string& word) : crossed_value(std::string_view(word)) {}
    crossed_value(const char* word) : crossed_value(std::string_view(word)) {}
    crossed_value(std::integral auto number) : hash_(static_cast<std::uint64_t>(static_cast<std::int64_t>(number))) {}

    /// The hash of all values of the cross.
    std::uint64_t hash() const { return hash_; }

private:
    std::uint64_t hash_;
};

/// Options of `hashed_crossing`.
struct hashed_crossing_options {
    std::int64_t num_bins = 0;
    output_mode mode = output_mode::index; ///< index or one_hot
};

/// Crosses several features into one: the bin of the combined categories, like Keras's
/// HashedCrossing.
///
///     const data::hashed_crossing cross({.num_bins = 1000});
///     const std::int64_t bin = cross.index_of({"oslo", weekday, "rain"});
class hashed_crossing {
public:
    /// Throws argument_error for num_bins below 1 and modes that do not apply to one feature.
    template <class Mistake = no_such_option_in<hashed_crossing_options>>
    explicit hashed_crossing(...) = delete;
    explicit hashed_crossing(hashed_crossing_options options);

    /// The options it was made with.
    const hashed_crossing_options& options() const { return options_; }
    /// The number of bins.
    std::int64_t depth() const { return options_.num_bins; }
    /// The order of the columns matters. Throws argument_error for fewer than two.
    std::int64_t index_of(std::span<const crossed_value> values) const;
    std::int64_t index_of(std::initializer_list<crossed_value> values) const {
        return index_of(std::span<const crossed_value>(values.begin(), values.size()));
    }
    /// Encoded by the mode: one value, or num_bins.
    std::vector<float> operator()(std::initializer_list<crossed_value> values) const {
        const std::vector<std::int64_t> index{index_of(values)};
        std::vector<float> out(static_cast<std::size_t>(encoded_size(options_.mode, 1, depth())));
        encode_indices(std::span<const std::int64_t>(index), options_.mode, depth(), std::span<float>(out));
        return out;
    }
    /// The bin of every record of whole columns. Throws shape_error for columns of different
    /// lengths.
    std::vector<std::int64_t> of_columns(const std::vector<std::vector<crossed_value>>& columns) const;

private:
    hashed_crossing_options options_;
};

#if TG_DEFINES(data)

TG_DEFINITION hashing::hashing(hashing_options options) : options_(std::move(options)) {
    if (options_.num_bins < 1)
        throw argument_error("hashing: num_bins is " + std::to_string(options_.num_bins) + ", at least 1 is needed");
    if (options_.mode == output_mode::tf_idf) throw argument_error("hashing: tf_idf is a mode of lookups");
}

TG_DEFINITION std::int64_t hashing::index_of(std::string_view word) const {
    const bool masks = options_.mask_value && options_.num_bins > 1;
    if (masks && word == *options_.mask_value) return 0;
    const auto bins = static_cast<std::uint64_t>(options_.num_bins - (masks ? 1 : 0));
    const std::uint64_t hash =
        options_.salt ? keyed_hash(word, (*options_.salt)[0], (*options_.salt)[1]) : fingerprint64(word);
    return static_cast<std::int64_t>(hash % bins) + (masks ? 1 : 0);
}

TG_DEFINITION hashed_crossing::hashed_crossing(hashed_crossing_options options) : options_(options) {
    if (options.num_bins < 1)
        throw argument_error("hashed_crossing: num_bins is " + std::to_string(options.num_bins) +
                             ", at least 1 is needed");
    if (options.mode != output_mode::index && options.mode != output_mode::one_hot)
        throw argument_error(std::string("hashed_crossing: the mode is ") + name_of(options.mode) +
                             ", int and one_hot are possible");
}

TG_DEFINITION std::int64_t hashed_crossing::index_of(std::span<const crossed_value> values) const {
    if (values.size() < 2)
        throw argument_error("hashed_crossing: a cross of " + std::to_string(values.size()) + " columns");
    std::uint64_t hash = 0xDECAFCAFFE; // TensorFlow's initial value
    for (const crossed_value& each : values) hash = combined_fingerprint(hash, each.hash());
    return static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(options_.num_bins));
}

TG_DEFINITION std::vector<std::int64_t>
hashed_crossing::of_columns(const std::vector<std::vector<crossed_value>>& columns) const {
    std::vector<std::int64_t> bins;
    for (std::size_t i = 0; !columns.empty() && i < columns[0].size(); ++i) {
        std::vector<crossed_value> record;
        for (const auto& column : columns) {
            if (column.size() != columns[0].size())
                throw shape_error("hashed_crossing: columns of " + std::to_string(columns[0].size()) + " and " +
                                  std::to_string(column.size()) + " values");
            record.push_back(column[i]);
        }
        bins.push_back(index_of(record));
    }
    return bins;
}

#endif

} // namespace tapegraph::data
