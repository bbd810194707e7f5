#pragma once

#include <tapegraph/core/element_types.hpp>
#include <tapegraph/data/dataset.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Preprocessing steps on the columns of a data set.

namespace tapegraph::data {

namespace detail {

/// Calls `visit` with a value of the column's type. Throws dtype_error for a type that is not
/// numeric.
template <class Visit>
void with_number_of(const column_spec& column, const Visit& visit) {
    using numbers = element_types<float, double, std::int32_t, std::int64_t, std::uint8_t>;
    if (!numbers::visit(column.type, [&]<class T>(std::type_identity<T>) { visit(T{}); }))
        throw dtype_error("data set: column '" + column.name + "' holds " + name_of(column.type) +
                          ", numbers are needed");
}

/// A data set in which a step has replaced one column. Records are computed on demand.
template <class Step, class Out>
class stepped_source final : public source {
public:
    stepped_source(dataset from, std::size_t column, Step step, column_spec made)
        : from_(std::move(from)), step_(std::move(step)), columns_(from_.columns()), column_(column) {
        columns_[column_] = std::move(made);
        check_record_shape(columns_[column_]);
    }
    std::int64_t size() const override { return from_.size(); }
    const std::vector<column_spec>& columns() const override { return columns_; }
    void fill(std::int64_t record, std::span<std::byte* const> places) const override {
        const column_spec& was = from_.columns()[column_];
        std::vector<std::byte*> inner(places.begin(), places.end());
        std::vector<std::byte> value(was.record_bytes());
        inner[column_] = value.data();
        from_.records().fill(from_.record_at(record), inner);
        const std::span<Out> out(reinterpret_cast<Out*>(places[column_]),
                                 static_cast<std::size_t>(columns_[column_].record_size()));
        with_number_of(was, [&](auto type) {
            using T = decltype(type);
            step_.apply(std::span<const T>(reinterpret_cast<const T*>(value.data()),
                                           static_cast<std::size_t>(was.record_size())),
                        out);
        });
    }

private:
    dataset from_;
    Step step_;
    std::vector<column_spec> columns_;
    std::size_t column_;
};

inline void refuse_batches(const dataset& set, const char* operation) {
    if (set.batches()) throw argument_error(std::string(operation) + ": the data set is a pipeline; its map does this");
}

} // namespace detail

/// Calls `visit(std::span<const T> record)` for the column's value of every record, where T is the
/// column's type: the input from which a step learns. Throws argument_error for an unknown column,
/// and for a pipeline.
///
///     data::column_statistics seen;
///     data::for_each_record(train, "age", [&](auto record) { seen.add(record); });
template <class Visit>
void for_each_record(const dataset& set, std::string_view column, const Visit& visit) {
    detail::refuse_batches(set, "for_each_record");
    const std::size_t chosen = detail::find_column(set.columns(), column);
    std::vector<std::vector<std::byte>> values;
    std::vector<std::byte*> places;
    for (const auto& each : set.columns()) values.emplace_back(each.record_bytes());
    for (auto& each : values) places.push_back(each.data());
    const column_spec& spec = set.columns()[chosen];
    for (std::int64_t i = 0; i < set.size(); ++i) {
        set.records().fill(set.record_at(i), places);
        detail::with_number_of(spec, [&](auto type) {
            using T = decltype(type);
            visit(std::span<const T>(reinterpret_cast<const T*>(places[chosen]),
                                     static_cast<std::size_t>(spec.record_size())));
        });
    }
}

/// The same data set with one column replaced by the result of a step (normalization,
/// discretization, integer_lookup, hashing, category_encoding, ...): an Out column of the old
/// shape, or of [values] if their number changes. Records are computed on demand; shuffling,
/// batches and prefetching are unchanged.
///
///     const auto scaled = data::transform_column(train, "age", data::normalization(seen));
template <class Out = float, class Step>
dataset transform_column(const dataset& set, std::string_view column, Step step) {
    detail::refuse_batches(set, "transform_column");
    const std::size_t chosen = detail::find_column(set.columns(), column);
    const column_spec& was = set.columns()[chosen];
    detail::with_number_of(was, [](auto) {});
    const std::int64_t size = step.output_size(was.record_size());
    column_spec made{was.name, dtype_of<Out>, size == was.record_size() ? was.shape : std::vector<std::int64_t>{size}};
    dataset result(std::make_shared<detail::stepped_source<Step, Out>>(set, chosen, std::move(step), std::move(made)));
    if (set.batch_size() > 0) result = result.batch(set.batch_size(), {set.drop_remainder()});
    if (set.shuffle_seed()) result = result.shuffle(*set.shuffle_seed());
    return result.prefetch(set.prefetch_depth());
}

} // namespace tapegraph::data
