#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/formats/utf8.hpp>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

/// A streaming reader of JSON (RFC 8259), without a tree: the caller requests what it expects, and
/// anything else is an error with its offset. It is hand-written, so that programs read safetensors
/// without a library; docs/design/build/smaller_decisions.md compares it with nlohmann's.

namespace tapegraph::io {

/// The type of a JSON value.
enum class json_kind { null, boolean, number, string, array, object };

/// Reads a text from start to end:
///
///     tg::io::json_reader json(text, "'settings.json'");
///     json.begin_object();
///     for (std::string name; json.next_name(name);)
///         if (name == "steps") steps = json.integer(); else json.skip();
///     json.end();
///
/// Every function throws data_error if the text is not JSON, or holds something other than
/// requested; the message begins with `origin` and names the offset. So do a duplicate name in one
/// object, text that is not UTF-8, numbers out of range, and values nested more than `max_depth`
/// deep.
class json_reader {
public:
    json_reader(std::string_view text, std::string origin, int max_depth = 64)
        : text_(text), origin_(std::move(origin)), max_depth_(max_depth) {}

    /// The offset of the next token.
    std::size_t offset() const { return at_; }
    /// The kind of the next value.
    json_kind peek();

    /// Enters an object. Throws data_error if the next value is none.
    void begin_object() { open(json_kind::object, "an object", true); }
    /// Reads the next name, after which its value must be read, or skipped. Returns false at the
    /// object's end and consumes it.
    bool next_name(std::string& name);
    /// Enters an array. Throws data_error if the next value is none.
    void begin_array() { open(json_kind::array, "an array", false); }
    /// Returns whether there is a next element, which must be read, or skipped. Returns false at
    /// the array's end and consumes it.
    bool next_element() { return next(']'); }

    /// Reads a string. Throws data_error if the next value is none.
    std::string string() {
        expect(json_kind::string, "a string");
        return read_string();
    }
    /// Reads any number; throws if it is too large for a double.
    double number();
    /// Reads an integer literal: no fraction, no exponent, exact.
    std::int64_t integer() { return whole<std::int64_t>("an integer of 64 bits"); }
    /// The same for nonnegative integers.
    std::uint64_t unsigned_integer() { return whole<std::uint64_t>("an integer from 0 to 18446744073709551615"); }
    /// Skips a number; returns whether it is such an integer, and then its value.
    bool exact(std::uint64_t& value) { return exact(number_text("a number"), value); }
    /// Reads true or false. Throws data_error if the next value is neither.
    bool boolean() {
        expect(json_kind::boolean, "true or false");
        const bool value = text_[at_] == 't';
        word(value ? "true" : "false");
        return value;
    }
    /// Reads null. Throws data_error if the next value is another one.
    void null() {
        expect(json_kind::null, "null");
        word("null");
    }
    /// Skips a null if it is next. Returns whether it was.
    bool pass_null() {
        if (peek() != json_kind::null) return false;
        null();
        return true;
    }
    /// Skips the next value of any kind; its content must be valid JSON, too.
    void skip();
    /// Requires that only blanks follow.
    void end() {
        blanks();
        if (at_ != text_.size()) invalid("expected nothing more");
    }
    /// Throws data_error: origin, the problem, and the offset of the next token.
    [[noreturn]] void refuse(const std::string& what) const {
        throw data_error(origin_ + ": " + what + " (offset " + std::to_string(at_) + ")");
    }

private:
    struct level {
        bool object;
        bool first = true;
        std::set<std::string> names{};
    };

