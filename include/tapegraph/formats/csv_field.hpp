#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/config.hpp>
#include <tapegraph/core/number_text.hpp>

#include <string>
#include <string_view>
#include <type_traits>

/// Fields of comma-separated values by RFC 4180.

namespace tapegraph::io {

/// Formats a field for a file: in quotes if it contains a comma, a quote, a line break or blanks at
/// its ends.
std::string csv_field(std::string_view text);

/// Formats a number for a file: the shortest text that reads back as the same value, in any locale.
template <class T>
    requires std::is_arithmetic_v<T> std::string csv_field(T value) {
        if constexpr (std::is_same_v<T, bool>)
            return value ? "true" : "false";
        else
            return number_text(value);
    }

#if TG_DEFINES(formats)

TG_DEFINITION std::string csv_field(std::string_view text) {
    const bool blank_ends = !text.empty() && (text.front() == ' ' || text.back() == ' ');
    if (!blank_ends && text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
    std::string quoted = "\"";
    for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
    return quoted += '"';
}

#endif

} // namespace tapegraph::io
