#pragma once

#include <tapegraph/io/file.hpp>
#include <tapegraph/io/host_array.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
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

// In the order of the reference implementation's enumeration, which sorts tensors by it (widest last, written first),
// so that files are byte for byte what Python's safetensors writes and every tensor is aligned.
inline constexpr std::array<std::pair<dtype, const char*>, 13> safetensors_types{{{dtype::boolean, "BOOL"},
                                                                                  {dtype::u8, "U8"},
                                                                                  {dtype::i8, "I8"},
                                                                                  {dtype::i16, "I16"},
                                                                                  {dtype::u16, "U16"},
                                                                                  {dtype::f16, "F16"},
                                                                                  {dtype::bf16, "BF16"},
                                                                                  {dtype::i32, "I32"},
                                                                                  {dtype::u32, "U32"},
                                                                                  {dtype::f32, "F32"},
                                                                                  {dtype::f64, "F64"},
                                                                                  {dtype::i64, "I64"},
                                                                                  {dtype::u64, "U64"}}};

inline std::size_t safetensors_rank(dtype type) {
    std::size_t rank = 0;
    while (safetensors_types[rank].first != type) ++rank;
    return rank;
}

/// Parses the header and refuses a name that occurs twice, of which the JSON library would keep the last in silence.
inline nlohmann::json parse_safetensors_header(const std::string& text, const std::string& file) {
    std::vector<std::set<std::string>> names;
    const auto watch = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& value) {
        if (event == nlohmann::json::parse_event_t::object_start) names.emplace_back();
        if (event == nlohmann::json::parse_event_t::object_end) names.pop_back();
        if (event == nlohmann::json::parse_event_t::key && !names.back().insert(value.get<std::string>()).second)
            throw data_error(file + ": header holds the name '" + value.get<std::string>() + "' twice");
        return true;
    };
    try {
        return nlohmann::json::parse(text, watch);
    } catch (const nlohmann::json::exception& failure) {
        throw data_error(file + ": header is not valid JSON: " + failure.what());
    }
}

struct safetensors_place {
    std::string name;
    dtype type;
    std::vector<std::int64_t> shape;
    std::uint64_t begin, end;
};

/// One header entry, checked on its own.
inline safetensors_place safetensors_place_of(const std::string& name, const nlohmann::json& entry,
                                              std::uint64_t data_bytes, const std::string& file) {
    const auto refuse = [&](const std::string& why) { throw data_error(file + ", tensor '" + name + "': " + why); };
    if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets"))
        refuse("needs dtype, shape and data_offsets");
    const auto& type = entry["dtype"];
    const auto& shape = entry["shape"];
    const auto& offsets = entry["data_offsets"];
    if (!type.is_string()) refuse("dtype is not a string");
    const auto known = std::find_if(safetensors_types.begin(), safetensors_types.end(),
                                    [&](const auto& candidate) { return type.get<std::string>() == candidate.second; });
    if (known == safetensors_types.end()) refuse("unknown dtype '" + type.get<std::string>() + "'");

    const auto whole = [](const nlohmann::json& number) {
        return number.is_number_unsigned() && number.get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX);
    };
    if (!shape.is_array() || !std::all_of(shape.begin(), shape.end(), whole)) refuse("shape is not a list of extents");
    if (!offsets.is_array() || offsets.size() != 2 || !whole(offsets[0]) || !whole(offsets[1]))
        refuse("data_offsets are not two offsets");

    safetensors_place place{name, known->first, shape.get<std::vector<std::int64_t>>(), offsets[0].get<std::uint64_t>(),
                            offsets[1].get<std::uint64_t>()};
    const std::string range = "[" + std::to_string(place.begin) + "," + std::to_string(place.end) + ")";
    if (place.begin > place.end) refuse("offsets " + range + " run backwards");
    if (place.end > data_bytes)
        refuse("offsets " + range + " lie outside the file's " + std::to_string(data_bytes) + " data bytes");
    std::int64_t size = 0;
    if (!checked_size(place.shape, size_of(place.type), size)) refuse("impossible shape " + shape_text(place.shape));
    const auto bytes = static_cast<std::uint64_t>(size) * size_of(place.type);
    if (bytes != place.end - place.begin)
        refuse(std::string(name_of(place.type)) + shape_text(place.shape) + " needs " + std::to_string(bytes) +
               " bytes, offsets " + range + " hold " + std::to_string(place.end - place.begin));
    return place;
}

