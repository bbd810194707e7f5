#pragma once

#include <tapegraph/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// From texts to tokens: standardised, then cut into words or characters. Texts are bytes, taken for UTF-8: what is said of
/// letters, punctuation and blanks is said of ASCII, and every byte from 0x80 on is (a part of) a letter that stays as it is.

namespace tapegraph::data {

enum class token_unit {
    word,     ///< what stands between ASCII blanks: space, \t, \n, \v, \f, \r
    character ///< an ASCII byte or a UTF-8 sequence; blanks are characters, too
};

struct token_options {
    bool lower_case = true; ///< A to Z become a to z
    bool strip_punctuation =
        true; ///< the 32 characters !"#$%&'()*+,-./:;<=>?@[\]^_`{|}~ vanish: "don't" is the word "dont"
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

/// The text with letters and punctuation as the options say.
inline std::string standardize(std::string_view text, const token_options& options = {}) {
    std::string result;
    result.reserve(text.size());
    for (const char c : text) {
        if (options.strip_punctuation && detail::is_punctuation(c)) continue;
        result += options.lower_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return result;
}

/// Calls `visit(std::string_view token)` for every token of a text that is standardised already. Bytes that are no UTF-8 are
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
