#pragma once

#include <tapegraph/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tapegraph::data {

/// Contiguous rows of equal length, such as the result of preprocessing many records.
/// `dataset.add(name, values, {columns})` takes it as a column.
/// takes it for a column.
template <class T>
struct matrix {
    std::vector<T> values{}; ///< [rows, columns]
    std::int64_t rows = 0, columns = 0;

    matrix() = default;
    matrix(std::int64_t row_count, std::int64_t column_count, T value = T(0))
        : values(static_cast<std::size_t>(row_count * column_count), value), rows(row_count), columns(column_count) {}

    /// Row i, from 0, unchecked.
    std::span<T> row(std::int64_t i) {
        return {values.data() + static_cast<std::size_t>(i * columns), static_cast<std::size_t>(columns)};
    }
    std::span<const T> row(std::int64_t i) const {
        return {values.data() + static_cast<std::size_t>(i * columns), static_cast<std::size_t>(columns)};
    }
    bool operator==(const matrix&) const = default;
};

} // namespace tapegraph::data
