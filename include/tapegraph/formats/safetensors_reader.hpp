#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/formats/json_reader.hpp>
#include <tapegraph/formats/path.hpp>
#include <tapegraph/formats/safetensors.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// Memory-mapped access to safetensors, in one file or in several with an index:
///
///     model.safetensors.index.json    {"metadata": {"total_size": N}, "weight_map": {"name": "model-00001-of-00003.safetensors", ...}}
///
/// An index of files written by several ranks also has "parts", their files in order of ranks, and
/// "slices", tensors that are spread over several of them: {"kernel": {"shape": [1000, 16],
/// "parts": ["kernel@0", "kernel@8000"]}}.

namespace tapegraph::io {

namespace detail {

/// The file of the index's folder that holds each tensor.
struct shard_index {
    struct slices {
        std::vector<std::int64_t> shape;
        std::vector<std::string> parts; ///< tensors of one axis, to be concatenated
    };
    std::map<std::string, std::string> files; ///< by tensor
    std::map<std::string, std::string> metadata;
    std::vector<std::string> parts; ///< files by rank
    std::map<std::string, slices> sliced;
};

/// Parses an index. File names are untrusted, so only names without a folder are accepted.
shard_index parse_shard_index(std::string_view text, const std::string& origin);

inline bool is_shard_index(const files::path& path) { return path.native().ends_with(".index.json"); }

} // namespace detail

/// The tensors of a safetensors file, or of all files of an index (a path that ends in
/// ".index.json"), as views of the mapped files: opening it only reads the headers, and the values
/// of a tensor are loaded from disk on access.
class safetensors_reader {
public:
    /// Throws data_error naming file and tensor if a file is missing, truncated or inconsistent, if
    /// an index names a file outside its folder, and if index and files do not contain the same
    /// tensors.
    explicit safetensors_reader(const files::path& path, file_access access = file_access::random);

    /// All tensors by name, as views of the mapped file.
    const std::map<std::string, array_view>& tensors() const { return contents_.tensors; }
    /// The file's texts by name.
    const std::map<std::string, std::string>& metadata() const { return contents_.metadata; }
    /// Tensors of unsupported types (float8 and others), which are not in tensors().
    const std::vector<unread_value>& unread() const { return contents_.unread; }
    /// Tensors and texts together.
    const safetensors_view& contents() const { return contents_; }
    /// Whether there is a tensor of the name.
    bool contains(const std::string& name) const { return contents_.tensors.count(name) > 0; }
    /// One tensor. Throws data_error if there is none of that name.
    const array_view& at(const std::string& name) const;
    /// The owner of the views' memory; they are valid as long as this is held.
    std::shared_ptr<const void> owner() const { return opened_; }

private:
    struct opened {
        std::vector<mapped_file> files;
        std::vector<std::vector<std::byte>> joined; // of slices
    };

    // Handles a tensor of an unsupported type.
    bool take_unread(std::vector<unread_value>& from, const std::string& name) {
        for (auto value = from.begin(); value != from.end(); ++value)
            if (value->name == name) {
                contents_.unread.push_back(std::move(*value));
                from.erase(value);
                return true;
            }
        return false;
    }
    // Checks that a part belongs to its rank, and to the same save as the index.
    void check_part(const std::map<std::string, std::string>& metadata, std::size_t rank,
                    const std::string& part) const;
    // Joins a tensor from its slices by copying.
    void join(const std::string& name, const detail::shard_index::slices& whole);
    safetensors_view view_of(const files::path& path, file_access access) {
        opened_->files.emplace_back(path, access);
        return view_safetensors(opened_->files.back().bytes(), detail::quoted(path));
    }

