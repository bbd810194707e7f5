#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/data/counter_random.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// Pairs of words for embeddings of the word2vec kind (Mikolov et al., arXiv 1301.3781).

namespace tapegraph::data {

/// Entry i is the probability of keeping the word of rank i: min(1, sqrt(factor / frequency)), with
/// frequencies by Zipf's law, 1 / (rank (ln(rank) + 0.577) + 1/2 - 1 / (12 rank)). Rank 0 counts as
/// 1. Like Keras's make_sampling_table. Throws argument_error for a negative size and a factor that
/// is not positive.
std::vector<double> make_sampling_table(std::int64_t size, double sampling_factor = 1e-5);

/// Options of `skipgrams`.
struct skipgram_options {
    std::int64_t window_size = 4;         ///< words on either side
    double negative_samples = 1;          ///< pairs with a random word per pair of the text
    bool shuffle = true;                  ///< shuffle the pairs; otherwise those of the text come first, in order
    std::vector<double> sampling_table{}; ///< probability of keeping a word, by index; empty: 1
};

/// A pair of words, and whether it occurs in the text.
struct skipgram {
    std::int32_t target = 0, context = 0;
    std::int32_t label = 0; ///< 1: the context is near the target; 0: it is a random word
    bool operator==(const skipgram&) const = default;
};

/// Pairs of words of one sequence, like Keras's skipgrams: each word with those of its window
/// (label 1), and `negative_samples` times as many pairs of its words with words drawn from [1,
/// vocabulary_size) (label 0). Index 0 is not a word and is omitted. Random choices depend only on
/// (seed, stream), where stream is the number of the sequence. Throws argument_error for invalid
/// options, range_error for an index outside [0, vocabulary_size) or the sampling table.
std::vector<skipgram> skipgrams(std::span<const std::int32_t> sequence, std::int64_t vocabulary_size,
                                const skipgram_options& options = {}, std::uint64_t seed = 0, std::uint64_t stream = 0);

#if TG_DEFINES(data)

TG_DEFINITION std::vector<double> make_sampling_table(std::int64_t size, double sampling_factor) {
    if (size < 0 || !(sampling_factor > 0))
        throw argument_error("make_sampling_table: size " + std::to_string(size) + ", sampling_factor " +
                             number_text(sampling_factor));
    std::vector<double> table(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < table.size(); ++i) {
        const double rank = i == 0 ? 1 : static_cast<double>(i);
        const double inverse_frequency = rank * (std::log(rank) + 0.577) + 0.5 - 1 / (12 * rank);
        table[i] = std::min(1.0, std::sqrt(sampling_factor * inverse_frequency));
    }
    return table;
}

TG_DEFINITION std::vector<skipgram> skipgrams(std::span<const std::int32_t> sequence, std::int64_t vocabulary_size,
                                              const skipgram_options& options, std::uint64_t seed,
                                              std::uint64_t stream) {
    if (vocabulary_size < 2 || options.window_size < 0 || !(options.negative_samples >= 0))
        throw argument_error("skipgrams: vocabulary_size " + std::to_string(vocabulary_size) + ", window_size " +
                             std::to_string(options.window_size) + ", negative_samples " +
                             number_text(options.negative_samples));
    const auto& table = options.sampling_table;
    const auto limit =
        table.empty() ? vocabulary_size : std::min(vocabulary_size, static_cast<std::int64_t>(table.size()));
    const auto length = static_cast<std::int64_t>(sequence.size());
    for (std::int64_t i = 0; i < length; ++i)
        if (const auto word = sequence[static_cast<std::size_t>(i)]; word < 0 || word >= limit)
            throw range_error(index_outside("skipgrams", word, std::to_string(i), limit));
    counter_random random(seed, stream);
    std::vector<skipgram> pairs;
    for (std::int64_t i = 0; i < length; ++i) {
        const std::int32_t target = sequence[static_cast<std::size_t>(i)];
        if (target == 0) continue;
        if (!table.empty() && table[static_cast<std::size_t>(target)] < random.uniform()) continue;
        const std::int64_t end = options.window_size < length - i ? i + options.window_size + 1 : length;
        for (std::int64_t j = std::max<std::int64_t>(0, i - options.window_size); j < end; ++j) {
            const std::int32_t context = sequence[static_cast<std::size_t>(j)];
            if (j != i && context != 0) pairs.push_back({target, context, 1});
        }
    }
    const std::size_t positive = pairs.size();
    const auto negative = static_cast<std::size_t>(static_cast<double>(positive) * options.negative_samples);
    if (positive > 0 && negative > 0) {
        std::vector<std::int32_t> targets;
        targets.reserve(positive);
        for (const auto& pair : pairs) targets.push_back(pair.target);
        for (std::size_t i = positive; i > 1; --i) std::swap(targets[i - 1], targets[random.below(i)]);
        pairs.reserve(positive + negative);
        for (std::size_t i = 0; i < negative; ++i) {
            const auto word = 1 + random.below(static_cast<std::uint64_t>(vocabulary_size - 1));
            pairs.push_back({targets[i % positive], static_cast<std::int32_t>(word), 0});
        }
    }
    if (options.shuffle)
        for (std::size_t i = pairs.size(); i > 1; --i) std::swap(pairs[i - 1], pairs[random.below(i)]);
    return pairs;
}

#endif

} // namespace tapegraph::data
