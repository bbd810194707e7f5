#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/half.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/core/shape.hpp>
#include <tapegraph/core/stream.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

/// Printing of values.

namespace tapegraph {

namespace detail {

/// The fewest digits that read back as the same value.
template <class T>
char* number_digits(char* first, char* last, T value, std::chars_format format = std::chars_format::general) {
    if constexpr (storage_type<T>) {
        char* end = first;
        const int least = format == std::chars_format::scientific ? 0 : 1; // digits after the point, or all digits
        for (int digits = least; digits <= least + 4; ++digits) {
            float back = 0;
            end = std::to_chars(first, last, static_cast<float>(value), format, digits).ptr;
            read_number(first, end, back);
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
        const auto end = number_digits(buffer, buffer + sizeof buffer, value);
        text.append(buffer, end);
        bool plain = true;
        for (const char* c = buffer; c != end; ++c) plain = plain && (*c == '-' || (*c >= '0' && *c <= '9'));
        if (plain) text += '.';
    } else {
        text += std::to_string(value);
    }
}

/// One element, before the column it stands in is known.
struct element_text {
    /// The fewest digits that read back as the value, in scientific notation; for other types the
    /// whole text
    char digits[48];
    int length = 0;
    double value = 0;
    std::string_view text() const { return {digits, static_cast<std::size_t>(length)}; }
};
using element_reader = void (*)(const void* data, std::int64_t at, element_text& out);

template <class T>
void read_element(const void* data, std::int64_t at, element_text& out) {
    const T value = static_cast<const T*>(data)[at];
    char* const last = out.digits + sizeof out.digits;
    char* end = out.digits;
    if constexpr (std::is_same_v<T, bool>) {
        end = std::copy_n(value ? "true" : "false", value ? 4 : 5, end);
    } else if constexpr (is_floating_type<T>) {
        out.value = static_cast<double>(value);
        if constexpr (storage_type<T>)
            end = number_digits(end, last, value, std::chars_format::scientific);
        else
            end = std::to_chars(end, last, value, std::chars_format::scientific).ptr;
        if (out.value != out.value) end = std::copy_n("nan", 3, out.digits); // without its sign
    } else {
        end = std::to_chars(end, last, value).ptr;
    }
    out.length = static_cast<int>(end - out.digits);
}

/// Prints elements in columns, as NumPy does. Floating-point numbers have at most eight digits
/// after the point, and are in scientific notation where the elements shown span more than three
/// decades or reach 1e8 or below 1e-4.
class array_printer {
public:
    array_printer(const shape& s, const void* data, element_reader reader, bool floating)
        : shape_(s), data_(data), reader_(reader), floating_(floating), abbreviated_(s.elements() > 1000) {}

    std::string print();

private:
    static constexpr std::int64_t edge = 3;
    static constexpr int precision = 8;

    // Runs three times: to find the range of the numbers, then the width of their columns, then to
    // write.
    void walk(int axis, std::int64_t at, int indent, std::string* text);

    void element(std::int64_t at, std::string* text);
    void padded(std::string& text, std::string_view word) const;

    // "1.25e+07" with this many digits after the point.
    static std::string scientific(double value, int digits);
    // With the fewest digits, at most eight after the point.
    static std::string shortest(const element_text& e);
    static std::string positional(const element_text& e);
    static std::string trimmed(std::string text);

    const shape& shape_;
    const void* data_;
    element_reader reader_;
    bool floating_, abbreviated_, scientific_ = false, measuring_ = false;
    double largest_ = 0, smallest_ = std::numeric_limits<double>::infinity();
    int before_ = 0, decimals_ = 0, exponent_ = 0, width_ = 0;
};

/// Nested brackets, "[[1. 2.]\n [3. 4.]]"; of more than 1000 elements, three at either end of long
/// axes; a scalar without brackets.
template <class T>
std::string array_text(const T* data, const shape& s) {
    if (s.rank() > 0) return array_printer(s, data, &read_element<T>, is_floating_type<T>).print();
    std::string text;
    print_value(text, *data);
    return text;
}

#if TG_DEFINES(runtime)

TG_DEFINITION std::string array_printer::print() {
    walk(0, 0, 0, nullptr);
    scientific_ = floating_ && largest_ > 0 && (largest_ >= 1e8 || smallest_ < 1e-4 || largest_ / smallest_ > 1000);
    if (floating_) {
        measuring_ = true;
        walk(0, 0, 0, nullptr);
        width_ = std::max(width_, before_ + 1 + decimals_ + exponent_);
    }
    std::string text;
    walk(0, 0, 0, &text);
    return text;
}

TG_DEFINITION void array_printer::walk(int axis, std::int64_t at, int indent, std::string* text) {
    if (axis == shape_.rank()) return element(at, text);
    std::int64_t stride = 1;
    for (int i = axis + 1; i < shape_.rank(); ++i) stride *= shape_[i].value;
    const std::int64_t extent = shape_[axis].value;
    const bool skips = abbreviated_ && extent > 2 * edge;
    if (text != nullptr) *text += '[';
    for (std::int64_t i = 0; i < extent; ++i) {
        if (text != nullptr && i > 0) {
            if (axis + 1 == shape_.rank())
                *text += ' ';
            else
                text->append(static_cast<std::size_t>(std::max(1, shape_.rank() - axis - 1)), '\n')
                    .append(static_cast<std::size_t>(indent) + 1, ' ');
        }
        if (skips && i == edge) {
            if (text != nullptr) *text += "...";
            i = extent - edge - 1;
            continue;
        }
        walk(axis + 1, at + i * stride, indent + 1, text);
    }
    if (text != nullptr) *text += ']';
}

TG_DEFINITION void array_printer::element(std::int64_t at, std::string* text) {
    element_text e;
    reader_(data_, at, e);
    if (!floating_ || !std::isfinite(e.value)) {
        if (text != nullptr)
            padded(*text, e.text());
        else
            width_ = std::max(width_, e.length);
        return;
    }
    if (text == nullptr && !measuring_) {
        if (e.value == 0) return;
        largest_ = std::max(largest_, std::abs(e.value));
        smallest_ = std::min(smallest_, std::abs(e.value));
        return;
    }
    if (scientific_ && text != nullptr) return padded(*text, scientific(e.value, decimals_));
    std::string digits = scientific_ ? shortest(e) : positional(e);
    const std::size_t tail = scientific_ ? digits.find('e') : digits.size();
    const auto point = static_cast<int>(digits.find('.'));
    const int decimals = static_cast<int>(tail) - point - 1;
    if (text == nullptr) {
        before_ = std::max(before_, point);
        decimals_ = std::max(decimals_, decimals);
        exponent_ = std::max(exponent_, static_cast<int>(digits.size() - tail));
        return;
    }
    padded(*text, digits.append(static_cast<std::size_t>(decimals_ - decimals), ' '));
}

TG_DEFINITION void array_printer::padded(std::string& text, std::string_view word) const {
    text.append(static_cast<std::size_t>(std::max(0, width_ - static_cast<int>(word.size()))), ' ').append(word);
}

TG_DEFINITION std::string array_printer::scientific(double value, int digits) {
    char buffer[48];
    std::string text(buffer,
                     std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific, digits).ptr);
    if (digits == 0) text.insert(text.find('e'), 1, '.');
    return text;
}

TG_DEFINITION std::string array_printer::shortest(const element_text& e) {
    std::string text(e.text());
    if (text.find('e') > static_cast<std::size_t>(precision) + 2 + (text[0] == '-'))
        text = scientific(e.value, precision);
    const std::size_t tail = text.find('e');
    return trimmed(text.substr(0, tail)) + text.substr(tail);
}

TG_DEFINITION std::string array_printer::positional(const element_text& e) {
    const std::string text(e.text());
    const std::size_t tail = text.find('e');
    int exponent = 0;
    std::from_chars(text.data() + tail + (text[tail + 1] == '+' ? 2 : 1), text.data() + text.size(), exponent);
    std::string digits;
    for (const char c : text.substr(0, tail))
        if (c >= '0' && c <= '9') digits += c;
    const int decimals = std::max(0, static_cast<int>(digits.size()) - 1 - exponent);
    if (decimals > precision || decimals == 0) { // a whole number is printed exactly
        char buffer[48];
        char* const end = std::to_chars(buffer, buffer + sizeof buffer, e.value, std::chars_format::fixed,
                                        std::min(decimals, precision))
                              .ptr;
        return trimmed({buffer, end});
    }
    if (exponent < 0) digits.insert(0, static_cast<std::size_t>(-exponent), '0');
    digits.insert(static_cast<std::size_t>(std::max(exponent, 0)) + 1, 1, '.');
    return trimmed((text[0] == '-' ? "-" : "") + digits);
}

TG_DEFINITION std::string array_printer::trimmed(std::string text) {
    if (text.find('.') == std::string::npos) return text + '.';
    while (text.back() == '0') text.pop_back();
    return text;
}

#endif

} // namespace detail

} // namespace tapegraph
