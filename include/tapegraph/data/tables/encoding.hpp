#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/core/shown_errors.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Encodes indices for a model: unchanged, or as rows of zeros and ones.

namespace tapegraph::data {

/// The encoding of indices: Keras's output_mode.
enum class output_mode {
    index,     ///< unchanged ("int" in Keras)
    one_hot,   ///< each index becomes a row of zeros with a one
    multi_hot, ///< all indices of a record become one row: 1 where an index occurs
    count,     ///< the same with the number of occurrences
    tf_idf     ///< the same, multiplied by the weights of the words; only for lookups
};

inline const char* name_of(output_mode mode) {
    constexpr const char* names[] = {"int", "one_hot", "multi_hot", "count", "tf_idf"};
    return names[static_cast<std::size_t>(mode)];
}

/// The number of values that encode a record of `count` indices.
inline std::int64_t encoded_size(output_mode mode, std::int64_t count, std::int64_t depth) {
    return mode == output_mode::index ? count : mode == output_mode::one_hot ? count * depth : depth;
}

/// Writes a record's indices into `out`, of encoded_size(mode, indices.size(), depth) values; rows
/// are contiguous. `weights`: for count, the increment of each index; empty: 1. Throws range_error
/// for an index outside [0, depth), except for mode index; argument_error for an `out` or weights
/// of another size.
template <class Index, class Out>
void encode_indices(std::span<const Index> indices, output_mode mode, std::int64_t depth, std::span<Out> out,
                    std::span<const std::type_identity_t<Out>> weights = {}) {
    const auto count = static_cast<std::int64_t>(indices.size());
    if (static_cast<std::int64_t>(out.size()) != encoded_size(mode, count, depth) ||
        (!weights.empty() && weights.size() != indices.size()))
        throw argument_error("encode_indices: " + std::to_string(count) + " indices become " +
                             std::to_string(encoded_size(mode, count, depth)) + " values, there is place for " +
                             std::to_string(out.size()) + "; weights: " + std::to_string(weights.size()));
    if (mode == output_mode::index) {
        std::transform(indices.begin(), indices.end(), out.begin(),
                       [](Index index) { return static_cast<Out>(index); });
        return;
    }
    std::fill(out.begin(), out.end(), Out(0));
    for (std::size_t i = 0; i < indices.size(); ++i) {
        const auto index = static_cast<std::int64_t>(indices[i]);
        if (index < 0 || index >= depth)
            throw range_error(index_outside("encode_indices", index, std::to_string(i), depth));
        Out& place = out[static_cast<std::size_t>(
            mode == output_mode::one_hot ? static_cast<std::int64_t>(i) * depth + index : index)];
        if (mode == output_mode::count || mode == output_mode::tf_idf)
            place = static_cast<Out>(place + (weights.empty() ? Out(1) : weights[i]));
        else
            place = Out(1);
    }
}

/// Options of `category_encoding`.
struct category_encoding_options {
    std::int64_t num_tokens = 0;
    output_mode mode = output_mode::multi_hot; ///< one_hot, multi_hot or count
};

/// Encodes integers of [0, num_tokens) as rows of zeros and ones: Keras's CategoryEncoding.
///
///     const data::category_encoding weekdays({.num_tokens = 7, .mode = data::output_mode::one_hot});
///     weekdays(std::vector{2, 0}) == std::vector<float>{0, 0, 1, 0, 0, 0, 0,  1, 0, 0, 0, 0, 0, 0};
class category_encoding {
public:
    using options = category_encoding_options;

    /// Throws argument_error for num_tokens below 1 and other modes.
    template <class Mistake = no_such_option_in<options>>
    explicit category_encoding(...) = delete;
    explicit category_encoding(options chosen);

    /// The options it was made with.
    const options& settings() const { return options_; }
    /// The number of values for a record of `count` indices.
    std::int64_t output_size(std::int64_t count) const {
        return encoded_size(options_.mode, count, options_.num_tokens);
    }
    /// Throws range_error for an index outside [0, num_tokens).
    template <class Index, class Out>
    void apply(std::span<const Index> indices, std::span<Out> out) const {
        encode_indices(indices, options_.mode, options_.num_tokens, out);
    }
    template <class Index>
    std::vector<float> operator()(const std::vector<Index>& indices) const {
        std::vector<float> out(static_cast<std::size_t>(output_size(static_cast<std::int64_t>(indices.size()))));
        apply(std::span<const Index>(indices), std::span<float>(out));
        return out;
    }
    /// For count: the increment of each index.
    template <class Index>
    std::vector<float> operator()(const std::vector<Index>& indices, const std::vector<float>& weights) const {
        if (options_.mode != output_mode::count)
            throw argument_error(std::string("category_encoding: weights are for count, the mode is ") +
                                 name_of(options_.mode));
        std::vector<float> out(static_cast<std::size_t>(options_.num_tokens));
        encode_indices(std::span<const Index>(indices), options_.mode, options_.num_tokens, std::span<float>(out),
                       std::span<const float>(weights));
        return out;
    }

private:
    options options_;
};

#if TG_DEFINES(data)

TG_DEFINITION category_encoding::category_encoding(options chosen) : options_(chosen) {
    if (chosen.num_tokens < 1)
        throw argument_error("category_encoding: num_tokens is " + std::to_string(chosen.num_tokens) +
                             ", at least 1 is needed");
    if (chosen.mode == output_mode::index || chosen.mode == output_mode::tf_idf)
        throw argument_error(std::string("category_encoding: the mode is ") + name_of(chosen.mode) +
                             ", one_hot, multi_hot and count are possible");
}

#endif

} // namespace tapegraph::data
