#pragma once

#include <tapegraph/formats/foreign_values.hpp>
#include <tapegraph/formats/host_array.hpp>
#include <tapegraph/io/foreign_weights.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The names and layouts of torch.nn, which other files have, too: io/pytorch_weights.hpp, io/gguf_weights.hpp.

namespace tapegraph::io {

namespace detail {

/// The conventions of torch.nn: [out, in] of Linear, [out, in, height, width] of Conv2d, gates in
/// rows of LSTM and GRU, and their names.
struct pytorch_dialect {
    static constexpr char separator = '.';

    static bool same_name(const std::string& scope, const std::string& path) {
        if (path.ends_with("out_proj"))
            return scope == path.substr(0, path.size() - 8) + "attention_output" || scope == path;
        return scope == path;
    }
    static bool alike(const model_layer&, const foreign_layer&) {
        return true;
    } // of one kind; what does not fit is reported

    /// A separable convolution is two modules in PyTorch.
    static std::vector<model_layer> split(std::vector<model_layer> layers) {
        std::vector<model_layer> result;
        for (model_layer& layer : layers) {
            if (const variable* const first = layer.find("depthwise_kernel");
                first != nullptr && layer.variables.size() > 1) {
                model_layer depthwise{layer.scope, layer_kind::convolution};
                const auto at = std::find(layer.variables.begin(), layer.variables.end(), first);
                depthwise.variables.push_back(*at);
                layer.variables.erase(at);
                result.push_back(std::move(depthwise));
            }
            result.push_back(std::move(layer));
        }
        return result;
    }

    static foreign_value value_for(const variable& v, const model_layer& ours, const foreign_layer& theirs) {
        const std::string_view name = std::string_view(v.path()).substr(v.path().rfind('/') + 1);
        if (ours.kind == layer_kind::recurrent) return recurrent(v, name, ours, theirs);
        const std::string_view role = name == "moving_mean"              ? "running_mean"
                                      : name == "moving_variance"        ? "running_var"
                                      : name == "beta" || name == "bias" ? "bias"
                                                                         : "weight";
        const foreign_tensor* const from = theirs.find(role);
        if (from == nullptr) return {};
        foreign_value value{from->array, {from->name}, {}};
        const std::vector<std::int64_t> wanted = extents_of_variable(v);
        if (name.ends_with("kernel")) value.array = kernel(from->array, wanted, theirs);
        if (name == "bias" && value.array.shape.size() == 1 && wanted.size() == 2 &&
            wanted[0] * wanted[1] == value.array.size())
            value.array.shape = wanted; // the heads of attention
        return value;
    }

private:
    static host_array kernel(const host_array& w, const std::vector<std::int64_t>& wanted, const foreign_layer& layer) {
        const std::size_t rank = w.shape.size();
        if (rank == 2) return linear(w, wanted, layer);
        if (rank < 3) return w;
        std::vector<std::size_t> order;
        for (std::size_t axis = 2; axis < rank; ++axis) order.push_back(axis);
        if (wanted.size() == rank && w.shape[1] == 1 && wanted[rank - 2] * wanted[rank - 1] == w.shape[0] &&
            wanted[rank - 2] > 1) {
            // [channels multiplier, 1, height, width] to [height, width, channels, multiplier]
            host_array apart = w;
            apart.shape[0] = wanted[rank - 2], apart.shape[1] = wanted[rank - 1];
            order.insert(order.end(), {0, 1});
            return permuted(apart, order);
        }
        order.insert(order.end(),
                     {1, 0}); // also for transposed ones, [in, out, height, width] to [height, width, out, in]
        return permuted(w, order);
    }
    static host_array linear(const host_array& w, const std::vector<std::int64_t>& wanted, const foreign_layer& layer) {
        host_array turned = permuted(w, {1, 0});
        if (!layer.flattened.empty()) {
            host_array image = w; // [out, channels, height, width] to [height, width, channels, out]
            image.shape = {w.shape[0]};
            image.shape.insert(image.shape.end(), layer.flattened.begin(), layer.flattened.end());
            std::int64_t size = 0;
            if (!checked_size(image.shape, size_of(w.type), size) || size != w.size()) return w; // a wrong size
            std::vector<std::size_t> order;
            for (std::size_t axis = 2; axis < image.shape.size(); ++axis) order.push_back(axis);
            order.insert(order.end(), {1, 0});
            turned = reshaped(permuted(image, order), turned.shape);
        }
        if (wanted.size() == 3 &&
            (wanted[0] == turned.shape[0] ? wanted[1] * wanted[2] == turned.shape[1]
                                          : wanted[2] == turned.shape[1] && wanted[0] * wanted[1] == turned.shape[0]))
            turned.shape = wanted; // the heads of attention
        return turned;
    }

