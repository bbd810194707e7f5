#pragma once

#include <tapegraph/io/file.hpp>
#include <tapegraph/io/host_array.hpp>
#include <tapegraph/io/safetensors_header.hpp>

#if !defined(TG_WEIGHTS_COMPILED)
#include <tapegraph/io/safetensors_json.hpp>
#endif

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// safetensors: eight bytes of header length (little endian), a JSON header, then the values of all tensors without
/// gaps. Format: https://github.com/huggingface/safetensors
///
/// With TG_WEIGHTS_COMPILED the JSON is read and written by functions that are compiled in another file, io/weights.cpp (in CMake
/// the library tapegraph::weights), and the JSON library's header is not included here.

namespace tapegraph::io {

static_assert(std::endian::native == std::endian::little, "safetensors files are little endian");

/// One tensor to write; the values are borrowed until the call returns.
struct safetensors_entry {
    std::string name;
    dtype type;
    std::vector<std::int64_t> shape;
    const void* data;
};

struct safetensors_file {
    std::map<std::string, host_array> tensors;
    std::map<std::string, std::string> metadata;
};

namespace detail {

/// Tensors must tile the data: overlaps and gaps both mean that the header does not describe this file.
template <class = void>
void check_safetensors_tiling(std::vector<safetensors_place>& places, std::uint64_t data_bytes,
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

/// Reads all tensors and the metadata. Throws data_error, naming file and tensor, where the file is missing, truncated
/// or inconsistent; nothing is allocated on the word of a header that the file's size contradicts.
template <class = void>
safetensors_file read_safetensors_file(const std::filesystem::path& path) {
    const std::string file = detail::quoted(path);
    const std::uint64_t file_bytes = detail::file_size_of(path);
    std::ifstream in(path, std::ios::binary);
    if (!in) throw data_error(file + ": cannot be opened");
    if (file_bytes < 8)
        throw data_error(file + ": truncated: " + std::to_string(file_bytes) + " bytes are no safetensors file");
    const auto read = [&](void* to, std::uint64_t bytes, const std::string& what) {
        in.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
        if (static_cast<std::uint64_t>(in.gcount()) != bytes) throw data_error(file + what + ": truncated");
    };

    std::uint64_t header_bytes = 0;
    read(&header_bytes, 8, "");
    constexpr std::uint64_t largest_header = 100'000'000; // the reference implementation's limit
    if (header_bytes > largest_header || header_bytes > file_bytes - 8)
        throw data_error(file + ": header of " + std::to_string(header_bytes) + " bytes in a file of " +
                         std::to_string(file_bytes) + ": truncated or not a safetensors file");
    std::string text(header_bytes, '\0');
    read(text.data(), header_bytes, ", header");
    if (text.empty() || text[0] != '{') throw data_error(file + ": header does not start with '{'");
    const std::uint64_t data_bytes = file_bytes - 8 - header_bytes;
    auto [places, metadata] = detail::parse_safetensors_header(text, data_bytes, file);
    detail::check_safetensors_tiling(places, data_bytes, file);
    safetensors_file result{{}, std::move(metadata)};
    for (auto& place : places) {
        host_array array{place.type, std::move(place.shape), std::vector<std::byte>(place.end - place.begin)};
        read(array.bytes.data(), array.bytes.size(), ", tensor '" + place.name + "'");
        if (place.type == dtype::boolean)
            for (const std::byte value : array.bytes)
                if (value > std::byte{1})
                    throw data_error(file + ", tensor '" + place.name + "': a bool holds " +
                                     std::to_string(static_cast<int>(value)));
        result.tensors.emplace(std::move(place.name), std::move(array));
    }
    return result;
}

/// Reads all tensors by name; see read_safetensors_file for the errors.
template <class = void>
std::map<std::string, host_array> read_safetensors_arrays(const std::filesystem::path& path) {
    return read_safetensors_file(path).tensors;
}

/// Writes tensors without copying them. The file replaces an older one only when complete. Throws argument_error for a
/// name that occurs twice, is "__metadata__" or is not UTF-8, shape_error for an impossible shape, data_error where
/// writing fails.
template <class = void>
void write_safetensors_arrays(const std::filesystem::path& path, const std::vector<safetensors_entry>& entries,
                              const std::map<std::string, std::string>& metadata = {}) {
    const std::string operation = "write_safetensors(" + detail::quoted(path) + ")";
    std::vector<const safetensors_entry*> order;
    for (const auto& entry : entries) order.push_back(&entry);
    std::sort(order.begin(), order.end(), [](const auto* left, const auto* right) {
        const auto left_rank = detail::safetensors_rank(left->type), right_rank = detail::safetensors_rank(right->type);
        return left_rank != right_rank ? left_rank > right_rank : left->name < right->name;
    });

    detail::safetensors_header header{{}, metadata};
    std::set<std::string_view> names;
    std::uint64_t at = 0;
    for (const auto* entry : order) {
        if (entry->name == "__metadata__") throw argument_error(operation + ": '__metadata__' cannot name a tensor");
        if (!names.insert(entry->name).second)
            throw argument_error(operation + ": two tensors are named '" + entry->name + "'");
        std::int64_t size = 0;
        if (!checked_size(entry->shape, size_of(entry->type), size))
            throw shape_error(operation + ": tensor '" + entry->name + "' has the impossible shape " +
                              shape_text(entry->shape));
        const std::uint64_t end = at + static_cast<std::uint64_t>(size) * size_of(entry->type);
        header.places.push_back({entry->name, entry->type, entry->shape, at, end});
        at = end;
    }
    std::string text = detail::safetensors_header_text(header, operation);
    text.append((8 - text.size() % 8) % 8, ' '); // values start on a multiple of 8

    atomic_file out(path);
    const std::uint64_t header_bytes = text.size();
    out.write(&header_bytes, 8);
    out.write(text);
    for (std::size_t index = 0; index < order.size(); ++index)
        out.write(order[index]->data, header.places[index].end - header.places[index].begin);
    out.commit();
}

} // namespace tapegraph::io
