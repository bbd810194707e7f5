#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/formats/utf8.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.

namespace tapegraph::data {

/// Replaces invalid UTF-8.
inline constexpr std::uint32_t replacement_character = 0xFFFD;

/// A character of a text and the bytes it takes.
struct utf8_character {
    std::uint32_t code = 0; ///< replacement_character for invalid UTF-8
    std::size_t length = 0; ///< in bytes; for invalid UTF-8 the bytes that begin a character, at least 1
    bool valid = true;
};

/// Decodes the character at byte `at`, which is below text.size().
inline utf8_character decode_utf8(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t i) {
        return static_cast<std::uint32_t>(static_cast<unsigned char>(text[at + i]));
    };
    const std::uint32_t first = byte(0);
    if (first < 0x80) return {first, 1, true};
    const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4) return {replacement_character, 1, false};
    std::uint32_t code = first & (0xFFu >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) {
        // The second byte excludes overlong forms (E0, F0), surrogates (ED) and code points above
        // U+10FFFF (F4).
        const std::uint32_t low = i == 1 && first == 0xE0 ? 0xA0 : i == 1 && first == 0xF0 ? 0x90 : 0x80;
        const std::uint32_t high = i == 1 && first == 0xED ? 0x9F : i == 1 && first == 0xF4 ? 0x8F : 0xBF;
        if (at + i >= text.size() || byte(i) < low || byte(i) > high) return {replacement_character, i, false};
        code = code << 6 | (byte(i) & 0x3F);
    }
    return {code, length, true};
}

/// Appends one character. Throws range_error for a surrogate and a code point above U+10FFFF.
inline void append_utf8(std::string& text, std::uint32_t code) {
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        throw range_error("utf8: " + std::to_string(code) + " is not the number of a character");
    io::append_utf8(text, code);
}

/// The position of the first byte that is not valid UTF-8; npos if there is none.
inline std::size_t find_invalid_utf8(std::string_view text) {
    const std::size_t good = io::utf8_prefix(text);
    return good == text.size() ? text.npos : good;
}

/// Throws data_error naming `origin` ("'book.txt'") and the first byte that is not valid UTF-8.
inline void check_utf8(std::string_view text, std::string_view origin) {
    const std::size_t bad = find_invalid_utf8(text);
    if (bad == text.npos) return;
    constexpr std::string_view digits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(text[bad]);
    throw data_error(std::string(origin) + ": no UTF-8 at byte " + std::to_string(bad) + ": 0x" + digits[byte >> 4] +
                     digits[byte & 15]);
}

/// The code points of the characters; invalid UTF-8 becomes replacement_character.
inline std::vector<std::uint32_t> code_points(std::string_view text) {
    std::vector<std::uint32_t> codes;
    for (std::size_t at = 0; at < text.size();) {
        const utf8_character next = decode_utf8(text, at);
        codes.push_back(next.code);
        at += next.length;
    }
    return codes;
}

/// The same text with replacement_character for invalid UTF-8, like Python's errors="replace".
inline std::string repaired_utf8(std::string_view text) {
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
        const utf8_character next = decode_utf8(text, at);
        if (next.valid)
            result += text.substr(at, next.length);
        else
            append_utf8(result, replacement_character);
        at += next.length;
    }
    return result;
}

} // namespace tapegraph::data
