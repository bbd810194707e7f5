#pragma once

#include <tapegraph/formats/needs_posix.hpp>

#include <tapegraph/core/component.hpp>
#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/formats/safetensors.hpp>
#include <tapegraph/train/model_base.hpp>

#include <charconv>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Converts a model to tensors of a file, and back: the common part of model.save and model.load,
/// wherever the tensors are stored.

namespace tapegraph {

namespace detail {

/// Prefix of the names of an optimizer's tensors, which distinguishes them from those of layers.
inline constexpr std::string_view optimizer_prefix = "__optimizer__/";

inline std::vector<std::int64_t> extents_of(const shape& dims) { return {dims.data(), dims.data() + dims.rank()}; }

inline std::string stored_name(const variable& v) {
    return v.optimizer_state() ? std::string(optimizer_prefix) + v.path() : v.path();
}

/// The same for the state of a run of fit.
inline constexpr std::string_view run_prefix = "__fit__/";
/// The format version of save_options::everything; files of a later one are refused.
inline constexpr std::int64_t checkpoint_version = 1;

/// A number in a file's metadata. Throws data_error if it is missing or invalid; `what` names it.
template <class Number = std::int64_t>
Number stored_number(const io::safetensors_view& file, const std::string& name, const char* key, const char* what) {
    const auto found = file.metadata.find(key);
    if (found == file.metadata.end()) throw data_error(name + ": holds an optimizer's state but no " + what);
    Number number = 0;
    const std::string& text = found->second;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
    if (end.ec != std::errc{} || end.ptr != text.data() + text.size() ||
        (std::is_signed_v<Number> && number < Number(0)))
        throw data_error(name + ": the " + what + " is '" + text + "'");
    return number;
}

/// A model as tensors for a file; the values stay in place.
struct model_entries {
    std::vector<io::safetensors_entry> entries;
    std::map<std::string, std::string> metadata;
};

model_entries entries_of(const model_to_save& model, const save_options& options);

/// The metadata of a file, and the requested parts.
struct stored_contents {
    bool state = false;      ///< the optimizer's
    bool everything = false; ///< and the run
    std::int64_t step = 0;
    std::uint64_t seed = 0;
};

stored_contents contents_of(const io::safetensors_view& file, const std::string& name, const load_options& options,
                            bool trains);

inline bool is_partial(const load_options& o) {
    return !o.only.empty() || !o.prefix.empty() || !o.into.empty() || !o.rename.empty() || !o.strict;
}

/// The source of a variable's value.
struct stored_pair {
    variable* to;
    const io::array_view* from;
};

/// "[3,4] f32"
inline std::string described(const std::vector<std::int64_t>& dims, dtype type) {
    return io::shape_text(dims) + " " + name_of(type);
}

/// Names in quotes; of many only the first.
std::string some_names(const std::vector<std::string>& names);

/// Maps the tensors of a file to the model's names, and selects its variables.
class name_map {
public:
    name_map(const io::safetensors_view& file, const std::string& name, const load_options& options);
    /// Maps the model's paths to the file's names.
    const std::map<std::string, std::string>& names() const { return names_; }
    bool wants(std::string_view path) const {
        if (!options_.into.empty() && !path_matches(options_.into, path)) return false;
        return options_.only.empty() || path_matches(options_.only, path);
    }

private:
    std::string path_of_stored(const std::string& key, std::vector<bool>& used) const;

    const load_options& options_;
    std::map<std::string, std::string> names_;
};

std::vector<stored_pair> match_some(const io::safetensors_view& file, const std::string& name, variable_list& variables,
                                    const load_options& options, load_report& report);

std::vector<stored_pair> match_all(const io::safetensors_view& file, const std::string& name, variable_list& variables,
                                   const stored_contents& contents, load_report& report);

/// Copies a tensor of a file. Throws shape_error if it has more axes than tensors support.
any_tensor tensor_of(const io::array_view& array, const std::string& file, const std::string& key);

/// The state of a run of fit in a file.
inline state_entries stored_run(const io::safetensors_view& file, const std::string& name) {
    state_entries run;
    for (const auto& [key, array] : file.tensors)
        if (key.starts_with(run_prefix)) run.emplace_back(key.substr(run_prefix.size()), tensor_of(array, name, key));
    return run;
}

/// Freezes the variables that were frozen when everything was saved; the others are as created.
inline void restore_frozen(variable_list& variables, const std::string& frozen) {
    for (variable& v : variables) {
        const bool was = ("\n" + frozen).find("\n" + v.path() + "\n") != std::string::npos;
        if (was != v.frozen()) v.set_trainable(!was);
    }
}

/// Sets a model's variables, and other requested state, from a file's tensors; `name` is the prefix
/// of errors.
load_report load_stored(const io::safetensors_view& file, const std::string& name, const model_to_load& model,
                        const load_options& options);

} // namespace detail
} // namespace tapegraph

