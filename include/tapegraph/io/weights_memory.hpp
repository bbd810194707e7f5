#pragma once

#include <tapegraph/formats/needs_posix.hpp>

#include <tapegraph/core/component.hpp>
#include <tapegraph/formats/path.hpp>
#include <tapegraph/io/weights.hpp>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Weights without files: in memory, and as C++ source for programs without a file system.

namespace tapegraph {

namespace io {

/// The bytes of a safetensors file in memory, for loading:
/// `model.load(tg::io::weights_bytes(bytes))`. Values are copied.
struct weights_bytes {
    explicit weights_bytes(std::span<const std::byte> values) : bytes(values) {}
    /// Takes a vector, an array or a span of bytes: std::uint8_t, unsigned char, char.
    template <class Byte, std::size_t Extent>
        requires(sizeof(Byte) == 1)
    explicit weights_bytes(std::span<Byte, Extent> values) : bytes(std::as_bytes(values)) {}
    weights_bytes(const void* data, std::size_t size) : bytes(static_cast<const std::byte*>(data), size) {}

    std::span<const std::byte> bytes;
};

/// Receives the bytes of a safetensors file: `std::vector<std::byte> bytes;
/// model.save(tg::io::weights_buffer{bytes});`. Previous content is replaced.
struct weights_buffer {
    std::vector<std::byte>& bytes;
};

} // namespace io

namespace detail {

template <>
struct weight_file<io::weights_bytes> {
    template <class Model>
    static load_report load(const io::weights_bytes& from, const Model& model, const load_options& options) {
        const std::string name = "weights of " + std::to_string(from.bytes.size()) + " bytes in memory";
        return load_stored(io::view_safetensors(from.bytes, name), name, model, options);
    }
};
template <>
struct weight_file<io::weights_buffer> {
    template <class Model>
    static void save(const io::weights_buffer& to, const Model& model, const save_options& options) {
        const model_entries all = entries_of(model, options);
        const auto layout = io::detail::lay_out_safetensors("save", all.entries, all.metadata);
        std::vector<std::byte> bytes;
        std::size_t size = layout.header.size();
        for (const auto each : layout.bytes) size += static_cast<std::size_t>(each);
        bytes.reserve(size);
        io::detail::write_safetensors_to(
            [&](const void* data, std::size_t count) {
                const auto* const first = static_cast<const std::byte*>(data);
                bytes.insert(bytes.end(), first, first + count);
            },
            layout);
        to.bytes = std::move(bytes);
    }
};

} // namespace detail

namespace io {

/// Options of write_weights_source.
struct weights_source_options {
    /// Name of the span that the header defines, from which that of its array is derived.
    std::string name = "weights";
    std::string name_space = "model"; ///< its namespace; "a::b" is nested
    save_options save{};
};

namespace detail {

inline bool is_identifier(std::string_view name) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    for (const char c : name)
        if (!letter(c) && (c < '0' || c > '9')) return false;
    return !name.empty() && letter(name[0]);
}

// A string literal, which compilers store directly, while a list of numbers costs them some hundred
// bytes of memory for each.
std::string source_of_bytes(std::span<const std::byte> bytes, const weights_source_options& options);

} // namespace detail

/// Writes a header that contains a model's weights, for programs that read no files:
///
///     tg::io::write_weights_source("digits_weights.hpp", model, {.name_space = "digits"});
///
///     #include "digits_weights.hpp" // in the other program
///     model.load(tg::io::weights_bytes(digits::weights));
///
/// The header does not depend on this library. Throws argument_error for names that are not
/// identifiers, and like model.save.
template <class Model>
void write_weights_source(const files::path& path, const Model& model, const weights_source_options& options = {}) {
    const auto refuse = [&](const std::string& name) {
        throw argument_error("write_weights_source(" + detail::quoted(path) + "): " + quoted_text(name) +
                             " is not a C++ identifier");
    };
    if (!detail::is_identifier(options.name)) refuse(options.name);
    std::string_view rest = options.name_space;
    for (std::size_t colons = 0; colons != rest.npos; rest.remove_prefix(colons == rest.npos ? 0 : colons + 2)) {
        colons = rest.find("::");
        if (!detail::is_identifier(rest.substr(0, colons))) refuse(options.name_space);
    }
    std::vector<std::byte> bytes;
    model.save(weights_buffer{bytes}, options.save);
    atomic_file out(path);
    out.write(detail::source_of_bytes(bytes, options));
    out.commit();
}

} // namespace io
} // namespace tapegraph

namespace tapegraph::io::detail {

#if TG_DEFINES_FOR_HOST(io)

TG_DEFINITION std::string source_of_bytes(std::span<const std::byte> bytes, const weights_source_options& options) {
    const std::string size = std::to_string(bytes.size());
    std::string text =
        "#pragma once\n\n// Weights of a model, the bytes of a safetensors file: model.load(tg::io::weights_bytes(" +
        options.name_space + "::" + options.name + "));\n\n#include <span>\n\nnamespace " + options.name_space +
        " {\n\nalignas(64) inline constexpr unsigned char " + options.name + "_bytes[" + size + " + 1] =";
    text.reserve(text.size() + bytes.size() * 4);
    constexpr std::size_t per_line = 256;
    bool numbered = false; // a digit after a short escape would belong to it
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (i % per_line == 0) {
            text += i == 0 ? "\n    \"" : "\"\n    \"";
            numbered = false;
        }
        const auto c = static_cast<unsigned char>(bytes[i]);
        const bool digit = c >= '0' && c <= '9';
        if (c >= 0x20 && c < 0x7F && c != '"' && c != '\\' && c != '?' && !(digit && numbered)) {
            text += static_cast<char>(c);
            numbered = false;
            continue;
        }
        text += '\\';
        if (c >= 64) text += static_cast<char>('0' + c / 64);
        if (c >= 8) text += static_cast<char>('0' + c / 8 % 8);
        text += static_cast<char>('0' + c % 8);
        numbered = c < 64;
    }
    text += bytes.empty() ? "\"\"" : "\"";
    return text + ";\ninline constexpr std::span<const unsigned char> " + options.name + "(" + options.name +
           "_bytes, " + size + ");\n\n} // namespace " + options.name_space + "\n";
}

#endif

} // namespace tapegraph::io::detail
