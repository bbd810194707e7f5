#pragma once

#include <tapegraph/core/error.hpp>

#if !__has_include(<protozero/pbf_reader.hpp>)
#error "tapegraph/data/readers/example.hpp: needs protozero (Debian: libprotozero-dev; CMake: tapegraph::proto)"
#endif
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// tf.train.Example and SequenceExample, the usual messages of TFRecord files: features by name,
/// each a list of integers, floats or byte strings.
///
///     Example         features 1 {feature 1* {key 1, value 2: Feature}}
///     Feature         bytes_list 1 {value 1*} | float_list 2 {value 1*} | int64_list 3 {value 1*}, numbers packed or not
///     SequenceExample context 1 {as features}, feature_lists 2 {feature_list 1* {key 1, value 2 {feature 1*: Feature}}}

namespace tapegraph::data {

/// The type of a feature's values: tf.train.Feature has lists of bytes, floats and 64-bit integers.
enum class feature_kind : std::uint8_t { none, bytes, floats, integers };

/// A list of values of one kind. `none` is a feature that was set but never filled, or an empty
/// list of any kind.
struct feature {
    feature_kind kind = feature_kind::none;
    std::vector<std::string> bytes{};
    std::vector<float> floats{};
    std::vector<std::int64_t> integers{};

    std::int64_t size() const {
        return static_cast<std::int64_t>(kind == feature_kind::bytes    ? bytes.size()
                                         : kind == feature_kind::floats ? floats.size()
                                                                        : integers.size());
    }
    bool operator==(const feature&) const = default;
};

/// A template, so that {"a", "b"} means two strings and not a range.
template <std::convertible_to<std::string_view> Text>
feature bytes_feature(const Text& value) {
    return {feature_kind::bytes, {std::string(std::string_view(value))}, {}, {}};
}
inline feature bytes_feature(std::vector<std::string> values) {
    return {feature_kind::bytes, std::move(values), {}, {}};
}
/// A feature of floats.
inline feature float_feature(std::vector<float> values) { return {feature_kind::floats, {}, std::move(values), {}}; }
/// A feature of 64-bit integers.
inline feature int64_feature(std::vector<std::int64_t> values) {
    return {feature_kind::integers, {}, {}, std::move(values)};
}

/// Features by name, in the order in which they were set or occur in the message.
class example {
public:
    example() = default;
    /// Of two features with one name the last wins, as in protobuf's maps.
    explicit example(std::vector<std::pair<std::string, feature>> features) {
        std::vector<std::size_t> order(features.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return features[a].first != features[b].first ? features[a].first < features[b].first : a < b;
        });
        std::vector<bool> counts(order.size(), true);
        for (std::size_t i = 0; i + 1 < order.size(); ++i)
            counts[order[i]] = features[order[i]].first != features[order[i + 1]].first;
        for (std::size_t i = 0; i < features.size(); ++i)
            if (counts[i]) features_.push_back(std::move(features[i]));
    }
    /// Replaces an existing feature of that name.
    example& set(std::string name, feature value) {
        for (auto& [known, held] : features_)
            if (known == name) {
                held = std::move(value);
                return *this;
            }
        features_.emplace_back(std::move(name), std::move(value));
        return *this;
    }
    /// Returns null where there is none.
    const feature* find(std::string_view name) const {
        for (const auto& [known, held] : features_)
            if (known == name) return &held;
        return nullptr;
    }
    /// All features by name, in the order in which they were set.
    const std::vector<std::pair<std::string, feature>>& features() const { return features_; }
    // Nvcc accepts no default here.
    bool operator==(const example& other) const { return features_ == other.features_; }

private:
    std::vector<std::pair<std::string, feature>> features_;
};

/// Features of the whole, and lists of features by name: one element of each list per step.
struct sequence_example {
    example context{};
    std::vector<std::pair<std::string, std::vector<feature>>> lists{};
    bool operator==(const sequence_example&) const = default;
};

/// The kind's word in messages.
inline const char* name_of(feature_kind kind) {
    switch (kind) {
    case feature_kind::bytes: return "bytes";
    case feature_kind::floats: return "floats";
    case feature_kind::integers: return "integers";
    default: return "no values";
    }
}

