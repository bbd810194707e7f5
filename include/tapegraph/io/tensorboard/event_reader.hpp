#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/folder.hpp>
#include <tapegraph/formats/record_framing.hpp>
#include <tapegraph/io/tensorboard/event_file.hpp>

#if !__has_include(<protozero/pbf_reader.hpp>)
#error "tapegraph/io/tensorboard: needs protozero (Debian: libprotozero-dev; CMake: tapegraph::proto)"
#endif
#include <protozero/pbf_reader.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Reads scalars of runs from event files: this library's, TensorFlow's, PyTorch's.

namespace tapegraph::io {

/// A value of a scalar in an event file.
struct scalar_point {
    std::int64_t step = 0;
    double wall_time = 0; ///< seconds since 1970
    double value = 0;
};

/// The points of one tag, in the order in which they were written.
struct scalar_series {
    std::string tag;
    std::vector<scalar_point> points;
};

/// Options of read_scalars.
struct read_events_options {
    /// A file that ends within a record, like one that is still being written, is read up to there;
    /// otherwise that is an error.
    bool partial = false;
};

namespace detail {

// Fields by number and wire type; other types are not what is expected, and are skipped.
using wire_type = protozero::pbf_wire_type;
constexpr std::uint32_t field(std::uint32_t number, wire_type type) { return protozero::tag_and_type(number, type); }

/// The number in a TensorProto of one element, float or double; false for any other tensor.
inline bool scalar_in_tensor(protozero::pbf_reader tensor, double& value) {
    std::int32_t type = 0;
    std::string_view content;
    bool listed = false, scalar = true;
    const auto set = [&](double number) { value = number, listed = true; };
    while (tensor.next()) switch (tensor.tag_and_type()) {
        case field(1, wire_type::varint): type = tensor.get_enum(); break;
        case field(2, wire_type::length_delimited): {
            protozero::pbf_reader shape = tensor.get_message();
            while (shape.next(2, wire_type::length_delimited)) {
                protozero::pbf_reader dim = shape.get_message();
                std::int64_t extent = 0;
                while (dim.next(1, wire_type::varint)) extent = dim.get_int64();
                scalar = scalar && extent == 1;
            }
            break;
        }
        case field(4, wire_type::length_delimited): {
            const auto bytes = tensor.get_view();
            content = {bytes.data(), bytes.size()};
            break;
        }
        case field(5, wire_type::length_delimited): // float_val, packed or not
            for (const float each : tensor.get_packed_float()) set(static_cast<double>(each));
            break;
        case field(5, wire_type::fixed32): set(static_cast<double>(tensor.get_float())); break;
        case field(6, wire_type::length_delimited): // double_val
            for (const double each : tensor.get_packed_double()) set(each);
            break;
        case field(6, wire_type::fixed64): set(tensor.get_double()); break;
        default: tensor.skip();
        }
    if (!scalar) return false;
    if (type == 1 && content.size() == 4)
        value = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(load_little(content.data(), 4))));
    else if (type == 2 && content.size() == 8)
        value = std::bit_cast<double>(load_little(content.data(), 8));
    else
        return listed && (type == 1 || type == 2);
    return true;
}

struct scalar_collection {
    std::vector<scalar_series> series;
    std::map<std::string, std::size_t, std::less<>> places; // by tag

    std::vector<scalar_point>& points_of(std::string_view tag) {
        auto at = places.find(tag);
        if (at == places.end()) {
            at = places.emplace(std::string(tag), series.size()).first;
            series.push_back({std::string(tag), {}});
        }
        return series[at->second].points;
    }
};

/// Adds the scalars of one event.
inline void add_scalars(protozero::pbf_reader event, scalar_collection& to) {
    scalar_point point;
    std::vector<protozero::data_view> summaries; // they may come before the step
    while (event.next()) switch (event.tag_and_type()) {
        case field(1, wire_type::fixed64): point.wall_time = event.get_double(); break;
        case field(2, wire_type::varint): point.step = event.get_int64(); break;
        case field(5, wire_type::length_delimited): summaries.push_back(event.get_view()); break;
        default: event.skip();
        }
    for (const protozero::data_view& bytes : summaries) {
        protozero::pbf_reader summary(bytes);
        while (summary.next(1, wire_type::length_delimited)) {
            protozero::pbf_reader value = summary.get_message();
            std::string_view tag;
            bool found = false;
            while (value.next()) switch (value.tag_and_type()) {
                case field(1, wire_type::length_delimited): {
                    const auto view = value.get_view();
                    tag = {view.data(), view.size()};
                    break;
                }
                case field(2, wire_type::fixed32): // simple_value, from TensorFlow 1
                    point.value = static_cast<double>(value.get_float());
                    found = true;
                    break;
                case field(8, wire_type::length_delimited):
                    found = scalar_in_tensor(value.get_message(), point.value) || found;
                    break;
                default: value.skip();
                }
            if (!found || tag.starts_with("_hparams_/")) continue; // a dummy number
            to.points_of(tag).push_back(point);
        }
    }
}

inline void read_event_file(const files::path& path, const read_events_options& options, scalar_collection& to) {
    const std::vector<std::uint8_t> bytes = read_file(path);
    const std::string& name = path.string();
    record_cursor records({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name);
    for (;;) {
        const record_place place = records.place();
        std::string_view data;
        if (options.partial && records.partial()) return;
        if (!records.next(data)) return;
        try {
            add_scalars({data.data(), data.size()}, to);
        } catch (const protozero::exception& what) {
            throw data_error(place.text() + ": its data is not an Event message: " + what.what());
        } catch (const error& what) {
            throw data_error(place.text() + ": " + what.what());
        }
    }
}

} // namespace detail

/// All scalars of a run: of one event file, or of all those in a folder (without subfolders), in
/// the order of their names. Tags are in the order in which they were first written. Values may
/// also have TensorFlow's older form (`simple_value`). Throws data_error for a file that is
/// missing, damaged or not an event file, with the record and its position, and for a folder
/// without any.
inline std::vector<scalar_series> read_scalars(const files::path& path, const read_events_options& options = {}) {
    std::vector<files::path> files;
    std::error_code failure;
    if (files::is_directory(path, failure)) {
        for (files::directory_iterator at(path, failure), end; !failure && at != end; at.increment(failure))
            if (detail::is_event_file(at->path().filename().string())) files.push_back(at->path());
        if (failure) throw data_error(detail::quoted(path) + ": " + failure.message());
        if (files.empty()) throw data_error(detail::quoted(path) + ": holds no event files");
        std::sort(files.begin(), files.end());
    } else {
        files.push_back(path);
    }
    detail::scalar_collection all;
    for (const files::path& file : files) detail::read_event_file(file, options, all);
    return std::move(all.series);
}

} // namespace tapegraph::io
