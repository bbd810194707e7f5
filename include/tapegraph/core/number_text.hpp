#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/config.hpp>

#include <cerrno>
#include <charconv>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

/// Numbers as text and back, the same in every locale. std::to_string shows 1e-7 as 0.000000, and printf and strtod write and
/// read the decimal point of the program's locale.

namespace tapegraph {

/// The shortest text that reads back as the same value: "0.1", "1e-07", "3", "inf".
template <class T>
    requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
std::string number_text(T value) {
    char text[64];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

/// A number rounded to so many significant digits, at most 40, without zeros at its end: "0.333333" for 6.
inline std::string rounded_text(double value, int digits) {
    char text[64];
    return {text, std::to_chars(text, text + sizeof text, value, std::chars_format::general, digits).ptr};
}

namespace detail {

/// Where the text of a floating-point number ends, as std::from_chars sees it; `first` if there is none.
const char* end_of_floating(const char* first, const char* last);

/// std::from_chars by strtod and its relatives.
template <class T>
std::from_chars_result read_floating(const char* first, const char* last, T& value) {
    const char* const end = end_of_floating(first, last);
    if (end == first) return {first, std::errc::invalid_argument};
    std::string text(first, end);
    if (const auto point = text.find('.'); point != text.npos) text.replace(point, 1, std::localeconv()->decimal_point);
    const int before = std::exchange(errno, 0);
    T read{};
    if constexpr (std::is_same_v<T, float>)
        read = std::strtof(text.c_str(), nullptr);
    else if constexpr (std::is_same_v<T, double>)
        read = std::strtod(text.c_str(), nullptr);
    else
        read = std::strtold(text.c_str(), nullptr);
    const bool beyond =
        errno == ERANGE && (read == 0 || std::isinf(read)); // not of subnormal numbers, which are exact enough
    errno = before;
    if (beyond) return {end, std::errc::result_out_of_range};
    value = read;
    return {end, std::errc{}};
}

/// std::from_chars, which libc++ lacks for floating types before version 20.
template <class T>
std::from_chars_result read_number(const char* first, const char* last, T& value) {
    if constexpr (requires { std::from_chars(first, last, value); })
        return std::from_chars(first, last, value);
    else
        return read_floating(first, last, value);
}
template <class T>
std::from_chars_result read_number(std::string_view text, T& value) {
    return read_number(text.data(), text.data() + text.size(), value);
}

} // namespace detail

#if TG_DEFINES(runtime)

TG_DEFINITION const char* detail::end_of_floating(const char* first, const char* last) {
    const char* at = first;
    const auto digits = [&] {
        const char* const from = at;
        while (at != last && *at >= '0' && *at <= '9') ++at;
        return at - from;
    };
    const auto word = [&](std::string_view small) {
        if (static_cast<std::size_t>(last - at) < small.size()) return false;
        for (std::size_t i = 0; i < small.size(); ++i)
            if ((at[i] | 0x20) != small[i]) return false;
        at += small.size();
        return true;
    };
    if (at != last && *at == '-') ++at;
    if (word("infinity") || word("inf") || word("nan")) return at;
    const auto whole = digits();
    if (at != last && *at == '.') {
        ++at;
        if (digits() + whole == 0) return first;
    } else if (whole == 0) {
        return first;
    }
    if (at != last && (*at | 0x20) == 'e') {
        const char* const before = at++;
        if (at != last && (*at == '+' || *at == '-')) ++at;
        if (digits() == 0) at = before;
    }
    return at;
}

#endif

} // namespace tapegraph
