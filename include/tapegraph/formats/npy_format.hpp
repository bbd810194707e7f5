#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/formats/host_array.hpp>
#include <tapegraph/formats/strided_copy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// NumPy's .npy in memory: "\x93NUMPY", a version, the length of a header, the header (a Python dict of descr, fortran_order and
/// shape), then the values. Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html

namespace tapegraph::io::detail {

struct npy_header {
    dtype type = dtype::f32;
    bool big_endian = false, fortran_order = false;
    std::vector<std::int64_t> shape;
    std::size_t bytes = 0; ///< offset of the values
};

/// Parses "<f4" and similar types; throws dtype_error for types that are not numeric.
void read_npy_type(std::string_view text, npy_header& header, const std::string& what);

/// Parses the header's text, a Python dict of three literals.
class npy_header_text {
public:
    npy_header_text(std::string_view text, const std::string& what) : text_(text), what_(what) {}

    npy_header read();

private:
    char peek() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
        return at_ < text_.size() ? text_[at_] : '\0';
    }
    bool next(char c) {
        if (peek() != c) return false;
        ++at_;
        return true;
    }
    void take(char c) {
        if (!next(c)) fail(std::string("'") + c + "'");
    }
    bool word(std::string_view w) {
        peek();
        if (text_.substr(at_, w.size()) != w) return false;
        at_ += w.size();
        return true;
    }
    std::string_view quoted();
    std::vector<std::int64_t> tuple();
    [[noreturn]] void fail(const std::string& wanted) {
        throw data_error(what_ + ": the header says something else than " + wanted + " at its byte " +
                         std::to_string(at_));
    }

    std::string_view text_;
    const std::string& what_;
    std::size_t at_ = 0;
};

/// Parses the start of an .npy; the expected size of its values is checked against `file_bytes`.
npy_header parse_npy_header(std::span<const std::byte> begin, std::uint64_t file_bytes, const std::string& what);

/// Converts values in the file's layout to this machine's byte order and to rows.
host_array npy_array(npy_header header, std::vector<std::byte> values, const std::string& what);

/// The bytes that numpy.save writes before the values of a row-major array.
std::string npy_begin(dtype type, std::span<const std::int64_t> shape, const std::string& operation);

#if TG_DEFINES(formats)

TG_DEFINITION void read_npy_type(std::string_view text, npy_header& header, const std::string& what) {
    const std::string_view code = text.size() > 1 ? text.substr(1) : text;
    constexpr std::pair<std::string_view, dtype> known[] = {
        {"f4", dtype::f32}, {"f8", dtype::f64}, {"f2", dtype::f16}, {"i1", dtype::i8},
        {"i2", dtype::i16}, {"i4", dtype::i32}, {"i8", dtype::i64}, {"u1", dtype::u8},
        {"u2", dtype::u16}, {"u4", dtype::u32}, {"u8", dtype::u64}, {"b1", dtype::boolean}};
    const char order = text.empty() ? '?' : text.front();
    for (const auto& [name, type] : known)
        if (name == code && (order == '<' || order == '>' || order == '=' || (order == '|' && size_of(type) == 1))) {
            header.type = type;
            header.big_endian = order == '>';
            return;
        }
    const char kind = code.empty() ? '?' : code.front();
    const char* const meaning = kind == 'O'                  ? " (Python objects, a pickle)"
                                : kind == 'U' || kind == 'S' ? " (texts)"
                                : kind == 'c'                ? " (complex numbers)"
                                : kind == 'M' || kind == 'm' ? " (times)"
                                : kind == 'V'
                                    ? " (raw bytes, perhaps of a type that NumPy does not have, such as bfloat16)"
                                    : "";
    std::string shown;
    for (const char c : text.substr(0, 40)) shown += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    throw dtype_error(what + ": elements of type '" + shown + "'" + meaning +
                      " are not read, numbers and booleans are");
}

TG_DEFINITION npy_header npy_header_text::read() {
    npy_header header;
    int found = 0;
    take('{');
    while (!next('}')) {
        const std::string_view key = quoted();
        take(':');
        if (key == "descr") {
            if (peek() == '[' || peek() == '(')
                throw dtype_error(what_ + ": records of several fields (a structured type) are not read");
            read_npy_type(quoted(), header, what_);
            found |= 1;
        } else if (key == "fortran_order") {
            header.fortran_order = word("True");
            if (!header.fortran_order && !word("False")) fail("True or False");
            found |= 2;
        } else if (key == "shape") {
            header.shape = tuple();
            found |= 4;
        } else {
            fail("descr, fortran_order or shape");
        }
        if (!next(',') && peek() != '}') fail("',' or '}'");
    }
    if (found != 7) throw data_error(what_ + ": the header lacks descr, fortran_order or shape");
    if (peek() != '\0') fail("the end");
    return header;
}

TG_DEFINITION std::string_view npy_header_text::quoted() {
    const char quote = peek();
    const std::size_t end = quote == '\'' || quote == '"' ? text_.find(quote, at_ + 1) : text_.npos;
    if (end == text_.npos) fail("a text in quotes");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inside;
}

