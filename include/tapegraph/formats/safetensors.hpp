#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/host_array.hpp>
#include <tapegraph/formats/mapped_file.hpp>
#include <tapegraph/formats/path.hpp>
#include <tapegraph/formats/quoted_text.hpp>
#include <tapegraph/formats/safetensors_header.hpp>

#if TG_DEFINES(formats) && !defined(TG_WEIGHTS_COMPILED)
#include <tapegraph/formats/safetensors_json.hpp>
#endif

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// safetensors: eight bytes of header length (little endian), a JSON header, then the values of all tensors without
/// gaps. Format: https://github.com/huggingface/safetensors
///
/// With TG_WEIGHTS_COMPILED the JSON functions are compiled in another file, io/weights.cpp (in
/// CMake the library tapegraph::weights); the component has them, too.

namespace tapegraph::io {

static_assert(std::endian::native == std::endian::little, "safetensors files are little endian");

/// One tensor to write; the values are borrowed until the call returns.
struct safetensors_entry {
    std::string name;
    dtype type;
    std::vector<std::int64_t> shape;
    const void* data;
};

/// A file's tensors and texts by name.
struct safetensors_file {
    std::map<std::string, host_array> tensors;
    std::map<std::string, std::string> metadata;
    std::vector<unread_value> unread{}; ///< tensors of unknown types: float8 and others
};

/// The same as views of the values in place.
struct safetensors_view {
    std::map<std::string, array_view> tensors;
    std::map<std::string, std::string> metadata;
    std::vector<unread_value> unread{};
};

namespace detail {

/// Checks that tensors tile the data: overlaps and gaps both mean that the header does not describe
/// this file.
void check_safetensors_tiling(std::vector<safetensors_place>& places, std::uint64_t data_bytes,
                              const std::string& file);

} // namespace detail

/// The tensors of a safetensors file in memory, as views of it, its metadata, and content that is
/// not read. `origin` is the prefix of errors. Throws data_error if the bytes are truncated or
/// inconsistent.
safetensors_view view_safetensors(std::span<const std::byte> bytes, const std::string& origin);

/// Reads all tensors and the metadata. Throws data_error, naming file and tensor, if the file is
/// missing, truncated or inconsistent. The sizes in the header are checked against the file's
/// before any allocation.
safetensors_file read_safetensors_file(const files::path& path);

/// Reads all tensors by name; see read_safetensors_file for the errors.
inline std::map<std::string, host_array> read_safetensors_arrays(const files::path& path) {
    return read_safetensors_file(path).tensors;
}

namespace detail {

/// The start of a file, and the order of the values after it.
struct safetensors_layout {
    std::string header; ///< its length, 8 bytes, and the text, padded
    std::vector<const safetensors_entry*> order;
    std::vector<std::uint64_t> bytes; ///< size of each
};

safetensors_layout lay_out_safetensors(const std::string& operation, const std::vector<safetensors_entry>& entries,
                                       const std::map<std::string, std::string>& metadata);

/// Passes the bytes of a file to `write(data, bytes)`, piece by piece.
template <class Write>
void write_safetensors_to(const Write& write, const safetensors_layout& layout) {
    write(layout.header.data(), layout.header.size());
    for (std::size_t i = 0; i < layout.order.size(); ++i)
        if (layout.bytes[i] > 0) write(layout.order[i]->data, static_cast<std::size_t>(layout.bytes[i]));
}

} // namespace detail

/// Writes tensors without copying them. The file replaces an older one only when complete. Throws
/// argument_error for a name that occurs twice, is "__metadata__" or is not UTF-8, shape_error for
/// an impossible shape, data_error on failure.
inline void write_safetensors_arrays(const files::path& path, const std::vector<safetensors_entry>& entries,
                                     const std::map<std::string, std::string>& metadata = {}) {
    const auto layout =
        detail::lay_out_safetensors("write_safetensors(" + detail::quoted(path) + ")", entries, metadata);
    atomic_file out(path);
    detail::write_safetensors_to([&](const void* data, std::size_t bytes) { out.write(data, bytes); }, layout);
    out.commit();
}

#if TG_DEFINES(formats)

namespace detail {

TG_DEFINITION void check_safetensors_tiling(std::vector<safetensors_place>& places, std::uint64_t data_bytes,
                                            const std::string& file) {
    std::sort(places.begin(), places.end(), [](const auto& left, const auto& right) {
        return std::pair(left.begin, left.end) < std::pair(right.begin, right.end);
    });
    std::uint64_t at = 0;
    for (const auto& place : places) {
        if (place.begin != at)
            throw data_error(file + ", tensor '" + place.name + "': starts at " + std::to_string(place.begin) +
                             (place.begin < at ? ", inside another tensor that ends at "
                                               : ", leaving a hole after the tensor that ends at ") +
                             std::to_string(at));
        at = place.end;
    }
    if (at != data_bytes)
        throw data_error(file + ": " + std::to_string(data_bytes - at) + " bytes after the last tensor");
}

} // namespace detail

TG_DEFINITION safetensors_view view_safetensors(std::span<const std::byte> bytes, const std::string& origin) {
    if (bytes.size() < 8)
        throw data_error(origin + ": truncated: " + std::to_string(bytes.size()) + " bytes are not a safetensors file");
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, bytes.data(), 8);
    constexpr std::uint64_t largest_header = 100'000'000; // the reference implementation's limit
    if (header_bytes > largest_header || header_bytes > bytes.size() - 8)
        throw data_error(origin + ": header of " + std::to_string(header_bytes) + " bytes in a file of " +
                         std::to_string(bytes.size()) + ": truncated or not a safetensors file");
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8, header_bytes);
    if (!text.starts_with('{')) throw data_error(origin + ": header does not start with '{'");
    const auto data = bytes.subspan(8 + header_bytes);
    auto [places, metadata] = detail::parse_safetensors_header(text, data.size(), origin);
    detail::check_safetensors_tiling(places, data.size(), origin);
    safetensors_view result{{}, std::move(metadata), {}};
    for (auto& place : places) {
        if (!place.unknown.empty()) {
            result.unread.push_back(
                {std::move(place.name), "elements of type " + quoted_text(place.unknown) + " are not read", true});
            continue;
        }
        array_view array{place.type, std::move(place.shape), data.subspan(place.begin, place.end - place.begin)};
        if (place.type == dtype::boolean)
            for (const std::byte value : array.bytes)
                if (value > std::byte{1})
                    throw data_error(origin + ", tensor '" + place.name + "': a bool holds " +
                                     std::to_string(static_cast<int>(value)));
        result.tensors.emplace(std::move(place.name), std::move(array));
    }
    return result;
}

