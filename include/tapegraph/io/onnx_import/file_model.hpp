#pragma once

#include <tapegraph/formats/file.hpp>
#include <tapegraph/io/onnx/type_number.hpp>
#include <tapegraph/io/onnx_import/array.hpp>
#include <tapegraph/io/onnx_import/wire_reader.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// The contents of an ONNX file (onnx.proto3) as structures.

namespace tapegraph::io::onnx_import {

struct file_graph;

struct attribute {
    enum kind : int {
        unknown = 0,
        number = 1,
        integer = 2,
        text = 3,
        tensor = 4,
        graph = 5,
        numbers = 6,
        integers = 7,
        texts = 8
    };
    std::string name, reference; ///< reference: in a function's node, the call's attribute that this one stands for
    int type = unknown;
    float f = 0;
    std::int64_t i = 0;
    std::string s;
    array_pointer t;
    std::shared_ptr<file_graph> g;
    std::vector<float> floats;
    std::vector<std::int64_t> ints;
    std::vector<std::string> strings;
};

struct file_node {
    std::string name, type, domain, overload;
    std::vector<std::string> inputs, outputs;
    std::vector<attribute> attributes;
};

struct value_info {
    std::string name;
    std::optional<dtype> type;
    int element_type = 0; ///< as in the file; 0: not a tensor
    bool ranked = false;
    std::vector<std::int64_t> dims; ///< -1: unknown, or given by name
    std::vector<std::string> names; ///< of extents that have a name
};

struct initializer_info {
    std::string name;
    array_pointer value;
};

struct file_graph {
    std::string name;
    std::vector<file_node> nodes;
    std::vector<initializer_info> initializers;
    std::vector<value_info> inputs, outputs;
};

struct file_function {
    std::string name, domain, overload;
    std::vector<std::string> inputs, outputs, attributes;
    std::vector<attribute> defaults;
    std::vector<file_node> nodes;
    std::map<std::string, std::int64_t> opsets;
};

struct file_model {
    std::string file;
    std::int64_t ir_version = 0;
    std::string producer;
    std::map<std::string, std::int64_t> opsets;
    file_graph graph;
    std::vector<file_function> functions;
    std::int64_t opset() const {
        const auto found = opsets.find("");
        return found == opsets.end() ? 1 : found->second;
    }
};

/// Converts ONNX's number of an element type to a dtype, if there is one.
constexpr std::optional<dtype> element_type(int number) { return onnx::type_of_number(number); }
/// Its name, for messages.
std::string element_type_name(int number);

/// Reads a model. Throws data_error, which names the file and the byte, for damaged files.
file_model read_model(const files::path& path);
file_model read_model(std::string_view bytes, const std::string& file, const files::path& folder);
/// Reads a file that is a single TensorProto, as in the test cases of ONNX's own suite.
array read_tensor(const files::path& path);

} // namespace tapegraph::io::onnx_import
