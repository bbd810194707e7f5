#pragma once

#include <tapegraph/formats/needs_posix.hpp>

#include <tapegraph/formats/hdf5_file.hpp>
#include <tapegraph/formats/path.hpp>
#include <tapegraph/formats/zip.hpp>
#include <tapegraph/io/foreign_weights.hpp>
#include <tapegraph/io/keras_config.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Loads weights of Keras's files into a model: .weights.h5 and .keras of Keras 3, and the older
/// .h5. Needs HDF5 and zlib.

namespace tapegraph::io {

namespace detail {

/// Keras numbers the variables of a layer in the order in which this library's layer requests them,
/// and has the same layouts.
struct keras_dialect {
    static constexpr char separator = '/';
    static bool same_name(const std::string& scope, const std::string& path) { return scope == path; }
    static bool alike(const model_layer& ours, const foreign_layer& theirs) {
        return ours.kind == theirs.kind ||
               (ours.variables.size() == theirs.tensors.size() &&
                std::equal(ours.variables.begin(), ours.variables.end(), theirs.tensors.begin(),
                           [](const variable* v, const auto& t) {
                               return static_cast<std::size_t>(v->shape().rank()) == t.array.shape.size();
                           }));
    }
    static std::vector<model_layer> split(std::vector<model_layer> layers) { return layers; }
    static foreign_value value_for(const variable& v, const model_layer& ours, const foreign_layer& theirs) {
        for (std::size_t i = 0; i < ours.variables.size() && i < theirs.tensors.size(); ++i)
            if (ours.variables[i] == &v && theirs.tensors[i].reason.empty())
                return {theirs.tensors[i].array, {theirs.tensors[i].name}, {}};
        return {};
    }
};

/// Alphabetical order, but with numbers as numbers ("dense_2" before "dense_10"), and forward
/// before backward.
inline bool keras_before(const std::string& left, const std::string& right) {
    const auto rank = [](const std::string& name) { return name.starts_with("backward") ? "forward~" + name : name; };
    const std::string a = rank(left), b = rank(right);
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    std::size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
        if (digit(a[i]) && digit(b[j])) {
            const std::size_t from = i, other = j;
            while (i < a.size() && digit(a[i])) ++i;
            while (j < b.size() && digit(b[j])) ++j;
            if (i - from != j - other) return i - from < j - other;
            if (const int order = a.compare(from, i - from, b, other, j - other); order != 0) return order < 0;
        } else if (a[i] != b[j]) {
            return a[i] < b[j];
        } else {
            ++i, ++j;
        }
    }
    return a.size() - i < b.size() - j;
}

/// The kind of a layer by its class's name in snake case.
inline layer_kind keras_kind(std::string_view name) {
    constexpr std::pair<std::string_view, layer_kind> known[] = {
        {"dense", layer_kind::dense},
        {"embedding", layer_kind::embedding},
        {"conv", layer_kind::convolution},
        {"depthwise_conv", layer_kind::convolution},
        {"separable_conv", layer_kind::convolution},
        {"batch_normalization", layer_kind::batch_normalization},
        {"layer_normalization", layer_kind::normalization},
        {"group_normalization", layer_kind::normalization},
        {"rms_normalization", layer_kind::normalization},
        {"cell", layer_kind::recurrent}};
    for (const auto& [beginning, kind] : known)
        if (name.starts_with(beginning)) return kind;
    return layer_kind::unknown;
}

/// The layers of a file, and what in it cannot be read.
struct keras_contents {
    std::vector<foreign_layer> layers{};
    std::vector<unread_value> unread{};

    /// Adds an array to a layer. One of a type that this library lacks still takes its place, so
    /// that the others keep theirs.
    void add(const hdf5_file& file, foreign_layer& layer, const std::string& place, const std::string& role) {
        std::string reason = file.unread_reason(place);
        if (!reason.empty()) unread.push_back({place.substr(1), reason, true});
        host_array array = reason.empty() ? file.array(place) : host_array{{}, file.shape_of(place), {}};
        layer.tensors.push_back({place.substr(1), role, std::move(array), std::move(reason)});
    }
};

/// Walks the groups of Keras 3: "layers/<class>_<n>/vars/<i>", where the attribute "name" of vars
/// is the user's name for the layer. A group with vars is a layer, and the groups in it are its
/// attributes; one without is a list of layers. HDF5 keeps no order of either. The configuration
/// has the order of lists; within a list, the numbers of layers of one class give theirs.
struct keras_walk {
    const hdf5_file& file;
    keras_contents& contents;

