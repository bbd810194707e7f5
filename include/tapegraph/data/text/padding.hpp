#pragma once

#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/data/matrix.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tapegraph::data {

/// The end of a sequence that is padded or truncated; names are those of Keras.
enum class sequence_end {
    pre, ///< before the first element
    post ///< after the last element
};

/// Options of `pad_sequences`.
struct padding_options {
    std::int64_t maxlen = 0; ///< length of every row; 0: that of the longest sequence
    sequence_end padding = sequence_end::pre;
    sequence_end truncating = sequence_end::pre; ///< the end at which a longer sequence loses elements
    double value = 0;                            ///< the padding value
};

/// Writes one sequence into a row, padded or truncated to its length, for use in a pipeline's
/// `map`.
template <class T, class Out>
void pad_sequence(std::span<const T> sequence, std::span<Out> row, const padding_options& options = {}) {
    const std::size_t kept = std::min(sequence.size(), row.size());
    const auto from = sequence.subspan(options.truncating == sequence_end::pre ? sequence.size() - kept : 0, kept);
    std::fill(row.begin(), row.end(), static_cast<Out>(options.value));
    const auto to = row.subspan(options.padding == sequence_end::pre ? row.size() - kept : 0, kept);
    std::transform(from.begin(), from.end(), to.begin(), [](T value) { return static_cast<Out>(value); });
}

/// Sequences as rows of equal length, like keras.utils.pad_sequences: [sequences, maxlen]. Throws
/// argument_error for a negative maxlen.
template <class Out = std::int32_t, class T>
matrix<Out> pad_sequences(std::span<const std::vector<T>> sequences, const padding_options& options = {}) {
    if (options.maxlen < 0)
        throw argument_error("pad_sequences: maxlen is " + std::to_string(options.maxlen) + ", negative");
    std::size_t length = static_cast<std::size_t>(options.maxlen);
    if (options.maxlen == 0)
        for (const auto& each : sequences) length = std::max(length, each.size());
    matrix<Out> result(static_cast<std::int64_t>(sequences.size()), static_cast<std::int64_t>(length));
    for (std::size_t i = 0; i < sequences.size(); ++i)
        pad_sequence(std::span<const T>(sequences[i]), result.row(static_cast<std::int64_t>(i)), options);
    return result;
}
// clang-format off
template <class = void> no_such_option_in<padding_options> pad_sequences(any_argument, ...) TG_MISTAKE;
// clang-format on
template <class Out = std::int32_t, class T>
matrix<Out> pad_sequences(const std::vector<std::vector<T>>& sequences, const padding_options& options = {}) {
    return pad_sequences<Out>(std::span<const std::vector<T>>(sequences), options);
}

} // namespace tapegraph::data
