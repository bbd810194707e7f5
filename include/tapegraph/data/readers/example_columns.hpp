#pragma once

#include <tapegraph/core/element_types.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/data/dataset.hpp>
#include <tapegraph/data/readers/example.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// tf.train.Example as columns: like tf.io.parse_single_example with FixedLenFeature and
/// VarLenFeature, straight into a batch.
///
///     const data::example_parser parser({{"image", dtype::u8, {28, 28, 1}}, {"label", dtype::i32}});
///     const data::dataset train = data::make_dataset(data::record_files("train.tfrecord"), parser);

namespace tapegraph::data {

/// A feature of fixed length and its target type. Integers fit every type, floats f32 and f64; a
/// single byte string of the total size is taken as the values themselves, little endian, as in
/// tf.io.decode_raw.
struct fixed_feature {
    std::string name;
    dtype type = dtype::f32;
    std::vector<std::int64_t> shape{};
    /// Used for every value if the feature is missing or empty; without it that is an error.
    std::optional<double> default_value{};
};

/// Reads features of serialised tf.train.Example messages into columns of fixed shapes.
class example_parser {
public:
    /// Throws shape_error for impossible shapes, argument_error for two features of one name,
    /// dtype_error for unsupported target types (those of 16 bits).
    explicit example_parser(std::vector<fixed_feature> features) : features_(std::move(features)) {
        for (std::size_t i = 0; i < features_.size(); ++i) {
            const auto& f = features_[i];
            if (is_storage_type(f.type))
                throw dtype_error("example_parser: feature '" + f.name + "' cannot become " +
                                  tapegraph::name_of(f.type));
            for (std::size_t k = 0; k < i; ++k)
                if (features_[k].name == f.name)
                    throw argument_error("example_parser: two features are named '" + f.name + "'");
            columns_.push_back({f.name, f.type, f.shape});
            detail::check_record_shape(columns_.back());
        }
    }

    /// The columns of the data set, in the order of the features.
    const std::vector<column_spec>& columns() const { return columns_; }
    /// The features as they were given.
    const std::vector<fixed_feature>& features() const { return features_; }

    /// Writes feature i's values to places[i]. Throws data_error that names the feature, its
    /// content and the expected one; the caller names the record. Values written before stay.
    void parse_into(std::string_view bytes, std::span<std::byte* const> places) const {
        detail::as_message("tf.train.Example", [&] {
            std::vector<bool> found(features_.size(), false);
            auto message = detail::message_of(bytes);
            while (message.next(1, detail::length_delimited))
                detail::each_entry(message.get_message(), [&](std::string_view name, const detail::pbf_reader& value) {
                    for (std::size_t i = 0; i < features_.size(); ++i)
                        if (features_[i].name == name) found[i] = write(i, value, places[i]);
                });
            for (std::size_t i = 0; i < features_.size(); ++i)
                if (!found[i]) write_default(i, places[i]);
        });
    }

private:
    [[noreturn]] void fail(std::size_t i, const std::string& what) const {
        throw data_error("feature '" + features_[i].name + "': " + what + ", expected " +
                         std::to_string(columns_[i].record_size()) + " of " + tapegraph::name_of(columns_[i].type) +
                         " for " + detail::text_of(columns_[i].shape));
    }

    /// Writes a value; returns false if the type cannot represent it.
    template <class T, class V>
    static bool put(std::byte* to, std::int64_t at, V value) {
        if constexpr (std::is_same_v<V, std::int64_t> && std::is_integral_v<T>) {
            if constexpr (std::is_same_v<T, bool>) {
                if (value != 0 && value != 1) return false;
            } else if constexpr (!std::is_same_v<T, std::int64_t>) {
                if (std::is_unsigned_v<T> && value < 0) return false;
                if (sizeof(T) < 8 && static_cast<std::int64_t>(static_cast<T>(value)) != value) return false;
            }
        }
        const T stored = static_cast<T>(value);
        std::memcpy(to + static_cast<std::size_t>(at) * sizeof(T), &stored, sizeof(T));
        return true;
    }
    template <class V>
    static bool put_as(dtype type, std::byte* to, std::int64_t at, V value) {
        return visit_type(type, [&]<class T>(std::type_identity<T>) {
            if constexpr (storage_type<T> || (std::is_same_v<V, float> && !std::is_floating_point_v<T>))
                return false;
            else
                return put<T>(to, at, value);
        });
    }

    /// Returns false if there are no values.
    bool write(std::size_t i, const detail::pbf_reader& value, std::byte* to) const {
        const column_spec& column = columns_[i];
        const std::int64_t wanted = column.record_size();
        std::int64_t count = 0;
        const auto number = [&](auto one) {
            if (count < wanted && !put_as(column.type, to, count, one))
                fail(i, std::is_same_v<decltype(one), float>
                            ? "floats"
                            : "value " + number_text(one) + " at " + std::to_string(count));
            ++count;
        };
        const auto kind = detail::each_value(
            value,
            [&](std::string_view raw) {
                if (raw.size() != column.record_bytes())
                    fail(i, "a string of " + std::to_string(raw.size()) + " bytes");
                std::memcpy(to, raw.data(), raw.size());
                ++count;
            },
            [&](float one) { number(one); }, [&](std::int64_t one) { number(one); });
        if (count == 0) return false;
        if (count != (kind == feature_kind::bytes ? 1 : wanted))
            fail(i, std::to_string(count) + " " + data::name_of(kind));
        return true;
    }

    void write_default(std::size_t i, std::byte* to) const {
        const auto& chosen = features_[i].default_value;
        if (!chosen) fail(i, "missing, and there is no default");
        for (std::int64_t k = 0; k < columns_[i].record_size(); ++k) {
            const bool whole = !is_floating(columns_[i].type);
            if (whole ? !put_as(columns_[i].type, to, k, static_cast<std::int64_t>(*chosen))
                      : !put_as(columns_[i].type, to, k, *chosen))
                fail(i, "a default that the type cannot hold");
        }
    }

    std::vector<fixed_feature> features_;
    std::vector<column_spec> columns_;
};

namespace detail {

template <class Records>
class example_source final : public source {
public:
    example_source(Records records, example_parser parser) : records_(std::move(records)), parser_(std::move(parser)) {}
    std::int64_t size() const override { return records_.size(); }
    const std::vector<column_spec>& columns() const override { return parser_.columns(); }
    void fill(std::int64_t record, std::span<std::byte* const> places) const override {
        static thread_local std::string bytes;
        records_.read(record, bytes);
        try {
            parser_.parse_into(bytes, places);
        } catch (const data_error& failure) {
            throw data_error(records_.place(record).text() + ": " + failure.what());
        }
    }

private:
    Records records_;
    example_parser parser_;
};

} // namespace detail

/// A data set of Examples in records that are read and parsed when a batch requests them: `records`
/// has size(), read(n, bytes) and place(n), like record_files. Errors name file, record, byte and
/// feature.
template <class Records>
dataset make_dataset(Records records, example_parser parser) {
    return dataset(std::make_shared<detail::example_source<Records>>(std::move(records), std::move(parser)));
}

} // namespace tapegraph::data
