#pragma once

#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/data/matrix.hpp>
#include <tapegraph/data/text/vocabulary.hpp>
#include <tapegraph/data/text/word_sequence.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Converts texts to sequences of word indices and back, like keras.preprocessing.text.Tokenizer.

namespace tapegraph::data {

/// Options of `tokenizer`, with Keras's names.
struct tokenizer_options {
    std::int64_t num_words = 0; ///< only lower indices are used; 0: all
    std::string filters{word_filters};
    bool lower = true;
    std::string split = " ";
    bool char_level = false; ///< every character is a word, without filters
    std::optional<std::string>
        oov_token{}; ///< gets the index 1, and replaces unknown words; without it, these are omitted
};

/// The entries of a matrix of texts for each word.
enum class matrix_mode {
    binary, ///< 1 if the word occurs
    count,  ///< number of occurrences
    freq,   ///< number of occurrences divided by the length of the sequence
    tfidf   ///< (1 + ln(count)) ln(1 + documents / (1 + documents with the word))
};

/// A word that fit_on_texts has seen.
struct word_statistics {
    std::string word;
    std::int64_t count = 0; ///< occurrences: Keras's word_counts
    std::int64_t docs = 0;  ///< texts that contain it: Keras's word_docs
    std::int64_t index = 0; ///< from 1 on: Keras's word_index
};

/// Learns indices of words: the most frequent one has the smallest, from 1 on (from 2 on after an
/// oov_token), and of equally frequent ones the one seen first. Index 0 is reserved for padding.
/// Functions other than fitting are const and may be called by many threads at once.
///
///     data::tokenizer words({.num_words = 10000, .oov_token = "<OOV>"});
///     words.fit_on_texts(texts);
///     const auto rows = data::pad_sequences(words.texts_to_sequences(texts), {.maxlen = 40});
class tokenizer {
public:
    using sequence = std::vector<std::int32_t>;

    /// Throws argument_error for a negative num_words and an empty split.
    template <class Mistake = no_such_option_in<tokenizer_options>>
    explicit tokenizer(...) = delete;
    explicit tokenizer(tokenizer_options options = {}) : options_(std::move(options)) {
        if (options_.num_words < 0)
            throw argument_error("tokenizer: num_words is " + std::to_string(options_.num_words) + ", negative");
        if (options_.split.empty()) throw argument_error("tokenizer: split is empty");
    }

    /// The options it was made with.
    const tokenizer_options& options() const { return options_; }
    /// Words in the order in which they were first seen.
    const std::vector<word_statistics>& words() const { return words_; }
    /// Texts it was fitted on.
    std::int64_t document_count() const { return document_count_; }
    /// The number of documents that contain an index, from fit_on_texts and fit_on_sequences.
    const std::map<std::int64_t, std::int64_t>& index_docs() const { return index_docs_; }
    /// The number of columns of a matrix: num_words, or one more than there are words.
    std::int64_t size() const {
        if (options_.num_words > 0) return options_.num_words;
        return static_cast<std::int64_t>(words_.size()) + 1 +
               (options_.oov_token && !numbers_.contains(*options_.oov_token) ? 1 : 0);
    }
    /// The index of a word, regardless of num_words; nullopt if it is unknown.
    std::optional<std::int64_t> index_of(std::string_view word) const {
        if (const auto found = numbers_.find(word); found != numbers_.end()) return words_[found->second].index;
        if (is_oov_token(word)) return 1;
        return {};
    }
    /// The word of an index, regardless of num_words; null if there is none.
    const std::string* word_of(std::int64_t index) const {
        if (index < 0 || index >= static_cast<std::int64_t>(by_index_.size())) return nullptr;
        const std::int64_t number = by_index_[static_cast<std::size_t>(index)];
        return number >= 0 ? &words_[static_cast<std::size_t>(number)].word
                           : (number == oov_number ? &*options_.oov_token : nullptr);
    }

    /// Splits one text into words by the options.
    std::vector<std::string> tokens_of(std::string_view text) const {
        if (options_.char_level) return text_to_character_sequence(text, options_.lower);
        return text_to_word_sequence(text, {options_.filters, options_.lower, options_.split});
    }

    /// Counts the words of these texts in addition to those of earlier calls, and renumbers all.
    void fit_on_texts(std::span<const std::string> texts) {
        for (const auto& text : texts) add_document(tokens_of(text));
        number_words();
    }
    /// The same for texts that are split into words already; `lower` applies to them, filters do
    /// not.
    void fit_on_texts(std::span<const std::vector<std::string>> texts) {
        for (const auto& words : texts) add_document(lowered(words));
        number_words();
    }
    /// Counts documents for sequences of indices, for tfidf without texts.
    void fit_on_sequences(std::span<const sequence> sequences) {
        for (sequence each : sequences) {
            ++document_count_;
            std::sort(each.begin(), each.end());
            each.erase(std::unique(each.begin(), each.end()), each.end());
            for (const auto index : each) ++index_docs_[index];
        }
    }

