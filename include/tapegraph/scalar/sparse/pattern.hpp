#pragma once

#include <tapegraph/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

/// Sparse matrices by compressed rows: what Eigen, SciPy and direct solvers take.

namespace tapegraph {

/// The places that may be nonzero, row by row, columns ascending: those of row i are columns[starts[i]] up to
/// columns[starts[i + 1]].
struct sparsity_pattern {
    std::size_t row_count = 0, column_count = 0;
    std::vector<std::int32_t> starts{0}, columns;

    /// Elements that may differ from 0.
    std::size_t nonzeros() const { return columns.size(); }
    bool operator==(const sparsity_pattern&) const = default;
};

/// The rows and columns exchanged.
inline sparsity_pattern transposed(const sparsity_pattern& p) {
    sparsity_pattern t{p.column_count, p.row_count, std::vector<std::int32_t>(p.column_count + 1, 0), {}};
    for (const std::int32_t j : p.columns) ++t.starts[static_cast<std::size_t>(j) + 1];
    for (std::size_t j = 0; j < p.column_count; ++j) t.starts[j + 1] += t.starts[j];
    t.columns.resize(p.columns.size());
    std::vector<std::int32_t> next(t.starts.begin(), t.starts.end() - 1);
    for (std::size_t i = 0; i < p.row_count; ++i)
        for (auto k = static_cast<std::size_t>(p.starts[i]); k < static_cast<std::size_t>(p.starts[i + 1]); ++k)
            t.columns[static_cast<std::size_t>(next[static_cast<std::size_t>(p.columns[k])]++)] =
                static_cast<std::int32_t>(i);
    return t;
}

/// A pattern with values, one for each of its places. In coordinates: row_indices(), pattern.columns, values.
template <class T = double>
struct sparse_matrix {
    sparsity_pattern pattern;
    std::vector<T> values;

    /// The number of rows.
    std::size_t rows() const { return pattern.row_count; }
    /// The number of columns.
    std::size_t columns() const { return pattern.column_count; }
    /// The row of each value.
    std::vector<std::int32_t> row_indices() const {
        std::vector<std::int32_t> indices;
        indices.reserve(values.size());
        for (std::size_t i = 0; i < rows(); ++i)
            indices.insert(indices.end(), static_cast<std::size_t>(pattern.starts[i + 1] - pattern.starts[i]),
                           static_cast<std::int32_t>(i));
        return indices;
    }
    /// All elements, row by row.
    std::vector<T> dense() const {
        std::vector<T> elements(rows() * columns(), T(0));
        for (std::size_t i = 0; i < rows(); ++i)
            for (auto k = static_cast<std::size_t>(pattern.starts[i]);
                 k < static_cast<std::size_t>(pattern.starts[i + 1]); ++k)
                elements[i * columns() + static_cast<std::size_t>(pattern.columns[k])] = values[k];
        return elements;
    }
};

namespace scalars {

/// A pattern of rows that are given as lists of ascending columns.
inline sparsity_pattern pattern_of_rows(const std::vector<std::vector<std::int32_t>>& rows, std::size_t columns) {
    sparsity_pattern p{rows.size(), columns, {0}, {}};
    for (const auto& row : rows) {
        p.columns.insert(p.columns.end(), row.begin(), row.end());
        if (p.columns.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
            throw range_error("sparsity_pattern: more than 2147483647 nonzeros");
        p.starts.push_back(static_cast<std::int32_t>(p.columns.size()));
    }
    return p;
}

} // namespace scalars
} // namespace tapegraph
