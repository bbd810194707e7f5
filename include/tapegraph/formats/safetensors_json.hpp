#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/formats/json_reader.hpp>
#include <tapegraph/formats/safetensors_header.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#if TG_DEFINES(formats)

namespace tapegraph::io::detail {

/// Reads one header entry and checks it separately; the reader is before its value.
TG_DEFINITION safetensors_place safetensors_place_of(json_reader& json, const std::string& name,
                                                     std::uint64_t data_bytes, const std::string& file) {
    const auto refuse = [&](const std::string& why) { throw data_error(file + ", tensor '" + name + "': " + why); };
    constexpr auto most = static_cast<std::uint64_t>(INT64_MAX);
    const auto numbers = [&](const char* what) {
        std::vector<std::int64_t> values;
        if (json.peek() != json_kind::array) refuse(what);
        json.begin_array();
        while (json.next_element()) {
            std::uint64_t value = most + 1;
            if (json.peek() != json_kind::number || !json.exact(value) || value > most) refuse(what);
            values.push_back(static_cast<std::int64_t>(value));
        }
        return values;
    };

    safetensors_place place{name, dtype::f32, {}, 0, 0};
    std::vector<std::int64_t> offsets;
    int seen = 0; // detects duplicate names
    if (json.peek() != json_kind::object) refuse("needs dtype, shape and data_offsets");
    json.begin_object();
    for (std::string field; json.next_name(field);) {
        if (field == "dtype") {
            if (json.peek() != json_kind::string) refuse("dtype is not a string");
            const std::string type = json.string();
            const auto known = std::find_if(safetensors_types.begin(), safetensors_types.end(),
                                            [&](const auto& candidate) { return type == candidate.second; });
            if (known == safetensors_types.end())
                place.unknown = type.empty() ? "?" : type;
            else
                place.type = known->first;
        } else if (field == "shape") {
            place.shape = numbers("shape is not a list of extents");
        } else if (field == "data_offsets") {
            offsets = numbers("data_offsets are not two offsets");
            if (offsets.size() != 2) refuse("data_offsets are not two offsets");
        } else {
            json.skip();
            continue;
        }
        ++seen;
    }
    if (seen != 3) refuse("needs dtype, shape and data_offsets");

    place.begin = static_cast<std::uint64_t>(offsets[0]);
    place.end = static_cast<std::uint64_t>(offsets[1]);
    const std::string range = "[" + std::to_string(place.begin) + "," + std::to_string(place.end) + ")";
    if (place.begin > place.end) refuse("offsets " + range + " run backwards");
    if (place.end > data_bytes)
        refuse("offsets " + range + " lie outside the file's " + std::to_string(data_bytes) + " data bytes");
    if (!place.unknown.empty()) return place;
    std::int64_t size = 0;
    if (!checked_size(place.shape, size_of(place.type), size)) refuse("impossible shape " + shape_text(place.shape));
    const auto bytes = static_cast<std::uint64_t>(size) * size_of(place.type);
    if (bytes != place.end - place.begin)
        refuse(std::string(name_of(place.type)) + shape_text(place.shape) + " needs " + std::to_string(bytes) +
               " bytes, offsets " + range + " hold " + std::to_string(place.end - place.begin));
    return place;
}

TG_WEIGHTS_DEFINITION safetensors_header parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                                                  const std::string& file) {
    json_reader json(text, file + ": header");
    safetensors_header result;
    json.begin_object();
    for (std::string name; json.next_name(name);) {
        if (name != "__metadata__") {
            result.places.push_back(safetensors_place_of(json, name, data_bytes, file));
            continue;
        }
        if (json.peek() != json_kind::object) throw data_error(file + ": __metadata__ is not an object");
        json.begin_object();
        for (std::string key; json.next_name(key);) {
            if (json.peek() != json_kind::string)
                throw data_error(file + ": __metadata__ '" + key + "' is not a string");
            result.metadata[key] = json.string();
        }
    }
    json.end();
    return result;
}

TG_WEIGHTS_DEFINITION std::string safetensors_header_text(const safetensors_header& header,
                                                          const std::string& operation) {
    std::string text = "{";
    const auto next = [&](bool first) { text += first ? "" : ","; };
    const auto add_string = [&](const std::string& value) {
        if (utf8_prefix(value) != value.size())
            throw argument_error(operation + ": a name or metadata text is not UTF-8");
        text += json_string(value);
    };
    if (!header.metadata.empty()) {
        text += "\"__metadata__\":{";
        for (bool first = true; const auto& [key, value] : header.metadata) {
            next(std::exchange(first, false));
            add_string(key);
            text += ':';
            add_string(value);
        }
        text += '}';
    }
    for (bool first = header.metadata.empty(); const auto& place : header.places) {
        next(std::exchange(first, false));
        add_string(place.name);
        text.append(":{\"dtype\":\"").append(safetensors_types[safetensors_rank(place.type)].second);
        text.append("\",\"shape\":").append(shape_text(place.shape));
        text.append(",\"data_offsets\":[").append(std::to_string(place.begin));
        text.append(",").append(std::to_string(place.end)).append("]}");
    }
    return text += '}';
}

} // namespace tapegraph::io::detail

#endif
