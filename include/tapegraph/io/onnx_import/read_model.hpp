#pragma once

#include <tapegraph/core/element_types.hpp>
#if !defined(_WIN32)
#include <tapegraph/formats/mapped_file.hpp>
#endif
#include <tapegraph/io/onnx_import/file_model.hpp>

#include <algorithm>

/// Decodes bytes to the structures of io/onnx_import/file_model.hpp. Field numbers are those of
/// onnx.proto3.

namespace tapegraph::io::onnx_import {

namespace detail {

struct file_place {
    std::string file;
    files::path folder;
};

/// The fields of a TensorProto before its data are located.
struct tensor_parts {
    std::string name;
    int type = 0;
    std::vector<std::int64_t> dims, ints;
    std::vector<float> floats;
    std::vector<double> doubles;
    std::string_view raw;
    bool has_raw = false, external = false, strings = false;
    std::map<std::string, std::string> where;
};

inline array read_external(const tensor_parts& p, dtype type, std::size_t bytes, const file_place& place,
                           const wire_reader& at) {
    const auto entry = [&](const char* key) {
        const auto found = p.where.find(key);
        return found == p.where.end() ? std::string() : found->second;
    };
    const auto number = [&](const char* key, std::uint64_t otherwise) {
        const std::string text = entry(key);
        if (text.empty()) return otherwise;
        std::uint64_t value = 0;
        for (const char c : text) {
            if (c < '0' || c > '9' || value > (std::uint64_t{1} << 58))
                at.damaged("tensor '" + p.name + "': " + key + " '" + text + "' is not a number");
            value = 10 * value + static_cast<std::uint64_t>(c - '0');
        }
        return value;
    };
    const std::string location = entry("location");
    if (location.empty() || location.front() == '/' || location.find("..") != location.npos)
        at.damaged("tensor '" + p.name + "': its data are in '" + location + "', which is not beside the model");
    const std::uint64_t offset = number("offset", 0), length = number("length", bytes);
    if (length != bytes)
        at.damaged("tensor '" + p.name + "': " + std::to_string(length) + " bytes of external data, its shape has " +
                   std::to_string(bytes));
    const input_file in(files::path(place.folder.string().empty() ? location : place.folder.string() + "/" + location));
    if (offset > in.size() || length > in.size() - offset) // before memory is allocated for it
        throw data_error(one_line("'" + in.name() + "': has " + std::to_string(in.size()) + " bytes, tensor '" +
                                  p.name + "' ends at byte " + std::to_string(offset + length)));
    array to = array::unwritten(type, p.dims);
    in.read(to.data(), bytes, offset);
    return to;
}

template <class T, class From>
void convert(const std::vector<From>& from, array& to) {
    auto* const out = static_cast<T*>(to.data());
    for (std::size_t i = 0; i < from.size(); ++i) out[i] = static_cast<T>(from[i]);
}

inline array array_of(const tensor_parts& p, const file_place& place, const wire_reader& at) {
    const auto type = element_type(p.type);
    if (!type || p.strings)
        throw data_error(one_line("'" + place.file + "': tensor '" + p.name + "' has elements of " +
                                  element_type_name(p.type) + ", which are not supported"));
    std::int64_t product = 1;
    for (const std::int64_t d : p.dims) {
        if (d < 0 || (d > 0 && product > (std::int64_t{1} << 40) / d))
            at.damaged("tensor '" + p.name + "' has an impossible extent of " + std::to_string(d));
        product *= d;
    }
    const auto count = static_cast<std::size_t>(product);
    const auto expect = [&](std::size_t found) {
        if (found != count)
            at.damaged("tensor '" + p.name + "' holds " + std::to_string(found) + " elements, its shape has " +
                       std::to_string(count));
    };
    if (p.has_raw && p.raw.size() != count * size_of(*type))
        at.damaged("tensor '" + p.name + "' holds " + std::to_string(p.raw.size()) + " bytes, its shape has " +
                   std::to_string(count * size_of(*type)));
    if (!p.has_raw && !p.external)
        expect(*type == dtype::f32 ? p.floats.size() : *type == dtype::f64 ? p.doubles.size() : p.ints.size());
    if (p.external) return read_external(p, *type, count * size_of(*type), place, at);
    array to = array::unwritten(*type, p.dims);
    if (p.has_raw) {
        if (!p.raw.empty()) std::memcpy(to.data(), p.raw.data(), p.raw.size());
        return to;
    }
    visit_type(*type, [&]<class T>(std::type_identity<T>) {
        if constexpr (std::is_same_v<T, float>)
            convert<T>(p.floats, to);
        else if constexpr (std::is_same_v<T, double>)
            convert<T>(p.doubles, to);
        else if constexpr (storage_type<T>)
            convert<std::uint16_t>(p.ints, to); // their bits
        else
            convert<T>(p.ints, to);
    });
    return to;
}

inline std::pair<std::string, std::string> read_entry(wire_reader m) {
    std::pair<std::string, std::string> entry;
    while (m.next())
        if (m.field() == 1)
            entry.first = m.text();
        else if (m.field() == 2)
            entry.second = m.text();
        else
            m.skip();
    return entry;
}

inline tensor_parts read_parts(wire_reader& m) {
    tensor_parts p;
    while (m.next()) switch (m.field()) {
        case 1: m.integers(p.dims); break;
        case 2: p.type = static_cast<int>(m.integer()); break;
        case 4: m.numbers(p.floats); break;
        case 5:
        case 7:
        case 11: m.integers(p.ints); break;
        case 6: p.strings = true, m.skip(); break;
        case 8: p.name = m.text(); break;
        case 9: p.raw = m.text(), p.has_raw = true; break;
        case 10: m.numbers(p.doubles); break;
        case 13: p.where.insert(read_entry(m.message())); break;
        case 14: p.external = m.integer() == 1; break;
        default: m.skip(); break;
        }
    return p;
}

inline initializer_info read_tensor(wire_reader m, const file_place& place) {
    const tensor_parts p = read_parts(m);
    return {p.name, std::make_shared<const array>(array_of(p, place, m))};
}

inline void read_dims(wire_reader m, value_info& info) {
    info.ranked = true;
    while (m.next()) {
        if (m.field() != 1) {
            m.skip();
            continue;
        }
        std::int64_t extent = -1;
        std::string name;
        for (wire_reader d = m.message(); d.next();)
            if (d.field() == 1)
                extent = d.integer();
            else if (d.field() == 2)
                name = d.text();
            else
                d.skip();
        info.dims.push_back(extent < 0 ? -1 : extent);
        info.names.push_back(name);
    }
}

inline value_info read_value_info(wire_reader m) {
    value_info info;
    while (m.next()) {
        if (m.field() == 1) {
            info.name = m.text();
        } else if (m.field() == 2) {
            for (wire_reader type = m.message(); type.next();) {
                if (type.field() != 1) {
                    type.skip();
                    continue;
                }
                for (wire_reader t = type.message(); t.next();)
                    if (t.field() == 1)
                        info.element_type = static_cast<int>(t.integer());
                    else if (t.field() == 2)
                        read_dims(t.message(), info);
                    else
                        t.skip();
            }
        } else {
            m.skip();
        }
    }
    info.type = element_type(info.element_type);
    return info;
}

inline file_graph read_graph(wire_reader m, const file_place& place);

inline attribute read_attribute(wire_reader m, const file_place& place) {
    attribute a;
    while (m.next()) switch (m.field()) {
        case 1: a.name = m.text(); break;
        case 2: a.f = m.number(); break;
        case 3: a.i = m.integer(); break;
        case 4: a.s = m.text(); break;
        case 5: {
            wire_reader tensor = m.message();
            const tensor_parts p = read_parts(tensor);
            if (element_type(p.type) && !p.strings) a.t = std::make_shared<const array>(array_of(p, place, m));
            break;
        }
        case 6: a.g = std::make_shared<file_graph>(read_graph(m.message(), place)); break;
        case 7: m.numbers(a.floats); break;
        case 8: m.integers(a.ints); break;
        case 9: a.strings.emplace_back(m.text()); break;
        case 20: a.type = static_cast<int>(m.integer()); break;
        case 21: a.reference = m.text(); break;
        default: m.skip(); break;
        }
    if (a.type == attribute::unknown && a.reference.empty()) // files of IR version 1 do not give types
        a.type = !a.floats.empty() ? attribute::numbers
                 : !a.ints.empty() ? attribute::integers
                 : a.t             ? attribute::tensor
                 : !a.s.empty()    ? attribute::text
                 : a.f != 0        ? attribute::number
                                   : attribute::integer;
    return a;
}

inline file_node read_node(wire_reader m, const file_place& place) {
    file_node n;
    while (m.next()) switch (m.field()) {
        case 1: n.inputs.emplace_back(m.text()); break;
        case 2: n.outputs.emplace_back(m.text()); break;
        case 3: n.name = m.text(); break;
        case 4: n.type = m.text(); break;
        case 5: n.attributes.push_back(read_attribute(m.message(), place)); break;
        case 7: n.domain = m.text(); break;
        case 8: n.overload = m.text(); break;
        default: m.skip(); break;
        }
    if (n.domain == "ai.onnx") n.domain.clear();
    return n;
}

inline file_graph read_graph(wire_reader m, const file_place& place) {
    file_graph g;
    while (m.next()) switch (m.field()) {
        case 1: g.nodes.push_back(read_node(m.message(), place)); break;
        case 2: g.name = m.text(); break;
        case 5: g.initializers.push_back(read_tensor(m.message(), place)); break;
        case 11: g.inputs.push_back(read_value_info(m.message())); break;
        case 12: g.outputs.push_back(read_value_info(m.message())); break;
        case 15: m.damaged("sparse initializers, which are not supported");
        default: m.skip(); break;
        }
    return g;
}

inline void read_opset(wire_reader m, std::map<std::string, std::int64_t>& to) {
    std::string domain;
    std::int64_t version = 1;
    while (m.next())
        if (m.field() == 1)
            domain = m.text();
        else if (m.field() == 2)
            version = m.integer();
        else
            m.skip();
    to[domain == "ai.onnx" ? "" : domain] = version;
}

inline file_function read_function(wire_reader m, const file_place& place) {
    file_function f;
    while (m.next()) switch (m.field()) {
        case 1: f.name = m.text(); break;
        case 4: f.inputs.emplace_back(m.text()); break;
        case 5: f.outputs.emplace_back(m.text()); break;
        case 6: f.attributes.emplace_back(m.text()); break;
        case 7: f.nodes.push_back(read_node(m.message(), place)); break;
        case 9: read_opset(m.message(), f.opsets); break;
        case 10: f.domain = m.text(); break;
        case 11: f.defaults.push_back(read_attribute(m.message(), place)); break;
        case 13: f.overload = m.text(); break;
        default: m.skip(); break;
        }
    return f;
}

} // namespace detail

inline std::string element_type_name(int number) {
    if (const auto type = element_type(number)) return name_of(*type);
    switch (number) {
    case 0: return "no type";
    case 8: return "string";
    case 14: return "complex64";
    case 15: return "complex128";
    case 17: return "float8e4m3fn";
    case 18: return "float8e4m3fnuz";
    case 19: return "float8e5m2";
    case 20: return "float8e5m2fnuz";
    case 21: return "uint4";
    case 22: return "int4";
    case 23: return "float4e2m1";
    case 24: return "float8e8m0";
    case 25: return "uint2";
    case 26: return "int2";
    default: return "type " + std::to_string(number);
    }
}

inline file_model read_model(std::string_view bytes, const std::string& file, const files::path& folder) {
    file_model model;
    model.file = file;
    const detail::file_place place{file, folder};
    wire_reader m(bytes, model.file);
    bool has_graph = false;
    while (m.next()) switch (m.field()) {
        case 1: model.ir_version = m.integer(); break;
        case 2: model.producer = m.text(); break;
        case 7:
            model.graph = detail::read_graph(m.message(), place);
            has_graph = true;
            break;
        case 8: detail::read_opset(m.message(), model.opsets); break;
        case 25: model.functions.push_back(detail::read_function(m.message(), place)); break;
        default: m.skip(); break;
        }
    if (!has_graph) throw data_error("'" + file + "': is not an ONNX model: it has no graph");
    return model;
}

inline file_model read_model(const files::path& path) {
#if defined(_WIN32)
    const std::vector<std::uint8_t> bytes = read_file(path);
#else
    const mapped_file file(path, file_access::all); // tensors are copied once, out of the system's cache
    const std::span<const std::byte> bytes = file.bytes();
#endif
    const std::string name = path.string();
    const std::size_t slash = name.rfind('/');
    return read_model({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name,
                      files::path(slash == name.npos ? std::string() : name.substr(0, slash)));
}

inline array read_tensor(const files::path& path) {
    const std::vector<std::uint8_t> bytes = read_file(path);
    const std::string name = path.string();
    wire_reader m({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name);
    return detail::array_of(detail::read_parts(m), {name, {}}, m);
}

} // namespace tapegraph::io::onnx_import
