#pragma once

#include <tapegraph/core/config.hpp>

#if !__has_include(<protozero/pbf_writer.hpp>)
#error "tapegraph/io/tensorboard: needs protozero (Debian: libprotozero-dev; CMake: tapegraph::proto)"
#endif
#include <protozero/pbf_writer.hpp>

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

/// Messages of TensorBoard's protocol (event.proto, summary.proto, tensor.proto), field by field.
/// Numbers follow the order of the names there.

namespace tapegraph::io::detail::wire {

using writer = protozero::pbf_writer;

inline void text(writer& to, protozero::pbf_tag_type tag, std::string_view value) {
    to.add_bytes(tag, value.data(), value.size());
}

/// tensorflow.DataType
enum data_type : std::int32_t { dt_float = 1, dt_double = 2, dt_string = 7 };
/// DataClass of summaries, which determines how many points of a series are kept.
enum data_class : std::int32_t { class_scalar = 1, class_tensor = 2, class_blobs = 3 };

/// Event: wall_time 1, step 2, then what it holds.
inline void event_head(writer& event, double wall_time, std::int64_t step) {
    event.add_double(1, wall_time);
    if (step != 0) event.add_int64(2, step);
}

/// SummaryMetadata 9: plugin_data 1 {plugin_name 1, content 2}, data_class 4.
inline void metadata(writer& value, std::string_view plugin, data_class kind, std::string_view content = {}) {
    writer m(value, 9);
    {
        writer plugin_data(m, 1);
        text(plugin_data, 1, plugin);
        if (!content.empty()) text(plugin_data, 2, content);
    }
    if (kind != 0) m.add_enum(4, kind);
}

/// TensorShapeProto at `tag`: dim 2* {size 1}. One without dims is also written, because some
/// readers take the rank for unknown without it.
inline void shape(writer& to, protozero::pbf_tag_type tag, std::span<const std::int64_t> extents) {
    if (extents.empty()) return text(to, tag, {});
    writer s(to, tag);
    for (const std::int64_t extent : extents) {
        writer dim(s, 2);
        dim.add_int64(1, extent);
    }
}

/// An event with one summary value whose tensor and metadata `fill(value)` writes.
template <class Fill>
void summary_event(std::string& buffer, double wall_time, std::int64_t step, std::string_view tag, const Fill& fill) {
    writer event(buffer);
    event_head(event, wall_time, step);
    writer summary(event, 5);
    writer value(summary, 1);
    text(value, 1, tag);
    fill(value);
}

inline void scalar_event(std::string& buffer, double wall_time, std::int64_t step, std::string_view tag, float number) {
    summary_event(buffer, wall_time, step, tag, [&](writer& value) {
        {
            writer tensor(value, 8);
            tensor.add_enum(1, dt_float);
            text(tensor, 2, {});
            char content[4];
            auto bits = std::bit_cast<std::uint32_t>(number);
            for (char& c : content) c = static_cast<char>(bits & 0xff), bits >>= 8;
            tensor.add_bytes(4, content, sizeof content);
        }
        metadata(value, "scalars", class_scalar);
    });
}

/// A vector of strings as `plugin`'s.
inline void strings_event(std::string& buffer, double wall_time, std::int64_t step, std::string_view tag,
                          std::span<const std::string_view> strings, std::string_view plugin, data_class kind) {
    summary_event(buffer, wall_time, step, tag, [&](writer& value) {
        {
            writer tensor(value, 8);
            tensor.add_enum(1, dt_string);
            const auto count = static_cast<std::int64_t>(strings.size());
            shape(tensor, 2, {&count, 1});
            for (const std::string_view each : strings) text(tensor, 8, each);
        }
        metadata(value, plugin, kind);
    });
}

} // namespace tapegraph::io::detail::wire
