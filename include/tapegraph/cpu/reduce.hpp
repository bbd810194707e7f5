#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/cpu/reduce_columns.hpp>
#include <tapegraph/cpu/reduce_plan.hpp>

/// Reductions over any axes of a row-major domain whose values are in memory or produced tile by tile.
///
/// A tile is folded in T, results of tiles in double (64-bit integers), partial results of tasks in
/// their order. Tiles, tasks and lanes follow from the shape alone, so the bits depend neither on
/// threads nor on the instruction set nor on the source of the values.

namespace tapegraph::cpu {

namespace reduce_detail {

// Folds a sequence pairwise: the error grows with the logarithm of its length.
template <class A>
struct pairwise {
    reduction kind = reduction::sum;
    std::uint64_t count = 0;
    A level[64];

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

template <class T>
struct driver {
    using sum_type = accumulator<T>;
    static_assert(sizeof(sum_type) == sizeof(double));
    const plan& p;
    const leaves<T>& leaf;
    const reduce_sources<T>& source;
    T* const* out;       // of each value
    sum_type* workspace; // that of one value after the other
    bool in_memory;      // all values are read from memory

    // A tile of each value.
    struct value_tiles {
        alignas(64) T buffer[most_reduced * tile_elements];
        const T* of(int k) const { return buffer + k * tile_elements; }
        T* of(int k) { return buffer + k * tile_elements; }
    };
    void produce(std::int64_t begin, std::int64_t count, T* to) const {
        if (source.produce != nullptr) source.produce(source.state, begin, count, to);
    }
    const T* values(int k, std::int64_t begin, const value_tiles& produced) const {
        return source.direct[k] != nullptr ? source.direct[k] + begin : produced.of(k);
    }

    void copy_task(std::int64_t task) const {
        value_tiles tile;
        const std::int64_t end = std::min(p.total, (task + 1) * task_elements);
        for (std::int64_t i = task * task_elements; i < end; i += tile_elements) {
            const std::int64_t count = std::min(tile_elements, end - i);
            produce(i, count, tile.buffer);
            for (int k = 0; k < source.count; ++k)
                __builtin_memcpy(out[k] + i, values(k, i, tile), static_cast<std::size_t>(count) * sizeof(T));
        }
    }

    // Consecutive rows, several to a tile.
    void short_rows_task(std::int64_t task) const {
        value_tiles tile;
        sum_type folded[tile_elements / 2];
        const std::int64_t in_tile = tile_elements / p.inner, end = std::min(p.kept.size, (task + 1) * p.in_task);
        for (std::int64_t r = task * p.in_task; r < end; r += in_tile) {
            const std::int64_t count = std::min(in_tile, end - r);
            produce(r * p.inner, count * p.inner, tile.buffer);
            for (int k = 0; k < source.count; ++k) {
                leaf.rows(values(k, r * p.inner, tile), count, p.inner, folded);
                for (std::int64_t i = 0; i < count; ++i) out[k][r + i] = static_cast<T>(folded[i]);
            }
        }
    }

    // Consecutive blocks [inner, columns], several to a tile; folded entirely in T.
    void blocks_task(std::int64_t task) const {
        value_tiles tile;
        const std::int64_t size = p.inner * p.columns, in_tile = tile_elements / size;
        const std::int64_t end = std::min(p.kept.size, (task + 1) * p.in_task);
        for (std::int64_t u = task * p.in_task; u < end; u += in_tile) {
            const std::int64_t count = std::min(in_tile, end - u);
            produce(u * size, count * size, tile.buffer);
            for (int k = 0; k < source.count; ++k)
                leaf.blocks(values(k, u * size, tile), count, p.inner, p.columns, out[k] + u * p.columns);
        }
    }