TG_DEFINITION safetensors_file read_safetensors_file(const files::path& path) {
    const mapped_file file(path, file_access::sequential);
    safetensors_view view = view_safetensors(file.bytes(), detail::quoted(path));
    safetensors_file result{{}, std::move(view.metadata), std::move(view.unread)};
    for (const auto& [name, array] : view.tensors)
        result.tensors.emplace_hint(result.tensors.end(), name, array.copy());
    return result;
}

namespace detail {

TG_DEFINITION safetensors_layout lay_out_safetensors(const std::string& operation,
                                                     const std::vector<safetensors_entry>& entries,
                                                     const std::map<std::string, std::string>& metadata) {
    safetensors_layout result;
    for (const auto& entry : entries) result.order.push_back(&entry);
    std::sort(result.order.begin(), result.order.end(), [](const auto* left, const auto* right) {
        const auto left_rank = safetensors_rank(left->type), right_rank = safetensors_rank(right->type);
        return left_rank != right_rank ? left_rank > right_rank : left->name < right->name;
    });

    safetensors_header header{{}, metadata};
    std::set<std::string_view> names;
    std::uint64_t at = 0;
    for (const auto* entry : result.order) {
        if (entry->name == "__metadata__") throw argument_error(operation + ": '__metadata__' cannot name a tensor");
        if (!names.insert(entry->name).second)
            throw argument_error(operation + ": two tensors are named '" + entry->name + "'");
        std::int64_t size = 0;
        if (!checked_size(entry->shape, size_of(entry->type), size))
            throw shape_error(operation + ": tensor '" + entry->name + "' has the impossible shape " +
                              shape_text(entry->shape));
        result.bytes.push_back(static_cast<std::uint64_t>(size) * size_of(entry->type));
        header.places.push_back({entry->name, entry->type, entry->shape, at, at + result.bytes.back()});
        at += result.bytes.back();
    }
    std::string text = safetensors_header_text(header, operation);
    text.append((8 - text.size() % 8) % 8, ' '); // values start on a multiple of 8
    const std::uint64_t header_bytes = text.size();
    result.header.assign(reinterpret_cast<const char*>(&header_bytes), 8);
    result.header += text;
    return result;
}

} // namespace detail

#endif

} // namespace tapegraph::io
