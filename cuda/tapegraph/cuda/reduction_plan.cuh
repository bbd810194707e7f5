#pragma once

#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/cuda/kernels/reduction.cuh>
#include <tapegraph/cuda/kernels/strided_index.cuh>

#include <algorithm>
#include <cstdint>
#include <numeric>

/// How a reduction is spread over threads: its rows or columns, the threads that share one, and the
/// parts whose totals a second launch folds. Plans follow from the shape alone, so results have the
/// same bits on every device.

namespace tapegraph::cuda::detail {

// A grid that fills any device a few times over, and the work that justifies a block when rows are
// split.
inline constexpr std::int64_t wanted_blocks = 512, part_elements = 8192;
// For columns: a wave on 132 multiprocessors that hold three blocks each. On an H200 sums by channel of
// 17 MB to 1.4 GB then took the least time or 1 % more; with 1,056 blocks up to 16 % more.
inline constexpr std::int64_t wanted_column_blocks = 396;
// From this many threads along the columns on, no threads need to share a column.
inline constexpr std::int64_t many_columns = 65536;
inline constexpr std::int64_t most_row_vectors = 256; // per warp; longer rows take a block

/// The geometry of a reduction over a domain that is not empty.
struct reduction_geometry {
    bool by_rows = false;
    kernels::strided_index<1> kept, reduced; ///< kept: by columns without them
    std::int64_t columns = 1;

    reduction_geometry(const buffer_view& domain, std::uint32_t axes) {
        int last = domain.rank; // after the last kept axis only axes of extent 1 follow
        const auto kept_axis = [&](int a) { return (axes >> a & 1) == 0; };
        for (int a = domain.rank - 1; a >= 0 && (kept_axis(a) || domain.extents[a] == 1); --a) {
            columns *= domain.extents[a];
            last = a;
        }
        by_rows = columns == 1;
        std::int64_t strides[max_rank], stride = columns;
        for (int a = last - 1; a >= 0; --a) {
            strides[a] = stride;
            stride *= domain.extents[a];
        }
        for (int a = 0; a < last; ++a) (kept_axis(a) ? kept : reduced).add(domain.extents[a], &strides[a]);
        if (by_rows && reduced.size == 1) { // nothing is folded
            by_rows = false;
            columns = kept.size;
            kept = {};
        }
    }
    std::int64_t outputs() const { return kept.size * columns; }
};

/// How rows are spread over threads. (Functions make the plans: inlined into every reduction, they
/// would be much of its code.)
struct row_plan {
    int width = 0;
    std::int64_t parts = 1, blocks = 1;

    __attribute__((noinline)) row_plan(const reduction_geometry& g, int lanes, bool cut) {
        const std::int64_t vectors = divide_up(g.reduced.size, lanes), rows = g.kept.size;
        if (vectors > most_row_vectors)
            width = 8;
        else
            while (width < 5 && 1 << width < vectors) ++width;
        if (cut && width == 8 && rows < wanted_blocks)
            parts = std::clamp<std::int64_t>(g.reduced.size / part_elements, 1, divide_up(wanted_blocks, rows));
        blocks = divide_up(rows * parts, kernels::reduce_threads >> width);
    }
};

/// How columns are spread over threads.
struct column_plan {
    std::int64_t columns, length; ///< of lines, each of which is `rows` rows
    int rows = 1, wide = 1, high = 1;
    std::int64_t parts = 1, across = 1, down = 1;

    /// `cut`: whether totals may be left for a second launch.
    __attribute__((noinline)) column_plan(const reduction_geometry& g, int lanes, bool cut)
        : columns(g.columns), length(g.reduced.size) {
        // Rows that end within a vector leave the next one misaligned, so they would be read
        // element by element: treat as many of them as make up whole vectors as one line.
        const std::int64_t together = lanes / std::gcd<std::int64_t>(lanes, g.columns);
        if (cut && together > 1 && g.kept.size == 1 && g.reduced.rank == 1 && g.reduced.strides[0][0] == g.columns &&
            length % together == 0) {
            columns *= together;
            length /= together;
            rows = static_cast<int>(together);
            spread(g.kept.size, lanes, cut);
            if (parts > 1) return;
            columns = g.columns;
            length = g.reduced.size;
            rows = 1;
        }
        spread(g.kept.size, lanes, cut);
    }
    std::int64_t tiles() const { return across * down * parts; }

private:
    void spread(std::int64_t units, int lanes, bool cut) {
        const std::int64_t vectors = divide_up(columns, lanes);
        const bool many = units * vectors >= many_columns;
        // The vectors that lie side by side: 1 KB of floats, or one memory transaction of totals,
        // so that threads can share a column.
        const std::int64_t most = many ? kernels::reduce_threads : cut ? 64 : 4;
        across = divide_up(vectors, most);
        wide = static_cast<int>(divide_up(vectors, across));
        high = many ? 1 : static_cast<int>(std::min<std::int64_t>(length, kernels::reduce_threads / wide));
        down = divide_up(units, kernels::reduce_threads / (wide * high));
        parts = 1;
        if (const std::int64_t blocks = across * down; cut && blocks < wanted_column_blocks) {
            const std::int64_t in_row = std::min(columns, std::int64_t{lanes} * wide);
            const std::int64_t worth = std::min(length * in_row / part_elements, length / high);
            parts = std::clamp<std::int64_t>(worth, 1, divide_up(wanted_column_blocks, blocks));
        }
    }
};

} // namespace tapegraph::cuda::detail
