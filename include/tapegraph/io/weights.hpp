#pragma once

#include <tapegraph/formats/needs_posix.hpp>

#include <tapegraph/core/component.hpp>
#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/formats/path.hpp>
#include <tapegraph/formats/safetensors.hpp>
#include <tapegraph/formats/safetensors_shards.hpp>
#include <tapegraph/io/stored_model.hpp>
#include <tapegraph/train/trainable_model.hpp>

#include <map>
#include <string>

/// Weights in files: `model.save`, `model.load`, and tensors by name, all as safetensors. Not in
/// the umbrella header, because programs that store nothing do not need it: #include
/// <tapegraph/io/weights.hpp> in addition to <tapegraph/tapegraph.hpp>.
///
/// With TG_WEIGHTS_COMPILED these functions are only declared here: they are compiled once in
/// io/weights.cpp (in CMake the library tapegraph::weights, which defines the macro), or in the component.

namespace tapegraph {

namespace detail {

void save_weights(const files::path& path, const model_to_save& model, const save_options& options);
void save_shards(const io::shards& to, const model_to_save& model, const save_options& options);
load_report load_weights(const files::path& path, const model_to_load& model, const load_options& options);

/// Implements model.save and model.load, which find it when this header is included.
template <class Path>
struct weight_file {
    static void save(const Path& path, const model_to_save& model, const save_options& options) {
        save_weights(path, model, options);
    }
    static load_report load(const Path& path, const model_to_load& model, const load_options& options) {
        return load_weights(path, model, options);
    }
};
template <>
struct weight_file<io::shards> {
    template <class Model> // so that only callers compile it
    static void save(const io::shards& to, const Model& model, const save_options& options) {
        save_shards(to, model, options);
    }
};

} // namespace detail

namespace io {

/// All tensors of a safetensors file, or of an index, by name: `tg::tensor<float>
/// x(tensors.at("x"))`. Throws data_error naming file and tensor if the file is missing, truncated
/// or corrupt, shape_error for a tensor of more than 8 axes.
std::map<std::string, any_tensor> read_safetensors(const files::path& path);

/// One tensor of an open file, over the mapping itself: its values are loaded from disk on access,
/// and are copied when the tensor is written to. Values that are not aligned in the file are copied
/// at once. Throws data_error if there is none of that name, shape_error for one of more than 8
/// axes.
any_tensor mapped_tensor(const safetensors_reader& file, const std::string& name);

/// Writes tensors by name; a `tensor<T>` converts. The file replaces an older one only when
/// complete. Throws argument_error for an impossible name, data_error on failure.
void write_safetensors(const files::path& path, const std::map<std::string, any_tensor>& tensors);

} // namespace io
} // namespace tapegraph

#if TG_DEFINES_FOR_HOST(io) && !defined(TG_WEIGHTS_COMPILED)
namespace tapegraph {
namespace detail {

TG_WEIGHTS_DEFINITION void save_weights(const files::path& path, const model_to_save& model,
                                        const save_options& options) {
    const model_entries all = entries_of(model, options);
    io::write_safetensors_arrays(path, all.entries, all.metadata);
}
TG_WEIGHTS_DEFINITION void save_shards(const io::shards& to, const model_to_save& model, const save_options& options) {
    model_entries all = entries_of(model, options);
    io::write_safetensors_shards(to, std::move(all.entries), all.metadata);
}
TG_WEIGHTS_DEFINITION load_report load_weights(const files::path& path, const model_to_load& model,
                                               const load_options& options) {
    const io::safetensors_reader file(path, io::file_access::sequential);
    return load_stored(file.contents(), io::detail::quoted(path), model, options);
}

} // namespace detail

namespace io {

TG_WEIGHTS_DEFINITION std::map<std::string, any_tensor> read_safetensors(const files::path& path) {
    std::map<std::string, any_tensor> result;
    const safetensors_reader file(path, file_access::sequential);
    for (const auto& [name, array] : file.tensors())
        result.emplace(name, tapegraph::detail::tensor_of(array, detail::quoted(path), name));
    return result;
}

TG_WEIGHTS_DEFINITION void write_safetensors(const files::path& path,
                                             const std::map<std::string, any_tensor>& tensors) {
    std::vector<safetensors_entry> entries;
    for (const auto& [name, value] : tensors)
        entries.push_back({name, value.type(), tapegraph::detail::extents_of(value.shape()), value.read()});
    write_safetensors_arrays(path, entries);
}

} // namespace io
} // namespace tapegraph
#endif

namespace tapegraph::io {

#if TG_DEFINES_FOR_HOST(io)

TG_DEFINITION any_tensor mapped_tensor(const safetensors_reader& file, const std::string& name) {
    const array_view& array = file.at(name);
    if (array.shape.size() > static_cast<std::size_t>(max_rank) || !array.is_aligned())
        return tapegraph::detail::tensor_of(array, "mapped_tensor", name);
    return any_tensor::over(array.type, shape(static_cast<int>(array.shape.size()), array.shape.data()),
                            const_cast<std::byte*>(array.bytes.data()), file.owner(), true);
}

#endif

} // namespace tapegraph::io
