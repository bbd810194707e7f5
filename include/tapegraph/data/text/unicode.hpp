#pragma once

#include <tapegraph/data/text/utf8.hpp>

#if !__has_include(<utf8proc.h>)
#error "tapegraph/data/text/unicode.hpp: needs utf8proc (Debian: libutf8proc-dev; CMake: tapegraph::unicode)"
#endif
#include <utf8proc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// Character classes for all of Unicode, by utf8proc: letters, numbers, marks, punctuation, blanks;
/// lower case, and normal forms. The version of Unicode is the library's (utf8proc_unicode_version()).

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
/// Categories Lu and Lt: capital letters, and ligatures of which the first one is.
inline bool is_capital(std::uint32_t code) {
    if (code < 0x80) return code >= 'A' && code <= 'Z';
    return detail::in_categories(code, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LU) ||
           detail::in_categories(code, UTF8PROC_CATEGORY_LT, UTF8PROC_CATEGORY_LT);
}
/// Category Ll: small letters.
inline bool is_small(std::uint32_t code) {
    if (code < 0x80) return code >= 'a' && code <= 'z';
    return detail::in_categories(code, UTF8PROC_CATEGORY_LL, UTF8PROC_CATEGORY_LL);
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
/// Category Mn: marks that take no place of their own, such as accents.
inline bool is_nonspacing_mark(std::uint32_t code) {
    return code >= 0x300 && detail::in_categories(code, UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_MN);
}
/// Categories Cc, Cf and Co: characters without an appearance, and private ones.
inline bool is_control(std::uint32_t code) {
    return detail::in_categories(code, UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CF) ||
           detail::in_categories(code, UTF8PROC_CATEGORY_CO, UTF8PROC_CATEGORY_CO);
}
/// Category P. It has 23 of ASCII's 32 signs; $+<=>^`|~ are symbols.
inline bool is_punctuation(std::uint32_t code) {
    return detail::in_categories(code, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}
/// \w of regular expressions (UTS #18): letters, marks, decimal digits, numbers that are letters,
/// underscores and other connectors, joiners, and letters in circles or squares.
inline bool is_word_character(std::uint32_t code) {
    if (code < 0x80) return is_letter(code) || is_number(code) || code == '_';
    return is_letter(code) || is_mark(code) ||
           detail::in_categories(code, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NL) ||
           detail::in_categories(code, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PC) || code == 0x200C ||
           code == 0x200D || (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
           (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189);
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

/// Unicode's normal forms (UAX #15).
enum class normal_form {
    nfd,  ///< a letter and its accents as separate characters
    nfc,  ///< a letter and its accents as one character, where there is one
    nfkd, ///< nfd, and ligatures, circled numbers, full-width letters, ... as the characters they stand for
    nfkc  ///< the same for nfc
};

namespace detail {

/// Normalizes valid UTF-8.
inline void append_normalized(std::string& to, std::string_view text, normal_form form) {
    const bool composes = form == normal_form::nfc || form == normal_form::nfkc;
    int options = UTF8PROC_STABLE | (composes ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE);
    if (form == normal_form::nfkc || form == normal_form::nfkd) options |= UTF8PROC_COMPAT;
    utf8proc_uint8_t* bytes = nullptr;
    const utf8proc_ssize_t length =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                     &bytes, static_cast<utf8proc_option_t>(options));
    const auto release = [](utf8proc_uint8_t* p) { std::free(p); };
    const std::unique_ptr<utf8proc_uint8_t, decltype(release)> owner(bytes);
    if (length < 0) throw error(std::string("unicode::normalized: ") + utf8proc_errmsg(length));
    to.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length));
}

} // namespace detail

/// A text in a normal form, like Python's unicodedata.normalize. Invalid UTF-8 is unchanged.
inline std::string normalized(std::string_view text, normal_form form) {
    if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
        return std::string(text);
    std::string result;
    while (!text.empty()) {
        const std::size_t good = io::utf8_prefix(text);
        if (good > 0) detail::append_normalized(result, text.substr(0, good), form);
        text.remove_prefix(good);
        if (text.empty()) break;
        const std::size_t bad = decode_utf8(text, 0).length;
        result += text.substr(0, bad);
        text.remove_prefix(bad);
    }
    return result;
}

} // namespace tapegraph::data::unicode
