#pragma once

#include <tapegraph/data/text/unicode.hpp>
#include <tapegraph/formats/json_reader.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Normalizers of Hugging Face's tokenizers, which change a text before it is split.

namespace tapegraph::data {

/// A change of the text before it is split; those that are Unicode's have its names.
enum class text_normalizer {
    nfd,
    nfc,
    nfkd,
    nfkc,
    lower_case,    ///< character by character: a sigma does not depend on its place
    strip_accents, ///< removes all marks, after nfd also those of letters
    prepend_blank, ///< begins a text with U+2581, SentencePiece's sign for a blank
    mark_blanks,   ///< writes spaces as U+2581
};

inline constexpr std::string_view blank_sign = "\xE2\x96\x81"; // U+2581

namespace detail {

inline constexpr auto normalizer_names = std::to_array<std::pair<text_normalizer, std::string_view>>({
    {text_normalizer::nfd, "NFD"},
    {text_normalizer::nfc, "NFC"},
    {text_normalizer::nfkd, "NFKD"},
    {text_normalizer::nfkc, "NFKC"},
    {text_normalizer::lower_case, "Lowercase"},
    {text_normalizer::strip_accents, "StripAccents"},
});

} // namespace detail

/// A text after one of them. Invalid UTF-8 is unchanged.
inline std::string normalized_text(std::string_view text, text_normalizer by) {
    switch (by) {
    case text_normalizer::nfd: return unicode::normalized(text, unicode::normal_form::nfd);
    case text_normalizer::nfc: return unicode::normalized(text, unicode::normal_form::nfc);
    case text_normalizer::nfkd: return unicode::normalized(text, unicode::normal_form::nfkd);
    case text_normalizer::nfkc: return unicode::normalized(text, unicode::normal_form::nfkc);
    case text_normalizer::prepend_blank: return text.empty() ? std::string() : std::string(blank_sign).append(text);
    case text_normalizer::mark_blanks: {
        std::string marked;
        for (const char c : text) c == ' ' ? marked += blank_sign : marked += c;
        return marked;
    }
    case text_normalizer::lower_case:
    case text_normalizer::strip_accents: break;
    }
    std::string result;
    result.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const utf8_character next = decode_utf8(text, at);
        if (!next.valid)
            result += text.substr(at, next.length);
        else if (by == text_normalizer::lower_case && next.code == 0x130)
            result += "i\xCC\x87"; // two characters
        else if (by == text_normalizer::lower_case)
            append_utf8(result, unicode::lower_case(next.code));
        else if (!unicode::is_mark(next.code))
            append_utf8(result, next.code);
        at += next.length;
    }
    return result;
}
/// A text after each of them in turn.
inline std::string normalized_text(std::string_view text, std::span<const text_normalizer> by) {
    std::string result(text);
    for (const text_normalizer each : by) result = normalized_text(result, each);
    return result;
}

namespace detail {

/// Reads a normalizer of a tokenizer.json. Refuses those that are not in the table, by name.
inline std::vector<text_normalizer> read_normalizers(io::json_reader& json) {
    std::string type, pattern, content;
    std::vector<text_normalizer> inner;
    json.begin_object();
    for (std::string name; json.next_name(name);) {
        if (name == "type") {
            type = json.string();
        } else if (name == "prepend" || name == "content") {
            content = json.string();
        } else if (name == "pattern") {
            json.begin_object();
            for (std::string kind; json.next_name(kind);)
                if (kind == "String")
                    pattern = json.string();
                else
                    json.skip();
        } else if (name == "normalizers") {
            json.begin_array();
            while (json.next_element())
                for (const text_normalizer each : read_normalizers(json)) inner.push_back(each);
        } else {
            json.skip();
        }
    }
    if (type == "Sequence") return inner;
    if (type == "Prepend" && content == blank_sign) return {text_normalizer::prepend_blank};
    if (type == "Replace" && pattern == " " && content == blank_sign) return {text_normalizer::mark_blanks};
    for (const auto& [normalizer, name] : normalizer_names)
        if (type == name) return {normalizer};
    json.refuse("the normalizer " + io::quoted_text(type) +
                " is not supported: it changes texts before they are encoded");
}

/// The same as JSON; null for none.
inline std::string normalizers_text(std::span<const text_normalizer> all) {
    if (all.empty()) return "null";
    std::string text;
    for (const text_normalizer each : all) {
        text.append(text.empty() ? "" : ", ");
        for (const auto& [normalizer, name] : normalizer_names)
            if (each == normalizer) text.append(R"({"type": ")").append(name).append("\"}");
        if (each == text_normalizer::prepend_blank) text += R"({"type": "Prepend", "prepend": "\u2581"})";
        if (each == text_normalizer::mark_blanks)
            text += R"({"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"})";
    }
    return all.size() == 1 ? text : R"({"type": "Sequence", "normalizers": [)" + text + "]}";
}

} // namespace detail

} // namespace tapegraph::data