    // Tiles [first, last) of one output of each value, in order: reduced outer index by reduced outer index, along the row.
    void row_part(std::int64_t output, std::int64_t first, std::int64_t last, sum_type* sums) const {
        value_tiles buffer;
        const std::int64_t in_row = divide_up(p.inner, tile_elements), base = p.kept.offset(output);
        pairwise<sum_type> sum[most_reduced];
        for (int k = 0; k < source.count; ++k) sum[k].kind = leaf.kind;
        while (first < last) {
            const std::int64_t row = first / in_row, tile = first % in_row;
            const std::int64_t begin = base + p.reduced.offset(row) + tile * tile_elements;
            const std::int64_t left = p.inner - tile * tile_elements;
            sum_type folded[16];
            std::int64_t count = 1; // the leaf takes several full tiles in memory at once
            if (in_memory && left >= tile_elements)
                count = std::min({std::int64_t{16}, last - first, left / tile_elements});
            const std::int64_t length = std::min(tile_elements, left);
            produce(begin, length, buffer.buffer);
            for (int k = 0; k < source.count; ++k) {
                leaf.rows(values(k, begin, buffer), count, length, folded);
                for (std::int64_t i = 0; i < count; ++i) sum[k].add(folded[i]);
            }
            first += count;
        }
        for (int k = 0; k < source.count; ++k) sums[k] = sum[k].total();
    }
    void long_rows_task(std::int64_t task) const {
        const std::int64_t all = p.kept.size * p.parts, end = std::min(all, (task + 1) * p.in_task);
        for (std::int64_t i = task * p.in_task; i < end; ++i) {
            const std::int64_t part = i % p.parts;
            sum_type sums[most_reduced];
            row_part(i / p.parts, p.tiles * part / p.parts, p.tiles * (part + 1) / p.parts, sums);
            for (int k = 0; k < source.count; ++k)
                if (p.parts == 1)
                    out[k][i] = static_cast<T>(sums[k]);
                else
                    parts_of(k)[i] = sums[k];
        }
    }

    // At -O2 g++ leaves std::fill_n scalar.
    template <class V>
    static void fill(V* to, std::int64_t count, V value) {
        TG_SIMD
        for (std::int64_t i = 0; i < count; ++i) to[i] = value;
    }

