#pragma once

#include <string>
#include <string_view>

/// Small files written by other programs, as text in the source of a test.

namespace support {

/// Decodes base64.
inline std::string from_base64(std::string_view text) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    unsigned value = 0;
    int bits = 0;
    for (const char c : text) {
        const auto digit = digits.find(c);
        if (digit == digits.npos) continue; // '=' at the end
        value = (value << 6 | static_cast<unsigned>(digit)) & 0xFFFFFF;
        bits += 6;
        if (bits < 8) continue;
        bits -= 8;
        bytes += static_cast<char>(value >> bits);
    }
    return bytes;
}

} // namespace support
