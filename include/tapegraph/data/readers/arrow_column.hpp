#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/element_types.hpp>
#include <tapegraph/data/readers/arrow_interface.hpp>
#include <tapegraph/data/source.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// One column of Arrow's arrays: decodes its format string, and copies records.

namespace tapegraph::data::detail {

/// Takes ownership of a structure filled by another library, as the interface requires: the source
/// is marked as released. It is released when the last owner is gone.
template <class S>
std::shared_ptr<const S> taken_over(S* given) {
    auto held = std::shared_ptr<S>(new S(*given), [](S* of) {
        if (of->release != nullptr) of->release(of);
        delete of;
    });
    given->release = nullptr;
    return held;
}

inline std::string arrow_name(const ArrowSchema& s) {
    return "column '" + std::string(s.name != nullptr ? s.name : "") + "'";
}

/// The element type of a primitive format. Dates and times are stored as integers.
std::optional<dtype> arrow_dtype(std::string_view format);

/// For text and bytes, the size of an offset, 4 or 8; 0 for other types.
inline std::size_t arrow_offset_bytes(std::string_view format) {
    return format == "u" || format == "z" ? 4 : format == "U" || format == "Z" ? 8 : 0;
}

/// The number of elements of a fixed-size list; 0 for other types.
inline std::int64_t arrow_list_size(std::string_view format) {
    std::int64_t size = 0;
    if (!format.starts_with("+w:") || format.size() == 3 || format.size() > 12) return 0;
    for (const char c : format.substr(3)) {
        if (c < '0' || c > '9') return 0;
        size = size * 10 + (c - '0');
    }
    return size;
}

/// The type and shape of a numeric column. Throws dtype_error for other columns.
column_spec arrow_spec(const ArrowSchema& s);

/// Throws data_error if an array lacks parts that its type needs. The length of buffers is not
/// known, so the producer is trusted.
void check_arrow(const ArrowSchema& s, const ArrowArray& a, std::int64_t length, const std::string& name);

inline bool arrow_bit(const void* bits, std::int64_t at) {
    return (static_cast<const std::uint8_t*>(bits)[at / 8] >> (at % 8) & 1) != 0;
}
/// `at` includes the array's offset.
inline bool arrow_null(const ArrowArray& a, std::int64_t at) {
    return a.null_count != 0 && a.n_buffers > 0 && a.buffers[0] != nullptr && !arrow_bit(a.buffers[0], at);
}

/// Converts a number to a type.
inline void store_number(dtype type, std::byte* to, double value) {
    visit_type(type, [&]<class T>(std::type_identity<T>) {
        using wide = std::conditional_t<storage_type<T>, float, double>; // 16 bits are rounded from float
        const T typed = static_cast<T>(static_cast<wide>(value));
        std::memcpy(to, &typed, sizeof typed);
    });
}

/// Copies value `index` of an array, including nested lists, and advances `to`; returns false for a
/// null without a replacement.
bool copy_arrow(const ArrowSchema& s, const ArrowArray& a, std::int64_t index, dtype type, bool null,
                const std::optional<double>& null_value, std::byte*& to);

/// The text at `index` of an array of text or bytes.
std::string_view arrow_text(const ArrowSchema& s, const ArrowArray& a, std::int64_t index);

#if TG_DEFINES(data)

TG_DEFINITION std::optional<dtype> arrow_dtype(std::string_view format) {
    if (format.size() == 1) switch (format[0]) {
        case 'b': return dtype::boolean;
        case 'c': return dtype::i8;
        case 'C': return dtype::u8;
        case 's': return dtype::i16;
        case 'S': return dtype::u16;
        case 'i': return dtype::i32;
        case 'I': return dtype::u32;
        case 'l': return dtype::i64;
        case 'L': return dtype::u64;
        case 'e': return dtype::f16;
        case 'f': return dtype::f32;
        case 'g': return dtype::f64;
        default: return std::nullopt;
        }
    if (format == "tdD" || format == "tts" || format == "ttm") return dtype::i32;
    if (format == "tdm" || format == "ttu" || format == "ttn" || format.starts_with("ts") || format.starts_with("tD"))
        return dtype::i64;
    return std::nullopt;
}

TG_DEFINITION column_spec arrow_spec(const ArrowSchema& s) {
    column_spec spec{s.name != nullptr ? s.name : "", dtype::f32, {}};
    const ArrowSchema* at = &s;
    for (std::int64_t size = 0; (size = arrow_list_size(at->format)) > 0; at = at->children[0]) {
        if (at->n_children != 1) throw data_error("arrow: " + arrow_name(s) + ": a list without a type");
        spec.shape.push_back(size);
    }
    const auto type = arrow_dtype(at->format);
    if (!type)
        throw dtype_error("arrow: " + arrow_name(s) + " has format '" + s.format +
                          (arrow_offset_bytes(at->format) > 0
                               ? "', which is text: name the columns of numbers that you want"
                               : "', which is neither a number nor a list of fixed size of them"));
    spec.type = *type;
    check_record_shape(spec);
    return spec;
}

TG_DEFINITION void check_arrow(const ArrowSchema& s, const ArrowArray& a, std::int64_t length,
                               const std::string& name) {
    const std::string_view format = s.format;
    const bool text = arrow_offset_bytes(format) > 0;
    const bool structure = format == "+s" || arrow_list_size(format) > 0;
    const std::int64_t buffers = structure ? 1 : text ? 3 : 2;
    if (a.length < length || a.offset < 0)
        throw data_error("arrow: " + name + ": " + std::to_string(a.length) + " values, expected " +
                         std::to_string(length));
    if (a.n_buffers != buffers || a.buffers == nullptr)
        throw data_error("arrow: " + name + " of format '" + s.format + "': " + std::to_string(a.n_buffers) +
                         " buffers, expected " + std::to_string(buffers));
    if (!structure && length > 0 && a.buffers[1] == nullptr) throw data_error("arrow: " + name + ": no values");
    if (a.n_children != s.n_children)
        throw data_error("arrow: " + name + ": " + std::to_string(a.n_children) + " children, expected " +
                         std::to_string(s.n_children));
    if ((s.dictionary == nullptr) != (a.dictionary == nullptr)) throw data_error("arrow: " + name + ": no dictionary");
}

TG_DEFINITION bool copy_arrow(const ArrowSchema& s, const ArrowArray& a, std::int64_t index, dtype type, bool null,
                              const std::optional<double>& null_value, std::byte*& to) {
    const std::int64_t at = index + a.offset;
    null = null || arrow_null(a, at);
    if (const std::int64_t size = arrow_list_size(s.format); size > 0) {
        const ArrowSchema& inner = *s.children[0];
        const ArrowArray& values = *a.children[0];
        const bool plain = !null && type != dtype::boolean && arrow_dtype(inner.format) &&
                           (values.null_count == 0 || values.buffers[0] == nullptr);
        if (plain) {
            const std::size_t bytes = size_of(type);
            std::memcpy(to,
                        static_cast<const std::byte*>(values.buffers[1]) +
                            static_cast<std::size_t>(at * size + values.offset) * bytes,
                        static_cast<std::size_t>(size) * bytes);
            to += static_cast<std::size_t>(size) * bytes;
            return true;
        }
        for (std::int64_t k = 0; k < size; ++k)
            if (!copy_arrow(inner, values, at * size + k, type, null, null_value, to)) return false;
        return true;
    }
    const std::size_t bytes = size_of(type);
    if (null) {
        if (!null_value) return false;
        store_number(type, to, *null_value);
    } else if (type == dtype::boolean) {
        const bool value = arrow_bit(a.buffers[1], at);
        std::memcpy(to, &value, 1);
    } else {
        std::memcpy(to, static_cast<const std::byte*>(a.buffers[1]) + static_cast<std::size_t>(at) * bytes, bytes);
    }
    to += bytes;
    return true;
}

TG_DEFINITION std::string_view arrow_text(const ArrowSchema& s, const ArrowArray& a, std::int64_t index) {
    const std::int64_t at = index + a.offset;
    const auto offset = [&](std::int64_t which) -> std::int64_t {
        if (arrow_offset_bytes(s.format) == 8) return static_cast<const std::int64_t*>(a.buffers[1])[which];
        return static_cast<const std::int32_t*>(a.buffers[1])[which];
    };
    const std::int64_t begin = offset(at), end = offset(at + 1);
    if (begin < 0 || end < begin)
        throw data_error("arrow: " + arrow_name(s) + ": text " + std::to_string(index) + " ends before it begins");
    if (begin == end) return {};
    return {static_cast<const char*>(a.buffers[2]) + begin, static_cast<std::size_t>(end - begin)};
}

#endif

} // namespace tapegraph::data::detail