/// Tensors must tile the data: overlaps and gaps both mean that the header does not describe this file.
inline void check_safetensors_tiling(std::vector<safetensors_place>& places, std::uint64_t data_bytes,
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
inline safetensors_file read_safetensors_file(const std::filesystem::path& path) {
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
    const auto header = detail::parse_safetensors_header(text, file);

    const std::uint64_t data_bytes = file_bytes - 8 - header_bytes;
    safetensors_file result;
    std::vector<detail::safetensors_place> places;
    for (const auto& [name, entry] : header.items()) {
        if (name != "__metadata__") {
            places.push_back(detail::safetensors_place_of(name, entry, data_bytes, file));
            continue;
        }
        if (!entry.is_object()) throw data_error(file + ": __metadata__ is not an object");
        for (const auto& [key, value] : entry.items()) {
            if (!value.is_string()) throw data_error(file + ": __metadata__ '" + key + "' is not a string");
            result.metadata[key] = value.get<std::string>();
        }
    }
    detail::check_safetensors_tiling(places, data_bytes, file);
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
inline std::map<std::string, host_array> read_safetensors_arrays(const std::filesystem::path& path) {
    return read_safetensors_file(path).tensors;
}

/// Writes tensors without copying them. The file replaces an older one only when complete. Throws argument_error for a
/// name that occurs twice, is "__metadata__" or is not UTF-8, shape_error for an impossible shape, data_error where
/// writing fails.
inline void write_safetensors_arrays(const std::filesystem::path& path, const std::vector<safetensors_entry>& entries,
                                     const std::map<std::string, std::string>& metadata = {}) {
    const std::string operation = "write_safetensors(" + detail::quoted(path) + ")";
    std::vector<const safetensors_entry*> order;
    for (const auto& entry : entries) order.push_back(&entry);
    std::sort(order.begin(), order.end(), [](const auto* left, const auto* right) {
        const auto left_rank = detail::safetensors_rank(left->type), right_rank = detail::safetensors_rank(right->type);
        return left_rank != right_rank ? left_rank > right_rank : left->name < right->name;
    });

    nlohmann::ordered_json header = nlohmann::ordered_json::object();
    if (!metadata.empty()) header["__metadata__"] = metadata;
    std::set<std::string_view> names;
    std::vector<std::size_t> sizes;
    std::uint64_t at = 0;
    for (const auto* entry : order) {
        if (entry->name == "__metadata__") throw argument_error(operation + ": '__metadata__' cannot name a tensor");
        if (!names.insert(entry->name).second)
            throw argument_error(operation + ": two tensors are named '" + entry->name + "'");
        std::int64_t size = 0;
        if (!checked_size(entry->shape, size_of(entry->type), size))
            throw shape_error(operation + ": tensor '" + entry->name + "' has the impossible shape " +
                              shape_text(entry->shape));
        sizes.push_back(static_cast<std::size_t>(size) * size_of(entry->type));
        // push_back rather than header[name]: ordered_json searches its list for every operator[], and names are
        // already known to be distinct.
        header.get_ref<nlohmann::ordered_json::object_t&>().emplace_back(
            entry->name,
            nlohmann::ordered_json{{"dtype", detail::safetensors_types[detail::safetensors_rank(entry->type)].second},
                                   {"shape", entry->shape},
                                   {"data_offsets", {at, at + sizes.back()}}});
        at += sizes.back();
    }
    std::string text;
    try {
        text = header.dump();
    } catch (const nlohmann::json::exception&) {
        throw argument_error(operation + ": a name or metadata text is not UTF-8");
    }
    text.append((8 - text.size() % 8) % 8, ' '); // values start on a multiple of 8

    atomic_file out(path);
    const std::uint64_t header_bytes = text.size();
    out.write(&header_bytes, 8);
    out.write(text);
    for (std::size_t index = 0; index < order.size(); ++index) out.write(order[index]->data, sizes[index]);
    out.commit();
}

} // namespace tapegraph::io