TG_DEFINITION std::vector<std::int64_t> npy_header_text::tuple() {
    std::vector<std::int64_t> extents;
    take('(');
    while (!next(')')) {
        std::int64_t value = 0;
        if (peek() < '0' || peek() > '9') fail("an extent");
        for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
            if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[at_] - '0', &value))
                throw data_error(what_ + ": an extent of the shape does not fit 63 bits");
        if (at_ < text_.size() && text_[at_] == 'L') ++at_; // Python 2
        extents.push_back(value);
        if (!next(',') && peek() != ')') fail("',' or ')'");
    }
    return extents;
}

TG_DEFINITION npy_header parse_npy_header(std::span<const std::byte> begin, std::uint64_t file_bytes,
                                          const std::string& what) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(begin[i]); };
    if (begin.size() < 10 || std::memcmp(begin.data(), "\x93NUMPY", 6) != 0)
        throw data_error(what + ": not an .npy file: it does not begin with \\x93NUMPY");
    const std::uint32_t version = byte(6);
    if (version < 1 || version > 3)
        throw data_error(what + ": .npy of version " + std::to_string(version) + "." + std::to_string(byte(7)) +
                         ", versions 1 to 3 are read");
    const std::size_t fixed = version == 1 ? 10 : 12;
    if (begin.size() < fixed) throw data_error(what + ": truncated header");
    std::uint64_t length = byte(8) | byte(9) << 8;
    if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
    if (length > begin.size() - fixed)
        throw data_error(what + ": a header of " + std::to_string(length) + " bytes, truncated");
    const std::string_view text(reinterpret_cast<const char*>(begin.data()) + fixed, length);
    npy_header header = npy_header_text(text, what).read();
    header.bytes = fixed + length;
    std::int64_t size = 0;
    if (!checked_size(header.shape, size_of(header.type), size))
        throw data_error(what + ": impossible shape " + shape_text(header.shape));
    const std::uint64_t needed = static_cast<std::uint64_t>(size) * size_of(header.type);
    if (needed != file_bytes - header.bytes)
        throw data_error(what + ": shape " + shape_text(header.shape) + " of " + name_of(header.type) + " needs " +
                         std::to_string(needed) + " bytes, there are " + std::to_string(file_bytes - header.bytes));
    return header;
}

TG_DEFINITION host_array npy_array(npy_header header, std::vector<std::byte> values, const std::string& what) {
    const std::size_t width = size_of(header.type);
    if (header.big_endian && width > 1)
        for (auto at = values.begin(); at != values.end(); at += static_cast<std::ptrdiff_t>(width))
            std::reverse(at, at + static_cast<std::ptrdiff_t>(width));
    if (header.type == dtype::boolean)
        for (const std::byte value : values)
            if (value > std::byte{1})
                throw data_error(what + ": a bool holds " + std::to_string(static_cast<int>(value)));
    host_array array{header.type, std::move(header.shape), {}};
    const auto matrix_axes =
        std::count_if(array.shape.begin(), array.shape.end(), [](auto extent) { return extent > 1; });
    if (!header.fortran_order || matrix_axes < 2) {
        array.bytes = std::move(values);
    } else {
        array.bytes.resize(values.size());
        copy_strided(array.bytes.data(), values.data(), array.shape, strides_of(array.shape, true), width);
    }
    return array;
}

TG_DEFINITION std::string npy_begin(dtype type, std::span<const std::int64_t> shape, const std::string& operation) {
    if (type == dtype::bf16) throw dtype_error(operation + ": NumPy has no bf16, cast to f32");
    const bool is_float = is_floating(type);
    const bool is_unsigned = type == dtype::u8 || type == dtype::u16 || type == dtype::u32 || type == dtype::u64;
    const char kind = type == dtype::boolean ? 'b' : is_float ? 'f' : is_unsigned ? 'u' : 'i';
    std::string text = "{'descr': '";
    text.append(size_of(type) == 1 ? "|" : "<").append(1, kind).append(std::to_string(size_of(type)));
    text += "', 'fortran_order': False, 'shape': (";
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
        text.append(axis == 0 ? "" : ", ").append(std::to_string(shape[axis]));
    text += shape.size() == 1 ? ",), }" : "), }";
    constexpr std::size_t most_digits = 21, alignment = 64; // leaves room for a longer first extent, like numpy
    if (!shape.empty()) text.append(most_digits - std::to_string(shape.front()).size(), ' ');
    constexpr std::size_t magic = 8;
    std::size_t fixed = magic + 2;
    // A header of more than 65,535 bytes requires version 2.
    if (text.size() + 1 + alignment > 0xFFFF) fixed = magic + 4;
    text.append(alignment - (fixed + text.size() + 1) % alignment, ' ');
    text += '\n';
    std::string begin = "\x93NUMPY";
    begin.append({static_cast<char>(fixed == magic + 2 ? 1 : 2), '\0'});
    for (std::size_t i = 0; i < fixed - magic; ++i) begin += static_cast<char>(text.size() >> (8 * i));
    return begin + text;
}

#endif

} // namespace tapegraph::io::detail
