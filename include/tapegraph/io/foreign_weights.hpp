#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/eager/any_tensor.hpp>
#include <tapegraph/formats/foreign_values.hpp>
#include <tapegraph/model/path_matches.hpp>
#include <tapegraph/train/trainable_model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What loading the weights of other libraries has in common: it matches the layers of a file with
/// those of the model, reports what does not fit, and changes nothing unless all is well. A dialect
/// holds a library's names and layouts: io/pytorch_dialect.hpp, io/gguf_weights.hpp, io/keras.hpp.

namespace tapegraph::io {

/// Options of the readers of other libraries' weights.
struct foreign_options {
    std::string prefix{}; ///< what names in the file begin with: "model." of a checkpoint; other tensors are left alone
    std::string only{};   ///< of the model: variables whose path or scope matches this pattern, "encoder", "*/bias"
    /// Layers or modules of the file, and the scope that the model has for them: {{"fc1",
    /// "hidden"}, {"backbone", "encoder"}}. All others are matched by name, then by kind, shape and
    /// order.
    std::vector<std::pair<std::string, std::string>> layers{};
    /// For PyTorch: linear layers after a flattened image, and the image as PyTorch has it,
    /// {channels, height, width}: {{"fc1", {16, 5, 5}}}. PyTorch flattens channel by channel, this
    /// library pixel by pixel; the weights are reordered accordingly.
    std::vector<std::pair<std::string, std::vector<std::int64_t>>> flattened{};
    /// Throws for what is missing, unexpected or of another shape; if false, it is left out and
    /// reported.
    bool strict = true;
};

/// What was loaded, and from what. Every variable of the model is matched, missing or mismatched;
/// every tensor of the file was used or is unexpected.
struct foreign_report : load_report {
    std::vector<std::pair<std::string, std::string>> sources; ///< paths of the model, names in the file
    std::vector<unread_value>
        unread; ///< other contents of the file that cannot be read, with the reasons; no weight is among them
    /// Scopes of the model for which several layers of the file fit, in an order that the file does
    /// not say: "hidden: fc1 and fc2 of the file fit". Nothing is loaded there; name the layer in
    /// options.layers.
    std::vector<std::string> unclear;
    /// The report of load, a line for every variable that was read, "hidden/kernel <- fc1.weight",
    /// and one for everything that was not.
    std::string text() const;
};

namespace detail {

enum class layer_kind {
    dense,
    dense_or_embedding,
    embedding,
    convolution,
    normalization,
    batch_normalization,
    recurrent,
    other,
    unknown
};

/// One tensor of a file: its name there, and its role in its layer, "weight".
struct foreign_tensor {
    std::string name, role;
    host_array array;
    std::string reason{}; ///< why its values are not read; the array then has only a shape
};
/// A step on the path to a layer in its file. The order of two steps at one place is known where
/// they have the same `line`.
struct foreign_step {
    std::string name, line;
};
struct foreign_layer {
    std::string path;
    layer_kind kind = layer_kind::unknown;
    std::vector<foreign_tensor> tensors{};
    std::vector<std::int64_t> flattened{}; ///< see foreign_options
    std::vector<foreign_step> order{};     ///< empty where the order of all layers is known

    const foreign_tensor* find(std::string_view role) const {
        for (const foreign_tensor& t : tensors)
            if (t.role == role) return &t;
        return nullptr;
    }
};

inline bool order_is_known(const foreign_layer& a, const foreign_layer& b) {
    for (std::size_t i = 0; i < a.order.size() && i < b.order.size(); ++i)
        if (a.order[i].name != b.order[i].name) return a.order[i].line == b.order[i].line;
    return a.order.size() == b.order.size(); // unknown for a layer and those inside it
}

/// The variables of one scope of the model.
struct model_layer {
    std::string scope;
    layer_kind kind = layer_kind::other;
    std::vector<variable*> variables{};

