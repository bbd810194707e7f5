#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/shape.hpp>
#include <tapegraph/data/dataset.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// A batch of records, as a loader hands it out.

namespace tapegraph {
template <class T>
class tensor;
}

namespace tapegraph::data {

/// The number of records, and a sum over their scrambled numbers, which distinguishes one record
/// read twice from two records.
struct read_records {
    std::int64_t count = 0;
    std::uint64_t sum = 0;

    /// Counts a record that was read; the same records in any order give the same sum.
    void add(std::int64_t record) {
        std::uint64_t x = (static_cast<std::uint64_t>(record) + 1) * 0x9E3779B97F4A7C15u;
        x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9u;
        sum += x ^ x >> 32;
        ++count;
    }
    void add(const read_records& more) {
        count += more.count;
        sum += more.sum;
    }
};

/// Some records, by column; valid until the next batch is requested.
class batch {
public:
    /// Records in this batch; the last of an epoch may hold fewer than the others.
    std::int64_t count() const { return count_; }
    /// Number of the batch in its epoch.
    std::int64_t index() const { return index_; }
    /// Names, types and extents of the columns, as of the data set.
    const std::vector<column_spec>& columns() const { return *columns_; }

    /// First byte of a column: count() records of its record_bytes(), aligned to 64 bytes.
    const std::byte* data(std::size_t column) const;
    /// The values of a column, [count, record shape...]. Throws dtype_error, argument_error.
    template <class T>
    std::span<const T> values(std::size_t column) const {
        const std::byte* first = data(column);
        const auto& spec = (*columns_)[column];
        detail::check_column_type<T>(spec);
        return {reinterpret_cast<const T*>(first), static_cast<std::size_t>(count_ * spec.record_size())};
    }
    template <class T>
    std::span<const T> values(std::string_view column) const {
        return values<T>(detail::find_column(*columns_, column));
    }
    /// A copy of a column, [count, record shape...], for custom loops. Throws as above. Needs
    /// <tapegraph/tensor.hpp>.
    template <class T>
    tapegraph::tensor<T> tensor(std::string_view column) const {
        const std::size_t index = detail::find_column(*columns_, column);
        std::vector<std::int64_t> dims{count_};
        for (const std::int64_t extent : (*columns_)[index].shape) dims.push_back(extent);
        return {values<T>(index), shape(static_cast<int>(dims.size()), dims.data())};
    }

private:
    friend class loader;
    struct alignas(64) line {
        std::byte bytes[64];
    };
    const std::vector<column_spec>* columns_ = nullptr;
    std::vector<std::vector<line>> memory_; ///< empty if the batch is stored elsewhere
    std::vector<const std::byte*> data_;
    read_records whole_, read_; ///< for a part of a set: the records of the batch, and those read for it
    std::int64_t count_ = 0;
    std::int64_t index_ = 0;
};

#if TG_DEFINES(data)

TG_DEFINITION const std::byte* batch::data(std::size_t column) const {
    if (column >= columns_->size())
        throw argument_error("data set: column " + std::to_string(column) + " of " + std::to_string(columns_->size()));
    return data_[column];
}

#endif

} // namespace tapegraph::data