    /// The indices of one text. Unknown words, and those from num_words on, become the oov_token or
    /// are omitted.
    sequence text_to_sequence(std::string_view text) const { return indices_of(tokens_of(text)); }
    /// The indices of a text's words; unknown words are left out unless there is an `oov_token`.
    sequence operator()(std::string_view text) const { return text_to_sequence(text); }
    /// The indices of each text's words.
    std::vector<sequence> texts_to_sequences(std::span<const std::string> texts) const {
        std::vector<sequence> result;
        for (const auto& text : texts) result.push_back(text_to_sequence(text));
        return result;
    }
    std::vector<sequence> texts_to_sequences(std::span<const std::vector<std::string>> texts) const {
        std::vector<sequence> result;
        for (const auto& words : texts) result.push_back(indices_of(lowered(words)));
        return result;
    }

    /// The words of a sequence, separated by spaces. Indices without a word, or from num_words on,
    /// are treated as in text_to_sequence.
    std::string sequence_to_text(std::span<const std::int32_t> indices) const {
        std::string text;
        const std::string* const unknown =
            options_.oov_token && index_of(*options_.oov_token) ? &*options_.oov_token : nullptr;
        for (bool first = true; const auto index : indices) {
            const std::string* word = word_of(index);
            if (word == nullptr || is_beyond(index)) word = unknown;
            if (word == nullptr) continue;
            text.append(std::exchange(first, false) ? "" : " ").append(*word);
        }
        return text;
    }
    /// The words of each sequence, joined by blanks.
    std::vector<std::string> sequences_to_texts(std::span<const sequence> sequences) const {
        std::vector<std::string> texts;
        for (const auto& each : sequences) texts.push_back(sequence_to_text(each));
        return texts;
    }

    /// One row per sequence and one column per index: [sequences, size()]. Indices from size() on
    /// are omitted. Throws argument_error if there is neither num_words nor a fitted text, and for
    /// tfidf before any document; range_error for a negative index.
    template <class T = float>
    matrix<T> sequences_to_matrix(std::span<const sequence> sequences, matrix_mode mode = matrix_mode::binary) const {
        if (options_.num_words == 0 && words_.empty())
            throw argument_error("tokenizer.sequences_to_matrix: give num_words, or fit on texts first");
        matrix<T> result(static_cast<std::int64_t>(sequences.size()), size());
        for (std::size_t i = 0; i < sequences.size(); ++i)
            fill_row<T>(sequences[i], mode, result.row(static_cast<std::int64_t>(i)), i);
        return result;
    }
    /// A row for each text and a column for each word, filled as `mode` says.
    template <class T = float>
    matrix<T> texts_to_matrix(std::span<const std::string> texts, matrix_mode mode = matrix_mode::binary) const {
        return sequences_to_matrix<T>(texts_to_sequences(texts), mode);
    }

    /// Restores a tokenizer from a file's content: words with their indices, without an oov_token
    /// that is not a word of the texts. Throws argument_error for a duplicate word, an index
    /// outside [1, words + 1], and an index of two words.
    static tokenizer restored(tokenizer_options options, std::vector<word_statistics> words,
                              std::int64_t document_count, std::map<std::int64_t, std::int64_t> index_docs) {
        tokenizer result(std::move(options));
        const auto limit = static_cast<std::int64_t>(words.size()) + (result.options_.oov_token ? 2 : 1);
        result.by_index_.assign(1, unused);
        for (std::size_t i = 0; i < words.size(); ++i) {
            const auto& each = words[i];
            if (!result.numbers_.emplace(each.word, i).second)
                throw argument_error("tokenizer: the word " + io::quoted_text(each.word) + " appears twice");
            if (each.index < 1 || each.index >= limit)
                throw argument_error("tokenizer: the word " + io::quoted_text(each.word) + " has the index " +
                                     std::to_string(each.index) + ", not one of [1, " + std::to_string(limit) + ")");
            const auto place = static_cast<std::size_t>(each.index);
            if (place >= result.by_index_.size()) result.by_index_.resize(place + 1, unused);
            if (std::exchange(result.by_index_[place], static_cast<std::int64_t>(i)) != unused)
                throw argument_error("tokenizer: two words have the index " + std::to_string(each.index) + ", one is " +
                                     io::quoted_text(each.word));
        }
        if (result.options_.oov_token && !words.empty() && !result.numbers_.contains(*result.options_.oov_token)) {
            if (result.by_index_.size() < 2) result.by_index_.resize(2, unused);
            if (result.by_index_[1] != unused)
                throw argument_error("tokenizer: the index 1 is the oov_token's, and " +
                                     io::quoted_text(words[static_cast<std::size_t>(result.by_index_[1])].word) +
                                     " has it");
            result.by_index_[1] = oov_number;
        }
        result.words_ = std::move(words);
        result.document_count_ = document_count;
        result.last_document_.assign(result.words_.size(), 0);
        result.index_docs_ = std::move(index_docs);
        return result;
    }

private:
    static constexpr std::int64_t unused = -1, oov_number = -2; // in by_index_

