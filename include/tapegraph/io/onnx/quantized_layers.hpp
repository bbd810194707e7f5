#pragma once

#include <tapegraph/io/onnx/activation_range.hpp>
#include <tapegraph/io/onnx/quantized.hpp>

#include <set>

/// Which layers of a graph are quantised, and the operators that are written around them: QuantizeLinear and
/// DequantizeLinear on values between layers, DequantizeLinear behind weights and biases.

namespace tapegraph::onnx {

/// A convolution or a product with a weight, whose input and result become integers.
struct quantized_layer {
    std::size_t node; ///< its place in the graph
    std::string name, type, input;
    std::string result; ///< behind its bias and its activation; empty: an output of the model, which stays
};
/// The layers of a graph that become layers of integers.
struct chosen_layers {
    std::vector<quantized_layer> layers;
    std::vector<std::string> left; ///< layers that stay in f32, and why
};

namespace detail {

inline bool is_of_scope(const std::string& name, const std::string& scope) {
    return name == scope || (name.starts_with(scope) && name[scope.size()] == '/');
}

/// Who reads the values of a graph.
template <class G>
struct readers {
    std::map<std::string, std::vector<std::size_t>> of;
    std::set<std::string> outputs, weights;

    explicit readers(const G& g) : outputs(g.outputs.begin(), g.outputs.end()) {
        for (std::size_t i = 0; i < g.nodes.size(); ++i)
            for (const std::string& name : g.nodes[i].inputs) of[name].push_back(i);
        for (const weight& w : g.weights) weights.insert(w.name);
    }
    /// The only reader of a value that is no output; -1 if there is none.
    std::ptrdiff_t only(const std::string& value) const {
        const auto found = of.find(value);
        if (outputs.count(value) > 0 || found == of.end() || found->second.size() != 1) return -1;
        return static_cast<std::ptrdiff_t>(found->second[0]);
    }
};

/// The value that leaves a layer: behind the bias of a product and an activation that integers do, too.
template <class G>
std::string result_of(const G& g, const readers<G>& read, std::size_t at) {
    std::string value = g.nodes[at].outputs[0];
    bool bias = g.nodes[at].op_type == "MatMul";
    for (;;) {
        const std::ptrdiff_t next = read.only(value);
        if (next < 0) break;
        const node_entry& n = g.nodes[static_cast<std::size_t>(next)];
        const bool adds =
            bias && n.op_type == "Add" && (read.weights.count(n.inputs[0]) > 0 || read.weights.count(n.inputs[1]) > 0);
        if (!adds && n.op_type != "Relu" && n.op_type != "Clip") break;
        if (n.op_type == "Clip" && n.inputs[0] != value) break;
        value = n.outputs[0];
        if (!adds) break;
        bias = false;
    }
    return read.outputs.count(value) > 0 ? std::string() : value;
}

} // namespace detail

/// All layers that can be quantised, except for those of the scopes `leave`. Throws argument_error for such a scope
/// that no layer is in, and if no layer is left to quantise.
template <class G>
chosen_layers choose_layers(const G& g, const std::vector<std::string>& leave) {
    const detail::readers<G> read(g);
    std::map<std::string_view, const weight*> weights;
    for (const weight& w : g.weights) weights.emplace(w.name, &w);
    const auto weight_of = [&](const node_entry& n) -> const weight* {
        if (n.inputs.size() < 2) return nullptr;
        const auto found = weights.find(n.inputs[1]);
        return found == weights.end() ? nullptr : found->second;
    };
    chosen_layers chosen;
    std::set<std::string> unused(leave.begin(), leave.end());
    std::string all;
    static constexpr std::string_view kinds[7] = {"Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU", "RNN"};
    for (std::size_t i = 0; i < g.nodes.size(); ++i) {
        const node_entry& n = g.nodes[i];
        if (!n.domain.empty() || std::find(std::begin(kinds), std::end(kinds), n.op_type) == std::end(kinds)) continue;
        all += (all.empty() ? "" : ", ") + n.name;
        bool wanted = true;
        for (const std::string& scope : leave)
            if (detail::is_of_scope(n.name, scope)) unused.erase(scope), wanted = false;
        const weight* const w = weight_of(n);
        const auto keep = [&](const char* why) { chosen.left.push_back(n.name + ": " + why); };
        if (!wanted)
            keep("left out by the options");
        else if (n.op_type == "LSTM" || n.op_type == "GRU" || n.op_type == "RNN")
            keep("a recurrent layer, for whose integers ONNX has no operators");
        else if (w == nullptr)
            keep("a product of two values that depend on the input");
        else if (w->type != dtype::f32)
            keep("its weight is not f32");
        else if (channel_axis(n, w->dims.size()) < 0)
            keep("a transposed convolution in groups");
        else if (read.of.at(w->name).size() != 1 || read.outputs.count(w->name) > 0)
            keep("its weight is read elsewhere, too");
        else if (weights.count(n.inputs[0]) > 0)
            keep("its input is a weight");
        else
            chosen.layers.push_back({i, n.name, n.op_type, n.inputs[0], detail::result_of(g, read, i)});
    }
    const std::string have = all.empty() ? "it has none" : "it has " + all;
    if (!unused.empty())
        throw argument_error("quantization: no layer of the model is '" + *unused.begin() + "'; " + have);
    if (chosen.layers.empty()) {
        std::string why;
        for (const std::string& each : chosen.left) why += (why.empty() ? " (" : "; ") + each;
        throw argument_error("quantization: the model has no layer to quantise" + why + (why.empty() ? "" : ")"));
    }
    return chosen;
}

namespace detail {

/// A scalar initializer.
template <class T>
std::string scalar(T value, dtype type, const std::string& name, std::vector<weight>& to) {
    weight w{name, type, {}, {}, {}, {}};
    w.constant.assign(reinterpret_cast<const char*>(&value), sizeof value);
    to.push_back(std::move(w));
    return name;
}

/// Makes the bias of a layer integers of 32 bits with the scale of its products, which runtimes add to their sums.
template <class G>
void quantize_bias(G& g, node_entry& node, float input_scale, const std::vector<float>& scales,
                   std::vector<node_entry>& first) {
    if (node.op_type == "MatMul" || node.inputs.size() < 3 || node.inputs[2].empty()) return;
    const auto found =
        std::find_if(g.weights.begin(), g.weights.end(), [&](const weight& w) { return w.name == node.inputs[2]; });
    if (found == g.weights.end() || found->type != dtype::f32 ||
        found->dims != std::vector<std::int64_t>{static_cast<std::int64_t>(scales.size())})
        return;
    const std::string bytes = found->data(), name = found->name;
    std::vector<float> values(scales.size()), products(scales.size());
    std::memcpy(values.data(), bytes.data(), bytes.size());
    std::string integers(scales.size() * 4, '\0'), steps = integers;
    for (std::size_t c = 0; c < scales.size(); ++c) {
        products[c] = input_scale * scales[c];
        const double q = std::nearbyint(static_cast<double>(values[c]) / static_cast<double>(products[c]));
        if (!(std::fabs(q) < 2147483648.0)) return; // it stays in f32
        const auto whole = static_cast<std::int32_t>(q);
        std::memcpy(integers.data() + 4 * c, &whole, 4);
    }
    std::memcpy(steps.data(), products.data(), steps.size());
    const std::vector<std::int64_t> dims = found->dims;
    const std::string q = g.new_name(name + "/int32"), scale = g.new_name(name + "/scale");
    node.inputs[2] = g.new_name(name + "/dequantized");
    first.push_back({g.new_name(name + "/dequantize"),
                     "DequantizeLinear",
                     {q, scale},
                     {node.inputs[2]},
                     attributes().set("axis", 0)});
    g.weights.push_back({q, dtype::i32, dims, {}, {}, std::move(integers)});
    g.weights.push_back({scale, dtype::f32, dims, {}, {}, std::move(steps)});
}

} // namespace detail

/// Writes the integers of these layers into the graph, with the ranges of the values that they read and give.
/// `largest` is the largest integer of a weight, 127 or 63.
template <class G>
void quantize_layers(G& g, const chosen_layers& chosen, const std::map<std::string, activation_range>& ranges,
                     int largest) {
    std::map<std::string, uint8_scale> scale_of;
    for (const auto& [value, range] : ranges) scale_of[value] = uint8_scale_of(range.low(), range.high());
    std::set<std::string> names;
    for (const quantized_layer& l : chosen.layers) names.insert(g.nodes[l.node].inputs[1]);
    std::map<std::string, std::vector<float>> weight_scales;
    std::vector<node_entry> first = quantized_weights(
        g, [&](const weight& w) { return names.count(w.name) > 0; }, largest, &weight_scales);
    for (node_entry& n : first) { // onnxruntime has kernels of integers for products only if weights have zero points
        const auto found =
            std::find_if(g.weights.begin(), g.weights.end(), [&](const weight& w) { return w.name == n.inputs[1]; });
        const std::string zeros(static_cast<std::size_t>(found->dims[0]), '\0'), name = n.inputs[0];
        const std::vector<std::int64_t> dims = found->dims;
        n.inputs.push_back(g.new_name(name + "/zero_point"));
        g.weights.push_back({n.inputs[2], dtype::i8, dims, {}, {}, zeros});
    }
    for (const quantized_layer& l : chosen.layers)
        if (const auto found = weight_scales.find(g.nodes[l.node].inputs[1]); found != weight_scales.end())
            detail::quantize_bias(g, g.nodes[l.node], scale_of.at(l.input).scale, found->second, first);
    std::erase_if(g.weights, [&](const weight& w) { // biases that only quantised layers read
        const auto reads = [&](const node_entry& n) {
            return std::find(n.inputs.begin(), n.inputs.end(), w.name) != n.inputs.end();
        };
        return std::find(g.outputs.begin(), g.outputs.end(), w.name) == g.outputs.end() &&
               std::none_of(g.nodes.begin(), g.nodes.end(), reads) && std::none_of(first.begin(), first.end(), reads);
    });

    std::map<std::string, std::string> instead;
    std::vector<node_entry> nodes = std::move(first);
    const auto add = [&](const std::string& value) {
        const auto found = scale_of.find(value);
        if (found == scale_of.end()) return;
        const std::string scale =
            detail::scalar(found->second.scale, dtype::f32, g.new_name(value + "/scale"), g.weights);
        const std::string zero =
            detail::scalar(found->second.zero, dtype::u8, g.new_name(value + "/zero_point"), g.weights);
        const std::string q = g.new_name(value + "/uint8"), back = g.new_name(value + "/dequantized");
        nodes.push_back({g.new_name(value + "/quantize"), "QuantizeLinear", {value, scale, zero}, {q}, {}});
        nodes.push_back({g.new_name(value + "/dequantize"), "DequantizeLinear", {q, scale, zero}, {back}, {}});
        instead[value] = back;
    };
    for (const auto& input : g.t.inputs) add(std::string(input.name));
    for (node_entry& n : g.nodes) {
        for (std::string& name : n.inputs)
            if (const auto found = instead.find(name); found != instead.end()) name = found->second;
        const std::vector<std::string> made = n.outputs;
        nodes.push_back(std::move(n));
        for (const std::string& value : made) add(value);
    }
    g.nodes = std::move(nodes);
}

} // namespace tapegraph::onnx