    const variable* find(std::string_view name) const {
        for (const variable* v : variables)
            if (std::string_view(v->path()).substr(v->path().rfind('/') + 1) == name) return v;
        return nullptr;
    }
};

/// A dialect's conversion of a file's tensors for a variable: values in the library's layout, and
/// the tensors' names. No names: there is no such tensor. An objection: there is one, but it is not
/// for this layer.
struct foreign_value {
    host_array array;
    std::vector<std::string> names;
    std::string objection;
};

inline std::vector<std::int64_t> extents_of_variable(const variable& v) {
    return {v.shape().data(), v.shape().data() + v.shape().rank()};
}

layer_kind kind_of(const model_layer& layer);

/// Which of several equally shaped parts of one layer this is: the projections of attention, the
/// directions of a recurrent layer.
std::string_view part_of_layer(std::string_view path);
bool same_part(const model_layer& ours, std::string_view theirs);

/// The model's layers in its order.
std::vector<model_layer> layers_of_model(variable_list& variables, const std::string& only);

/// Finds the layer of the file for each layer of the model.
template <class Dialect>
class layer_matcher {
public:
    layer_matcher(const std::vector<model_layer>& ours, const std::vector<foreign_layer>& theirs)
        : ours_(ours), theirs_(theirs), partner_(ours.size(), none), taken_(theirs.size()) {}

    static constexpr std::size_t none = ~std::size_t{0};

    /// Matches the layers of a module of the file with those of a scope; both are empty for all
    /// that remain. Returns false if either has no layers.
    bool match(const std::string& module, const std::string& scope) {
        std::vector<std::size_t> our, their;
        for (std::size_t i = 0; i < ours_.size(); ++i)
            if (partner_[i] == none && inside(ours_[i].scope, scope, '/')) our.push_back(i);
        for (std::size_t i = 0; i < theirs_.size(); ++i)
            if (!taken_[i] && inside(theirs_[i].path, module, Dialect::separator)) their.push_back(i);
        if (our.empty() || their.empty()) return false;
        // Takes the first that fits, unless another one fits whose order relative to it is not
        // known.
        const auto pass = [&](bool by_order, const auto& valid) {
            for (const std::size_t i : our) {
                std::vector<std::size_t> found;
                for (const std::size_t j : their)
                    if (partner_[i] == none && !taken_[j] && compatible(ours_[i].kind, theirs_[j].kind) &&
                        same_part(ours_[i], theirs_[j].path) && valid(ours_[i], theirs_[j]))
                        found.push_back(j);
                if (found.empty()) continue;
                const auto other = std::find_if(found.begin() + 1, found.end(), [&](std::size_t j) {
                    return !order_is_known(theirs_[found.front()], theirs_[j]);
                });
                if (by_order && other != found.end())
                    unclear_.emplace(ours_[i].scope, theirs_[found.front()].path + " and " + theirs_[*other].path);
                else
                    partner_[i] = found.front(), taken_[found.front()] = true;
            }
        };
        pass(false, [&](const model_layer& a, const foreign_layer& b) {
            std::string path = b.path.substr(module.size());
            for (char& c : path)
                if (c == Dialect::separator) c = '/';
            return Dialect::same_name(a.scope.substr(scope.size()), path);
        });
        pass(true, [&](const model_layer& a, const foreign_layer& b) { return fits_wholly(a, b); });
        pass(true, [](const model_layer& a, const foreign_layer& b) { return Dialect::alike(a, b); });
        return true;
    }
    std::size_t partner_of(std::size_t ours) const { return partner_[ours]; }
    /// By scope, two layers of the file that both fit it and that nothing tells apart.
    const std::map<std::string, std::string>& unclear() const { return unclear_; }

private:
    static bool inside(const std::string& path, const std::string& scope, char separator) {
        return scope.empty() || path == scope || (path.starts_with(scope) && path[scope.size()] == separator);
    }
    static bool compatible(layer_kind ours, layer_kind theirs) {
        if (theirs == layer_kind::unknown || ours == theirs) return true;
        if (theirs == layer_kind::dense_or_embedding) return ours == layer_kind::dense || ours == layer_kind::embedding;
        return theirs == layer_kind::normalization && ours == layer_kind::other; // PReLU's weight is one row, too
    }
    static bool fits_wholly(const model_layer& a, const foreign_layer& b) {
        std::set<std::string> used;
        for (const variable* v : a.variables) {
            const foreign_value value = Dialect::value_for(*v, a, b);
            if (value.names.empty() || !value.objection.empty() || value.array.shape != extents_of_variable(*v))
                return false;
            used.insert(value.names.begin(), value.names.end());
        }
        for (const foreign_tensor& t : b.tensors)
            if (used.count(t.name) == 0) return false;
        return true;
    }

