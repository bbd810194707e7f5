#pragma once

#include <tapegraph/io/onnx_import/importer.hpp>
#include <tapegraph/io/own_operators.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

/// Which initializers of a file are variables of the model.

namespace tapegraph::io::onnx_import {

namespace detail {

/// Whether operand k of a node is a scale of integers, which belongs to them and is no variable.
inline bool is_scale(const file_node& n, std::size_t k) {
    if (n.type == "QuantizeLinear" || n.type == "DequantizeLinear") return k == 1;
    if (n.type.starts_with("QLinear") || n.type == "QGemm") return true; // their other operands are integers
    if (n.domain != "com.microsoft") return false;
    if (n.type == "MatMulNBits" || n.type == "MatMulBnb4") return k == 2 || (k == 3 && n.type == "MatMulNBits");
    if (n.type == "MatMulIntegerToFloat") return k == 2 || k == 3;
    if (n.type == "QAttention") return k == 3 || k == 4;
    return (n.type == "DynamicQuantizeMatMul" && k == 2) || (n.type == "DynamicQuantizeLSTM" && k >= 8) ||
           (n.type == "QEmbedLayerNormalization" && k >= 8);
}
inline void find_scales(const std::vector<file_node>& nodes, std::set<std::string>& scales,
                        std::set<std::string>& others) {
    for (const file_node& n : nodes) {
        for (std::size_t k = 0; k < n.inputs.size(); ++k) (is_scale(n, k) ? scales : others).insert(n.inputs[k]);
        for (const attribute& a : n.attributes)
            if (a.g) {
                find_scales(a.g->nodes, scales, others);
                for (const value_info& o : a.g->outputs) others.insert(o.name);
            }
    }
}
inline shape shape_of(const store& shared, const std::string& name) {
    for (const initializer_info& i : shared.model.graph.initializers)
        if (i.name == name) return i.value->shape();
    return {};
}
inline std::vector<int> filter_order(int rank) {
    std::vector<int> order;
    if (rank != 3 && rank != 4) return order;
    for (int i = 2; i < rank; ++i) order.push_back(i);
    order.push_back(1), order.push_back(0);
    return order;
}
inline std::string path_of(const std::string& name) {
    std::string path;
    for (const char c : name) {
        const char as = c == '.' || c == ':' ? '/' : c;
        if (as == '/' && (path.empty() || path.back() == '/')) continue;
        path += as;
    }
    while (!path.empty() && path.back() == '/') path.pop_back();
    return path.empty() ? "weight" : path;
}

} // namespace detail

/// Decides which float initializers are weights, and in which order of axes they are kept.
inline void find_weights(store& shared) {
    std::set<std::string> scales, others;
    detail::find_scales(shared.model.graph.nodes, scales, others);
    std::map<std::string, bool> stated; // by variables that save_program wrote: whether they are trainable
    for (const file_node& n : shared.model.graph.nodes)
        if (n.domain == own_operators::domain && n.type == ir::variable_op::name && n.inputs.size() == 1)
            for (const attribute& a : n.attributes)
                if (a.name == "trainable") stated[n.inputs[0]] = a.i != 0;
    std::set<std::string> paths;
    for (const initializer_info& i : shared.model.graph.initializers) {
        const auto known = stated.find(i.name);
        if (i.value->rank() > max_rank || carrier_of(i.value->type()) != i.value->type()) continue;
        if (known == stated.end() && (!is_floating(i.value->type()) || i.value->rank() == 0)) continue;
        if (scales.contains(i.name) && !others.contains(i.name)) continue;
        weight w;
        w.name = i.name;
        w.trainable =
            known != stated.end() ? known->second : i.value->type() == dtype::f32 || i.value->type() == dtype::f64;
        w.path = detail::path_of(i.name);
        for (int k = 1; !paths.insert(w.path).second; ++k) w.path = detail::path_of(i.name) + "_" + std::to_string(k);
        shared.weights[i.name] = w;
    }
    for (const file_node& n : shared.model.graph.nodes) {
        const auto use = [&](std::size_t k) {
            const auto found = k < n.inputs.size() ? shared.weights.find(n.inputs[k]) : shared.weights.end();
            return found == shared.weights.end() ? nullptr : &found->second;
        };
        if (n.type == "BatchNormalization")
            for (const std::size_t k : {3, 4})
                if (weight* const w = use(k)) w->trainable = false;
        if (((n.type == "Conv" || n.type == "ConvTranspose") && n.domain.empty()) ||
            (n.type == "FusedConv" && n.domain == "com.microsoft"))
            if (weight* const w = use(1)) w->order = detail::filter_order(detail::shape_of(shared, w->name).rank());
        const std::vector<int> gates = recurrent_gates(n.domain.empty() ? n.type : std::string());
        const bool by_steps =
            n.inputs.size() > 7 || std::any_of(n.attributes.begin(), n.attributes.end(), [](const attribute& a) {
                return a.name == "clip" || a.name == "input_forget"; // read the file's kernels
            });
        for (const std::size_t k : {1, 2})
            if (weight* const w = gates.empty() || by_steps ? nullptr : use(k))
                if (const shape dims = detail::shape_of(shared, w->name);
                    dims.rank() == 3 && dims[0].value > 0 && dims[1].value > 0 && dims[2].value > 0 &&
                    dims[1].value % static_cast<std::int64_t>(gates.size()) == 0)
                    w->order = {0, 2, 1}, w->gates = gates;
    }
}

} // namespace tapegraph::io::onnx_import
