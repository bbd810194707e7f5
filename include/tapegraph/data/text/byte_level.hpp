#pragma once

#include <tapegraph/data/text/unicode.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

/// Preparation of texts in byte-level tokenizers: splits a text into pieces, and writes bytes as
/// visible characters.

namespace tapegraph::data {

/// How a text is split. No merge crosses a piece's end.
enum class byte_level_split {
    gpt2,   ///< English endings, or a space and letters, digits or other signs, or blanks (GPT-2, RoBERTa, ...)
    cl100k, ///< the same, with digits by threes and separate line ends (GPT-4, Llama 3)
    qwen2,  ///< like cl100k, with single digits
    o200k,  ///< like cl100k, but capitals begin a word, and endings and marks belong to it (GPT-4o)
    none    ///< a text is one piece
};

namespace detail {

enum class character_class { letter, number, space, other };

/// A character and its class. Invalid UTF-8 counts as a sign of one or more bytes.
struct classified_character {
    std::uint32_t code = 0;
    std::size_t length = 0; ///< 0 after the end of the text
    character_class kind = character_class::other;
    bool valid = true;
};

inline classified_character classified(std::string_view text, std::size_t at) {
    if (at >= text.size()) return {};
    const utf8_character next = decode_utf8(text, at);
    const auto kind = !next.valid                     ? character_class::other
                      : unicode::is_letter(next.code) ? character_class::letter
                      : unicode::is_number(next.code) ? character_class::number
                      : unicode::is_space(next.code)  ? character_class::space
                                                      : character_class::other;
    return {next.code, next.length, kind, next.valid};
}

/// The end of the run of one class that begins at `at`, after at most `most` characters.
inline std::size_t end_of_run(std::string_view text, std::size_t at, character_class kind,
                              std::size_t most = std::string_view::npos) {
    for (; most > 0; --most) {
        const auto next = classified(text, at);
        if (next.length == 0 || next.kind != kind) break;
        at += next.length;
    }
    return at;
}

/// The length of 's, 't, 're, 've, 'm, 'll or 'd; 0 where there is none.
inline std::size_t length_of_ending(std::string_view text, std::size_t at, bool any_case) {
    if (text[at] != '\'') return 0;
    const auto letter = [&](std::size_t i) {
        const char c = i < text.size() ? text[i] : '\0';
        return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    };
    const char first = letter(at + 1), second = letter(at + 2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    if (any_case && text.substr(at + 1).starts_with("\xC5\xBF")) return 3; // the long s is another case of s
    return ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l') ? 3 : 0;
}

/// The end of the piece that begins with the blanks at `at`: all of them at the end of a text,
/// otherwise all but the last one, which belongs to the following piece (or is a piece of its own
/// if it is not a space).
inline std::size_t end_of_blanks(std::string_view text, std::size_t at, bool lines_apart) {
    std::size_t last = at, end = at, after_line_end = at;
    for (;;) {
        const auto next = classified(text, end);
        if (next.length == 0 || next.kind != character_class::space) break;
        last = end;
        end += next.length;
        if (next.code == '\n' || next.code == '\r') after_line_end = end;
    }
    if (lines_apart && after_line_end > at) return after_line_end;
    return end == text.size() || last == at ? end : last;
}

/// GPT-2's pattern:  's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
inline std::size_t end_of_gpt2_piece(std::string_view text, std::size_t at) {
    if (const std::size_t ending = length_of_ending(text, at, false); ending > 0) return at + ending;
    auto next = classified(text, at);
    const std::size_t from = next.code == ' ' ? at + 1 : at;
    if (from > at) next = classified(text, from);
    if (next.length > 0 && next.kind != character_class::space) return end_of_run(text, from, next.kind);
    return end_of_blanks(text, at, false);
}

/// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
inline std::size_t end_of_cl100k_piece(std::string_view text, std::size_t at, std::size_t digits) {
    if (const std::size_t ending = length_of_ending(text, at, true); ending > 0) return at + ending;
    const auto first = classified(text, at);
    const auto second = classified(text, at + first.length);
    if (first.kind == character_class::letter) return end_of_run(text, at, first.kind);
    const bool line_end = first.code == '\r' || first.code == '\n';
    if (!line_end && first.kind != character_class::number && second.length > 0 &&
        second.kind == character_class::letter)
        return end_of_run(text, at + first.length, second.kind);
    if (first.kind == character_class::number) return end_of_run(text, at, first.kind, digits);
    const std::size_t from = first.code == ' ' ? at + 1 : at;
    if (const auto sign = classified(text, from); sign.length > 0 && sign.kind == character_class::other) {
        std::size_t end = end_of_run(text, from, sign.kind);
        while (end < text.size() && (text[end] == '\r' || text[end] == '\n')) ++end;
        return end;
    }
    return end_of_blanks(text, at, true);
}

/// Letters from `at` on as o200k has them, where U is [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] and L is
/// [\p{Ll}\p{Lm}\p{Lo}\p{M}]: the end of U*L+, or, if `capitals`, of U+L*. `at` if there is none.
inline std::size_t end_of_o200k_letters(std::string_view text, std::size_t at, bool capitals) {
    const auto is_in = [&](const classified_character& c, bool upper) {
        if (c.length == 0) return false;
        if (c.kind == character_class::letter) return upper ? !unicode::is_small(c.code) : !unicode::is_capital(c.code);
        return c.kind == character_class::other && c.valid && unicode::is_mark(c.code);
    };
    std::size_t end = at, last_of_both = at; // where U* may end for L+ to have a character
    classified_character next = classified(text, end);
    for (; is_in(next, true); next = classified(text, end)) {
        end += next.length;
        if (is_in(next, false)) last_of_both = end;
    }
    if (!is_in(next, false)) return capitals ? end : last_of_both;
    if (capitals && end == at) return at;
    for (; is_in(next, false); next = classified(text, end)) end += next.length;
    return end;
}

/// [^\r\n\p{L}\p{N}]?U*L+(?i:'s|...)?|[^\r\n\p{L}\p{N}]?U+L*(?i:'s|...)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
inline std::size_t end_of_o200k_piece(std::string_view text, std::size_t at) {
    const auto first = classified(text, at);
    const bool before = first.code != '\r' && first.code != '\n' && first.kind != character_class::letter &&
                        first.kind != character_class::number;
    for (const bool capitals : {false, true})
        for (const std::size_t from : {before ? at + first.length : at, at}) {
            const std::size_t end = end_of_o200k_letters(text, from, capitals);
            if (end > from) return end < text.size() ? end + length_of_ending(text, end, true) : end;
        }
    if (first.kind == character_class::number) return end_of_run(text, at, first.kind, 3);
    const std::size_t from = first.code == ' ' ? at + 1 : at;
    if (const auto sign = classified(text, from); sign.length > 0 && sign.kind == character_class::other) {
        std::size_t end = end_of_run(text, from, sign.kind);
        while (end < text.size() && (text[end] == '\r' || text[end] == '\n' || text[end] == '/')) ++end;
        return end;
    }
    return end_of_blanks(text, at, true);
}

} // namespace detail

/// Calls `visit(std::string_view piece)` for the pieces of a text; concatenated they are the text.
template <class Visit>
void for_each_piece(std::string_view text, byte_level_split split, const Visit& visit) {
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = text.size();
        if (split == byte_level_split::gpt2) end = detail::end_of_gpt2_piece(text, at);
        if (split == byte_level_split::cl100k) end = detail::end_of_cl100k_piece(text, at, 3);
        if (split == byte_level_split::qwen2) end = detail::end_of_cl100k_piece(text, at, 1);
        if (split == byte_level_split::o200k) end = detail::end_of_o200k_piece(text, at);
        visit(text.substr(at, end - at));
        at = end;
    }
}

/// The character that represents a byte in the files of byte-level tokenizers: visible ones of
/// Latin-1 represent themselves, the others are mapped to U+0100 and up.
constexpr std::uint32_t byte_level_character(std::uint8_t byte) {
    const auto seen = [](std::uint32_t b) { return (b >= 33 && b <= 126) || (b >= 161 && b != 173); };
    if (seen(byte)) return byte;
    std::uint32_t code = 256;
    for (std::uint32_t b = 0; b < byte; ++b) code += !seen(b);
    return code;
}

/// Writes bytes as in these files: " né" is "ĠnÃ©".
inline std::string byte_level_text(std::string_view bytes) {
    static const auto characters = [] {
        std::array<std::string, 256> all;
        for (std::size_t b = 0; b < 256; ++b) append_utf8(all[b], byte_level_character(static_cast<std::uint8_t>(b)));
        return all;
    }();
    std::string text;
    for (const char c : bytes) text += characters[static_cast<unsigned char>(c)];
    return text;
}

/// Reads the bytes of such a text; returns false if a character represents none.
inline bool byte_level_bytes(std::string_view text, std::string& bytes) {
    static const auto values = [] {
        std::array<std::int16_t, 324> all{};
        all.fill(-1);
        for (int b = 0; b < 256; ++b)
            all[byte_level_character(static_cast<std::uint8_t>(b))] = static_cast<std::int16_t>(b);
        return all;
    }();
    bytes.clear();
    for (std::size_t at = 0; at < text.size();) {
        const utf8_character next = decode_utf8(text, at);
        if (!next.valid || next.code >= values.size() || values[next.code] < 0) return false;
        bytes += static_cast<char>(static_cast<unsigned char>(values[next.code]));
        at += next.length;
    }
    return true;
}

} // namespace tapegraph::data
