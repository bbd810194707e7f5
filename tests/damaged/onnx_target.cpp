#include <damaged/target.hpp>

#include <tapegraph/io/onnx_import/read_model.hpp>

#include <string>
#include <vector>

namespace {

// Protocol buffers' wire format.
std::string varint(std::uint64_t v) {
    std::string s;
    for (; v >= 128; v >>= 7) s += static_cast<char>(v | 128);
    return s + static_cast<char>(v);
}
std::string number(int field, std::uint64_t v) { return varint(static_cast<std::uint64_t>(field) * 8) + varint(v); }
std::string text(int field, const std::string& s) {
    return varint(static_cast<std::uint64_t>(field) * 8 + 2) + varint(s.size()) + s;
}
std::string value(int field, const std::string& name) {
    const std::string dims = text(1, text(2, "batch")) + text(1, number(1, 3));
    return text(field, text(1, name) + text(2, text(1, number(1, 1) + text(2, dims))));
}

} // namespace

std::vector<std::string> sound_files() {
    const std::string weight =
        text(1, std::string("\3\2")) + number(2, 1) + text(8, "w") + text(9, std::string(24, 'f'));
    const std::string typed =
        text(1, std::string("\2")) + number(2, 7) + text(8, "axes") + text(7, std::string("\0\1", 2));
    const std::string axis = text(5, text(1, "axis") + number(3, 1) + number(20, 2));
    const std::string list = text(5, text(1, "perm") + text(8, std::string("\1\0", 2)) + number(20, 7));
    const std::string nodes = text(1, text(1, "x") + text(1, "w") + text(2, "y") + text(4, "MatMul")) +
                              text(1, text(1, "y") + text(2, "z") + text(4, "Softmax") + axis) +
                              text(1, text(1, "z") + text(2, "t") + text(4, "Transpose") + list);
    const std::string graph = nodes + text(5, weight) + text(5, typed) + value(11, "x") + value(12, "t");
    const std::string function = text(1, "f") + text(4, "a") + text(5, "b") +
                                 text(7, text(1, "a") + text(2, "b") + text(4, "Relu")) + text(10, "own");
    return {number(1, 8) + text(7, graph) + text(8, number(2, 17)) + text(25, function), text(7, nodes)};
}

bool read_damaged(const std::string& bytes) {
    try {
        static_cast<void>(tapegraph::io::onnx_import::read_model(bytes, "damaged", {}));
        return true;
    } catch (const tapegraph::error&) {
        return false;
    }
}

const std::size_t memory_factor = 512; // a node of two bytes is a structure
