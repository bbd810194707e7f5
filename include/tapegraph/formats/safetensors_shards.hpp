#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/formats/folder.hpp>
#include <tapegraph/formats/safetensors_reader.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

/// Writes tensors into several safetensors files with an index, the usual format of large models.

namespace tapegraph::io {

/// Saves a model in files of a limited size: `model.save(tg::io::shards{"big/model.safetensors",
/// 2'000'000'000})` writes big/model-00001-of-00003.safetensors and so on, and
/// big/model.safetensors.index.json, which load takes.
struct shards {
    files::path path;                        ///< path as for one file, which ends in .safetensors
    std::uint64_t max_bytes = 5'000'000'000; ///< of the values in a file; a larger tensor has a file of its own
};

namespace detail {

std::string shard_name(const std::string& stem, int generation, std::size_t which, std::size_t count);

/// Names of the files that an index refers to; none if there is no index, or it is damaged.
std::set<std::string> files_of_index(const files::path& index);

} // namespace detail

/// Writes tensors, by name in ascending order, into files with at most `to.max_bytes` of values,
/// then the index; returns the index's path. Until the index is complete an older one and its files
/// are untouched; files that only the older one named are then removed. Throws like
/// write_safetensors_arrays, and argument_error for a path that does not end in .safetensors.
files::path write_safetensors_shards(const shards& to, std::vector<safetensors_entry> entries,
                                     const std::map<std::string, std::string>& metadata = {});

#if TG_DEFINES(formats)

namespace detail {

TG_DEFINITION std::string shard_name(const std::string& stem, int generation, std::size_t which, std::size_t count) {
    const auto five = [](std::size_t number) {
        const std::string digits = std::to_string(number);
        return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
    };
    return stem + (generation == 0 ? "" : "-v" + std::to_string(generation)) + "-" + five(which + 1) + "-of-" +
           five(count) + ".safetensors";
}

TG_DEFINITION std::set<std::string> files_of_index(const files::path& index) {
    std::set<std::string> files;
    std::error_code failure;
    if (!files::exists(index, failure)) return files;
    try {
        const auto bytes = read_file(index);
        const auto known =
            parse_shard_index({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, quoted(index));
        for (const auto& [tensor, file] : known.files) files.insert(file);
    } catch (const data_error&) { // it is about to be replaced
    }
    return files;
}

} // namespace detail

TG_DEFINITION files::path write_safetensors_shards(const shards& to, std::vector<safetensors_entry> entries,
                                                   const std::map<std::string, std::string>& metadata) {
    const std::string operation = "write_safetensors_shards(" + detail::quoted(to.path) + ")";
    if (to.path.extension() != ".safetensors")
        throw argument_error(operation + ": the path does not end in .safetensors");
    if (to.max_bytes == 0) throw argument_error(operation + ": max_bytes is 0");
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    for (std::size_t i = 1; i < entries.size(); ++i)
        if (entries[i].name == entries[i - 1].name)
            throw argument_error(operation + ": two tensors are named '" + entries[i].name + "'");

    std::vector<std::vector<safetensors_entry>> parts(1);
    std::uint64_t total = 0, in_part = 0;
    for (auto& entry : entries) {
        const std::uint64_t bytes = detail::lay_out_safetensors(operation, {entry}, {}).bytes[0];
        if (!parts.back().empty() && bytes > to.max_bytes - std::min(in_part, to.max_bytes)) {
            parts.emplace_back();
            in_part = 0;
        }
        in_part += bytes;
        total += bytes;
        parts.back().push_back(std::move(entry));
    }

    const files::path folder = to.path.parent_path();
    files::path index = to.path;
    index += ".index.json";
    const std::set<std::string> before = detail::files_of_index(index);
    const std::string stem = to.path.stem().string();
    // Files of an existing index are not overwritten, because a kill between two of them would
    // leave a mixture.
    int generation = 0;
    std::error_code failure;
    for (std::size_t i = 0; i < parts.size(); ++i)
        if (files::exists(folder / detail::shard_name(stem, generation, i, parts.size()), failure)) {
            ++generation;
            i = static_cast<std::size_t>(-1);
        }

    std::string text = "{\"metadata\":{\"total_size\":" + std::to_string(total) + "},\"weight_map\":{";
    std::set<std::string> written;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::string name = detail::shard_name(stem, generation, i, parts.size());
        write_safetensors_arrays(folder / name, parts[i], metadata);
        written.insert(name);
        for (const auto& entry : parts[i])
            text.append(text.back() == '{' ? "" : ",")
                .append(json_string(entry.name))
                .append(":")
                .append(json_string(name));
    }
    atomic_file out(index);
    out.write(text + "}}\n");
    out.commit();
    for (const auto& old : before)
        if (written.count(old) == 0) files::remove(folder / old, failure);
    return index;
}

#endif

} // namespace tapegraph::io
