#pragma once

#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/path.hpp>
#include <tapegraph/io/onnx/graph.hpp>
#include <tapegraph/io/own_operators.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Writes a graph to a file: the model's message piece by piece, with the weights last, or in a
/// separate file.

namespace tapegraph::io {

/// Options of export_onnx.
struct onnx_options {
    std::string graph_name = "model";
    /// Additional pairs of metadata, after "producer".
    std::vector<std::pair<std::string, std::string>> metadata{};
    /// Declares that masks of recurrent layers are true up to some step and false from there on,
    /// like those of texts padded at their ends: the file then only needs lengths. Otherwise steps
    /// are sorted if a mask is not a `sequence_mask`.
    bool prefix_masks = false;
    /// The version of ONNX's operators, 17 to 26: what reads the file must know it.
    std::int64_t opset = 17;
    /// Stores the weights of convolutions and matrix products as integers of 8 bits with a scale for
    /// each output channel, a quarter of their size; each weight is off by at most half of its
    /// channel's largest one / 127. Values between the layers stay floats.
    bool int8_weights = false;
    /// Size of weights above which they go to a separate file, "m.onnx.data" next to "m.onnx":
    /// protobuf's messages are limited to 2 GiB.
    std::uint64_t external_above = 2'000'000'000;
};

namespace detail {

/// The alignment of weights in a separate file, for mapping.
inline constexpr std::uint64_t external_alignment = 4096, smallest_external = 1024;

/// The head of a TensorProto, without its data; `at` is its offset in the file of weights, if there
/// is one.
inline std::string tensor_head(const onnx::weight& w, const std::string& location, std::uint64_t at) {
    std::string head;
    protozero::pbf_writer m(head);
    m.add_packed_int64(1, w.dims.begin(), w.dims.end());
    m.add_int32(2, onnx::type_number(w.type));
    m.add_string(8, w.name);
    if (!location.empty()) {
        const std::pair<const char*, std::string> entries[]{
            {"location", location}, {"offset", std::to_string(at)}, {"length", std::to_string(w.bytes())}};
        for (const auto& [key, value] : entries) {
            protozero::pbf_writer entry(m, 13);
            entry.add_string(1, key);
            entry.add_string(2, value);
        }
        m.add_enum(14, 1);
    }
    return head;
}

template <class G>
std::vector<onnx::dimension> dimensions_of(const G& g, int node) {
    std::vector<onnx::dimension> all;
    for (int axis = 0; axis < g.rank(node); ++axis) {
        const std::int64_t e = g.extent_of(node, axis);
        onnx::dimension d;
        if (!is_symbolic(e)) {
            d.value = e;
        } else if (const int atom = g.t.extents.symbol_of(e); atom >= 0) {
            const std::string name(g.t.extents.atoms[atom].name);
            d.name = name == "?" ? "extent_" + std::to_string(atom) : name;
        }
        all.push_back(std::move(d));
    }
    return all;
}

/// Nodes, name, inputs and outputs: the graph's message without its weights.
template <class G>
std::string graph_head(const G& g, const std::string& name) {
    std::string head;
    protozero::pbf_writer m(head);
    for (const onnx::node_entry& node : g.nodes) node.append_to(m);
    m.add_string(2, name);
    for (const ir::input_entry& input : g.t.inputs)
        onnx::append_value_info(m, 11, std::string(input.name), g.at(input.node).type, dimensions_of(g, input.node));
    for (std::size_t i = 0; i < g.outputs.size(); ++i) {
        const int node = g.t.outputs[static_cast<int>(i)].node;
        onnx::append_value_info(m, 12, g.outputs[i], g.at(node).type, dimensions_of(g, node));
    }
    return head;
}

inline std::string version_text() {
    return std::to_string(TAPEGRAPH_VERSION_MAJOR) + "." + std::to_string(TAPEGRAPH_VERSION_MINOR) + "." +
           std::to_string(TAPEGRAPH_VERSION_PATCH);
}

template <class G>
void write_onnx(const files::path& path, const G& g, const onnx_options& options) {
    std::uint64_t total = 0;
    for (const onnx::weight& w : g.weights) total += w.bytes();
    const bool apart = total > options.external_above;
    files::path beside = path;
    beside += ".data";
    const std::string location = beside.filename().string();

    std::vector<std::string> heads; // each with the tag and length of its data, if they follow
    std::vector<std::uint64_t> places;
    std::uint64_t end = 0, length = 0;
    const std::string head = graph_head(g, options.graph_name);
    length = head.size();
    for (const onnx::weight& w : g.weights) {
        const bool external = apart && w.bytes() >= smallest_external;
        if (external) end = (end + external_alignment - 1) / external_alignment * external_alignment;
        places.push_back(end);
        std::string tensor = tensor_head(w, external ? location : std::string(), end);
        if (!external) tensor += onnx::message_head(9, w.bytes());
        tensor = onnx::message_head(5, tensor.size() + (external ? 0 : w.bytes())) + tensor;
        length += tensor.size() + (external ? 0 : w.bytes());
        if (external) end += w.bytes();
        heads.push_back(std::move(tensor));
    }

    if (apart) {
        atomic_file data(beside);
        std::uint64_t at = 0;
        for (std::size_t i = 0; i < g.weights.size(); ++i) {
            if (g.weights[i].bytes() < smallest_external) continue;
            data.write(std::string(places[i] - at, '\0'));
            data.write(g.weights[i].data());
            at = places[i] + g.weights[i].bytes();
        }
        data.commit();
    }

    std::string front, back;
    protozero::pbf_writer before(front);
    before.add_int64(1, onnx::ir_version_of(g.opset));
    before.add_string(2, "tapegraph");
    before.add_string(3, version_text());
    front += onnx::message_head(7, length);
    protozero::pbf_writer after(back);
    const auto uses = [&after](std::string_view domain, std::int64_t version) {
        protozero::pbf_writer opset(after, 8);
        opset.add_string(1, domain.data(), domain.size());
        opset.add_int64(2, version);
    };
    uses("", g.opset);
    if (std::any_of(g.nodes.begin(), g.nodes.end(), [](const auto& n) { return n.domain == own_operators::domain; }))
        uses(own_operators::domain, own_operators::version);
    std::vector<std::pair<std::string, std::string>> metadata{{"producer", "tapegraph " + version_text()}};
    metadata.insert(metadata.end(), options.metadata.begin(), options.metadata.end());
    for (const auto& [key, value] : metadata) {
        protozero::pbf_writer entry(after, 14);
        entry.add_string(1, key);
        entry.add_string(2, value);
    }
    atomic_file file(path);
    file.write(front);
    file.write(head);
    for (std::size_t i = 0; i < g.weights.size(); ++i) {
        file.write(heads[i]);
        if (!apart || g.weights[i].bytes() < smallest_external) file.write(g.weights[i].data());
    }
    file.write(back);
    file.commit();
}

} // namespace detail
} // namespace tapegraph::io
