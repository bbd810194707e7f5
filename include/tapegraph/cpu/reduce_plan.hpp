#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/cpu/reduce_leaves.hpp>

#include <algorithm>

/// How a reduction is cut into tiles and tasks, from its shape alone.
///
/// Neighbouring axes that are both kept or both reduced are merged, so that a domain alternates
/// between kept and reduced groups. When the last group is reduced, tiles of rows are folded across
/// vector lanes; when it is kept, tiles are folded down their columns.

namespace tapegraph::cpu::reduce_detail {

struct groups {
    int count = 0;
    std::int64_t extent[8], stride[8], size = 1;
    void add(std::int64_t e, std::int64_t s) {
        extent[count] = e;
        stride[count++] = s;
        size *= e;
    }
    std::int64_t offset(std::int64_t index) const {
        std::int64_t sum = 0;
        for (int i = count - 1; i > 0; --i) {
            sum += index % extent[i] * stride[i];
            index /= extent[i];
        }
        return count > 0 ? sum + index * stride[0] : 0;
    }
};

// [kept and reduced groups..., inner] or [kept and reduced groups..., inner, columns].
struct plan {
    groups kept, reduced; // without `inner` and `columns`
    std::int64_t total = 1, inner = 1, columns = 1;
    enum { copy, short_rows, long_rows, blocks, by_columns } way = copy;
    // By columns: `pack` rows of a narrow domain count as one, wide ones are cut into `chunks` of `width`.
    std::int64_t pack = 1, chunks = 1, width = 1;
    std::int64_t tile_rows = 1;        ///< rows (not packs) of a tile
    std::int64_t tiles = 1, parts = 1; ///< of one unit (kept index and chunk), and the tasks they are cut into

    std::int64_t tasks = 1, in_task = 1; ///< in_task: rows, or parts of units

    std::int64_t units() const { return kept.size * chunks; }
    std::size_t workspace_bytes() const {
        return parts == 1 ? 0 : static_cast<std::size_t>(units() * parts * width) * sizeof(double);
    }
};

plan make_plan(int rank, const std::int64_t* extents, std::uint32_t axes);

#if TG_DEFINES(runtime)

TG_DEFINITION plan make_plan(int rank, const std::int64_t* extents, std::uint32_t axes) {
    plan p;
    std::int64_t extent[8];
    bool reduced[8];
    int n = 0;
    for (int i = 0; i < rank; ++i) {
        p.total *= extents[i];
        const bool fate = (axes >> i & 1) != 0;
        if (extents[i] == 1) continue;
        if (n > 0 && reduced[n - 1] == fate) {
            extent[n - 1] *= extents[i];
        } else {
            reduced[n] = fate;
            extent[n++] = extents[i];
        }
    }
    if (p.total == 0) return p;
    if (n == 0 || (n == 1 && !reduced[0])) {
        p.tasks = divide_up(p.total, task_elements);
        return p;
    }
    std::int64_t stride[9];
    stride[n] = 1;
    for (int i = n; i-- > 0;) stride[i] = stride[i + 1] * extent[i];
    const bool by_rows = reduced[n - 1];
    const int outer = by_rows ? n - 1 : n - 2;
    p.inner = extent[outer];
    if (!by_rows) p.columns = extent[n - 1];
    for (int i = 0; i < outer; ++i) (reduced[i] ? p.reduced : p.kept).add(extent[i], stride[i + 1]);

    if (by_rows) {
        p.way = p.reduced.size == 1 && p.inner <= tile_elements / 2 ? plan::short_rows : plan::long_rows;
        if (p.way == plan::short_rows) {
            p.in_task = tile_elements / p.inner * 16;
            p.tasks = divide_up(p.kept.size, p.in_task);
            return p;
        }
        p.tiles = p.reduced.size * divide_up(p.inner, tile_elements);
    } else if (p.reduced.size == 1 && p.inner <= longest_block && p.inner * p.columns <= tile_elements) {
        p.way = plan::blocks;
        p.in_task = tile_elements / (p.inner * p.columns) * 16;
        p.tasks = divide_up(p.kept.size, p.in_task);
        return p;
    } else {
        p.way = plan::by_columns;
        if (p.columns < 64) p.pack = p.inner < 256 / p.columns ? p.inner : 256 / p.columns;
        p.chunks = divide_up(p.columns, widest_columns);
        p.width = divide_up(p.columns, p.chunks);
        p.chunks = divide_up(p.columns, p.width);
        p.tile_rows = tile_elements / (p.width * p.pack) * p.pack;
        p.tiles = p.reduced.size * divide_up(p.inner, p.tile_rows);
    }
    if (p.units() < most_parts) {
        const std::int64_t wanted = divide_up(most_parts, p.units());
        const std::int64_t worth = divide_up(p.tiles * tile_elements, task_elements / 2);
        p.parts = wanted < worth ? wanted : worth;
        if (p.parts > p.tiles) p.parts = p.tiles;
    }
    if (p.parts == 1) p.in_task = std::max<std::int64_t>(1, task_elements / (p.reduced.size * p.inner * p.width));
    p.tasks = divide_up(p.units() * p.parts, p.in_task);
    return p;
}

#endif

} // namespace tapegraph::cpu::reduce_detail
