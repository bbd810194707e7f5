#pragma once

#include <tapegraph/data/text/utf8.hpp>

#if !__has_include(<utf8proc.h>)
#error "tapegraph/data/text/unicode.hpp: needs utf8proc (Debian: libutf8proc-dev; CMake: tapegraph::unicode)"
#endif
#include <utf8proc.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Character classes for all of Unicode, by utf8proc: letters, numbers, marks, punctuation, blanks;
/// and lower case. The version of Unicode is the library's (utf8proc_unicode_version()).

namespace tapegraph::data::unicode {

namespace detail {

/// Whether the general category of a character is one of those from `first` to `last`.
inline bool in_categories(std::uint32_t code, utf8proc_category_t first, utf8proc_category_t last) {
    const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
    return category >= first && category <= last;
}

} // namespace detail

/// Category L: letters of any alphabet, without combining marks.
inline bool is_letter(std::uint32_t code) {
    if (code < 0x80) return (code | 0x20) >= 'a' && (code | 0x20) <= 'z';
    return detail::in_categories(code, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO);
}
/// Category N: digits, and other numbers such as Roman and circled ones.
inline bool is_number(std::uint32_t code) {
    if (code < 0x80) return code >= '0' && code <= '9';
    return detail::in_categories(code, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO);
}
/// Category M: accents and other marks that follow a letter as separate characters.
inline bool is_mark(std::uint32_t code) {
    return code >= 0x300 && detail::in_categories(code, UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME);
}
/// Category P. It has 23 of ASCII's 32 signs; $+<=>^`|~ are symbols.
inline bool is_punctuation(std::uint32_t code) {
    return detail::in_categories(code, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}
/// The property White_Space: the blanks of ASCII, U+0085, and those of categories Zs, Zl and Zp.
inline bool is_space(std::uint32_t code) {
    if (code < 0x80) return code == ' ' || (code >= 9 && code <= 13);
    return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
           code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

/// The lower case of one character, or itself if it has none. U+0130 (I with a dot), whose lower
/// case is two characters, becomes i.
inline std::uint32_t lower_case(std::uint32_t code) {
    if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 32 : code;
    return static_cast<std::uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
}

namespace detail {

inline bool ignorable_for_case(std::uint32_t code) {
    return code == '\'' || code == '.' || code == ':' || code == '^' || code == '`' || code == 0xAD || code == 0xB7 ||
           code == 0x2019 || is_mark(code);
}
/// Whether the capital sigma at `place` ends a word, where its lower case differs.
inline bool is_final_sigma(const std::vector<std::uint32_t>& codes, std::size_t place) {
    std::size_t before = place, after = place + 1;
    while (before > 0 && ignorable_for_case(codes[before - 1])) --before;
    if (before == 0 || !is_letter(codes[before - 1])) return false;
    while (after < codes.size() && ignorable_for_case(codes[after])) ++after;
    return after == codes.size() || !is_letter(codes[after]);
}

} // namespace detail

/// Converts a text to lower case, like Python's str.lower(): Greek sigma depends on its place in
/// the word, and U+0130 becomes i and U+0307. Invalid UTF-8 is unchanged.
inline std::string lower_case_of(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    std::vector<std::uint32_t> codes; // of the whole text, computed at the first sigma
    std::size_t place = 0;            // index of this character among them
    for (std::size_t at = 0; at < text.size(); ++place) {
        const utf8_character next = decode_utf8(text, at);
        if (next.code < 0x80) {
            result += static_cast<char>(lower_case(next.code));
        } else if (!next.valid) {
            result += text.substr(at, next.length);
        } else if (next.code == 0x130) {
            result += "i\xCC\x87";
        } else if (next.code == 0x3A3) {
            if (codes.empty()) codes = code_points(text);
            append_utf8(result, detail::is_final_sigma(codes, place) ? 0x3C2 : 0x3C3);
        } else {
            append_utf8(result, lower_case(next.code));
        }
        at += next.length;
    }
    return result;
}

} // namespace tapegraph::data::unicode
