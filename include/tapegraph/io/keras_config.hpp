#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/formats/json_reader.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Reads the order of layers from the config.json of a .keras file; groups of HDF5 have none.

namespace tapegraph::io::detail {

/// Keras's name of a layer, and the layers in it by the option that they were given as: "layers" of
/// Sequential and Functional, "layer" of a wrapper, "cell" and "cells".
struct keras_config {
    std::string name;
    std::map<std::string, std::vector<keras_config>> parts{};

    /// The layers in an attribute of the layer; null if the configuration does not say.
    const std::vector<keras_config>* find(std::string_view attribute) const {
        auto found = parts.find(std::string(attribute));
        if (found == parts.end() && attribute.ends_with("ward_layer")) found = parts.find("layer"); // of Bidirectional
        return found == parts.end() ? nullptr : &found->second;
    }
};

/// Reads {"class_name": ..., "config": {...}}.
inline keras_config read_keras_config(json_reader& json) {
    keras_config found;
    json.begin_object();
    for (std::string name; json.next_name(name);) {
        if (name != "config" || json.peek() != json_kind::object) {
            json.skip();
            continue;
        }
        json.begin_object();
        for (std::string option; json.next_name(option);) {
            const json_kind kind = json.peek();
            if (kind == json_kind::string && option == "name") {
                found.name = json.string();
            } else if (kind == json_kind::object) {
                found.parts[option].push_back(read_keras_config(json));
            } else if (kind == json_kind::array) {
                json.begin_array();
                while (json.next_element())
                    if (json.peek() == json_kind::object)
                        found.parts[option].push_back(read_keras_config(json));
                    else
                        json.skip();
            } else {
                json.skip();
            }
        }
    }
    return found;
}
/// Reads the text of a config.json. The result has no parts if it is not valid JSON: Python writes
/// NaN and Infinity, which JSON lacks.
inline keras_config keras_config_of(std::string_view text) {
    constexpr int deepest = 256;
    try {
        json_reader json(text, "config.json", deepest);
        return read_keras_config(json);
    } catch (const data_error&) {
        return {};
    }
}

/// The name of a group without its number: "dense" of "dense_2". Keras numbers the layers of one
/// class in a list in their order.
inline std::string keras_stem(const std::string& name) {
    const std::size_t end = name.find_last_not_of("0123456789");
    const bool numbered = end != std::string::npos && end > 0 && end + 1 < name.size() && name[end] == '_';
    return numbered ? name.substr(0, end) : name;
}

/// Sorts the groups of a list, with the names of their layers, into the order of a configuration.
/// Returns false if it does not name all of them, or names some twice.
inline bool order_by_config(std::vector<std::pair<std::string, std::string>>& groups,
                            const std::vector<keras_config>& layers) {
    const auto place = [&](const std::string& name) {
        return std::find_if(layers.begin(), layers.end(), [&](const auto& l) { return l.name == name; });
    };
    for (const auto& each : groups) {
        const std::string& name = each.second;
        if (name.empty() ||
            std::count_if(layers.begin(), layers.end(), [&](const auto& l) { return l.name == name; }) != 1 ||
            std::count_if(groups.begin(), groups.end(), [&](const auto& g) { return g.second == name; }) != 1)
            return false;
    }
    std::sort(groups.begin(), groups.end(),
              [&](const auto& a, const auto& b) { return place(a.second) < place(b.second); });
    return true;
}

} // namespace tapegraph::io::detail
