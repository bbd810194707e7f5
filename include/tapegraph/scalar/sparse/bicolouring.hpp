#pragma once

#include <tapegraph/scalar/sparse/colouring.hpp>
#include <tapegraph/scalar/sparse/pattern.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

/// Colourings of rows and columns together, for matrices with a few full rows and a few full columns, which rows or columns
/// alone cannot compress. Coleman and Verma, The Efficient Computation of Sparse Jacobian Matrices Using Automatic
/// Differentiation, SIAM Journal on Scientific Computing 19 (1998).

namespace tapegraph {

/// Colours of rows, which reverse mode computes together, and of columns, which forward mode does. A nonzero is read from its
/// row if the row has a colour, otherwise from its column; with `columns_first` the other way round. Where it is read, no
/// other row (column) of the colour has a nonzero.
struct bicolouring {
    colouring rows, columns;
    bool columns_first = false;

    /// Colours of rows and columns together, which is the number of sweeps.
    std::int32_t count() const { return rows.count + columns.count; }
    /// Whether the element is found by a sweep of its row's colour instead of its column's.
    bool by_row(std::size_t row, std::size_t column) const {
        return columns_first ? columns.colours[column] < 0 : rows.colours[row] >= 0;
    }
};

namespace scalars {

/// The pattern without the nonzeros of the rows that are not kept.
inline sparsity_pattern with_rows(const sparsity_pattern& p, const std::vector<bool>& kept) {
    sparsity_pattern part{p.row_count, p.column_count, {0}, {}};
    for (std::size_t i = 0; i < p.row_count; ++i) {
        const auto row = row_of_pattern(p, static_cast<std::int32_t>(i));
        if (kept[i]) part.columns.insert(part.columns.end(), row.begin(), row.end());
        part.starts.push_back(static_cast<std::int32_t>(part.columns.size()));
    }
    return part;
}

/// Computes the longest rows as rows and the rest as columns: tries each length as the limit, the greatest 32 of them.
/// Calls found(rows, columns) for each pair with fewer than `least` colours, which becomes their number.
template <class Found>
void split_by_length(const sparsity_pattern& p, std::int32_t& least, const Found& found) {
    const auto size = [&](std::int32_t row) { return static_cast<std::int32_t>(row_of_pattern(p, row).size()); };
    std::vector<std::int32_t> order(p.row_count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t x, std::int32_t y) { return size(x) > size(y); });
    std::vector<bool> is_long(p.row_count, false);
    int limits = 0;
    for (std::size_t k = 1; k < order.size() && limits < 32; ++k) {
        is_long[static_cast<std::size_t>(order[k - 1])] = true;
        const std::int32_t next = size(order[k]);
        if (next == size(order[k - 1])) continue;
        if (next == 0) break; // rows alone
        ++limits;
        if (next + 1 >= least) continue; // the columns of the next row differ in colour
        const colouring rows = colour_rows(with_rows(p, is_long));
        if (rows.count + next >= least) continue;
        std::vector<bool> is_short = is_long;
        is_short.flip();
        const colouring columns = colour_columns(with_rows(p, is_short));
        if (rows.count + columns.count >= least) continue;
        least = rows.count + columns.count;
        found(rows, columns);
    }
}

} // namespace scalars

/// The colouring with the fewest colours that is found: of columns alone, of rows alone, or of both.
inline bicolouring colour_rows_and_columns(const sparsity_pattern& p) {
    const colouring no_rows{std::vector<std::int32_t>(p.row_count, -1), 0};
    const colouring no_columns{std::vector<std::int32_t>(p.column_count, -1), 0};
    bicolouring best{no_rows, colour_columns(p), false};
    if (colouring rows = colour_rows(p); rows.count < best.count()) best = {std::move(rows), no_columns, false};
    std::int32_t least = best.count();
    scalars::split_by_length(p, least, [&](const colouring& rows, const colouring& columns) {
        best = {rows, columns, false};
    });
    scalars::split_by_length(transposed(p), least, [&](const colouring& columns, const colouring& rows) {
        best = {rows, columns, true};
    });
    return best;
}

} // namespace tapegraph
