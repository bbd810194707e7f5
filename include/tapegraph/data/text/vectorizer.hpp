#pragma once

#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/data/text/labelled_texts.hpp>
#include <tapegraph/data/text/tokens.hpp>
#include <tapegraph/data/text/vocabulary.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// Converts texts to rows of indices, like Keras's TextVectorization.

namespace tapegraph::data {

/// Where short texts are padded.
enum class pad_side {
    back, ///< like Keras's TextVectorization: a recurrent layer then needs the mask of the words (embedding_mask)
    front ///< the last step is the last word
};

/// What a text without tokens is.
enum class empty_text {
    refuse, ///< a text without tokens is a data_error that names it
    unknown ///< the text becomes one unknown word
};

/// Defaults as in Keras.
struct vectorizer_options {
    token_options tokens{};
    std::int64_t max_tokens = 0; ///< size of the vocabulary, including padding and unknown words; 0: no limit
    std::int64_t length = 0;     ///< length of every row; 0: that of the longest text of a call
    /// Keep the first `length` tokens of a longer text; otherwise it is a data_error that names it.
    bool truncate = true;
    pad_side padding = pad_side::back;
    empty_text empty = empty_text::refuse;
};

/// Rows of equal length.
struct token_rows {
    std::vector<std::int32_t> indices; ///< [count, length]
    std::int64_t count = 0, length = 0;
    std::vector<std::int32_t> lengths; ///< [count], excluding padding
};

/// Converts texts to rows of indices into a vocabulary.
///
///     data::text_vectorizer words({.max_tokens = 20000, .length = 40});
///     words.adapt(parts.train);
///     const data::dataset train = data::make_dataset(parts.train, words);
class text_vectorizer {
public:
    template <class Mistake = no_such_option_in<vectorizer_options>>
    explicit text_vectorizer(...) = delete;

    /// Starts with an empty vocabulary, which adapt fills. Throws argument_error for negative
    /// numbers.
    explicit text_vectorizer(const vectorizer_options& options = {}) : options_(options) {
        if (options.max_tokens < 0 || options.length < 0)
            throw argument_error("text_vectorizer: max_tokens is " + std::to_string(options.max_tokens) + ", length " +
                                 std::to_string(options.length) + ": neither may be negative");
    }
    text_vectorizer(const vectorizer_options& options, vocabulary words) : text_vectorizer(options) {
        words_ = std::move(words);
    }

    /// The options it was made with.
    const vectorizer_options& options() const { return options_; }
    /// The vocabulary.
    const vocabulary& words() const { return words_; }

    /// Replaces the vocabulary by the most frequent tokens of these texts.
    void adapt(std::span<const std::string> texts) {
        word_counter counter;
        for (const auto& text : texts)
            for_each_token(standardize(text, options_.tokens), options_.tokens.unit,
                           [&](std::string_view token) { counter.add(token); });
        words_ = counter.most_frequent(options_.max_tokens);
    }
    void adapt(const labelled_texts& all) { adapt(std::span<const std::string>(all.texts)); }

    /// The indices of one text, one per token.
    std::vector<std::int32_t> indices_of(std::string_view text) const {
        std::vector<std::int32_t> indices;
        for_each_token(standardize(text, options_.tokens), options_.tokens.unit,
                       [&](std::string_view token) { indices.push_back(words_.index_of(token)); });
        return indices;
    }

    /// One row per text. Throws data_error naming the text if it has no tokens or, without
    /// `truncate`, more than `length`.
    token_rows rows(std::span<const std::string> texts) const {
        return rows_of(texts, [](std::size_t i) { return "text " + std::to_string(i); });
    }
    token_rows rows(const labelled_texts& all) const {
        return rows_of(all.texts, [&](std::size_t i) { return all.name_of(i); });
    }

private:
    template <class NameOf>
    token_rows rows_of(std::span<const std::string> texts, const NameOf& name_of) const {
        token_rows result;
        result.count = static_cast<std::int64_t>(texts.size());
        std::vector<std::vector<std::int32_t>> all;
        all.reserve(texts.size());
        result.length = options_.length;
        for (std::size_t i = 0; i < texts.size(); ++i) {
            auto indices = indices_of(texts[i]);
            if (indices.empty()) {
                if (options_.empty == empty_text::refuse)
                    throw data_error(name_of(i) + ": no tokens in " + io::quoted_text(texts[i]));
                indices.push_back(vocabulary::unknown);
            }
            const auto count = static_cast<std::int64_t>(indices.size());
            if (options_.length == 0) {
                result.length = std::max(result.length, count);
            } else if (count > options_.length) {
                if (!options_.truncate)
                    throw data_error(name_of(i) + ": " + std::to_string(count) + " tokens, at most " +
                                     std::to_string(options_.length) + " are allowed: " + io::quoted_text(texts[i]));
                indices.resize(static_cast<std::size_t>(options_.length));
            }
            result.lengths.push_back(static_cast<std::int32_t>(indices.size()));
            all.push_back(std::move(indices));
        }
        result.indices.assign(static_cast<std::size_t>(result.count * result.length), vocabulary::padding);
        for (std::size_t i = 0; i < all.size(); ++i) {
            const auto row = result.indices.begin() + static_cast<std::ptrdiff_t>(i) * result.length;
            const auto spare = result.length - static_cast<std::int64_t>(all[i].size());
            std::copy(all[i].begin(), all[i].end(), row + (options_.padding == pad_side::front ? spare : 0));
        }
        return result;
    }

    vectorizer_options options_;
    vocabulary words_;
};

namespace detail {

/// Converts indices to a model's type. Throws argument_error if Index cannot represent all of a
/// vocabulary's.
template <class Index>
std::vector<Index> indices_as(const std::vector<std::int32_t>& indices, std::int64_t size) {
    static_assert(std::is_same_v<Index, float> || std::is_same_v<Index, double> ||
                      std::is_same_v<Index, std::int32_t> || std::is_same_v<Index, std::int64_t>,
                  "indices are float, double, int32 or int64");
    // float represents all integers up to 2^24.
    if (std::is_same_v<Index, float> && size > (std::int64_t{1} << 24) + 1)
        throw argument_error("indices of a vocabulary of " + std::to_string(size) + " words are not floats");
    return {indices.begin(), indices.end()};
}

} // namespace detail

/// A data set with the columns "tokens" (Index, [length]) and "label" (i32, []). A model of
/// `spec<float, dyn, dyn>` takes float, which its embedding casts.
template <class Index = float>
dataset make_dataset(const labelled_texts& all, const text_vectorizer& words) {
    const token_rows rows = words.rows(all);
    dataset result;
    result.add("tokens", detail::indices_as<Index>(rows.indices, words.words().size()), {rows.length});
    result.add("label", all.labels);
    return result;
}

} // namespace tapegraph::data
