#pragma once

#include <tapegraph/formats/quoted_text.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// UTF-8 for file formats: validation, and encoding of a character.

namespace tapegraph::io {

/// The number of leading bytes of a text that are valid UTF-8: all of them, or those before the
/// first invalid one. Overlong forms, surrogates and code points above U+10FFFF are invalid (RFC
/// 3629).
inline std::size_t utf8_prefix(std::string_view text) {
    const auto byte = [&](std::size_t i) -> unsigned {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; // 0 continues nothing
    };
    const auto continues = [&](std::size_t i, unsigned least = 0x80, unsigned most = 0xBF) {
        return byte(i) >= least && byte(i) <= most;
    };
    std::size_t at = 0;
    while (at < text.size()) {
        const unsigned lead = byte(at);
        if (lead < 0x80)
            at += 1;
        else if (lead >= 0xC2 && lead <= 0xDF && continues(at + 1))
            at += 2;
        else if (lead >= 0xE0 && lead <= 0xEF &&
                 continues(at + 1, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF) && continues(at + 2))
            at += 3;
        else if (lead >= 0xF0 && lead <= 0xF4 &&
                 continues(at + 1, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF) && continues(at + 2) &&
                 continues(at + 3))
            at += 4;
        else
            break;
    }
    return at;
}

/// Appends a character, a code point up to 0x10FFFF, as one to four bytes.
inline void append_utf8(std::string& to, std::uint32_t code) {
    const auto add = [&](std::uint32_t byte) { to += static_cast<char>(static_cast<unsigned char>(byte)); };
    const auto follow = [&](int shift) { add(0x80u | ((code >> shift) & 0x3Fu)); };
    if (code < 0x80) return add(code);
    if (code < 0x800) {
        add(0xC0u | (code >> 6));
        return follow(0);
    }
    if (code < 0x10000) {
        add(0xE0u | (code >> 12));
        follow(6);
        return follow(0);
    }
    add(0xF0u | (code >> 18));
    follow(12);
    follow(6);
    follow(0);
}

} // namespace tapegraph::io