    // Folds tiles [first, last) of one unit into total[0, width of the chunk) of each value;
    // returns that width. Groups of tiles are folded in T, row by row, so the number of tiles that
    // the leaf receives at once makes no difference.
    std::int64_t column_part(std::int64_t unit, std::int64_t first, std::int64_t last,
                             sum_type (*total)[widest_columns]) const {
        value_tiles buffer;
        alignas(64) T partial[most_reduced][widest_partial];
        const std::int64_t chunk = unit % p.chunks, from = chunk * p.width;
        const std::int64_t width = std::min(p.width, p.columns - from), packed = width * p.pack;
        const std::int64_t base = p.kept.offset(unit / p.chunks) + from, in_inner = divide_up(p.inner, p.tile_rows);
        const std::int64_t in_group = std::max<std::int64_t>(1, rows_in_t * p.pack / p.tile_rows);
        const bool adds = source.add_columns != nullptr && source.period > 0 && p.columns % source.period == 0 &&
                          packed >= lanes_of<T>;
        const std::int64_t at_once = adds        ? in_group
                                     : in_memory ? std::max<std::int64_t>(1, rows_at_once * p.pack / p.tile_rows)
                                                 : std::int64_t{1};
        for (int k = 0; k < source.count; ++k) {
            fill(total[k], packed, identity_of<sum_type>(leaf.kind));
            fill(partial[k], packed + lanes_of<T>, identity_of<T>(leaf.kind));
        }
        for (std::int64_t group = 0; first < last;) {
            const std::int64_t place = first % in_inner,
                               tiles = std::min({at_once, last - first, in_inner - place, in_group - group});
            const std::int64_t row = place * p.tile_rows, rows = std::min(tiles * p.tile_rows, p.inner - row);
            const std::int64_t begin = base + p.reduced.offset(first / in_inner) + row * p.columns;
            const std::int64_t rest =
                rows % p.pack; // rows left after the last whole pack: their width and their places differ
            if (adds) {
                source.add_columns(source.state, begin, rows / p.pack, packed, p.chunks > 1 ? p.columns : packed,
                                   partial[0]);
                if (rest > 0) produce(begin + (rows - rest) * width, rest * width, buffer.buffer);
            } else if (p.chunks == 1) {
                produce(begin, rows * width, buffer.buffer);
            } else {
                for (std::int64_t r = 0; r < rows && !in_memory; ++r)
                    produce(begin + r * p.columns, width, buffer.buffer + r * width);
            }
            first += tiles;
            group = group + tiles < in_group ? group + tiles : 0;
            for (int k = 0; k < source.count; ++k) {
                const bool direct = source.direct[k] != nullptr;
                if (!adds)
                    leaf.columns(values(k, begin, buffer), direct || p.chunks == 1 ? p.columns * p.pack : width,
                                 rows / p.pack, packed, partial[k]);
                if (rest > 0) {
                    const std::int64_t done = (rows - rest) * width;
                    leaf.join_columns(partial[k], packed, total[k]);
                    leaf.columns(adds && !direct ? buffer.of(k) : values(k, begin, buffer) + done, packed, 1,
                                 rest * width, partial[k]);
                    leaf.join_columns(partial[k], rest * width, total[k]);
                }
                if (group == 0 || first == last) leaf.join_columns(partial[k], packed, total[k]);
            }
        }
        for (int k = 0; k < source.count; ++k)
            for (std::int64_t i = width; i < packed; ++i)
                total[k][i % width] = combined(leaf.kind, total[k][i % width], total[k][i]);
        return width;
    }
    void store(int k, std::int64_t unit, const sum_type* total, std::int64_t width) const {
        T* into = out[k] + unit / p.chunks * p.columns + unit % p.chunks * p.width;
        TG_SIMD
        for (std::int64_t i = 0; i < width; ++i) into[i] = static_cast<T>(total[i]);
    }
    void columns_task(std::int64_t task) const {
        sum_type total[most_reduced][widest_columns];
        const std::int64_t all = p.units() * p.parts, end = std::min(all, (task + 1) * p.in_task);
        for (std::int64_t i = task * p.in_task; i < end; ++i) {
            const std::int64_t unit = i / p.parts, part = i % p.parts;
            const std::int64_t width =
                column_part(unit, p.tiles * part / p.parts, p.tiles * (part + 1) / p.parts, total);
            for (int k = 0; k < source.count; ++k)
                if (p.parts == 1)
                    store(k, unit, total[k], width);
                else
                    __builtin_memcpy(parts_of(k) + i * p.width, total[k],
                                     static_cast<std::size_t>(width) * sizeof(sum_type));
        }
    }
    sum_type* parts_of(int k) const { return workspace + k * (p.units() * p.parts * p.width); }
    void join_parts() const {
        for (int k = 0; k < source.count; ++k)
            for (std::int64_t unit = 0; unit < p.units(); ++unit) {
                const std::int64_t width = std::min(p.width, p.columns - unit % p.chunks * p.width);
                sum_type* total = parts_of(k) + unit * p.parts * p.width;
                for (std::int64_t part = 1; part < p.parts; ++part)
                    for (std::int64_t i = 0; i < width; ++i)
                        total[i] = combined(leaf.kind, total[i], total[part * p.width + i]);
                store(k, unit, total, width);
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

// The number of elements if they are few and all of them are reduced to one value, which needs no plan: plan::short_rows
// of one row; otherwise 0.
inline constexpr std::int64_t few_elements = 256;
inline std::int64_t one_short_row(int rank, const std::int64_t* extents, std::uint32_t axes) {
    std::int64_t total = 1;
    for (int i = 0; i < rank; ++i) {
        if (extents[i] != 1 && (axes >> i & 1) == 0) return 0;
        total *= extents[i];
        if (total > few_elements) return 0;
    }
    return total > 1 ? total : 0;
}
static_assert(few_elements <= tile_elements / 2);

template <reduction R, class T>
void reduce_short_row(std::int64_t count, const reduce_source<T>& source, T* out) {
    alignas(64) T values[few_elements];
    if (source.produce != nullptr) source.produce(source.state, 0, count, values);
    accumulator<T> folded;
    run_rows<R, T>(source.direct != nullptr ? source.direct : values, 1, count, &folded);
    *out = static_cast<T>(folded);
}

} // namespace reduce_detail

/// Reduces several values of a domain at once: out[k][kept axes] equals the result of `reduce_axes`
/// for the k-th, bit for bit. `workspace` holds the workspace of `reduce_axes` for each of them,
/// one after the other.
template <reduction R, class T>
void reduce_several(int rank, const std::int64_t* extents, std::uint32_t axes, const reduce_sources<T>& source,
                    T* const* out, void* workspace) {
    const reduce_detail::plan p = reduce_detail::make_plan(rank, extents, axes);
    if (p.total == 0) {
        const std::int64_t outputs = tapegraph::detail::results_of_nothing(R, rank, extents, axes);
        for (int k = 0; k < source.count; ++k)
            for (std::int64_t i = 0; i < outputs; ++i) out[k][i] = reduce_detail::identity<R, T>;
        return;
    }
    const reduce_detail::leaves<T> leaf{R, reduce_detail::run_rows<R, T>, reduce_detail::run_columns<R, T>,
                                        reduce_detail::run_join_columns<R, T>, reduce_detail::run_blocks<R, T>};
    reduce_detail::driver<T>{
        p, leaf, source, out, static_cast<reduce_detail::accumulator<T>*>(workspace), source.produce == nullptr}
        .run();
}

/// Bytes of scratch memory, aligned for double, that `reduce_axes` needs for this shape.
template <class T>
std::size_t reduce_workspace_bytes(int rank, const std::int64_t* extents, std::uint32_t axes) {
    return reduce_detail::make_plan(rank, extents, axes).workspace_bytes();
}

/// out[kept axes] = R over the axes whose bit is set in `axes`. rank <= 8; the kept axes stay in
/// order. An empty sum is 0, an empty product 1. NaN wins in a maximum or minimum. `workspace` may
/// be null where reduce_workspace_bytes is 0. Throws argument_error for a maximum or minimum of
/// nothing.
template <reduction R, class T>
void reduce_axes(int rank, const std::int64_t* extents, std::uint32_t axes, const reduce_source<T>& source, T* out,
                 void* workspace) {
    if (const std::int64_t count = reduce_detail::one_short_row(rank, extents, axes); count > 0)
        return reduce_detail::reduce_short_row<R, T>(count, source, out);
    reduce_several<R, T>(rank, extents, axes, {1, {source.direct}, source.produce, source.state}, &out, workspace);
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
#define TG_COMPILED_SUMS(T)                                                                                            \
    TG_COMPILED(reduction, void reduce_several<reduction::sum, T>(int, const std::int64_t*, std::uint32_t,             \
                                                                  const reduce_sources<T>&, T* const*, void*))
TG_COMPILED_SUMS(float)
TG_COMPILED_SUMS(double)
#undef TG_COMPILED_SUMS
TG_COMPILED(reduction, std::size_t reduce_workspace_bytes<float>(int, const std::int64_t*, std::uint32_t))
TG_COMPILED(reduction, std::size_t reduce_workspace_bytes<double>(int, const std::int64_t*, std::uint32_t))
TG_COMPILED(reduction, std::size_t reduce_workspace_bytes<std::uint32_t>(int, const std::int64_t*, std::uint32_t))
TG_COMPILED(reduction, std::size_t reduce_workspace_bytes<std::uint64_t>(int, const std::int64_t*, std::uint32_t))
TG_COMPILED(reduction, std::size_t reduce_workspace_bytes<std::int32_t>(int, const std::int64_t*, std::uint32_t))
TG_COMPILED(reduction, std::size_t reduce_workspace_bytes<std::int64_t>(int, const std::int64_t*, std::uint32_t))
TG_COMPILED(reduction, std::size_t reduce_workspace_bytes<std::uint8_t>(int, const std::int64_t*, std::uint32_t))

} // namespace tapegraph::cpu
