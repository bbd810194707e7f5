#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/config.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace tapegraph::io {

/// Formats a text for errors: in quotes, with control characters as \n or \x1b, and truncated to
/// `longest` bytes after a whole UTF-8 character, with dots.
std::string quoted_text(std::string_view text, std::size_t longest = 40);

#if TG_DEFINES(formats)

TG_DEFINITION std::string quoted_text(std::string_view text, std::size_t longest) {
    std::size_t end = text.size();
    if (end > longest) {
        end = longest;
        while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;
    }
    constexpr std::string_view digits = "0123456789abcdef";
    std::string shown = "'";
    for (const char c : text.substr(0, end)) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\n')
            shown += "\\n";
        else if (c == '\r')
            shown += "\\r";
        else if (c == '\t')
            shown += "\\t";
        else if (byte < 0x20 || byte == 0x7F)
            shown.append("\\x").append(1, digits[byte >> 4]).append(1, digits[byte & 15]);
        else
            shown += c;
    }
    return shown += end < text.size() ? "'..." : "'";
}

#endif

} // namespace tapegraph::io
