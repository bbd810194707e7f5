#pragma once

#include <tapegraph/core/extent.hpp>
#include <tapegraph/io/onnx/type_number.hpp>

#if !__has_include(<protozero/pbf_writer.hpp>)
#error "tapegraph/io/onnx.hpp: needs protozero (Debian: libprotozero-dev; CMake: tapegraph::proto)"
#endif
#include <protozero/pbf_writer.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The messages of an ONNX file as bytes. Field numbers are those of onnx.proto, which later IR versions keep.

namespace tapegraph::onnx {

/// The versions of ONNX's operators that are written: the first one unless options say otherwise.
inline constexpr std::int64_t opset_version = 17, newest_opset = 26;

/// The version of the file format that came with an opset.
inline constexpr std::int64_t ir_version_of(std::int64_t opset) {
    return opset < 19 ? 8 : opset < 21 ? 9 : opset < 23 ? 10 : opset < 24 ? 11 : opset < 25 ? 12 : 13;
}

/// The attributes of a node: `attributes().set("axis", 1).set("mode", "edge")`.
class attributes {
public:
    /// Adds an attribute: a number, a text, or a list of numbers.
    attributes& set(std::string_view name, std::int64_t value) {
        return add(name, 2, [&](auto& m) { m.add_int64(3, value); });
    }
    attributes& set(std::string_view name, int value) { return set(name, std::int64_t{value}); }
    attributes& set(std::string_view name, double value) {
        return add(name, 1, [&](auto& m) { m.add_float(2, static_cast<float>(value)); });
    }
    attributes& set(std::string_view name, std::string_view value) {
        return add(name, 3, [&](auto& m) { m.add_bytes(4, value.data(), value.size()); });
    }
    attributes& set(std::string_view name, const char* value) { return set(name, std::string_view(value)); }
    attributes& set(std::string_view name, const std::vector<std::int64_t>& values) {
        return add(name, 7, [&](auto& m) { m.add_packed_int64(8, values.begin(), values.end()); });
    }
    attributes& set(std::string_view name, const std::vector<int>& values) {
        return set(name, std::vector<std::int64_t>(values.begin(), values.end()));
    }

    attributes& set(std::string_view name, const std::vector<double>& values) {
        const std::vector<float> narrow(values.begin(), values.end());
        return add(name, 6, [&](auto& m) { m.add_packed_float(7, narrow.begin(), narrow.end()); });
    }
    attributes& set(std::string_view name, const std::vector<std::string>& values) {
        return add(name, 8, [&](auto& m) {
            for (const std::string& each : values) m.add_bytes(9, each);
        });
    }

    /// The attributes as they stand in the file.
    const std::string& bytes() const { return bytes_; }

private:
    template <class F>
    attributes& add(std::string_view name, int type, const F& value) {
        protozero::pbf_writer all(bytes_);
        protozero::pbf_writer m(all, 5);
        m.add_string(1, name.data(), name.size());
        value(m);
        m.add_enum(20, type);
        return *this;
    }
    std::string bytes_;
};

/// One operation.
struct node_entry {
    std::string name, op_type;
    std::vector<std::string> inputs, outputs;
    attributes settings;
    std::string domain{}; ///< empty: ONNX's own

    /// Writes the node into a graph's message.
    template <class Writer>
    void append_to(Writer& graph) const {
        std::string message;
        Writer m(message);
        for (const std::string& each : inputs) m.add_string(1, each);
        for (const std::string& each : outputs) m.add_string(2, each);
        m.add_string(3, name);
        m.add_string(4, op_type);
        if (!domain.empty()) m.add_string(7, domain);
        message += settings.bytes(); // whole fields
        graph.add_message(1, message);
    }
};

/// An extent of an input or output: a number, a name, or neither.
struct dimension {
    std::int64_t value = -1;
    std::string name;
};

/// An input or output of the graph: field 11 or 12.
template <class Writer>
void append_value_info(Writer& graph, protozero::pbf_tag_type field, const std::string& name, dtype type,
                       const std::vector<dimension>& dims) {
    Writer info(graph, field);
    info.add_string(1, name);
    Writer outer(info, 2);
    Writer tensor(outer, 1);
    tensor.add_int32(1, type_number(type));
    Writer shape(tensor, 2);
    for (const dimension& d : dims) {
        Writer dim(shape, 1);
        if (d.value >= 0)
            dim.add_int64(1, d.value);
        else if (!d.name.empty())
            dim.add_string(2, d.name);
    }
}

/// The tag and the length of a message that is written in pieces.
inline std::string message_head(protozero::pbf_tag_type field, std::uint64_t length) {
    std::string head;
    protozero::add_varint_to_buffer(&head, (std::uint64_t{field} << 3U) | 2U);
    protozero::add_varint_to_buffer(&head, length);
    return head;
}

} // namespace tapegraph::onnx
