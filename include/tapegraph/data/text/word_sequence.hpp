#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/data/text/unicode.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tapegraph::data {

/// Characters that Keras does not count as part of a word: ASCII's punctuation without the
/// apostrophe, tabulator and line feed.
inline constexpr std::string_view word_filters = "!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n";

/// Options of `text_to_word_sequence`.
struct word_sequence_options {
    std::string filters{word_filters}; ///< characters that separate words like `split`, in UTF-8
    bool lower = true;                 ///< for any alphabet: unicode::lower_case_of
    std::string split = " ";           ///< separator of words
};

/// Splits a text into words, like keras.preprocessing.text.text_to_word_sequence: converts to lower
/// case, replaces every filter by `split`, and splits at `split` without empty words. Throws
/// argument_error for an empty `split`.
inline std::vector<std::string> text_to_word_sequence(std::string_view text,
                                                      const word_sequence_options& options = {}) {
    if (options.split.empty()) throw argument_error("text_to_word_sequence: split is empty");
    const std::string lowered = options.lower ? unicode::lower_case_of(text) : std::string(text);
    std::string plain;
    plain.reserve(lowered.size());
    const std::vector<std::uint32_t> filters = code_points(options.filters);
    for (std::size_t at = 0; at < lowered.size();) {
        const utf8_character next = decode_utf8(lowered, at);
        if (next.valid && std::find(filters.begin(), filters.end(), next.code) != filters.end())
            plain += options.split;
        else
            plain.append(lowered, at, next.length);
        at += next.length;
    }
    std::vector<std::string> words;
    for (std::size_t begin = 0; begin < plain.size();) {
        const std::size_t end = std::min(plain.find(options.split, begin), plain.size());
        if (end > begin) words.push_back(plain.substr(begin, end - begin));
        begin = end + options.split.size();
    }
    return words;
}

/// The characters of a text; invalid UTF-8 is unchanged.
inline std::vector<std::string> text_to_character_sequence(std::string_view text, bool lower = true) {
    const std::string lowered = lower ? unicode::lower_case_of(text) : std::string(text);
    std::vector<std::string> characters;
    for (std::size_t at = 0; at < lowered.size();) {
        const std::size_t length = decode_utf8(lowered, at).length;
        characters.push_back(lowered.substr(at, length));
        at += length;
    }
    return characters;
}

} // namespace tapegraph::data
