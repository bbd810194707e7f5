#pragma once

#include <tapegraph/io/safetensors_header.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace tapegraph::io::detail {

/// The header as JSON. A name that occurs twice is refused; the JSON library would keep the last in silence.
template <class = void>
nlohmann::json parse_json_of_distinct_names(const std::string& text, const std::string& file) {
    std::vector<std::set<std::string>> names;
    const auto watch = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& value) {
        if (event == nlohmann::json::parse_event_t::object_start) names.emplace_back();
        if (event == nlohmann::json::parse_event_t::object_end) names.pop_back();
        if (event == nlohmann::json::parse_event_t::key && !names.back().insert(value.get<std::string>()).second)
            throw data_error(file + ": header holds the name '" + value.get<std::string>() + "' twice");
        return true;
    };
    try {
        return nlohmann::json::parse(text, watch);
    } catch (const nlohmann::json::exception& failure) {
        throw data_error(file + ": header is not valid JSON: " + failure.what());
    }
}

/// One header entry, checked on its own.
template <class = void>
safetensors_place safetensors_place_of(const std::string& name, const nlohmann::json& entry, std::uint64_t data_bytes,
                                       const std::string& file) {
    const auto refuse = [&](const std::string& why) { throw data_error(file + ", tensor '" + name + "': " + why); };
    if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets"))
        refuse("needs dtype, shape and data_offsets");
    const auto& type = entry["dtype"];
    const auto& shape = entry["shape"];
    const auto& offsets = entry["data_offsets"];
    if (!type.is_string()) refuse("dtype is not a string");
    const auto known = std::find_if(safetensors_types.begin(), safetensors_types.end(),
                                    [&](const auto& candidate) { return type.get<std::string>() == candidate.second; });
    if (known == safetensors_types.end()) refuse("unknown dtype '" + type.get<std::string>() + "'");

    const auto whole = [](const nlohmann::json& number) {
        return number.is_number_unsigned() && number.get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX);
    };
    if (!shape.is_array() || !std::all_of(shape.begin(), shape.end(), whole)) refuse("shape is not a list of extents");
    if (!offsets.is_array() || offsets.size() != 2 || !whole(offsets[0]) || !whole(offsets[1]))
        refuse("data_offsets are not two offsets");

    safetensors_place place{name, known->first, {}, offsets[0].get<std::uint64_t>(), offsets[1].get<std::uint64_t>()};
    for (const auto& extent : shape) place.shape.push_back(extent.get<std::int64_t>());
    const std::string range = "[" + std::to_string(place.begin) + "," + std::to_string(place.end) + ")";
    if (place.begin > place.end) refuse("offsets " + range + " run backwards");
    if (place.end > data_bytes)
        refuse("offsets " + range + " lie outside the file's " + std::to_string(data_bytes) + " data bytes");
    std::int64_t size = 0;
    if (!checked_size(place.shape, size_of(place.type), size)) refuse("impossible shape " + shape_text(place.shape));
    const auto bytes = static_cast<std::uint64_t>(size) * size_of(place.type);
    if (bytes != place.end - place.begin)
        refuse(std::string(name_of(place.type)) + shape_text(place.shape) + " needs " + std::to_string(bytes) +
               " bytes, offsets " + range + " hold " + std::to_string(place.end - place.begin));
    return place;
}

template <class>
safetensors_header parse_safetensors_header(const std::string& text, std::uint64_t data_bytes,
                                            const std::string& file) {
    const nlohmann::json header = parse_json_of_distinct_names(text, file);
    safetensors_header result;
    for (auto entry = header.begin(); entry != header.end(); ++entry) {
        if (entry.key() != "__metadata__") {
            result.places.push_back(safetensors_place_of(entry.key(), *entry, data_bytes, file));
            continue;
        }
        if (!entry->is_object()) throw data_error(file + ": __metadata__ is not an object");
        for (auto text_entry = entry->begin(); text_entry != entry->end(); ++text_entry) {
            if (!text_entry->is_string())
                throw data_error(file + ": __metadata__ '" + text_entry.key() + "' is not a string");
            result.metadata[text_entry.key()] = text_entry->get<std::string>();
        }
    }
    return result;
}

// Only strings are left to the JSON library: numbers are integers here, and objects that keep the order of their names would be
// a second set of its templates.
template <class>
std::string safetensors_header_text(const safetensors_header& header, const std::string& operation) {
    std::string text = "{";
    const auto next = [&](bool first) { text += first ? "" : ","; };
    const auto add_string = [&](const std::string& value) {
        try {
            text += nlohmann::json(value).dump();
        } catch (const nlohmann::json::exception&) {
            throw argument_error(operation + ": a name or metadata text is not UTF-8");
        }
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