    void group(const std::string& group, const std::string& path, const foreign_layer& above,
               const keras_config* config, const std::vector<keras_config>* listed, int depth) const {
        constexpr int deepest = 32;
        if (depth > deepest)
            throw data_error(file.name() + ": group '" + group.substr(0, 80) +
                             "...' is nested too deeply, or in itself");
        std::vector<std::string> names = file.names(group);
        std::sort(names.begin(), names.end(), keras_before);
        const std::string below = group == "/" ? group : group + "/";
        std::vector<std::pair<std::string, std::string>> groups; // with the names of their layers
        bool list = depth > 0;
        for (const std::string& name : names) {
            if (file.kind_of(below + name) != hdf5_file::kind::group) continue;
            if ((depth == 0 && (name == "optimizer" || name == "_trainer")) || name == "seed_generator") continue;
            if (name == "vars") {
                variables(group, path, above);
                list = false;
                continue;
            }
            const std::vector<std::string> called = file.texts(below + name + "/vars", "name");
            groups.emplace_back(name, called.empty() ? std::string() : called.front());
        }
        const bool ordered = list && listed != nullptr && order_by_config(groups, *listed);
        for (const auto& each : groups) {
            const std::string &name = each.first, &called = each.second;
            const bool container = name == "layers" || name == "cell" || name == "_layers";
            const std::string part = container ? std::string() : called.empty() ? name : called;
            foreign_layer next{path.empty() || part.empty() ? path + part : path + "/" + part, {}, {}, {}, above.order};
            next.order.push_back({name, ordered ? std::string() : list ? keras_stem(name) : "/" + name});
            const keras_config* of = nullptr;
            const std::vector<keras_config>* in = nullptr;
            if (ordered)
                of = &*std::find_if(listed->begin(), listed->end(), [&](const auto& l) { return l.name == called; });
            else if (!list && config != nullptr)
                in = config->find(name);
            if (in != nullptr && in->size() == 1) of = &in->front();
            this->group(below + name, next.path, next, of, in, depth + 1);
        }
    }
    void variables(const std::string& group, const std::string& path, const foreign_layer& above) const {
        const std::string below = group == "/" ? "/vars" : group + "/vars";
        std::vector<std::string> numbers = file.names(below);
        std::sort(numbers.begin(), numbers.end(), keras_before);
        foreign_layer layer{
            path, keras_kind(std::string_view(group).substr(group.rfind('/') + 1)), {}, {}, above.order};
        for (const std::string& number : numbers)
            if (const std::string place = below + "/" + number; file.kind_of(place) == hdf5_file::kind::array)
                contents.add(file, layer, place, number);
        if (!layer.tensors.empty()) contents.layers.push_back(std::move(layer));
    }
};

/// The layers of the .h5 before Keras 3: "model_weights/<layer>" with the attributes layer_names and weight_names.
inline keras_contents contents_of_legacy_keras(const hdf5_file& file, const std::string& root) {
    keras_contents contents;
    std::vector<foreign_layer>& layers = contents.layers;
    for (const std::string& name : file.texts(root, "layer_names")) {
        const std::string group = root + (root == "/" ? "" : "/") + name;
        const std::vector<std::string> weights = file.texts(group, "weight_names");
        std::vector<std::string> folders;
        for (const std::string& weight : weights) {
            std::string folder = weight.substr(0, std::min(weight.rfind('/'), weight.size()));
            const std::size_t slash = folder.rfind('/');
            if (slash != std::string::npos && folder.find("_cell", slash) != std::string::npos) folder.resize(slash);
            folders.push_back(std::move(folder));
        }
        const bool several =
            std::any_of(folders.begin(), folders.end(), [&](const auto& f) { return f != folders.front(); });
        for (std::size_t i = 0; i < weights.size(); ++i) {
            const std::string path = several ? name + "/" + folders[i].substr(folders[i].rfind('/') + 1) : name;
            auto found =
                std::find_if(layers.begin(), layers.end(), [&](const foreign_layer& l) { return l.path == path; });
            if (found == layers.end()) found = layers.insert(layers.end(), foreign_layer{path});
            const std::string place = group + "/" + weights[i];
            const std::string role = weights[i].substr(weights[i].rfind('/') + 1);
            contents.add(file, *found, place, role);
            if (role.starts_with("embeddings")) found->kind = layer_kind::embedding;
            if (role.starts_with("recurrent_kernel")) found->kind = layer_kind::recurrent;
            if (role.starts_with("moving_")) found->kind = layer_kind::batch_normalization;
            if (role.starts_with("gamma") || role.starts_with("beta")) found->kind = layer_kind::normalization;
        }
    }
    return contents;
}

inline keras_contents contents_of_hdf5(const hdf5_file& file, const keras_config& config) {
    if (file.kind_of("/model_weights") == hdf5_file::kind::group)
        return contents_of_legacy_keras(file, "/model_weights");
    if (!file.texts("/", "layer_names").empty()) return contents_of_legacy_keras(file, "/");
    keras_contents contents;
    keras_walk{file, contents}.group("/", "", {}, &config, nullptr, 0);
    return contents;
}

/// Reads a file of either kind, told apart by content.
inline keras_contents contents_of_keras(const files::path& path) {
    const std::string what = quoted(path);
    char begin[2] = {};
    if (const input_file in(path); in.size() >= sizeof begin) in.read(begin, sizeof begin, 0);
    if (std::string_view(begin, 2) != "PK") return contents_of_hdf5(hdf5_file(path), {});
    const zip_reader archive(path);
    if (archive.find("model.weights.h5") == nullptr)
        throw data_error(what + ": a zip archive, but not a .keras file: model.weights.h5 is missing");
    keras_config config;
    if (archive.find("config.json") != nullptr) {
        const auto text = archive.read("config.json");
        config = keras_config_of({reinterpret_cast<const char*>(text.data()), text.size()});
    }
    return contents_of_hdf5(hdf5_file(archive.read("model.weights.h5"), what + ", member 'model.weights.h5'"), config);
}

} // namespace detail