    const std::vector<model_layer>& ours_;
    const std::vector<foreign_layer>& theirs_;
    std::vector<std::size_t> partner_;
    std::vector<bool> taken_;
    std::map<std::string, std::string> unclear_;
};

/// Throws all problems in one line.
void refuse_foreign(const foreign_report& report, const std::string& file);

/// Loads the layers of a file: matches and converts all of them before it writes any.
template <class Dialect>
foreign_report load_foreign(variable_list& variables, std::vector<foreign_layer> theirs, const std::string& file,
                            const foreign_options& options, std::vector<unread_value> unread = {}) {
    const device_scope on(nullptr);
    std::vector<model_layer> ours = Dialect::split(layers_of_model(variables, options.only));
    if (ours.empty()) throw argument_error(file + ": the model has no variable '" + options.only + "'");
    for (const auto& [name, image] : options.flattened) {
        bool found = false;
        for (foreign_layer& layer : theirs)
            if (layer.path == name) layer.flattened = image, found = true;
        if (!found) throw argument_error(file + ": flattened: there is no layer '" + name + "'");
    }
    layer_matcher<Dialect> matcher(ours, theirs);
    for (const auto& [module, scope] : options.layers)
        if (!matcher.match(module, scope)) {
            std::string known;
            for (const foreign_layer& layer : theirs)
                known.append(known.empty() ? "'" : ", '").append(layer.path).append("'");
            throw argument_error(file + ": layers: the file has no '" + module + "', or the model no '" + scope +
                                 "', or they are taken; the file has " + known);
        }
    matcher.match("", "");

    foreign_report report;
    for (const auto& [scope, both] : matcher.unclear()) report.unclear.push_back(scope + ": " + both + " fit");
    std::set<std::string> used;
    std::vector<std::pair<variable*, host_array>> values;
    for (std::size_t i = 0; i < ours.size(); ++i) {
        const std::size_t j = matcher.partner_of(i);
        for (variable* const v : ours[i].variables) {
            foreign_value value;
            if (j != layer_matcher<Dialect>::none) value = Dialect::value_for(*v, ours[i], theirs[j]);
            if (value.names.empty()) {
                report.missing.push_back(v->path());
                continue;
            }
            used.insert(value.names.begin(), value.names.end());
            std::string names;
            for (const std::string& name : value.names) names.append(names.empty() ? "" : " and ").append(name);
            host_array& a = value.array;
            if (value.objection.empty() && a.shape != extents_of_variable(*v))
                value.objection =
                    shape_text(a.shape) + " in the file (in our order), " + to_string(v->shape()) + " in the model";
            if (value.objection.empty() && !convert_floats(a, v->type()))
                value.objection =
                    std::string(name_of(a.type)) + " in the file, " + name_of(v->type()) + " in the model";
            if (!value.objection.empty()) {
                report.mismatched.push_back(v->path() + " from " + names + ": " + value.objection);
                continue;
            }
            report.matched.push_back(v->path());
            report.sources.emplace_back(v->path(), names);
            values.emplace_back(v, std::move(a));
        }
    }
    if (options.only.empty())
        for (const foreign_layer& layer : theirs)
            for (const foreign_tensor& t : layer.tensors)
                if (t.reason.empty() && used.insert(t.name).second) report.unexpected.push_back(t.name);
    // A tensor that cannot be read may be one that the model lacks, or one that it has no place
    // for.
    if (options.only.empty())
        for (const unread_value& u : unread)
            if (u.tensor && u.name.starts_with(options.prefix))
                report.unexpected.push_back(u.name + " (" + u.reason + ")");
    report.unread = std::move(unread);
    if (options.strict) refuse_foreign(report, file);
    for (const auto& [v, array] : values) v->overwrite(); // the last operation that may fail
    for (const auto& [v, array] : values)
        if (!array.bytes.empty()) std::memcpy(v->overwrite(), array.bytes.data(), array.bytes.size());
    return report;
}

} // namespace detail
#if TG_DEFINES_FOR_HOST(io)

TG_DEFINITION std::string foreign_report::text() const {
    std::string result = load_report::text();
    for (const auto& [path, name] : sources) result.append(path).append(" <- ").append(name).append("\n");
    for (const std::string& which : unclear) result.append("order not known: ").append(which).append("\n");
    for (const unread_value& u : unread)
        result.append("not read: ").append(u.name).append(": ").append(u.reason).append("\n");
    return result;
}

namespace detail {

TG_DEFINITION layer_kind kind_of(const model_layer& layer) {
    if (layer.find("recurrent_kernel") != nullptr) return layer_kind::recurrent;
    if (layer.find("moving_mean") != nullptr) return layer_kind::batch_normalization;
    if (layer.find("embeddings") != nullptr) return layer_kind::embedding;
    if (layer.find("gamma") != nullptr || layer.find("beta") != nullptr || layer.find("scale") != nullptr)
        return layer_kind::normalization;
    if (layer.find("depthwise_kernel") != nullptr || layer.find("pointwise_kernel") != nullptr)
        return layer_kind::convolution;
    const variable* const kernel = layer.find("kernel");
    if (kernel == nullptr) return layer_kind::other;
    const std::string_view last = std::string_view(layer.scope).substr(layer.scope.rfind('/') + 1);
    const bool attention = last == "query" || last == "key" || last == "value" || last == "attention_output";
    return kernel->shape().rank() <= 2 || attention ? layer_kind::dense : layer_kind::convolution;
}

TG_DEFINITION std::string_view part_of_layer(std::string_view path) {
    const std::size_t end = path.find_last_of("/.");
    const std::string_view last = path.substr(end == path.npos ? 0 : end + 1);
    if (last == "out_proj" || last == "attn_output") return "attention_output";
    if (last == "attn_q") return "query"; // of GGUF
    if (last == "attn_k") return "key";
    if (last == "attn_v") return "value";
    if (last.starts_with("backward_") || last.ends_with("_reverse")) return "backward";
    return last == "query" || last == "key" || last == "value" || last == "attention_output" ? last
                                                                                             : std::string_view();
}

TG_DEFINITION bool same_part(const model_layer& ours, std::string_view theirs) {
    const std::string_view part = part_of_layer(ours.scope);
    if (ours.kind == layer_kind::recurrent) return part == part_of_layer(theirs);
    const variable* const kernel = ours.find("kernel");
    const bool attention = kernel != nullptr && kernel->shape().rank() == 3 && !part.empty();
    return !attention || part == part_of_layer(theirs);
}

TG_DEFINITION std::vector<model_layer> layers_of_model(variable_list& variables, const std::string& only) {
    std::vector<model_layer> layers;
    for (variable& v : variables) {
        if (v.optimizer_state() || v.metric_state() ||
            (!only.empty() && !tapegraph::detail::path_matches(only, v.path())))
            continue;
        const std::size_t slash = v.path().rfind('/');
        const std::string scope = slash == std::string::npos ? std::string() : v.path().substr(0, slash);
        model_layer* found = nullptr;
        for (model_layer& layer : layers)
            if (layer.scope == scope) found = &layer;
        if (found == nullptr) found = &layers.emplace_back(model_layer{scope});
        found->variables.push_back(&v);
    }
    for (model_layer& layer : layers) layer.kind = kind_of(layer);
    return layers;
}

TG_DEFINITION void refuse_foreign(const foreign_report& report, const std::string& file) {
    std::string text;
    const auto list = [&](const char* title, const std::vector<std::string>& names) {
        for (std::size_t i = 0; i < names.size(); ++i)
            text.append(i > 0 ? ", " : text.empty() ? title : std::string("; ") + title).append(names[i]);
    };
    list("the file does not say which layer is which, name them in .layers: ", report.unclear);
    list("no tensor for ", report.missing);
    list("nothing in the model for ", report.unexpected);
    list("other shapes: ", report.mismatched);
    if (text.empty()) return;
    if (!report.mismatched.empty()) throw shape_error(file + ": does not fit the model: " + text);
    throw data_error(file + ": does not fit the model: " + text);
}

} // namespace detail

#endif

} // namespace tapegraph::io
