#pragma once

#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/io/safetensors.hpp>
#include <tapegraph/nn/model.hpp>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

/// Weights in files: `model.save`, `model.load`, and tensors by name, all as safetensors. Not in the umbrella header,
/// because reading the format needs a JSON library: #include <tapegraph/io/weights.hpp> beside <tapegraph/tapegraph.hpp>.
///
/// With TG_WEIGHTS_COMPILED these functions are only declared here, and the JSON library is not included: they are compiled once
/// in io/weights.cpp (in CMake the library tapegraph::weights, which defines the macro).

namespace tapegraph {

namespace detail {

/// What stands before the names of an optimizer's tensors, so that no layer's name can be taken for one.
inline constexpr std::string_view optimizer_prefix = "__optimizer__/";

inline std::vector<std::int64_t> extents_of(const shape& dims) { return {dims.data(), dims.data() + dims.rank()}; }

inline std::string stored_name(const variable& v) {
    return v.optimizer_state() ? std::string(optimizer_prefix) + v.path() : v.path();
}

/// The step a file was written at; throws data_error where the number is none.
template <class = void>
std::int64_t stored_step(const io::safetensors_file& file, const std::string& name) {
    const auto found = file.metadata.find("step");
    if (found == file.metadata.end()) throw data_error(name + ": holds an optimizer's state but no step count");
    std::int64_t step = -1;
    const std::string& text = found->second;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), step);
    if (end.ec != std::errc{} || end.ptr != text.data() + text.size() || step < 0)
        throw data_error(name + ": the step count is '" + text + "'");
    return step;
}

template <class = void>
void save_weights(const std::filesystem::path& path, const variable_list& variables, std::int64_t step,
                  const save_options& options) {
    std::vector<io::safetensors_entry> entries;
    for (const variable& v : variables)
        if (!v.metric_state() && (!v.optimizer_state() || options.optimizer_state))
            entries.push_back({stored_name(v), v.type(), extents_of(v.shape()), v.data().read()});
    io::write_safetensors_arrays(path, entries,
                                 {{"format", "tapegraph"},
                                  {"step", std::to_string(step)},
                                  {"optimizer_state", options.optimizer_state ? "true" : "false"}});
}

template <class = void>
void load_weights(const std::filesystem::path& path, variable_list& variables, std::int64_t& step,
                  bool optimizer_state) {
    const io::safetensors_file file = io::read_safetensors_file(path);
    const std::string name = io::detail::quoted(path);
    const auto flag = file.metadata.find("optimizer_state");
    const bool resume = optimizer_state && flag != file.metadata.end() && flag->second == "true";
    const std::int64_t new_step = resume ? stored_step(file, name) : step;

    std::vector<std::pair<variable*, const io::host_array*>> pairs;
    for (variable& v : variables) {
        if (v.metric_state() || (v.optimizer_state() && !resume)) continue;
        const std::string key = stored_name(v);
        const auto found = file.tensors.find(key);
        if (found == file.tensors.end()) throw data_error(name + ": no tensor '" + key + "', which the model has");
        const io::host_array& a = found->second;
        if (a.shape != extents_of(v.shape()))
            throw shape_error(name + ": tensor '" + key + "' has shape " + io::shape_text(a.shape) +
                              ", the model's is " + to_string(v.shape()));
        if (a.type != v.type())
            throw dtype_error(name + ": tensor '" + key + "' is " + name_of(a.type) + ", the model's is " +
                              name_of(v.type()));
        pairs.emplace_back(&v, &a);
    }
    for (const auto& [key, array] : file.tensors) {
        const bool state = key.starts_with(optimizer_prefix);
        if (state && !resume) continue;
        const variable* const v = variables.find(state ? key.substr(optimizer_prefix.size()) : key);
        if (v == nullptr || v->optimizer_state() != state)
            throw data_error(name + ": the model has no " + (state ? "optimizer state" : "variable") + " for tensor '" +
                             key + "'");
    }
    for (const auto& pair : pairs) pair.first->own_data(); // the last thing that may fail
    for (const auto& [v, array] : pairs)
        if (!array->bytes.empty()) std::memcpy(v->own_data(), array->bytes.data(), array->bytes.size());
    step = new_step;
}

/// What model.save and model.load are made of; they find it when this header is included.
template <class Path>
struct weight_file {
    static void save(const Path& path, const variable_list& variables, std::int64_t step, const save_options& options) {
        save_weights(path, variables, step, options);
    }
    static void load(const Path& path, variable_list& variables, std::int64_t& step, bool optimizer_state) {
        load_weights(path, variables, step, optimizer_state);
    }
};

} // namespace detail

namespace io {

/// All tensors of a safetensors file by name: `tg::tensor<float> x(tensors.at("x"))`. Throws data_error naming file and
/// tensor where the file is missing, truncated or corrupt, shape_error for a tensor of more than 8 axes.
template <class = void>
std::map<std::string, any_tensor> read_safetensors(const std::filesystem::path& path) {
    std::map<std::string, any_tensor> result;
    for (const auto& [name, array] : read_safetensors_arrays(path)) {
        if (array.shape.size() > static_cast<std::size_t>(max_rank))
            throw shape_error(detail::quoted(path) + ": tensor '" + name + "' has shape " + shape_text(array.shape) +
                              ", more than " + std::to_string(max_rank) + " axes");
        any_tensor value(array.type, shape(static_cast<int>(array.shape.size()), array.shape.data()));
        if (!array.bytes.empty()) std::memcpy(value.write(), array.bytes.data(), array.bytes.size());
        result.emplace(name, std::move(value));
    }
    return result;
}

/// Writes tensors by name; a `tensor<T>` converts. The file replaces an older one only when complete. Throws
/// argument_error for an impossible name, data_error where writing fails.
template <class = void>
void write_safetensors(const std::filesystem::path& path, const std::map<std::string, any_tensor>& tensors) {
    std::vector<safetensors_entry> entries;
    for (const auto& [name, value] : tensors)
        entries.push_back({name, value.type(), tapegraph::detail::extents_of(value.shape()), value.read()});
    write_safetensors_arrays(path, entries);
}

} // namespace io
} // namespace tapegraph

#if defined(TG_WEIGHTS_COMPILED)
#define TG_WEIGHTS_INSTANCE extern template
#endif
#if defined(TG_WEIGHTS_INSTANCE) // or `template`, in the file that has them
namespace tapegraph {
TG_WEIGHTS_INSTANCE io::safetensors_file io::read_safetensors_file<>(const std::filesystem::path&);
TG_WEIGHTS_INSTANCE void io::write_safetensors_arrays<>(const std::filesystem::path&,
                                                        const std::vector<safetensors_entry>&,
                                                        const std::map<std::string, std::string>&);
TG_WEIGHTS_INSTANCE std::map<std::string, any_tensor> io::read_safetensors<>(const std::filesystem::path&);
TG_WEIGHTS_INSTANCE void io::write_safetensors<>(const std::filesystem::path&,
                                                 const std::map<std::string, any_tensor>&);
TG_WEIGHTS_INSTANCE void detail::save_weights<>(const std::filesystem::path&, const variable_list&, std::int64_t,
                                                const save_options&);
TG_WEIGHTS_INSTANCE void detail::load_weights<>(const std::filesystem::path&, variable_list&, std::int64_t&, bool);
} // namespace tapegraph
#endif
