#pragma once

#include <tapegraph/core/number_text.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/path.hpp>
#include <tapegraph/io/graph_nodes.hpp>
#include <tapegraph/io/tensorboard/wire.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Exports a compiled program as TensorFlow's GraphDef, for TensorBoard's graph tab and other
/// viewers (Netron). It is only for display: the operations are this library's, and nothing can run
/// it. Needs protozero.

namespace tapegraph::io {

namespace detail {

/// tensorflow.DataType
constexpr std::int32_t tensorflow_type(dtype type) {
    switch (type) {
    case dtype::f32: return 1;
    case dtype::f64: return 2;
    case dtype::i32: return 3;
    case dtype::u8: return 4;
    case dtype::i16: return 5;
    case dtype::i8: return 6;
    case dtype::i64: return 9;
    case dtype::boolean: return 10;
    case dtype::bf16: return 14;
    case dtype::u16: return 17;
    case dtype::f16: return 19;
    case dtype::u32: return 22;
    case dtype::u64: return 23;
    }
    return 0;
}
constexpr const char* tensorflow_type_name(dtype type) {
    switch (type) {
    case dtype::f32: return "DT_FLOAT";
    case dtype::f64: return "DT_DOUBLE";
    case dtype::i32: return "DT_INT32";
    case dtype::u8: return "DT_UINT8";
    case dtype::i16: return "DT_INT16";
    case dtype::i8: return "DT_INT8";
    case dtype::i64: return "DT_INT64";
    case dtype::boolean: return "DT_BOOL";
    case dtype::bf16: return "DT_BFLOAT16";
    case dtype::u16: return "DT_UINT16";
    case dtype::f16: return "DT_HALF";
    case dtype::u32: return "DT_UINT32";
    case dtype::u64: return "DT_UINT64";
    }
    return "DT_INVALID";
}

inline constexpr const char* graph_device = "/device:CPU:0";
inline constexpr std::int32_t graph_producer = 22;

/// NodeDef: name 1, op 2, input 3*, device 4, attr 5* {key 1, value 2}; AttrValue: list 1, s 2, i 3, f 4, type 6.
inline std::string graph_def_bytes(const std::vector<graph_item>& items) {
    std::string bytes;
    wire::writer graph(bytes);
    for (const graph_item& item : items) {
        wire::writer node(graph, 1);
        wire::text(node, 1, item.name);
        wire::text(node, 2, item.op);
        for (const int input : item.inputs) wire::text(node, 3, items[static_cast<std::size_t>(input)].name);
        wire::text(node, 4, graph_device);
        const auto attribute = [&](const char* key, const auto& fill) {
            wire::writer entry(node, 5);
            wire::text(entry, 1, key);
            wire::writer value(entry, 2);
            fill(value);
        };
        attribute(item.op == "VariableV2" || item.op == "Placeholder" || item.op == "Const" ? "dtype" : "T",
                  [&](wire::writer& v) { v.add_enum(6, tensorflow_type(item.type)); });
        attribute("_output_shapes", [&](wire::writer& v) {
            wire::writer list(v, 1);
            wire::shape(list, 7, item.shape);
        });
        if (item.op == "Const")
            attribute("number", [&](wire::writer& v) { v.add_float(4, static_cast<float>(item.value)); });
        if (!item.line.empty()) attribute("line", [&](wire::writer& v) { wire::text(v, 2, item.line); });
        if (item.call < 0) continue;
        attribute("kernel", [&](wire::writer& v) { wire::text(v, 2, item.kernel); });
        attribute("call", [&](wire::writer& v) { v.add_int64(3, item.call); });
        attribute("predicted_flops", [&](wire::writer& v) { v.add_int64(3, static_cast<std::int64_t>(item.flops)); });
        attribute("predicted_bytes", [&](wire::writer& v) { v.add_int64(3, static_cast<std::int64_t>(item.bytes)); });
    }
    wire::writer versions(graph, 4);
    versions.add_int32(1, graph_producer);
    versions.commit();
    return bytes;
}

/// The same in protobuf's text format.
inline std::string graph_def_text(const std::vector<graph_item>& items) {
    std::string text;
    const auto quoted = [](std::string_view s) {
        std::string q = "\"";
        for (const char c : s) {
            if (c == '"' || c == '\\') q += '\\';
            q += c;
        }
        return q + "\"";
    };
    for (const graph_item& item : items) {
        text += "node {\n  name: " + quoted(item.name) + "\n  op: " + quoted(item.op) + "\n";
        for (const int input : item.inputs)
            text += "  input: " + quoted(items[static_cast<std::size_t>(input)].name) + "\n";
        text += "  device: " + quoted(graph_device) + "\n";
        const auto attribute = [&](const char* key, const std::string& value) {
            text += "  attr { key: " + quoted(key) + " value { " + value + " } }\n";
        };
        attribute(item.op == "VariableV2" || item.op == "Placeholder" || item.op == "Const" ? "dtype" : "T",
                  std::string("type: ") + tensorflow_type_name(item.type));
        std::string shape = "list { shape {";
        for (const std::int64_t extent : item.shape) shape += " dim { size: " + std::to_string(extent) + " }";
        attribute("_output_shapes", shape + " } }");
        if (item.op == "Const") attribute("number", "f: " + number_text(static_cast<float>(item.value)));
        if (!item.line.empty()) attribute("line", "s: " + quoted(item.line));
        if (item.call >= 0) {
            attribute("kernel", "s: " + quoted(item.kernel));
            attribute("call", "i: " + std::to_string(item.call));
            attribute("predicted_flops", "i: " + std::to_string(static_cast<std::int64_t>(item.flops)));
            attribute("predicted_bytes", "i: " + std::to_string(static_cast<std::int64_t>(item.bytes)));
        }
        text += "}\n";
    }
    return text + "versions {\n  producer: " + std::to_string(graph_producer) + "\n}\n";
}

} // namespace detail

/// A program as the bytes of a GraphDef: each node with its scopes as folders in names, those of
/// the gradient under "gradients/" and of the optimizer under "updates/", with the shape, the
/// source line, the kernel that computes it and its predicted cost for the extents in `options`.
/// Reserves memory of the arena's size meanwhile.
inline std::string graph_def(const ir::program_view& view, const explain_options& options = {}) {
    return detail::graph_def_bytes(graph_items(view, options));
}
/// The training step of a graph model.
template <class Model>
    requires requires(const Model& m) { m.training_view(); }
std::string graph_def(const Model& model, const explain_options& options = {}) {
    return graph_def(model.training_view(), options);
}

/// Writes a GraphDef to a file, completely or not at all: in protobuf's text format if the name
/// ends in ".pbtxt", otherwise as bytes. Throws data_error on failure.
inline void write_graph_def(const files::path& path, const ir::program_view& view,
                            const explain_options& options = {}) {
    const std::vector<graph_item> items = graph_items(view, options);
    atomic_file out(path);
    out.write(path.extension() == ".pbtxt" ? detail::graph_def_text(items) : detail::graph_def_bytes(items));
    out.commit();
}
template <class Model>
    requires requires(const Model& m) { m.training_view(); }
void write_graph_def(const files::path& path, const Model& model, const explain_options& options = {}) {
    write_graph_def(path, model.training_view(), options);
}

} // namespace tapegraph::io
