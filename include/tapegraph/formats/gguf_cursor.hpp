#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/formats/quoted_text.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

/// The metadata of GGUF files, and the cursor that reads their headers.

namespace tapegraph::io {

/// An entry of a GGUF file's metadata. Lists of whole numbers, of booleans too, are of std::int64_t
/// or, above 63 bits, std::uint64_t.
struct gguf_value {
    std::variant<bool, std::int64_t, std::uint64_t, double, std::string, std::vector<std::int64_t>,
                 std::vector<std::uint64_t>, std::vector<double>, std::vector<std::string>, std::vector<gguf_value>>
        value{};

    /// Throws dtype_error if it is no text.
    const std::string& text() const {
        if (const auto* const found = std::get_if<std::string>(&value)) return *found;
        throw dtype_error("gguf_value: not a text");
    }
    /// Throws dtype_error if it is no whole number, range_error for one above 63 bits.
    std::int64_t integer() const {
        if (const auto* const found = std::get_if<std::int64_t>(&value)) return *found;
        if (const auto* const wide = std::get_if<std::uint64_t>(&value)) {
            if (*wide <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
                return static_cast<std::int64_t>(*wide);
            throw range_error("gguf_value: " + std::to_string(*wide) + " does not fit 63 bits");
        }
        throw dtype_error("gguf_value: not a whole number");
    }
    /// A number of any type. Throws dtype_error if it is none.
    double number() const {
        if (const auto* const found = std::get_if<double>(&value)) return *found;
        if (const auto* const wide = std::get_if<std::uint64_t>(&value)) return static_cast<double>(*wide);
        return static_cast<double>(integer());
    }
    /// Throws dtype_error if it is no list of texts.
    const std::vector<std::string>& texts() const {
        if (const auto* const found = std::get_if<std::vector<std::string>>(&value)) return *found;
        throw dtype_error("gguf_value: not a list of texts");
    }
    /// Throws dtype_error if it is no list of whole numbers.
    const std::vector<std::int64_t>& integers() const {
        if (const auto* const found = std::get_if<std::vector<std::int64_t>>(&value)) return *found;
        throw dtype_error("gguf_value: not a list of whole numbers");
    }
};

namespace detail {

static_assert(std::endian::native == std::endian::little, "numbers of GGUF files are little-endian");

/// Reads numbers, texts and values one after another. Throws data_error, naming the file and what
/// was being read.
class gguf_cursor {
public:
    gguf_cursor(std::span<const std::byte> bytes, const std::string& file) : bytes_(bytes), file_(file) {}

    std::uint64_t at() const { return at_; }
    [[noreturn]] void refuse(const std::string& why) const { throw data_error(file_ + ": " + why); }

    template <class T>
    T number(std::string_view what) {
        T value{};
        std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
        return value;
    }
    std::string text(std::string_view what) {
        const auto length = number<std::uint64_t>(what);
        const auto bytes = take(length, what);
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
    /// A value of the type with this number: u8, i8, u16, i16, u32, i32, f32, bool, text, list,
    /// u64, i64, f64.
    gguf_value value(std::uint32_t type, const std::string& what, int depth) {
        switch (type) {
        case 0: return {number<std::uint8_t>(what) + std::int64_t{0}};
        case 1: return {number<std::int8_t>(what) + std::int64_t{0}};
        case 2: return {number<std::uint16_t>(what) + std::int64_t{0}};
        case 3: return {number<std::int16_t>(what) + std::int64_t{0}};
        case 4: return {number<std::uint32_t>(what) + std::int64_t{0}};
        case 5: return {number<std::int32_t>(what) + std::int64_t{0}};
        case 6: return {static_cast<double>(number<float>(what))};
        case 7: return {boolean(what)};
        case 8: return {text(what)};
        case 9: return list(what, depth);
        case 10: return {number<std::uint64_t>(what)};
        case 11: return {number<std::int64_t>(what)};
        case 12: return {number<double>(what)};
        default: refuse(what + ": a value of type " + std::to_string(type) + ", which GGUF does not have");
        }
    }

private:
    std::span<const std::byte> take(std::uint64_t count, std::string_view what) {
        if (count > bytes_.size() - at_) refuse("ends within " + std::string(what));
        const auto part = bytes_.subspan(at_, static_cast<std::size_t>(count));
        at_ += static_cast<std::size_t>(count);
        return part;
    }
    bool boolean(const std::string& what) {
        const auto value = number<std::uint8_t>(what);
        if (value > 1) refuse(what + ": a boolean that is " + std::to_string(value));
        return value == 1;
    }
    template <class To, class From>
    gguf_value list_of(std::uint64_t count, const std::string& what) {
        if (count > (bytes_.size() - at_) / sizeof(From)) refuse("ends within " + what);
        std::vector<To> result(static_cast<std::size_t>(count));
        for (To& each : result) each = static_cast<To>(number<From>(what));
        return {std::move(result)};
    }
    gguf_value list(const std::string& what, int depth) {
        constexpr int deepest = 8;
        const auto type = number<std::uint32_t>(what);
        const auto count = number<std::uint64_t>(what);
        switch (type) {
        case 0: return list_of<std::int64_t, std::uint8_t>(count, what);
        case 1: return list_of<std::int64_t, std::int8_t>(count, what);
        case 2: return list_of<std::int64_t, std::uint16_t>(count, what);
        case 3: return list_of<std::int64_t, std::int16_t>(count, what);
        case 4: return list_of<std::int64_t, std::uint32_t>(count, what);
        case 5: return list_of<std::int64_t, std::int32_t>(count, what);
        case 6: return list_of<double, float>(count, what);
        case 7: return list_of<std::int64_t, std::uint8_t>(count, what);
        case 10: return list_of<std::uint64_t, std::uint64_t>(count, what);
        case 11: return list_of<std::int64_t, std::int64_t>(count, what);
        case 12: return list_of<double, double>(count, what);
        case 8: {
            std::vector<std::string> texts;
            for (std::uint64_t i = 0; i < count; ++i) texts.push_back(text(what));
            return {std::move(texts)};
        }
        default: break;
        }
        if (type != 9) refuse(what + ": a list of type " + std::to_string(type) + ", which GGUF does not have");
        if (depth == deepest) refuse(what + " is nested too deeply");
        std::vector<gguf_value> lists;
        for (std::uint64_t i = 0; i < count; ++i) lists.push_back(list(what, depth + 1));
        return {std::move(lists)};
    }

    std::span<const std::byte> bytes_;
    const std::string& file_;
    std::size_t at_ = 0;
};

} // namespace detail
} // namespace tapegraph::io