    bool is_oov_token(std::string_view word) const {
        return options_.oov_token && !by_index_.empty() && *options_.oov_token == word;
    }
    bool is_beyond(std::int64_t index) const { return options_.num_words > 0 && index >= options_.num_words; }
    std::vector<std::string> lowered(std::vector<std::string> words) const {
        if (options_.lower)
            for (auto& word : words) word = unicode::lower_case_of(word);
        return words;
    }
    void add_document(const std::vector<std::string>& words) {
        ++document_count_;
        last_document_.resize(words_.size(), 0);
        for (const auto& word : words) {
            auto found = numbers_.find(word);
            if (found == numbers_.end()) {
                found = numbers_.emplace(word, words_.size()).first;
                words_.push_back({word, 0, 0, 0});
                last_document_.push_back(0);
            }
            auto& entry = words_[found->second];
            ++entry.count;
            if (std::exchange(last_document_[found->second], document_count_) != document_count_) ++entry.docs;
        }
    }
    void number_words() {
        std::vector<std::size_t> order(words_.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return words_[a].count > words_[b].count; });
        by_index_.assign(1, unused);
        // If the oov_token itself occurs as a word, it keeps that place, and the index 1 is unused.
        if (options_.oov_token) by_index_.push_back(numbers_.contains(*options_.oov_token) ? unused : oov_number);
        for (const std::size_t number : order) {
            words_[number].index = static_cast<std::int64_t>(by_index_.size());
            by_index_.push_back(static_cast<std::int64_t>(number));
        }
        for (const auto& each : words_) index_docs_[each.index] = each.docs;
    }
    sequence indices_of(const std::vector<std::string>& words) const {
        sequence indices;
        const auto unknown = options_.oov_token ? index_of(*options_.oov_token) : std::nullopt;
        for (const auto& word : words) {
            auto index = index_of(word);
            if (!index || is_beyond(*index)) index = unknown;
            if (index) indices.push_back(static_cast<std::int32_t>(*index));
        }
        return indices;
    }
    template <class T>
    void fill_row(const sequence& indices, matrix_mode mode, std::span<T> row, std::size_t number) const {
        if (mode == matrix_mode::tfidf && document_count_ == 0)
            throw argument_error("tokenizer.sequences_to_matrix: fit on data before tfidf");
        for (const auto index : indices) {
            if (index < 0)
                throw range_error("tokenizer.sequences_to_matrix: index " + std::to_string(index) + " in sequence " +
                                  std::to_string(number));
            if (static_cast<std::size_t>(index) < row.size()) row[static_cast<std::size_t>(index)] += T(1);
        }
        if (mode == matrix_mode::count) return;
        for (std::size_t j = 0; j < row.size(); ++j) {
            if (row[j] == T(0)) continue;
            const auto count = static_cast<double>(row[j]);
            if (mode == matrix_mode::binary) {
                row[j] = T(1);
            } else if (mode == matrix_mode::freq) {
                row[j] = static_cast<T>(count / static_cast<double>(indices.size()));
            } else {
                const auto docs = index_docs_.find(static_cast<std::int64_t>(j));
                const double having = docs == index_docs_.end() ? 0 : static_cast<double>(docs->second);
                row[j] = static_cast<T>((1 + std::log(count)) *
                                        std::log(1 + static_cast<double>(document_count_) / (1 + having)));
            }
        }
    }

    tokenizer_options options_;
    std::vector<word_statistics> words_;
    detail::text_map<std::size_t> numbers_;   // indices in words_
    std::vector<std::int64_t> by_index_;      // indices in words_, nobody or oov_number
    std::vector<std::int64_t> last_document_; // the last document with each word
    std::map<std::int64_t, std::int64_t> index_docs_;
    std::int64_t document_count_ = 0;
};

} // namespace tapegraph::data