    std::string origin_;
    std::shared_ptr<opened> opened_;
    safetensors_view contents_;
};

#if TG_DEFINES(formats)

namespace detail {

TG_DEFINITION shard_index parse_shard_index(std::string_view text, const std::string& origin) {
    json_reader json(text, origin);
    shard_index result;
    bool mapped = false;
    const auto file_name = [&](const std::string& what) {
        std::string file = json.string();
        if (file.empty() || file == "." || file == ".." ||
            file.find_first_of(std::string_view("/\\\0", 3)) != file.npos)
            json.refuse(what + " is in file " + quoted_text(file) + ", which is not a name in the index's own folder");
        return file;
    };
    json.begin_object();
    for (std::string name; json.next_name(name);) {
        if (name == "metadata" && json.peek() == json_kind::object) {
            json.begin_object();
            for (std::string key; json.next_name(key);)
                if (json.peek() == json_kind::string)
                    result.metadata[key] = json.string();
                else
                    json.skip(); // total_size, and additions of other writers
            continue;
        }
        if (name == "parts" && json.peek() == json_kind::array) {
            json.begin_array();
            while (json.next_element())
                result.parts.push_back(file_name("the part of rank " + std::to_string(result.parts.size())));
            continue;
        }
        if (name == "slices" && json.peek() == json_kind::object) {
            json.begin_object();
            for (std::string tensor; json.next_name(tensor);) {
                shard_index::slices& whole = result.sliced[tensor];
                json.begin_object();
                for (std::string field; json.next_name(field);) {
                    if (field != "shape" && field != "parts") {
                        json.skip();
                        continue;
                    }
                    json.begin_array();
                    while (json.next_element())
                        if (field == "shape")
                            whole.shape.push_back(json.integer());
                        else
                            whole.parts.push_back(json.string());
                }
            }
            continue;
        }
        if (name != "weight_map") {
            json.skip();
            continue;
        }
        mapped = true;
        json.begin_object();
        for (std::string tensor; json.next_name(tensor);) {
            std::string file = file_name("tensor " + quoted_text(tensor));
            result.files.emplace(std::move(tensor), std::move(file));
        }
    }
    json.end();
    if (!mapped) throw data_error(origin + ": has no weight_map");
    return result;
}

} // namespace detail

TG_DEFINITION safetensors_reader::safetensors_reader(const files::path& path, file_access access)
    : origin_(detail::quoted(path)), opened_(std::make_shared<opened>()) {
    if (!detail::is_shard_index(path)) {
        contents_ = view_of(path, access);
        return;
    }
    const auto bytes = read_file(path);
    auto index = detail::parse_shard_index({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, origin_);
    contents_.metadata = std::move(index.metadata);
    std::map<std::string, safetensors_view> shards;
    for (std::size_t r = 0; r < index.parts.size(); ++r) {
        const auto part = path.parent_path() / index.parts[r];
        const std::string whose = "the part of rank " + std::to_string(r) + " of " + std::to_string(index.parts.size());
        try {
            shards.emplace(index.parts[r], view_of(part, access));
        } catch (const data_error& e) {
            throw data_error(std::string(e.what()) + " (" + whose + ")");
        }
        check_part(shards[index.parts[r]].metadata, r, detail::quoted(part) + ", " + whose);
    }
    for (const auto& [name, file] : index.files)
        if (shards.find(file) == shards.end()) shards.emplace(file, view_of(path.parent_path() / file, access));
    for (const auto& [name, file] : index.files) {
        auto& shard = shards[file].tensors;
        const auto found = shard.find(name);
        if (found == shard.end() && take_unread(shards[file].unread, name)) continue;
        if (found == shard.end())
            throw data_error(origin_ + ": tensor " + quoted_text(name) + " is not in " + quoted_text(file) +
                             ", where it should be");
        contents_.tensors.insert(shard.extract(found));
    }
    for (auto& [file, shard] : shards) {
        if (!shard.tensors.empty() || !shard.unread.empty())
            throw data_error(
                origin_ + ": " + quoted_text(file) + " holds tensor " +
                quoted_text(shard.tensors.empty() ? shard.unread.front().name : shard.tensors.begin()->first) +
                ", which the index does not name there");
        contents_.metadata.merge(shard.metadata);
    }
    for (const auto& [name, whole] : index.sliced) join(name, whole);
}

TG_DEFINITION const array_view& safetensors_reader::at(const std::string& name) const {
    const auto found = contents_.tensors.find(name);
    if (found == contents_.tensors.end()) {
        for (const unread_value& value : contents_.unread)
            if (value.name == name) throw data_error(origin_ + ": tensor " + quoted_text(name) + ": " + value.reason);
        throw data_error(origin_ + ": no tensor " + quoted_text(name) + " among " +
                         std::to_string(contents_.tensors.size()));
    }
    return found->second;
}

TG_DEFINITION void safetensors_reader::check_part(const std::map<std::string, std::string>& metadata, std::size_t rank,
                                                  const std::string& part) const {
    const auto expect = [&](const char* field, const std::string& expected) {
        const auto found = metadata.find(field);
        const std::string& is = found == metadata.end() ? std::string() : found->second;
        if (is != expected)
            throw data_error(part + ": " + field + " is " + quoted_text(is) + ", expected " + quoted_text(expected) +
                             " by " + origin_);
    };
    expect("rank", std::to_string(rank));
    const auto saved = contents_.metadata.find("saved");
    if (saved != contents_.metadata.end()) expect("saved", saved->second);
}

TG_DEFINITION void safetensors_reader::join(const std::string& name, const detail::shard_index::slices& whole) {
    const auto refuse = [&](const std::string& why) {
        throw data_error(origin_ + ": tensor " + quoted_text(name) + " in slices: " + why);
    };
    array_view result{dtype::f32, whole.shape, {}};
    std::vector<std::byte>& bytes = opened_->joined.emplace_back();
    for (const std::string& part : whole.parts) {
        const auto found = contents_.tensors.find(part);
        if (found == contents_.tensors.end()) refuse("there is no " + quoted_text(part));
        const array_view& slice = found->second;
        if (&part == &whole.parts.front()) result.type = slice.type;
        if (slice.type != result.type)
            refuse(quoted_text(part) + " is " + name_of(slice.type) + ", those before it " + name_of(result.type));
        bytes.insert(bytes.end(), slice.bytes.begin(), slice.bytes.end());
        contents_.tensors.erase(found);
    }
    std::int64_t size = 0;
    if (!checked_size(whole.shape, size_of(result.type), size) ||
        static_cast<std::uint64_t>(size) * size_of(result.type) != bytes.size())
        refuse("they hold " + std::to_string(bytes.size() / size_of(result.type)) + " elements, its shape is " +
               shape_text(whole.shape));
    result.bytes = bytes;
    if (!contents_.tensors.emplace(name, std::move(result)).second) refuse("there is a whole one, too");
}

#endif

} // namespace tapegraph::io