namespace tapegraph::detail {

#if TG_DEFINES_FOR_HOST(io)

TG_DEFINITION model_entries entries_of(const model_to_save& model, const save_options& options) {
    const bool state = options.optimizer_state || options.everything;
    model_entries result;
    std::string frozen;
    for (const variable& v : model.variables) {
        if (v.metric_state()) continue;
        if (!v.optimizer_state() || state)
            result.entries.push_back({stored_name(v), v.type(), extents_of(v.shape()), v.data().read()});
        if (v.frozen()) frozen.append(v.path()).append("\n");
    }
    auto& metadata = result.metadata;
    metadata = {
        {"format", "tapegraph"}, {"step", std::to_string(model.step)}, {"optimizer_state", state ? "true" : "false"}};
    if (options.everything) {
        for (const auto& [name, value] : model.run)
            result.entries.push_back(
                {std::string(run_prefix) + name, value.type(), extents_of(value.shape()), value.read()});
        metadata["checkpoint"] = std::to_string(checkpoint_version);
        metadata["seed"] = std::to_string(model.seed);
        metadata["frozen"] = frozen;
    }
    return result;
}

TG_DEFINITION stored_contents contents_of(const io::safetensors_view& file, const std::string& name,
                                          const load_options& options, bool trains) {
    stored_contents c;
    const auto flag = file.metadata.find("optimizer_state");
    c.everything = options.everything;
    if (c.everything) {
        if (file.metadata.count("checkpoint") == 0)
            throw data_error(name + ": holds weights, but was not saved with everything that resumes training");
        const auto version = stored_number(file, name, "checkpoint", "checkpoint's version");
        if (version > checkpoint_version)
            throw data_error(name + ": a checkpoint of version " + std::to_string(version) +
                             ", newer than this library's " + std::to_string(checkpoint_version));
        if (!trains) throw argument_error(name + ": everything cannot be loaded into a model for prediction alone");
        c.seed = stored_number<std::uint64_t>(file, name, "seed", "seed");
    }
    c.state =
        c.everything || (options.optimizer_state && trains && flag != file.metadata.end() && flag->second == "true");
    if (c.state) c.step = stored_number(file, name, "step", "step count");
    return c;
}

TG_DEFINITION std::string some_names(const std::vector<std::string>& names) {
    constexpr std::size_t most = 10;
    std::string text;
    for (std::size_t i = 0; i < names.size() && i < most; ++i)
        text.append(i == 0 ? "'" : ", '").append(names[i]).append("'");
    if (names.size() > most) text.append(" and ").append(std::to_string(names.size() - most)).append(" more");
    return text;
}

TG_DEFINITION name_map::name_map(const io::safetensors_view& file, const std::string& name, const load_options& options)
    : options_(options) {
    std::vector<bool> used(options.rename.size());
    std::vector<std::string> stored;
    bool prefixed = options.prefix.empty();
    for (const auto& [key, array] : file.tensors) {
        if (key.starts_with("__")) continue; // a tensor of an optimizer or a run
        stored.push_back(key);
        if (!key.starts_with(options.prefix)) continue;
        prefixed = true;
        names_[path_of_stored(key, used)] = key;
    }
    if (!prefixed)
        throw argument_error(name + ": no tensor's name begins with '" + options.prefix + "', there are " +
                             some_names(stored));
    for (std::size_t i = 0; i < used.size(); ++i)
        if (!used[i])
            throw argument_error(name + ": rename: no tensor '" + options.rename[i].first + "', there are " +
                                 some_names(stored));
}

TG_DEFINITION std::string name_map::path_of_stored(const std::string& key, std::vector<bool>& used) const {
    std::string path = key.substr(options_.prefix.size());
    for (std::size_t i = 0; i < used.size(); ++i) {
        const auto& [from, to] = options_.rename[i];
        if (!path.starts_with(from) || (path.size() > from.size() && path[from.size()] != '/')) continue;
        used[i] = true;
        path = to + path.substr(from.size());
        break;
    }
    return options_.into.empty() ? path : options_.into + "/" + path;
}

TG_DEFINITION std::vector<stored_pair> match_some(const io::safetensors_view& file, const std::string& name,
                                                  variable_list& variables, const load_options& options,
                                                  load_report& report) {
    const name_map map(file, name, options);
    std::vector<stored_pair> pairs;
    std::vector<std::string> paths;
    bool wanted = false;
    for (variable& v : variables) {
        if (v.optimizer_state() || v.metric_state()) continue;
        paths.push_back(v.path());
        if (!map.wants(v.path())) continue;
        wanted = true;
        const auto found = map.names().find(v.path());
        if (found == map.names().end()) {
            report.missing.push_back(v.path());
            continue;
        }
        const io::array_view& a = file.tensors.at(found->second);
        if (a.shape != extents_of(v.shape()) || a.type != v.type()) {
            report.mismatched.push_back(v.path() + ": " + described(a.shape, a.type) + " in the file, " +
                                        described(extents_of(v.shape()), v.type()) + " in the model");
            continue;
        }
        report.matched.push_back(v.path());
        pairs.push_back({&v, &a});
    }
    if (!wanted)
        throw argument_error(name + ": the model has no variable '" +
                             (options.only.empty() ? options.into : options.only) + "'" +
                             (options.only.empty() || options.into.empty() ? "" : " in '" + options.into + "'") +
                             ", there are " + some_names(paths));
    for (const auto& [path, key] : map.names())
        if (map.wants(path) && (variables.find(path) == nullptr || variables.find(path)->optimizer_state()))
            report.unexpected.push_back(key);
    for (const io::unread_value& u : file.unread)
        if (!u.name.starts_with("__") && u.name.starts_with(options.prefix))
            report.unexpected.push_back(u.name + " (" + u.reason + ")");
    if (!options.strict) return pairs;
    if (!report.missing.empty())
        throw data_error(name + ": no tensor for " + some_names(report.missing) + " of the model");
    if (!report.mismatched.empty()) throw shape_error(name + ": " + report.mismatched.front());
    if (!report.unexpected.empty())
        throw data_error(name + ": the model has no variable for tensor " + some_names(report.unexpected));
    return pairs;
}

TG_DEFINITION std::vector<stored_pair> match_all(const io::safetensors_view& file, const std::string& name,
                                                 variable_list& variables, const stored_contents& contents,
                                                 load_report& report) {
    std::vector<stored_pair> pairs;
    for (variable& v : variables) {
        if (v.metric_state() || (v.optimizer_state() && !contents.state)) continue;
        const std::string key = stored_name(v);
        const auto found = file.tensors.find(key);
        if (found == file.tensors.end()) {
            for (const io::unread_value& u : file.unread)
                if (u.name == key) throw data_error(name + ": tensor '" + key + "', which the model has: " + u.reason);
            throw data_error(name + ": no tensor '" + key + "', which the model has");
        }
        const io::array_view& a = found->second;
        if (a.shape != extents_of(v.shape()))
            throw shape_error(name + ": tensor '" + key + "' has shape " + io::shape_text(a.shape) +
                              ", the model's is " + to_string(v.shape()));
        if (a.type != v.type())
            throw dtype_error(name + ": tensor '" + key + "' is " + name_of(a.type) + ", the model's is " +
                              name_of(v.type()));
        report.matched.push_back(v.path());
        pairs.push_back({&v, &a});
    }
    for (const auto& [key, array] : file.tensors) {
        const bool state = key.starts_with(optimizer_prefix);
        if ((state && !contents.state) || key.starts_with(run_prefix)) continue;
        const variable* const v = variables.find(state ? key.substr(optimizer_prefix.size()) : key);
        if (v == nullptr || v->optimizer_state() != state)
            throw data_error(name + ": the model has no " + (state ? "optimizer state" : "variable") + " for tensor '" +
                             key + "'");
    }
    for (const io::unread_value& u : file.unread)
        if (!u.name.starts_with(run_prefix) && (contents.state || !u.name.starts_with(optimizer_prefix)))
            throw data_error(name + ": the model has no variable for tensor '" + u.name + "' (" + u.reason + ")");
    return pairs;
}

TG_DEFINITION any_tensor tensor_of(const io::array_view& array, const std::string& file, const std::string& key) {
    if (array.shape.size() > static_cast<std::size_t>(max_rank))
        throw shape_error(file + ": tensor '" + key + "' has shape " + io::shape_text(array.shape) + ", more than " +
                          std::to_string(max_rank) + " axes");
    any_tensor value(array.type, shape(static_cast<int>(array.shape.size()), array.shape.data()));
    if (!array.bytes.empty()) std::memcpy(value.overwrite(), array.bytes.data(), array.bytes.size());
    return value;
}

TG_DEFINITION load_report load_stored(const io::safetensors_view& file, const std::string& name,
                                      const model_to_load& model, const load_options& options) {
    const device_scope on(nullptr);
    const bool partial = is_partial(options);
    if (partial && options.everything)
        throw argument_error(name + ": everything is not loaded in part (only, prefix, into, rename, strict)");
    stored_contents contents;
    load_report report;
    if (!partial) contents = contents_of(file, name, options, model.trains);
    const std::vector<stored_pair> pairs = partial ? match_some(file, name, model.variables, options, report)
                                                   : match_all(file, name, model.variables, contents, report);
    state_entries run;
    if (contents.everything) run = stored_run(file, name);
    for (const auto& pair : pairs) pair.to->overwrite(); // the last step that may fail
    for (const auto& [v, array] : pairs)
        if (!array->bytes.empty()) std::memcpy(v->overwrite(), array->bytes.data(), array->bytes.size());
    if (contents.state) model.step = contents.step;
    if (contents.everything) {
        model.seed = contents.seed;
        model.run = std::move(run);
        const auto frozen = file.metadata.find("frozen");
        restore_frozen(model.variables, frozen == file.metadata.end() ? std::string() : frozen->second);
    }
    return report;
}

#endif

} // namespace tapegraph::detail