    [[noreturn]] void invalid(const std::string& what) const {
        refuse("is not valid JSON: " + what + ", there is " +
               (at_ < text_.size() ? quoted_text(text_.substr(at_, 12), 8) : "the end"));
    }
    static bool is_digit(char c) { return c >= '0' && c <= '9'; }
    void blanks() {
        while (at_ < text_.size() &&
               (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
            ++at_;
    }
    void expect(json_kind kind, const char* what) {
        if (peek() != kind) refuse(std::string("is not ") + what);
    }
    void open(json_kind kind, const char* what, bool object) {
        expect(kind, what);
        if (static_cast<int>(levels_.size()) >= max_depth_)
            refuse("is nested more than " + std::to_string(max_depth_) + " deep");
        ++at_;
        levels_.push_back({object});
    }
    bool next(char close);
    void word(std::string_view expected) {
        if (text_.substr(at_, expected.size()) != expected) invalid("expected " + std::string(expected));
        at_ += expected.size();
    }

    std::string read_string();
    void escape(std::string& to);
    std::uint32_t four_digits(std::size_t from) const {
        std::uint32_t code = 0;
        const char* const first = text_.data() + from;
        if (from + 4 > text_.size() || std::from_chars(first, first + 4, code, 16).ptr != first + 4)
            invalid("expected four hexadecimal digits");
        return code;
    }

    // -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?
    std::string_view number_text(const char* what);
    static bool tiny(std::string_view number) {
        const std::size_t e = number.find_first_of("eE");
        return (e != number.npos && number[e + 1] == '-') || number.starts_with("0.") || number.starts_with("-0.");
    }
    [[noreturn]] void back(std::string_view value, const char* expected) {
        at_ -= value.size();
        refuse(quoted_text(value) + " is not " + expected);
    }
    template <class Integer>
    Integer whole(const char* what) {
        const std::string_view digits = number_text(what);
        Integer value = 0;
        if (!exact(digits, value)) back(digits, what);
        return value;
    }
    template <class Integer>
    static bool exact(std::string_view digits, Integer& value) {
        const char* const last = digits.data() + digits.size();
        const auto end = std::from_chars(digits.data(), last, value);
        return end.ec == std::errc{} && end.ptr == last;
    }

    std::string_view text_;
    std::string origin_;
    std::size_t at_ = 0;
    int max_depth_;
    std::vector<level> levels_;
};

/// A text as a JSON string, in quotes. Throws argument_error if it is not UTF-8.
std::string json_string(std::string_view text);

/// A number in JSON: the fewest digits that read back exactly; null if it is not finite, which JSON
/// cannot represent.
inline std::string json_number(double value) {
    if (!std::isfinite(value)) return "null";
    return number_text(value);
}

#if TG_DEFINES(formats)

TG_DEFINITION json_kind json_reader::peek() {
    blanks();
    switch (at_ < text_.size() ? text_[at_] : '\0') {
    case '{': return json_kind::object;
    case '[': return json_kind::array;
    case '"': return json_kind::string;
    case 't':
    case 'f': return json_kind::boolean;
    case 'n': return json_kind::null;
    default:
        if (at_ < text_.size() && (text_[at_] == '-' || is_digit(text_[at_]))) return json_kind::number;
        invalid("expected a value");
    }
}

TG_DEFINITION bool json_reader::next_name(std::string& name) {
    if (!next('}')) return false;
    if (at_ >= text_.size() || text_[at_] != '"') invalid("expected a name in quotes");
    const std::size_t start = at_;
    name = read_string();
    if (!levels_.back().names.insert(name).second) {
        at_ = start;
        refuse("holds the name '" + name + "' twice");
    }
    blanks();
    if (at_ >= text_.size() || text_[at_] != ':') invalid("expected ':'");
    ++at_;
    return true;
}

TG_DEFINITION double json_reader::number() {
    const std::string_view digits = number_text("a number");
    double value = 0;
    const auto end = tapegraph::detail::read_number(digits, value);
    // Numbers too small for a double become 0, as usual.
    if (end.ec == std::errc::result_out_of_range && !tiny(digits)) back(digits, "a number that a double holds");
    return end.ec == std::errc{} ? value : 0.0;
}

TG_DEFINITION void json_reader::skip() {
    const std::size_t depth = levels_.size();
    std::string name;
    do {
        switch (peek()) {
        case json_kind::object: begin_object(); break;
        case json_kind::array: begin_array(); break;
        case json_kind::string: read_string(); break;
        case json_kind::boolean: boolean(); break;
        case json_kind::null: null(); break;
        case json_kind::number: number(); break;
        }
        while (levels_.size() > depth && !(levels_.back().object ? next_name(name) : next_element())) {}
    } while (levels_.size() > depth);
}

TG_DEFINITION bool json_reader::next(char close) {
    level& inside = levels_.back();
    blanks();
    if (at_ < text_.size() && text_[at_] == close) {
        ++at_;
        levels_.pop_back();
        return false;
    }
    if (!inside.first) {
        if (at_ >= text_.size() || text_[at_] != ',') invalid(std::string("expected ',' or '") + close + "'");
        ++at_;
        blanks();
    }
    inside.first = false;
    return true;
}

TG_DEFINITION std::string json_reader::read_string() {
    std::string value;
    const std::size_t start = ++at_;
    for (;;) {
        std::size_t run = at_;
        while (run < text_.size() && text_[run] != '"' && text_[run] != '\\' &&
               static_cast<unsigned char>(text_[run]) >= 0x20)
            ++run;
        value.append(text_, at_, run - at_);
        at_ = run;
        if (at_ >= text_.size()) invalid("expected the end of a string");
        if (text_[at_] == '"') break;
        if (text_[at_] != '\\') invalid("a string holds a control character");
        escape(value);
    }
    ++at_;
    if (const std::size_t good = utf8_prefix(value); good != value.size()) {
        at_ = start;
        refuse("is not valid JSON: a string is not UTF-8, from its byte " + std::to_string(good) + " on");
    }
    return value;
}

TG_DEFINITION void json_reader::escape(std::string& to) {
    constexpr std::string_view letters = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    const char c = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (const std::size_t which = letters.find(c); which != letters.npos && c != '\0') {
        to += meant[which];
        at_ += 2;
        return;
    }
    if (c != 'u') invalid("expected an escape");
    std::uint32_t code = four_digits(at_ + 2);
    std::size_t length = 6;
    // The first half of a surrogate pair.
    if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_ + 6, 2) == "\\u") {
        const std::uint32_t low = four_digits(at_ + 8);
        if (low >= 0xDC00 && low < 0xE000) {
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            length = 12;
        }
    }
    if (code >= 0xD800 && code < 0xE000) invalid("half of a surrogate pair");
    append_utf8(to, code);
    at_ += length;
}

TG_DEFINITION std::string_view json_reader::number_text(const char* what) {
    expect(json_kind::number, what);
    const std::size_t start = at_;
    const auto digits = [&] {
        const std::size_t first = at_;
        while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
        if (at_ == first) invalid("expected a digit");
        return at_ - first;
    };
    if (text_[at_] == '-') ++at_;
    const std::size_t whole_start = at_;
    if (digits() > 1 && text_[whole_start] == '0') {
        at_ = whole_start;
        invalid("a number begins with 0");
    }
    if (at_ < text_.size() && text_[at_] == '.') {
        ++at_;
        digits();
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
        ++at_;
        if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
        digits();
    }
    return text_.substr(start, at_ - start);
}

TG_DEFINITION std::string json_string(std::string_view text) {
    if (const std::size_t good = utf8_prefix(text); good != text.size())
        throw argument_error("json_string: " + quoted_text(text.substr(0, good)) +
                             " is followed by bytes that are not UTF-8");
    constexpr std::string_view digits = "0123456789abcdef", special = "\"\\\b\f\n\r\t", letters = "\"\\bfnrt";
    std::string result = "\"";
    for (const char c : text)
        if (const std::size_t which = special.find(c); which != special.npos)
            result.append("\\").append(1, letters[which]);
        else if (static_cast<unsigned char>(c) < 0x20)
            result.append("\\u00").append(1, digits[static_cast<std::size_t>(c) >> 4]).append(1, digits[c & 15]);
        else
            result += c;
    return result += '"';
}

#endif

} // namespace tapegraph::io