/// Reads the arrays of a Keras file, in the file's order, by the names of their layers: "score/0"
/// or, in files before Keras 3, "score/kernel:0". `unread` receives the names of arrays of texts,
/// complex numbers and other types that are not read; without it they are a dtype_error. Otherwise
/// throws as load_keras does.
inline std::vector<std::pair<std::string, host_array>> read_keras(const files::path& path,
                                                                  std::vector<unread_value>* unread = nullptr) {
    detail::keras_contents contents = detail::contents_of_keras(path);
    if (unread == nullptr && !contents.unread.empty())
        throw dtype_error(detail::quoted(path) + ", data set '" + contents.unread.front().name +
                          "': " + contents.unread.front().reason +
                          "; the others are read where the call has a list of unread ones");
    if (unread != nullptr) *unread = std::move(contents.unread);
    std::vector<std::pair<std::string, host_array>> result;
    for (auto& layer : contents.layers)
        for (auto& t : layer.tensors)
            if (t.reason.empty()) result.emplace_back(layer.path + "/" + t.role, std::move(t.array));
    return result;
}

/// Loads the weights of a .keras, .weights.h5 or .h5 file of Keras into a model; its optimizer and
/// step count stay. Layers are matched by the names that the user gave them, the others by kind,
/// shape and order, or as options.layers says; `prefix` and `flattened` are not used, because the
/// layouts are the same. The order is that of model.layers, which a .keras file has for Sequential
/// and Functional models; a .weights.h5 file, and models that are classes, have it only for layers
/// of one class in one list. Where it is not known, kind and shape must tell which layer is which.
///
/// Throws data_error if the file is missing, damaged or no Keras file, if arrays are missing or
/// left over, or if it is not known which layer is which, and shape_error if some have other
/// shapes, with all of them in the message; then nothing of the model has changed.
///
/// The HDF5 library, which reads HDF5, is not made to withstand malicious files: load those you
/// trust.
template <class Model>
foreign_report load_keras(Model& model, const files::path& path, const foreign_options& options = {}) {
    detail::keras_contents contents = detail::contents_of_keras(path);
    return detail::load_foreign<detail::keras_dialect>(model.variables(), std::move(contents.layers),
                                                       detail::quoted(path), options, std::move(contents.unread));
}

} // namespace tapegraph::io
