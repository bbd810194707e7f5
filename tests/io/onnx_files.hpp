#pragma once

#include <tapegraph/io/load_onnx.hpp>

#include <support/temporary_folder.hpp>

#include <cctype>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

/// Small ONNX files, byte by byte.

namespace onnx_files {

namespace tg = tapegraph;

// Protocol buffers' wire format, as little of it as files of tests need.
inline std::string varint(std::uint64_t v) {
    std::string s;
    for (; v >= 128; v >>= 7) s += static_cast<char>(v | 128);
    return s + static_cast<char>(v);
}
inline std::string number(int field, std::int64_t v) {
    return varint(field * 8) + varint(static_cast<std::uint64_t>(v));
}
inline std::string text(int field, const std::string& s) { return varint(field * 8 + 2) + varint(s.size()) + s; }

inline std::string attribute(const std::string& name, std::int64_t v) {
    return text(5, text(1, name) + number(3, v) + number(20, 2));
}
inline std::string attribute(const std::string& name, const std::string& v) {
    return text(5, text(1, name) + text(4, v) + number(20, 3));
}
inline std::string attribute(const std::string& name, const std::vector<std::int64_t>& items) {
    std::string packed;
    for (const auto i : items) packed += varint(static_cast<std::uint64_t>(i));
    return text(5, text(1, name) + text(8, packed) + number(20, 7));
}
inline std::string attribute(const std::string& name, const std::vector<float>& items) {
    const std::string bytes(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(float));
    return text(5, text(1, name) + text(7, bytes) + number(20, 6));
}
inline std::string attribute(const std::string& name, const std::vector<std::string>& items) {
    std::string all;
    for (const auto& i : items) all += text(9, i);
    return text(5, text(1, name) + all + number(20, 8));
}
inline std::string node(const std::string& type, const std::vector<std::string>& in,
                        const std::vector<std::string>& out, const std::string& attributes = {},
                        const std::string& domain = {}) {
    std::string s;
    for (const auto& i : in) s += text(1, i);
    for (const auto& o : out) s += text(2, o);
    return text(1, s + text(3, "the " + type) + text(4, type) + text(7, domain) + attributes);
}
inline std::string value(int field, const std::string& name, int type, const std::vector<std::string>& dims) {
    std::string shape;
    for (const auto& d : dims)
        shape += text(1, std::isdigit(static_cast<unsigned char>(d[0])) != 0 ? number(1, std::stoll(d)) : text(2, d));
    return text(field, text(1, name) + text(2, text(1, number(1, type) + text(2, shape))));
}
template <class T>
std::string initializer(const std::string& name, int type, const std::vector<std::int64_t>& dims,
                        const std::vector<T>& items) {
    std::string s;
    for (const auto d : dims) s += number(1, d);
    return text(5, s + number(2, type) + text(8, name) +
                       text(9, std::string(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T))));
}
inline std::string model(const std::string& graph, int opset = 17) {
    return number(1, 8) + text(7, graph) + text(8, text(1, "") + number(2, opset)) +
           text(8, text(1, "ai.onnx.ml") + number(2, 3));
}
inline tg::io::onnx_model loaded(const support::temporary_folder& folder, const std::string& bytes) {
    const auto path = folder.path() / "m.onnx";
    std::ofstream(path, std::ios::binary) << bytes;
    return tg::io::load_onnx(path.string());
}
inline std::string refusal(const support::temporary_folder& folder, const std::string& bytes) {
    try {
        loaded(folder, bytes);
    } catch (const tg::error& e) {
        return e.what();
    }
    return "none";
}
constexpr int f32 = 1, i64 = 7, i8 = 3, boolean = 9;

} // namespace onnx_files
