#pragma once

#include <tapegraph/core/half.hpp>
#include <tapegraph/core/shape.hpp>

#include <algorithm>
#include <charconv>
#include <string>
#include <type_traits>

/// Values as text.

namespace tapegraph {

namespace detail {

/// The fewest digits that give the value back.
template <class T>
char* number_text(char* first, char* last, T value) {
    if constexpr (storage_type<T>) {
        char* end = first;
        for (int digits = 1; digits <= 5; ++digits) {
            float back = 0;
            end = std::to_chars(first, last, static_cast<float>(value), std::chars_format::general, digits).ptr;
            std::from_chars(first, end, back);
            if (T(back) == value) break;
        }
        return end;
    } else {
        return std::to_chars(first, last, value).ptr;
    }
}

template <class T>
void print_value(std::string& text, T value) {
    if constexpr (std::is_same_v<T, bool>) {
        text += value ? "true" : "false";
    } else if constexpr (is_floating_type<T>) {
        char buffer[48];
        const auto end = number_text(buffer, buffer + sizeof buffer, value);
        text.append(buffer, end);
        bool plain = true;
        for (const char* c = buffer; c != end; ++c) plain = plain && (*c == '-' || (*c >= '0' && *c <= '9'));
        if (plain) text += '.';
    } else {
        text += std::to_string(value);
    }
}

/// "[[1. 2.]\n [3. 4.]]" as NumPy prints it: rows on lines of their own, long axes abbreviated.
template <class T>
void print_axis(std::string& text, const T* data, const shape& s, int axis, int indent) {
    if (axis == s.rank()) return print_value(text, *data);
    constexpr std::int64_t most = 1000, edge = 3;
    std::int64_t stride = 1;
    for (int i = axis + 1; i < s.rank(); ++i) stride *= s[i].value;
    const std::int64_t extent = s[axis].value;
    const bool abbreviate = s.elements() > most && extent > 2 * edge;
    text += '[';
    for (std::int64_t i = 0; i < extent; ++i) {
        if (i > 0) {
            if (axis + 1 == s.rank())
                text += ' ';
            else
                text.append(static_cast<std::size_t>(std::max(1, s.rank() - axis - 1)), '\n')
                    .append(static_cast<std::size_t>(indent) + 1, ' ');
        }
        if (abbreviate && i == edge) {
            text += "...";
            i = extent - edge - 1;
            continue;
        }
        print_axis(text, data + i * stride, s, axis + 1, indent + 1);
    }
    text += ']';
}

} // namespace detail

} // namespace tapegraph
