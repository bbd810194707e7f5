#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/cpu/reduce_columns.hpp>

/// Reductions over any axes of a row-major domain whose values are in memory or produced tile by tile.
///
/// Neighbouring axes of one fate are merged, so that a domain alternates between kept and reduced groups. When the last
/// group is reduced, tiles of rows are folded across vector lanes; when it is kept, tiles are folded down their columns.
/// A tile is folded in T, results of tiles in double (64-bit integers), partial results of tasks in their order. Tiles, tasks and lanes
/// follow from the shape alone, so the bits depend neither on threads nor on the instruction set nor on the producer.

namespace tapegraph::cpu {

namespace reduce_detail {

// Folds a sequence pairwise: the error grows with the logarithm of its length.
template <class A>
struct pairwise {
    reduction kind;
    std::uint64_t count = 0;
    A level[64];

    explicit pairwise(reduction k) : kind(k) {}

    void add(A value) {
        int l = 0;
        for (std::uint64_t bits = count; (bits & 1) != 0; bits >>= 1, ++l) value = combined(kind, level[l], value);
        level[l] = value;
        ++count;
    }
    A total() const {
        A value = identity_of<A>(kind);
        int l = 0;
        for (std::uint64_t bits = count; bits != 0; bits >>= 1, ++l)
            if ((bits & 1) != 0) value = combined(kind, level[l], value);
        return value;
    }
};

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

inline plan make_plan(int rank, const std::int64_t* extents, std::uint32_t axes) {
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

template <class T>
struct driver {
    using sum_type = accumulator<T>;
    static_assert(sizeof(sum_type) == sizeof(double));
    const plan& p;
    const leaves<T>& leaf;
    const reduce_source<T>& source;
    T* out;
    sum_type* workspace;

    const T* values(std::int64_t begin, std::int64_t count, T* buffer) const {
        if (source.direct != nullptr) return source.direct + begin;
        source.produce(source.state, begin, count, buffer);
        return buffer;
    }

    void copy_task(std::int64_t task) const {
        const std::int64_t end = std::min(p.total, (task + 1) * task_elements);
        for (std::int64_t i = task * task_elements; i < end; i += tile_elements) {
            const std::int64_t count = std::min(tile_elements, end - i);
            if (source.direct == nullptr)
                source.produce(source.state, i, count, out + i);
            else
                __builtin_memcpy(out + i, source.direct + i, static_cast<std::size_t>(count) * sizeof(T));
        }
    }

    // Rows that lie behind one another, several to a tile.
    void short_rows_task(std::int64_t task) const {
        alignas(64) T buffer[tile_elements];
        sum_type folded[tile_elements / 2];
        const std::int64_t in_tile = tile_elements / p.inner, end = std::min(p.kept.size, (task + 1) * p.in_task);
        for (std::int64_t r = task * p.in_task; r < end; r += in_tile) {
            const std::int64_t count = std::min(in_tile, end - r);
            leaf.rows(values(r * p.inner, count * p.inner, buffer), count, p.inner, folded);
            for (std::int64_t i = 0; i < count; ++i) out[r + i] = static_cast<T>(folded[i]);
        }
    }

    // Blocks [inner, columns] that lie behind one another, several to a tile; folded in T altogether.
    void blocks_task(std::int64_t task) const {
        alignas(64) T buffer[tile_elements];
        const std::int64_t size = p.inner * p.columns, in_tile = tile_elements / size;
        const std::int64_t end = std::min(p.kept.size, (task + 1) * p.in_task);
        for (std::int64_t u = task * p.in_task; u < end; u += in_tile) {
            const std::int64_t count = std::min(in_tile, end - u);
            leaf.blocks(values(u * size, count * size, buffer), count, p.inner, p.columns, out + u * p.columns);
        }
    }

    // Tiles [first, last) of one output, in order: reduced outer index by reduced outer index, along the row.
    sum_type row_part(std::int64_t output, std::int64_t first, std::int64_t last) const {
        alignas(64) T buffer[tile_elements];
        const std::int64_t in_row = divide_up(p.inner, tile_elements), base = p.kept.offset(output);
        pairwise<sum_type> sum(leaf.kind);
        while (first < last) {
            const std::int64_t row = first / in_row, tile = first % in_row;
            const std::int64_t begin = base + p.reduced.offset(row) + tile * tile_elements;
            const std::int64_t left = p.inner - tile * tile_elements;
            sum_type folded[16];
            std::int64_t count = 1; // full tiles in memory go to the leaf several at once
            if (source.direct != nullptr && left >= tile_elements)
                count = std::min({std::int64_t{16}, last - first, left / tile_elements});
            const std::int64_t length = std::min(tile_elements, left);
            leaf.rows(values(begin, length, buffer), count, length, folded);
            for (std::int64_t i = 0; i < count; ++i) sum.add(folded[i]);
            first += count;
        }
        return sum.total();
    }
    void long_rows_task(std::int64_t task) const {
        const std::int64_t all = p.kept.size * p.parts, end = std::min(all, (task + 1) * p.in_task);
        for (std::int64_t i = task * p.in_task; i < end; ++i) {
            const std::int64_t part = i % p.parts;
            const sum_type sum = row_part(i / p.parts, p.tiles * part / p.parts, p.tiles * (part + 1) / p.parts);
            if (p.parts == 1)
                out[i] = static_cast<T>(sum);
            else
                workspace[i] = sum;
        }
    }

    // At -O2 g++ leaves std::fill_n scalar.
    template <class V>
    static void fill(V* to, std::int64_t count, V value) {
#pragma omp simd
        for (std::int64_t i = 0; i < count; ++i) to[i] = value;
    }

    // Folds tiles [first, last) of one unit into total[0, width of the chunk); returns that width. Groups of tiles are folded
    // in T, row by row, so that it makes no difference how many tiles the leaf is given at once.
    std::int64_t column_part(std::int64_t unit, std::int64_t first, std::int64_t last, sum_type* total) const {
        alignas(64) T buffer[tile_elements];
        alignas(64) T partial[widest_columns + 64];
        const std::int64_t chunk = unit % p.chunks, from = chunk * p.width;
        const std::int64_t width = std::min(p.width, p.columns - from), packed = width * p.pack;
        const std::int64_t base = p.kept.offset(unit / p.chunks) + from, in_inner = divide_up(p.inner, p.tile_rows);
        const std::int64_t in_group = std::max<std::int64_t>(1, rows_in_t * p.pack / p.tile_rows);
        const std::int64_t at_once =
            source.direct == nullptr ? 1 : std::max<std::int64_t>(1, rows_at_once * p.pack / p.tile_rows);
        fill(total, packed, identity_of<sum_type>(leaf.kind));
        fill(partial, packed + lanes_of<T>, identity_of<T>(leaf.kind));
        for (std::int64_t group = 0; first < last;) {
            const std::int64_t place = first % in_inner,
                               tiles = std::min({at_once, last - first, in_inner - place, in_group - group});
            const std::int64_t row = place * p.tile_rows, rows = std::min(tiles * p.tile_rows, p.inner - row);
            const std::int64_t begin = base + p.reduced.offset(first / in_inner) + row * p.columns;
            if (p.chunks > 1) {
                if (source.direct == nullptr)
                    for (std::int64_t r = 0; r < rows; ++r)
                        source.produce(source.state, begin + r * p.columns, width, buffer + r * width);
                const bool direct = source.direct != nullptr;
                leaf.columns(direct ? source.direct + begin : buffer, direct ? p.columns : width, rows, width, partial);
            } else {
                const T* x = values(begin, rows * width, buffer);
                leaf.columns(x, packed, rows / p.pack, packed, partial);
                if (const std::int64_t rest = rows % p.pack; rest > 0) { // another width: places differ
                    leaf.join_columns(partial, packed, total);
                    leaf.columns(x + (rows - rest) * width, packed, 1, rest * width, partial);
                    leaf.join_columns(partial, rest * width, total);
                }
            }
            first += tiles;
            group = group + tiles < in_group ? group + tiles : 0;
            if (group == 0 || first == last) leaf.join_columns(partial, packed, total);
        }
        for (std::int64_t i = width; i < packed; ++i)
            total[i % width] = combined(leaf.kind, total[i % width], total[i]);
        return width;
    }
    void store(std::int64_t unit, const sum_type* total, std::int64_t width) const {
        T* into = out + unit / p.chunks * p.columns + unit % p.chunks * p.width;
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i) into[i] = static_cast<T>(total[i]);
    }
    void columns_task(std::int64_t task) const {
        sum_type total[widest_columns];
        const std::int64_t all = p.units() * p.parts, end = std::min(all, (task + 1) * p.in_task);
        for (std::int64_t i = task * p.in_task; i < end; ++i) {
            const std::int64_t unit = i / p.parts, part = i % p.parts;
            const std::int64_t width =
                column_part(unit, p.tiles * part / p.parts, p.tiles * (part + 1) / p.parts, total);
            if (p.parts == 1)
                store(unit, total, width);
            else
                __builtin_memcpy(workspace + i * p.width, total, static_cast<std::size_t>(width) * sizeof(sum_type));
        }
    }
    void join_parts() const {
        for (std::int64_t unit = 0; unit < p.units(); ++unit) {
            const std::int64_t width = std::min(p.width, p.columns - unit % p.chunks * p.width);
            sum_type* total = workspace + unit * p.parts * p.width;
            for (std::int64_t part = 1; part < p.parts; ++part)
                for (std::int64_t i = 0; i < width; ++i)
                    total[i] = combined(leaf.kind, total[i], total[part * p.width + i]);
            store(unit, total, width);
        }
    }

    void run() const {
        parallel_for(p.tasks, p.total >= parallel_elements, [this](std::int64_t task) {
            switch (p.way) {
            case plan::copy: return copy_task(task);
            case plan::short_rows: return short_rows_task(task);
            case plan::long_rows: return long_rows_task(task);
            case plan::blocks: return blocks_task(task);
            case plan::by_columns: return columns_task(task);
            }
        });
        if (p.parts > 1) join_parts();
    }
};

} // namespace reduce_detail

/// Bytes of scratch memory, aligned for double, that `reduce_axes` needs for this shape.
template <class T>
std::size_t reduce_workspace_bytes(int rank, const std::int64_t* extents, std::uint32_t axes) {
    return reduce_detail::make_plan(rank, extents, axes).workspace_bytes();
}

/// out[kept axes] = R over the axes whose bit is set in `axes`. rank <= 8; the kept axes stay in order. An empty sum is 0,
/// an empty product 1. NaN wins in a maximum or minimum. `workspace` may be null where no bytes are asked for.
/// Throws argument_error for a maximum or minimum of nothing.
template <reduction R, class T>
void reduce_axes(int rank, const std::int64_t* extents, std::uint32_t axes, const reduce_source<T>& source, T* out,
                 void* workspace) {
    const reduce_detail::plan p = reduce_detail::make_plan(rank, extents, axes);
    if (p.total == 0) {
        const std::int64_t outputs = tapegraph::detail::results_of_nothing(R, rank, extents, axes);
        for (std::int64_t i = 0; i < outputs; ++i) out[i] = reduce_detail::identity<R, T>;
        return;
    }
    const reduce_detail::leaves<T> leaf{R, reduce_detail::run_rows<R, T>, reduce_detail::run_columns<R, T>,
                                        reduce_detail::run_join_columns<R, T>, reduce_detail::run_blocks<R, T>};
    reduce_detail::driver<T>{p, leaf, source, out, static_cast<reduce_detail::accumulator<T>*>(workspace)}.run();
}

#define TG_COMPILED_REDUCTION(R, T)                                                                                    \
    TG_COMPILED(reduction, void reduce_axes<reduction::R, T>(int, const std::int64_t*, std::uint32_t,                  \
                                                             const reduce_source<T>&, T*, void*))
TG_COMPILED_REDUCTION(sum, float)
TG_COMPILED_REDUCTION(product, float)
TG_COMPILED_REDUCTION(maximum, float)
TG_COMPILED_REDUCTION(minimum, float)
TG_COMPILED_REDUCTION(sum, double)
TG_COMPILED_REDUCTION(product, double)
TG_COMPILED_REDUCTION(maximum, double)
TG_COMPILED_REDUCTION(minimum, double)
TG_COMPILED_REDUCTION(sum, std::uint32_t)
TG_COMPILED_REDUCTION(product, std::uint32_t)
TG_COMPILED_REDUCTION(sum, std::uint64_t)
TG_COMPILED_REDUCTION(product, std::uint64_t)
TG_COMPILED_REDUCTION(maximum, std::int32_t)
TG_COMPILED_REDUCTION(minimum, std::int32_t)
TG_COMPILED_REDUCTION(maximum, std::int64_t)
TG_COMPILED_REDUCTION(minimum, std::int64_t)
TG_COMPILED_REDUCTION(maximum, std::uint8_t)
TG_COMPILED_REDUCTION(minimum, std::uint8_t)
#undef TG_COMPILED_REDUCTION
TG_COMPILED(reduction, std::size_t reduce_workspace_bytes<float>(int, const std::int64_t*, std::uint32_t))
TG_COMPILED(reduction, std::size_t reduce_workspace_bytes<double>(int, const std::int64_t*, std::uint32_t))
TG_COMPILED(reduction, std::size_t reduce_workspace_bytes<std::uint32_t>(int, const std::int64_t*, std::uint32_t))
TG_COMPILED(reduction, std::size_t reduce_workspace_bytes<std::uint64_t>(int, const std::int64_t*, std::uint32_t))
TG_COMPILED(reduction, std::size_t reduce_workspace_bytes<std::int32_t>(int, const std::int64_t*, std::uint32_t))
TG_COMPILED(reduction, std::size_t reduce_workspace_bytes<std::int64_t>(int, const std::int64_t*, std::uint32_t))
TG_COMPILED(reduction, std::size_t reduce_workspace_bytes<std::uint8_t>(int, const std::int64_t*, std::uint32_t))

} // namespace tapegraph::cpu