namespace detail {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::tag_and_type;

inline constexpr auto length_delimited = pbf_wire_type::length_delimited;

inline void append_feature(std::string& out, const feature& value) {
    if (value.kind == feature_kind::none) return;
    std::string list;
    protozero::pbf_writer values(list);
    if (value.kind == feature_kind::bytes)
        for (const auto& one : value.bytes) values.add_bytes(1, one);
    else if (value.kind == feature_kind::floats)
        values.add_packed_float(1, value.floats.begin(), value.floats.end());
    else
        values.add_packed_int64(1, value.integers.begin(), value.integers.end());
    protozero::pbf_writer(out).add_message(static_cast<protozero::pbf_tag_type>(value.kind), list); // also empty lists
}

inline std::string features_text(const example& all) {
    std::string features, entry, value;
    protozero::pbf_writer writer(features);
    for (const auto& [name, held] : all.features()) {
        entry.clear();
        value.clear();
        append_feature(value, held);
        protozero::pbf_writer pair(entry);
        pair.add_string(1, name);
        pair.add_message(2, value);
        writer.add_message(1, entry);
    }
    return features;
}

/// Calls f(name, Feature) for each entry of a map from names, for Features and FeatureLists alike.
/// A message in several parts is merged, as the format requires.
template <class F>
void each_entry(pbf_reader map, const F& f) {
    while (map.next()) {
        if (map.tag_and_type() != tag_and_type(1, length_delimited)) {
            map.skip();
            continue;
        }
        pbf_reader entry = map.get_message();
        protozero::data_view name{"", 0}, value{"", 0};
        while (entry.next()) switch (entry.tag_and_type()) {
            case tag_and_type(1, length_delimited): name = entry.get_view(); break;
            case tag_and_type(2, length_delimited): value = entry.get_view(); break;
            default: entry.skip();
            }
        f(std::string_view(name.data(), name.size()), pbf_reader(value));
    }
}

/// Calls the function for the kind with each value of the list (a view of bytes, a float, an
/// integer); calls `none` if there is no list.
template <class OnBytes, class OnFloat, class OnInteger>
feature_kind each_value(pbf_reader message, const OnBytes& on_bytes, const OnFloat& on_float,
                        const OnInteger& on_integer) {
    auto kind = feature_kind::none;
    while (message.next()) {
        const auto tag = message.tag();
        if (message.wire_type() != length_delimited || tag < 1 || tag > 3) {
            message.skip();
            continue;
        }
        kind = static_cast<feature_kind>(tag);
        pbf_reader list = message.get_message();
        while (list.next()) {
            const auto what = list.tag_and_type();
            if (kind == feature_kind::bytes && what == tag_and_type(1, length_delimited)) {
                const auto view = list.get_view();
                on_bytes(std::string_view(view.data(), view.size()));
            } else if (kind == feature_kind::floats && what == tag_and_type(1, length_delimited)) {
                for (const float value : list.get_packed_float()) on_float(value);
            } else if (kind == feature_kind::floats && what == tag_and_type(1, pbf_wire_type::fixed32)) {
                on_float(list.get_float());
            } else if (kind == feature_kind::integers && what == tag_and_type(1, length_delimited)) {
                for (const std::int64_t value : list.get_packed_int64()) on_integer(value);
            } else if (kind == feature_kind::integers && what == tag_and_type(1, pbf_wire_type::varint)) {
                on_integer(list.get_int64());
            } else {
                list.skip();
            }
        }
    }
    return kind;
}

inline feature read_feature(const pbf_reader& message) {
    feature value;
    value.kind = each_value(
        message, [&](std::string_view one) { value.bytes.emplace_back(one); },
        [&](float one) { value.floats.push_back(one); }, [&](std::int64_t one) { value.integers.push_back(one); });
    return value;
}

using named_features = std::vector<std::pair<std::string, feature>>;

/// Appends the entries of Features.
inline void read_features(const pbf_reader& map, named_features& to) {
    each_entry(map, [&](std::string_view name, const pbf_reader& value) {
        to.emplace_back(std::string(name), read_feature(value));
    });
}

/// Calls f and rethrows protozero's exceptions as data_error.
template <class F>
auto as_message(const char* type, const F& f) {
    try {
        return f();
    } catch (const protozero::exception& failure) {
        throw data_error(std::string("not a ") + type + ": " + failure.what());
    }
}

inline pbf_reader message_of(std::string_view bytes) { return pbf_reader(bytes.data(), bytes.size()); }

} // namespace detail

/// Serializes a message, with packed numbers and features in their order: the same bytes for the
/// same features.
inline std::string serialize(const example& value) {
    std::string out;
    protozero::pbf_writer(out).add_message(1, detail::features_text(value));
    return out;
}
inline std::string serialize(const sequence_example& value) {
    std::string out, lists, entry, steps, step;
    protozero::pbf_writer writer(out), list_writer(lists);
    writer.add_message(1, detail::features_text(value.context));
    for (const auto& [name, features] : value.lists) {
        entry.clear();
        steps.clear();
        for (const auto& one : features) {
            step.clear();
            detail::append_feature(step, one);
            protozero::pbf_writer(steps).add_message(1, step);
        }
        protozero::pbf_writer pair(entry);
        pair.add_string(1, name);
        pair.add_message(2, steps);
        list_writer.add_message(1, entry);
    }
    writer.add_message(2, lists);
    return out;
}

/// Parses all features of a message; of two with one name the last wins, as in protobuf's maps.
/// Throws data_error for invalid bytes.
inline example parse_example(std::string_view bytes) {
    return detail::as_message("tf.train.Example", [&] {
        detail::named_features all;
        auto message = detail::message_of(bytes);
        while (message.next(1, detail::length_delimited)) detail::read_features(message.get_message(), all);
        return example(std::move(all));
    });
}

/// Reads a serialised tf.train.SequenceExample. Throws data_error for bytes that are none.
inline sequence_example parse_sequence_example(std::string_view bytes) {
    return detail::as_message("tf.train.SequenceExample", [&] {
        sequence_example all;
        detail::named_features context;
        auto message = detail::message_of(bytes);
        while (message.next()) {
            if (message.tag_and_type() == detail::tag_and_type(1, detail::length_delimited)) {
                detail::read_features(message.get_message(), context);
            } else if (message.tag_and_type() == detail::tag_and_type(2, detail::length_delimited)) {
                detail::each_entry(message.get_message(), [&](std::string_view name, detail::pbf_reader value) {
                    std::vector<feature> steps;
                    while (value.next(1, detail::length_delimited))
                        steps.push_back(detail::read_feature(value.get_message()));
                    all.lists.emplace_back(std::string(name), std::move(steps));
                });
            } else {
                message.skip();
            }
        }
        all.context = example(std::move(context));
        return all;
    });
}

} // namespace tapegraph::data
