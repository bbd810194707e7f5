#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/dtype.hpp>
#include <tapegraph/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Sources of records. A source provides records by number; the loader handles order, batches and
/// threads.

namespace tapegraph::data {

/// One named value of a record: an image of shape [50,50,3], a label of shape [].
struct column_spec {
    std::string name;
    dtype type = dtype::f32;
    std::vector<std::int64_t> shape{};

    /// The number of elements in one record.
    std::int64_t record_size() const;
    /// Bytes of a record's values in this column.
    std::size_t record_bytes() const { return static_cast<std::size_t>(record_size()) * size_of(type); }
};

namespace detail {

std::string text_of(const std::vector<std::int64_t>& shape);

void check_record_shape(const column_spec& column);

std::size_t find_column(const std::vector<column_spec>& columns, std::string_view name);

template <class T>
void check_column_type(const column_spec& column) {
    if (column.type != dtype_of<T>)
        throw dtype_error("data set: column '" + column.name + "' holds " + name_of(column.type) + ", not " +
                          name_of(dtype_of<T>));
}

#if TG_DEFINES(data)

TG_DEFINITION std::string text_of(const std::vector<std::int64_t>& shape) {
    std::string text = "[";
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
        text.append(axis == 0 ? "" : ",").append(std::to_string(shape[axis]));
    return text += ']';
}

TG_DEFINITION void check_record_shape(const column_spec& column) {
    std::int64_t size = 1;
    for (const auto extent : column.shape) {
        if (extent <= 0 || __builtin_mul_overflow(size, extent, &size) || size > INT64_MAX / 8)
            throw shape_error("data set: column '" + column.name + "' has the impossible record shape " +
                              text_of(column.shape));
    }
}

TG_DEFINITION std::size_t find_column(const std::vector<column_spec>& columns, std::string_view name) {
    for (std::size_t c = 0; c < columns.size(); ++c)
        if (columns[c].name == name) return c;
    std::string known;
    for (const auto& column : columns) known.append(known.empty() ? "'" : ", '").append(column.name).append("'");
    throw argument_error("data set: no column '" + std::string(name) + "', there are " +
                         (known.empty() ? "none" : known));
}

#endif

} // namespace detail

/// The destination of one record of a generator: one span per column.
class record_writer {
public:
    record_writer(const std::vector<column_spec>& columns, std::span<std::byte* const> places)
        : columns_(columns), places_(places) {}

    /// The destination of one column's values, of the size of its shape. Throws dtype_error,
    /// argument_error.
    template <class T>
    std::span<T> values(std::size_t column) const {
        if (column >= columns_.size())
            throw argument_error("data set: column " + std::to_string(column) + " of " +
                                 std::to_string(columns_.size()));
        detail::check_column_type<T>(columns_[column]);
        return {reinterpret_cast<T*>(places_[column]), static_cast<std::size_t>(columns_[column].record_size())};
    }
    template <class T>
    std::span<T> values(std::string_view column) const {
        return values<T>(detail::find_column(columns_, column));
    }

private:
    const std::vector<column_spec>& columns_;
    std::span<std::byte* const> places_;
};

/// The interface of all sources. Each loader calls fill() from one thread at a time; a source that
/// several loaders share must support concurrent calls.
class source {
public:
    virtual ~source() = default;
    virtual std::int64_t size() const = 0;
    /// Names, types and extents of a record's columns.
    virtual const std::vector<column_spec>& columns() const = 0;
    /// Writes record `record` of column c to places[c] (columns()[c].record_bytes() bytes).
    virtual void fill(std::int64_t record, std::span<std::byte* const> places) const = 0;
    /// This source if it is columns in memory, else null. (dynamic_cast would need -frtti.)
    virtual const class array_source* arrays() const { return nullptr; }
};

/// Columns in memory, owned or borrowed.
class array_source final : public source {
public:
    const array_source* arrays() const override { return this; }
    std::int64_t size() const override { return size_; }
    /// The columns in the order in which they were added.
    const std::vector<column_spec>& columns() const override { return columns_; }
    void fill(std::int64_t record, std::span<std::byte* const> places) const override {
        for (std::size_t c = 0; c < places.size(); ++c)
            std::memcpy(places[c], data_[c].get() + static_cast<std::size_t>(record) * bytes_[c], bytes_[c]);
    }

    /// Appends a column of `values` elements. Throws shape_error if they are not a whole number of
    /// records, or a different number than the other columns have; argument_error if the name is
    /// taken.
    void add(column_spec column, std::shared_ptr<const std::byte> data, std::int64_t values);

private:
    std::vector<column_spec> columns_;
    std::vector<std::shared_ptr<const std::byte>> data_;
    std::vector<std::size_t> bytes_;
    std::int64_t size_ = 0;
};

/// Records generated on demand by `generate(std::int64_t record, const record_writer& out)`.
template <class Generate>
class generated_source final : public source {
public:
    generated_source(std::int64_t size, std::vector<column_spec> columns, Generate generate)
        : size_(size), columns_(std::move(columns)), generate_(std::move(generate)) {
        if (size < 0) throw argument_error("data set: " + std::to_string(size) + " records");
        for (const auto& column : columns_) detail::check_record_shape(column);
    }
    std::int64_t size() const override { return size_; }
    /// The columns as they were given.
    const std::vector<column_spec>& columns() const override { return columns_; }
    void fill(std::int64_t record, std::span<std::byte* const> places) const override {
        generate_(record, record_writer(columns_, places));
    }

private:
    std::int64_t size_;
    std::vector<column_spec> columns_;
    mutable Generate generate_;
};

#if TG_DEFINES(data)

TG_DEFINITION void array_source::add(column_spec column, std::shared_ptr<const std::byte> data, std::int64_t values) {
    detail::check_record_shape(column);
    for (const auto& other : columns_)
        if (other.name == column.name) throw argument_error("data set: two columns are named '" + column.name + "'");
    const std::int64_t record = column.record_size();
    if (values % record != 0)
        throw shape_error("data set: column '" + column.name + "': " + std::to_string(values) +
                          " values are not a whole number of records of shape " + detail::text_of(column.shape) + " (" +
                          std::to_string(record) + " values)");
    if (!columns_.empty() && values / record != size_)
        throw shape_error("data set: column '" + column.name + "' holds " + std::to_string(values / record) +
                          " records, column '" + columns_.front().name + "' holds " + std::to_string(size_));
    size_ = values / record;
    bytes_.push_back(column.record_bytes());
    data_.push_back(std::move(data));
    columns_.push_back(std::move(column));
}

TG_DEFINITION std::int64_t column_spec::record_size() const {
    std::int64_t size = 1;
    for (const auto extent : shape) size *= extent;
    return size;
}

#endif

} // namespace tapegraph::data
