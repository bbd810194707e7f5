#pragma once

#include <tapegraph/data/text/unicode_tables.hpp>
#include <tapegraph/data/text/utf8.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Character classes for all of Unicode: letters, numbers, marks, punctuation, blanks; and lower
/// case.

namespace tapegraph::data::unicode {

namespace detail {

/// A set of characters: the alternating starts and ends of the runs that have the property.
template <class = void>
std::vector<std::uint32_t> edges_of(std::span<const std::uint16_t> runs) {
    std::vector<std::uint32_t> edges;
    edges.reserve(runs.size());
    std::uint32_t at = 0;
    for (const std::uint16_t run : runs) edges.push_back(at += run);
    return edges;
}

inline bool within(const std::vector<std::uint32_t>& edges, std::uint32_t code) {
    return (std::upper_bound(edges.begin(), edges.end(), code) - edges.begin()) % 2 == 1;
}

} // namespace detail

/// Category L: letters of any alphabet, without combining marks.
template <class = void>
bool is_letter(std::uint32_t code) {
    if (code < 0x80) return (code | 0x20) >= 'a' && (code | 0x20) <= 'z';
    static const auto edges = detail::edges_of(data::detail::letter_runs);
    return detail::within(edges, code);
}
/// Category N: digits, and other numbers such as Roman and circled ones.
template <class = void>
bool is_number(std::uint32_t code) {
    if (code < 0x80) return code >= '0' && code <= '9';
    static const auto edges = detail::edges_of(data::detail::number_runs);
    return detail::within(edges, code);
}
/// Category M: accents and other marks that follow a letter as separate characters.
template <class = void>
bool is_mark(std::uint32_t code) {
    if (code < 0x300) return false;
    static const auto edges = detail::edges_of(data::detail::mark_runs);
    return detail::within(edges, code);
}
/// Category P. It has 23 of ASCII's 32 signs; $+<=>^`|~ are symbols.
template <class = void>
bool is_punctuation(std::uint32_t code) {
    static const auto edges = detail::edges_of(data::detail::punctuation_runs);
    return detail::within(edges, code);
}
/// The property White_Space: the blanks of ASCII, U+0085, and those of categories Zs, Zl and Zp.
inline bool is_space(std::uint32_t code) {
    if (code < 0x80) return code == ' ' || (code >= 9 && code <= 13);
    return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
           code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

/// The lower case of one character, or itself if it has none. U+0130 (I with a dot), whose lower
/// case is two characters, becomes i.
template <class = void>
std::uint32_t lower_case(std::uint32_t code) {
    if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 32 : code;
    if (code == 0x130) return 'i';
    const std::span<const data::detail::lower_case_run> runs(data::detail::lower_case_runs);
    const auto wanted = static_cast<std::int32_t>(code);
    const auto next = std::upper_bound(runs.begin(), runs.end(), wanted,
                                       [](std::int32_t value, const auto& run) { return value < run.first; });
    if (next == runs.begin()) return code;
    const auto& run = *(next - 1);
    const std::int32_t distance = wanted - run.first;
    if (distance % run.step != 0 || distance / run.step >= run.count) return code;
    return static_cast<std::uint32_t>(wanted + run.distance);
}

namespace detail {

inline bool ignorable_for_case(std::uint32_t code) {
    return code == '\'' || code == '.' || code == ':' || code == '^' || code == '`' || code == 0xAD || code == 0xB7 ||
           code == 0x2019 || is_mark(code);
}
/// Whether the capital sigma at `place` ends a word, where its lower case differs.
template <class = void>
bool is_final_sigma(const std::vector<std::uint32_t>& codes, std::size_t place) {
    std::size_t before = place, after = place + 1;
    while (before > 0 && ignorable_for_case(codes[before - 1])) --before;
    if (before == 0 || !is_letter(codes[before - 1])) return false;
    while (after < codes.size() && ignorable_for_case(codes[after])) ++after;
    return after == codes.size() || !is_letter(codes[after]);
}

} // namespace detail

/// Converts a text to lower case, like Python's str.lower(): Greek sigma depends on its place in
/// the word, and U+0130 becomes i and U+0307. Invalid UTF-8 is unchanged.
template <class = void>
std::string lower_case_of(std::string_view text) {
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
