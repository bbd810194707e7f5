#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/data/text/unicode.hpp>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// SentencePiece's normalization rules as its models carry them: a table of what becomes of texts.

namespace tapegraph::data {

namespace detail {

/// The bytes of base64 (RFC 4648); nullopt for other text.
inline std::optional<std::string> from_base64(std::string_view text) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    while (text.ends_with('=')) text.remove_suffix(1);
    std::string bytes;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char c : text) {
        const std::size_t digit = digits.find(c);
        if (digit == digits.npos) return {};
        bits = bits << 6 | static_cast<std::uint32_t>(digit);
        count += 6;
        if (count < 8) continue;
        count -= 8;
        bytes += static_cast<char>(static_cast<unsigned char>(bits >> count));
    }
    return bytes;
}

} // namespace detail

/// The rules: a trie of texts, as an array in which a node's children stand at its offset xor their
/// byte (J. Aoe, "An efficient digital search algorithm by using a double-array structure", 1989), and
/// what becomes of them.
class precompiled_normalizer {
public:
    /// `bytes`: the size of the trie (u32), the trie (u32 each), and texts that end in zeros. Throws
    /// argument_error for others.
    explicit precompiled_normalizer(std::string_view bytes) {
        std::uint32_t size = 0;
        if (bytes.size() >= 4) std::memcpy(&size, bytes.data(), 4);
        if (bytes.size() < 4 || size % 4 != 0 || size == 0 || size > bytes.size() - 4)
            throw argument_error("precompiled_charsmap: a trie of " + std::to_string(size) + " bytes in " +
                                 std::to_string(bytes.size()));
        units_.resize(size / 4);
        std::memcpy(units_.data(), bytes.data() + 4, size);
        texts_ = bytes.substr(4 + size);
        texts_ += '\0';
    }

    /// A text by these rules, as the package `tokenizers` applies them: a grapheme below 6 bytes becomes what
    /// its shortest beginning with a rule becomes; others are changed character by character.
    std::string operator()(std::string_view text) const {
        std::string result;
        result.reserve(text.size());
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = end_of_grapheme(text, at);
            if (const std::string_view whole = text.substr(at, end - at); whole.size() < 6)
                if (const auto changed = of(whole)) {
                    result += *changed;
                    at = end;
                    continue;
                }
            while (at < end) {
                const std::string_view character = text.substr(at, decode_utf8(text, at).length);
                const auto changed = of(character);
                result += changed ? *changed : character;
                at += character.size();
            }
        }
        return result;
    }

private:
    static std::size_t end_of_grapheme(std::string_view text, std::size_t at) {
        utf8_character one = decode_utf8(text, at);
        utf8proc_int32_t state = 0;
        std::size_t end = at + one.length;
        while (end < text.size()) {
            const utf8_character next = decode_utf8(text, end);
            if (!one.valid || !next.valid ||
                utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(one.code),
                                                 static_cast<utf8proc_int32_t>(next.code), &state))
                break;
            end += next.length;
            one = next;
        }
        return end;
    }
    /// What becomes of the shortest beginning that has a rule.
    std::optional<std::string_view> of(std::string_view text) const {
        const auto offset = [](std::uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); };
        std::size_t at = offset(units_[0]);
        for (const char c : text) {
            const auto byte = static_cast<unsigned char>(c);
            at ^= byte;
            if (byte == 0 || at >= units_.size() || (units_[at] & (1u << 31 | 0xFFu)) != byte) return {};
            const std::uint32_t unit = units_[at];
            at ^= offset(unit);
            if ((unit >> 8 & 1) == 0) continue;
            const std::size_t place = at < units_.size() ? units_[at] & ((1u << 31) - 1) : texts_.size();
            if (place >= texts_.size()) return {};
            return std::string_view(texts_.c_str() + place);
        }
        return {};
    }

    std::vector<std::uint32_t> units_;
    std::string texts_;
};

} // namespace tapegraph::data
