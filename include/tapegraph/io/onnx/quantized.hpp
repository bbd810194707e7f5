#pragma once

#include <tapegraph/io/onnx/weight.hpp>
#include <tapegraph/io/onnx/wire.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Weights of 8 bits: an initializer of i8 and a scale per output channel, which the operator
/// DequantizeLinear makes floats of.

namespace tapegraph::onnx {

/// The axis of output channels in a weight that a node reads as operand 1; -1 if the node has no
/// such weight.
inline int channel_axis(const node_entry& node, std::size_t rank) {
    if (rank < 2 || !node.domain.empty()) return -1;
    const auto has = [&](const char* attribute) { return node.settings.bytes().find(attribute) != std::string::npos; };
    if (node.op_type == "Conv") return 0;
    if (node.op_type == "ConvTranspose") return has("group") ? -1 : 1; // [in, out / groups, ...]
    if (node.op_type == "MatMul") return static_cast<int>(rank) - 1;
    if (node.op_type == "Gemm") return has("transB") ? 0 : 1;
    return -1;
}

/// Symmetric integers of 8 bits: w is about scale[c] q, scale[c] the largest absolute value of
/// channel c / `most`, 1 where all are 0. Returns false if a value is not finite.
inline bool to_int8(const float* values, const std::vector<std::int64_t>& dims, int axis, int most,
                    std::string& integers, std::vector<float>& scales) {
    const auto limit = static_cast<float>(most);
    std::size_t inner = 1, outer = 1;
    for (std::size_t i = 0; i < dims.size(); ++i)
        (static_cast<int>(i) < axis ? outer : inner) *= static_cast<std::size_t>(dims[i]);
    const auto channels = static_cast<std::size_t>(dims[static_cast<std::size_t>(axis)]);
    if (channels == 0) return false;
    inner /= channels;
    std::vector<float> largest(channels, 0.0f);
    const auto visit = [&](const auto& each) {
        for (std::size_t i = 0, at = 0; i < outer; ++i)
            for (std::size_t c = 0; c < channels; ++c)
                for (std::size_t k = 0; k < inner; ++k, ++at) each(at, c);
    };
    bool finite = true;
    visit([&](std::size_t at, std::size_t c) {
        finite = finite && std::isfinite(values[at]);
        largest[c] = std::max(largest[c], std::fabs(values[at]));
    });
    if (!finite) return false;
    scales.resize(channels);
    for (std::size_t c = 0; c < channels; ++c) scales[c] = largest[c] > 0 ? largest[c] / limit : 1.0f;
    for (float& scale : scales)
        if (scale == 0) scale = 1; // of denormal weights
    integers.resize(outer * channels * inner);
    visit([&](std::size_t at, std::size_t c) {
        const float q = std::nearbyint(values[at] / scales[c]);
        integers[at] = static_cast<char>(static_cast<std::int8_t>(std::clamp(q, -limit, limit)));
    });
    return true;
}

/// Replaces weights of f32 that only convolutions and matrix products read, all by the same axis of
/// channels, and that are `wanted`. Those with numbers that are not finite stay. Returns the operators
/// that make floats of them, which belong before all others, and the scales by the weights' names.
template <class G, class Wanted>
std::vector<node_entry> quantized_weights(G& g, const Wanted& wanted, int most = 127,
                                          std::map<std::string, std::vector<float>>* scales_of = nullptr) {
    std::map<std::string_view, std::size_t> places;
    for (std::size_t i = 0; i < g.weights.size(); ++i) places.emplace(g.weights[i].name, i);
    std::vector<int> axes(g.weights.size(), -2); // -2: not read yet, -1: read by others
    for (const node_entry& node : g.nodes)
        for (std::size_t k = 0; k < node.inputs.size(); ++k) {
            const auto found = places.find(node.inputs[k]);
            if (found == places.end()) continue;
            const int axis = k == 1 ? channel_axis(node, g.weights[found->second].dims.size()) : -1;
            int& known = axes[found->second];
            known = known == -2 || known == axis ? axis : -1;
        }
    for (const std::string& output : g.outputs)
        if (const auto found = places.find(output); found != places.end()) axes[found->second] = -1;
    std::vector<node_entry> first;
    for (std::size_t i = 0, count = g.weights.size(); i < count; ++i) {
        if (axes[i] < 0 || g.weights[i].type != dtype::f32 || !wanted(g.weights[i])) continue;
        const std::string bytes = g.weights[i].data();
        std::vector<float> values(bytes.size() / sizeof(float)), scales;
        if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
        weight w{g.new_name(g.weights[i].name + "/int8"), dtype::i8, g.weights[i].dims, {}, {}, {}};
        if (!to_int8(values.data(), w.dims, axes[i], most, w.constant, scales)) continue;
        weight scale{g.new_name(g.weights[i].name + "/scale"), dtype::f32, {}, {}, {}, {}};
        scale.dims = {static_cast<std::int64_t>(scales.size())};
        scale.constant.assign(reinterpret_cast<const char*>(scales.data()), scales.size() * sizeof(float));
        const std::string name = g.weights[i].name;
        first.push_back({g.new_name(name + "/dequantize"),
                         "DequantizeLinear",
                         {w.name, scale.name},
                         {name},
                         attributes().set("axis", axes[i])});
        if (scales_of != nullptr) (*scales_of)[name] = scales;
        g.weights[i] = std::move(w);
        g.weights.push_back(std::move(scale));
    }
    return first;
}
/// Stores all weights of a graph as integers, and puts the nodes that make them numbers again first.
template <class G>
void quantize_weights(G& g) {
    std::vector<node_entry> first = quantized_weights(g, [](const weight&) { return true; });
    g.nodes.insert(g.nodes.begin(), std::make_move_iterator(first.begin()), std::make_move_iterator(first.end()));
}

} // namespace tapegraph::onnx
