#pragma once

#include <tapegraph/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// Converts texts to tokens: standardises them, then splits them into words or characters. Texts
/// are bytes, assumed to be UTF-8. Letters, punctuation and blanks are those of ASCII, and every
/// byte from 0x80 on is (a part of) a letter that is unchanged.

namespace tapegraph::data {

/// What a text is cut into.
enum class token_unit {
    word,     ///< text between ASCII blanks: space, \t, \n, \v, \f, \r
    character ///< an ASCII byte or a UTF-8 sequence; blanks are also characters
};

/// How texts are cleaned and cut into tokens.
struct token_options {
    bool lower_case = true; ///< A to Z become a to z
    bool strip_punctuation =
        true; ///< remove the 32 characters !"#$%&'()*+,-./:;<=>?@[\]^_`{|}~: "don't" is the word "dont"
    token_unit unit = token_unit::word;
};

namespace detail {

inline bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
inline bool is_punctuation(char c) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}
/// True for the second and later bytes of a UTF-8 sequence.
inline bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u; }

} // namespace detail

/// Applies the options to letters and punctuation of a text.
inline std::string standardize(std::string_view text, const token_options& options = {}) {
    std::string result;
    result.reserve(text.size());
    for (const char c : text) {
        if (options.strip_punctuation && detail::is_punctuation(c)) continue;
        result += options.lower_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return result;
}

/// Calls `visit(std::string_view token)` for every token of a standardised text. Invalid UTF-8 is
/// passed on: a stray continuation byte belongs to the character before it.
template <class Visit>
void for_each_token(std::string_view text, token_unit unit, const Visit& visit) {
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at;
        if (unit == token_unit::character) {
            ++end;
            while (end < text.size() && detail::continues_character(text[end])) ++end;
        } else {
            while (end < text.size() && !detail::is_blank(text[end])) ++end;
        }
        if (end > at) visit(text.substr(at, end - at));
        at = end;
        while (unit == token_unit::word && at < text.size() && detail::is_blank(text[at])) ++at;
    }
}

} // namespace tapegraph::data