    /// Reorders stacked gates: i, f, g, o of LSTM are the same here; r, z, n of GRU become z, r, h.
    static host_array gates_in_order(const host_array& w, std::int64_t gates) {
        if (gates != 3 || w.shape.empty() || w.shape[0] % 3 != 0) return w;
        const std::int64_t units = w.shape[0] / 3;
        host_array result = rows_of(w, units, units);
        for (const host_array& part : {rows_of(w, 0, units), rows_of(w, 2 * units, units)})
            result.bytes.insert(result.bytes.end(), part.bytes.begin(), part.bytes.end());
        result.shape = w.shape;
        return result;
    }
    static foreign_value recurrent(const variable& v, std::string_view name, const model_layer& ours,
                                   const foreign_layer& theirs) {
        const variable* const cell = ours.find("recurrent_kernel");
        const std::int64_t units = cell->shape()[0].value, gates = units > 0 ? cell->shape()[1].value / units : 0;
        if (name != "bias") {
            const foreign_tensor* const from = theirs.find(name == "kernel" ? "weight_ih" : "weight_hh");
            if (from == nullptr) return {};
            if (from->array.shape.size() != 2) return {from->array, {from->name}, "not a matrix"};
            return {permuted(gates_in_order(from->array, gates), {1, 0}), {from->name}, {}};
        }
        const foreign_tensor* const first = theirs.find("bias_ih");
        const foreign_tensor* const second = theirs.find("bias_hh");
        if (first == nullptr || second == nullptr) return {};
        foreign_value value{{}, {first->name, second->name}, {}};
        const host_array a = gates_in_order(first->array, gates), b = gates_in_order(second->array, gates);
        if (a.shape != b.shape || a.shape.size() != 1 || !is_floating(a.type) || !is_floating(b.type)) {
            value.objection = "biases of different shapes or no numbers";
        } else if (gates != 3) {
            value.array = sum_of(a, b);
        } else if (v.shape().rank() != 2) {
            value.objection = "PyTorch's GRU is one with reset_after = true, the model's is not";
        } else {
            value.array = {a.type, {2, a.shape[0]}, a.bytes};
            value.array.bytes.insert(value.array.bytes.end(), b.bytes.begin(), b.bytes.end());
            if (a.type != b.type) value.objection = "biases of different types";
        }
        return value;
    }
};

/// "lstm.weight_ih_l0_reverse": module "lstm", role "weight_ih", part "l0_reverse". Parts are empty
/// for other layers.
struct pytorch_name_parts {
    std::string module, role, part;
};
inline pytorch_name_parts parts_of_pytorch_name(const std::string& name) {
    const std::size_t point = name.rfind('.');
    pytorch_name_parts parts{point == std::string::npos ? std::string() : name.substr(0, point),
                             point == std::string::npos ? name : name.substr(point + 1),
                             {}};
    for (const std::string_view role : {"weight_ih", "weight_hh", "bias_ih", "bias_hh"})
        if (parts.role.starts_with(role) && parts.role.substr(role.size()).starts_with("_l")) {
            parts.part = parts.role.substr(role.size() + 1);
            parts.role = role;
        }
    return parts;
}

inline layer_kind kind_of(const foreign_layer& layer) {
    if (layer.find("weight_ih") != nullptr) return layer_kind::recurrent;
    if (layer.find("running_mean") != nullptr) return layer_kind::batch_normalization;
    const foreign_tensor* const weight = layer.find("weight");
    if (weight == nullptr) return layer_kind::unknown;
    const foreign_tensor* const bias = layer.find("bias");
    if (weight->array.shape.size() > 2)
        return bias != nullptr && bias->array.shape == weight->array.shape ? layer_kind::normalization
                                                                           : layer_kind::convolution;
    if (weight->array.shape.size() < 2 || (bias != nullptr && bias->array.shape == weight->array.shape))
        return layer_kind::normalization;
    return bias != nullptr ? layer_kind::dense : layer_kind::dense_or_embedding;
}

/// The modules of a state_dict. MultiheadAttention's one matrix is split into "query", "key" and
/// "value", and a recurrent module of several layers or directions into "lstm.l0",
/// "lstm.l0_reverse", ...
inline std::vector<foreign_layer> layers_of_pytorch(std::vector<named_array> tensors, const std::string& prefix,
                                                    const std::string& file) {
    std::vector<foreign_layer> layers;
    const auto layer = [&](const std::string& path) -> foreign_layer& {
        for (foreign_layer& l : layers)
            if (l.path == path) return l;
        return layers.emplace_back(foreign_layer{path});
    };
    bool prefixed = tensors.empty() && prefix.empty();
    for (named_array& t : tensors) {
        if (!t.name.starts_with(prefix)) continue;
        prefixed = true;
        auto [module, role, part] = parts_of_pytorch_name(t.name.substr(prefix.size()));
        if (role == "num_batches_tracked") continue;
        if (role.starts_with("in_proj_") && !t.array.shape.empty() && t.array.shape[0] % 3 == 0) {
            const std::int64_t rows = t.array.shape[0] / 3;
            std::int64_t begin = 0;
            for (const char* const which : {"query", "key", "value"}) {
                layer(module + (module.empty() ? "" : ".") + which)
                    .tensors.push_back({t.name, role.substr(8), rows_of(t.array, begin, rows)});
                begin += rows;
            }
            continue;
        }
        foreign_layer& to = layer(part.empty() ? module : module + "." + part);
        to.tensors.push_back({t.name, role, std::move(t.array)});
    }
    if (!prefixed) throw argument_error(file + ": no tensor's name begins with '" + prefix + "'");
    for (foreign_layer& l : layers) {
        l.kind = kind_of(l);
        if (l.kind != layer_kind::recurrent || !l.path.ends_with(".l0")) continue;
        const std::string module = l.path.substr(0, l.path.size() - 3);
        const bool single = std::none_of(layers.begin(), layers.end(), [&](const foreign_layer& other) {
            return other.path.starts_with(module + ".l") && other.path != l.path;
        });
        if (single) l.path = module;
    }
    return layers;
}

} // namespace detail

} // namespace tapegraph::io
