#pragma once

#include <tapegraph/io/json_reader.hpp>
#include <tapegraph/io/path.hpp>
#include <tapegraph/io/safetensors.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// safetensors without reading them first, from one file or from several with an index:
///
///     model.safetensors.index.json    {"metadata": {"total_size": N}, "weight_map": {"name": "model-00001-of-00003.safetensors", ...}}

namespace tapegraph::io {

namespace detail {

/// Which file of the index's folder holds which tensor.
struct shard_index {
    std::map<std::string, std::string> files; ///< by tensor
    std::map<std::string, std::string> metadata;
};

/// The text of an index. Names of files are whatever somebody wrote there, so only names without a folder are taken.
template <class = void>
shard_index parse_shard_index(std::string_view text, const std::string& origin) {
    json_reader json(text, origin);
    shard_index result;
    bool mapped = false;
    json.begin_object();
    for (std::string name; json.next_name(name);) {
        if (name == "metadata" && json.peek() == json_kind::object) {
            json.begin_object();
            for (std::string key; json.next_name(key);)
                if (json.peek() == json_kind::string)
                    result.metadata[key] = json.string();
                else
                    json.skip(); // total_size, and what others add
            continue;
        }
        if (name != "weight_map") {
            json.skip();
            continue;
        }
        mapped = true;
        json.begin_object();
        for (std::string tensor; json.next_name(tensor);) {
            std::string file = json.string();
            if (file.empty() || file == "." || file == ".." ||
                file.find_first_of(std::string_view("/\\\0", 3)) != file.npos)
                json.refuse("tensor " + quoted_text(tensor) + " is in file " + quoted_text(file) +
                            ", which is not a name in the index's own folder");
            result.files.emplace(std::move(tensor), std::move(file));
        }
    }
    json.end();
    if (!mapped) throw data_error(origin + ": has no weight_map");
    return result;
}

inline bool is_shard_index(const files::path& path) { return path.native().ends_with(".index.json"); }

} // namespace detail

/// The tensors of a safetensors file, or of all files of an index (a path that ends in ".index.json"), as views of the mapped files:
/// opening it reads the headers alone, and the values of a tensor come from disk when they are looked at.
template <class = void>
class basic_safetensors_reader {
public:
    /// Throws data_error naming file and tensor where a file is missing, cut short or inconsistent, where an index names a file
    /// outside its folder, and where index and files do not hold the same tensors.
    explicit basic_safetensors_reader(const files::path& path, file_access access = file_access::random)
        : origin_(detail::quoted(path)), files_(std::make_shared<std::vector<mapped_file>>()) {
        if (!detail::is_shard_index(path)) {
            contents_ = view_of(path, access);
            return;
        }
        const auto bytes = read_file(path);
        auto index = detail::parse_shard_index({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, origin_);
        contents_.metadata = std::move(index.metadata);
        std::map<std::string, safetensors_view> shards;
        for (const auto& [name, file] : index.files)
            if (shards.find(file) == shards.end()) shards.emplace(file, view_of(path.parent_path() / file, access));
        for (const auto& [name, file] : index.files) {
            auto& shard = shards[file].tensors;
            const auto found = shard.find(name);
            if (found == shard.end())
                throw data_error(origin_ + ": tensor " + quoted_text(name) + " is not in " + quoted_text(file) +
                                 ", where it should be");
            contents_.tensors.insert(shard.extract(found));
        }
        for (auto& [file, shard] : shards) {
            if (!shard.tensors.empty())
                throw data_error(origin_ + ": " + quoted_text(file) + " holds tensor " +
                                 quoted_text(shard.tensors.begin()->first) + ", which the index does not name there");
            contents_.metadata.merge(shard.metadata);
        }
    }

    const std::map<std::string, array_view>& tensors() const { return contents_.tensors; }
    const std::map<std::string, std::string>& metadata() const { return contents_.metadata; }
    const safetensors_view& contents() const { return contents_; }
    bool contains(const std::string& name) const { return contents_.tensors.count(name) > 0; }
    /// One tensor. Throws data_error where there is none of that name.
    const array_view& at(const std::string& name) const {
        const auto found = contents_.tensors.find(name);
        if (found == contents_.tensors.end())
            throw data_error(origin_ + ": no tensor " + quoted_text(name) + " among " +
                             std::to_string(contents_.tensors.size()));
        return found->second;
    }
    /// What the views look at; they are good as long as this is held.
    std::shared_ptr<const void> owner() const { return files_; }

private:
    safetensors_view view_of(const files::path& path, file_access access) {
        files_->emplace_back(path, access);
        return view_safetensors(files_->back().bytes(), detail::quoted(path));
    }

    std::string origin_;
    std::shared_ptr<std::vector<mapped_file>> files_;
    safetensors_view contents_;
};
using safetensors_reader = basic_safetensors_reader<>;

} // namespace tapegraph::io
