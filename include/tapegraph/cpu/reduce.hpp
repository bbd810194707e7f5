#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/parallel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

/// Reductions over any axes of a row-major domain whose values are in memory or produced tile by tile.
///
/// Neighbouring axes of one fate are merged, so that a domain alternates between kept and reduced groups. When the last
/// group is reduced, tiles of rows are folded across vector lanes; when it is kept, tiles are folded down their columns.
/// A tile is folded in T, results of tiles in double, partial results of tasks in their order. Tiles, tasks and lanes
/// follow from the shape alone, so the bits depend neither on threads nor on the instruction set nor on the producer.

namespace tapegraph::cpu {

/// Where the values of a domain come from: `direct`, or `produce`, which writes the elements [begin, begin + count) of the
/// row-major domain and is called from several threads at once with counts up to 2,048.
template <class T>
struct reduce_source {
    const T* direct = nullptr;
    void (*produce)(const void* state, std::int64_t begin, std::int64_t count, T* out) = nullptr;
    const void* state = nullptr;
};

enum class reduction { sum, product, maximum, minimum };

namespace reduce_detail {

inline constexpr std::int64_t tile_elements = 2048;   // 8 or 16 KiB: stays in L1 beside the accumulators
inline constexpr std::int64_t task_elements = 32768;  // below two of these a fork costs more than it saves
inline constexpr std::int64_t parallel_elements = 32768;
inline constexpr std::int64_t most_parts = 32;
inline constexpr std::int64_t widest_columns = 512;
inline constexpr std::int64_t prefetch_bytes = 2048;

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

template <reduction R, class T>
inline constexpr T identity = R == reduction::sum       ? T(0)
                              : R == reduction::product ? T(1)
                              : R == reduction::maximum ? -std::numeric_limits<T>::infinity()
                                                        : std::numeric_limits<T>::infinity();

// Scalars and vectors alike. The second comparison lets NaN in `a` win; one in `b` wins by failing the first.
template <reduction R, class V>
TG_INLINE void combine(V& a, const V& b) {
    if constexpr (R == reduction::sum) a = a + b;
    else if constexpr (R == reduction::product) a = a * b;
    else if constexpr (R == reduction::maximum) a = ((a > b) | (a != a)) ? a : b;
    else a = ((a < b) | (a != a)) ? a : b;
}

// All bits of the middle 64 bytes: a window of 64 bytes over it keeps the first or the last lanes of a unit.
template <class Integer>
struct lane_window {
    static constexpr int lanes = 64 / static_cast<int>(sizeof(Integer));
    Integer bits[3 * lanes]{};
    constexpr lane_window() {
        for (int i = lanes; i < 2 * lanes; ++i) bits[i] = -1;
    }
};
template <class Integer>
inline constexpr lane_window<Integer> window{};

template <reduction R>
inline constexpr bool arithmetic = R == reduction::sum || R == reduction::product;

// Comparisons go through arrays: g++ lowers a selection between 64-byte vectors to scalars, but vectorises the loop.
template <reduction R, int N, class T>
TG_INLINE void compare(T* x, const T* y) {
#pragma omp simd
    for (int i = 0; i < N; ++i) {
        const T a = x[i], b = y[i];
        x[i] = ((R == reduction::maximum ? a > b : a < b) | (a != a)) ? a : b;
    }
}
template <reduction R, int N, class T>
TG_INLINE void compare_halves(T* x) {
    if constexpr (N > 0) {
        compare<R, N>(x, x + N);
        compare_halves<R, N / 2>(x);
    }
}

// 64 bytes of lanes on every instruction set (one, two or four registers), so that lanes mean the same everywhere.
template <class Isa, class T>
struct unit {
    static constexpr int parts = 64 / Isa::vector_bytes;
    static constexpr int part_lanes = Isa::vector_bytes / static_cast<int>(sizeof(T));
    static constexpr int lanes = 64 / static_cast<int>(sizeof(T));
    typedef T vector __attribute__((vector_size(Isa::vector_bytes)));
    using integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
    typedef integer bits __attribute__((vector_size(Isa::vector_bytes)));
    using all_parts = std::make_index_sequence<parts>;

    vector part[parts];

    template <std::size_t... I>
    TG_INLINE void load(const T* p, std::index_sequence<I...>) {
        (__builtin_memcpy(&part[I], p + I * part_lanes, sizeof(vector)), ...);
    }
    TG_INLINE void load(const T* p) { load(p, all_parts{}); }
    TG_INLINE void store(T* p) const { __builtin_memcpy(p, part, sizeof(part)); }

    template <reduction R, std::size_t... I>
    TG_INLINE void fold(const unit& b, std::index_sequence<I...>) {
        (combine<R>(part[I], b.part[I]), ...);
    }
    template <reduction R>
    TG_INLINE void fold(const unit& b) {
        if constexpr (arithmetic<R>) {
            fold<R>(b, all_parts{});
        } else {
            T x[lanes], y[lanes];
            store(x);
            b.store(y);
            compare<R, lanes>(x, y);
            load(x);
        }
    }
    template <reduction R>
    TG_INLINE void fold(const T* p) {
        unit b;
        b.load(p);
        fold<R>(b);
    }
    // Lanes whose bits in the window are clear become the identity.
    template <reduction R>
    TG_INLINE static void mask_part(vector& v, const integer* at) {
        bits kept, value, neutral;
        const vector neutral_value = vector{} + identity<R, T>;
        __builtin_memcpy(&kept, at, sizeof(kept));
        __builtin_memcpy(&value, &v, sizeof(value));
        __builtin_memcpy(&neutral, &neutral_value, sizeof(neutral));
        value = (value & kept) | (neutral & ~kept);
        __builtin_memcpy(&v, &value, sizeof(value));
    }
    template <reduction R, std::size_t... I>
    TG_INLINE void mask(const integer* at, std::index_sequence<I...>) {
        (mask_part<R>(part[I], at + I * part_lanes), ...);
    }
    template <reduction R>
    TG_INLINE void keep_first(std::int64_t count) {
        mask<R>(window<integer>.bits + 2 * lanes - count, all_parts{});
    }
    template <reduction R>
    TG_INLINE void keep_last(std::int64_t count) {
        mask<R>(window<integer>.bits + count, all_parts{});
    }
    template <reduction R, int Step, int... I>
    TG_INLINE void halve(std::integer_sequence<int, I...> all) {
        if constexpr (Step > 0) {
            const vector other = __builtin_shufflevector(part[0], part[0], ((I + Step) % part_lanes)...);
            part[0] = R == reduction::product ? part[0] * other : part[0] + other;
            halve<R, Step / 2>(all);
        }
    }
    // Lane i takes lane i + n / 2 until one is left.
    template <reduction R>
    TG_INLINE T total() {
        if constexpr (!arithmetic<R>) {
            T x[lanes];
            store(x);
            compare_halves<R, lanes / 2>(x);
            return x[0];
        }
        if constexpr (parts == 4) {
            combine<R>(part[0], part[2]);
            combine<R>(part[1], part[3]);
        }
        if constexpr (parts >= 2) combine<R>(part[0], part[1]);
        halve<R, part_lanes / 2>(std::make_integer_sequence<int, part_lanes>{});
        return part[0][0];
    }
};

// out[r] = fold of x[r * length ... + length): four accumulators wide, length up to a tile.
template <reduction R, class T>
struct rows_body {
    template <class Isa>
    TG_INLINE static void run(const T* x, std::int64_t rows, std::int64_t length, double* out) {
        using lanes = unit<Isa, T>;
        constexpr std::int64_t n = lanes::lanes;
        // Loads of short rows reach into the rows behind; the last ones come from a copy that can be read whole.
        T padded[n] = {};
        const std::int64_t whole = rows * length >= n ? (rows * length - n) / length + 1 : 0;
        for (std::int64_t r = 0; r < rows; ++r) {
            const T* p = x + r * length;
            lanes a;
            if (length < n) {
                __builtin_prefetch(p + prefetch_bytes / sizeof(T));
                if (r >= whole) {
                    for (std::int64_t i = 0; i < length; ++i) padded[i] = p[i];
                    p = padded;
                }
                a.load(p);
                a.template keep_first<R>(length);
            } else {
                a.load(p);
                std::int64_t i = n;
                if (length >= 4 * n) {
                    lanes b, c, d;
                    b.load(p + n);
                    c.load(p + 2 * n);
                    d.load(p + 3 * n);
                    for (i = 4 * n; i + 4 * n <= length; i += 4 * n) {
                        a.template fold<R>(p + i);
                        b.template fold<R>(p + i + n);
                        c.template fold<R>(p + i + 2 * n);
                        d.template fold<R>(p + i + 3 * n);
                    }
                    a.template fold<R>(b);
                    c.template fold<R>(d);
                    a.template fold<R>(c);
                }
                for (; i + n <= length; i += n) a.template fold<R>(p + i);
                if (i < length) {
                    lanes tail;
                    tail.load(p + length - n);
                    tail.template keep_last<R>(length - i);
                    a.template fold<R>(tail);
                }
            }
            out[r] = static_cast<double>(a.template total<R>());
        }
    }
};

// total[c] = total[c] folded with column c of the tile x[rows, width], whose rows lie `stride` apart.
template <reduction R, class T>
struct columns_body {
    template <class Isa>
    TG_INLINE static void run(const T* x, std::int64_t stride, std::int64_t rows, std::int64_t width, double* total) {
        using lanes = unit<Isa, T>;
        constexpr std::int64_t n = lanes::lanes;
        if (width < n) {
            for (std::int64_t c = 0; c < width; ++c) {
                T s = x[c];
                for (std::int64_t r = 1; r < rows; ++r) combine<R>(s, x[r * stride + c]);
                combine<R>(total[c], static_cast<double>(s));
            }
            return;
        }
        for (std::int64_t c = 0; c < width; c += n) {
            // The last columns overlap the ones before, where they contribute the identity.
            const std::int64_t at = c + n <= width ? c : width - n;
            lanes s;
            s.load(x + at);
            __builtin_prefetch(x + rows * stride + at);
            for (std::int64_t r = 1; r < rows; ++r) {
                s.template fold<R>(x + r * stride + at);
                __builtin_prefetch(x + (rows + r) * stride + at); // the hardware does not follow this order
            }
            if (at != c) s.template keep_last<R>(n - (c - at));
            T folded[n];
            s.store(folded);
            double* into = total + at;
#pragma omp simd
            for (std::int64_t i = 0; i < n; ++i) {
                double value = into[i];
                combine<R>(value, static_cast<double>(folded[i]));
                into[i] = value;
            }
        }
    }
};

// The drivers below know the kind of reduction at run time only, so that they are compiled once for each T.
template <class T>
struct leaves {
    reduction kind;
    void (*rows)(const T*, std::int64_t, std::int64_t, double*);
    void (*columns)(const T*, std::int64_t, std::int64_t, std::int64_t, double*);
};
template <reduction R, class T>
void run_rows(const T* x, std::int64_t rows, std::int64_t length, double* out) {
    dispatch<rows_body<R, T>>(x, rows, length, out);
}
template <reduction R, class T>
void run_columns(const T* x, std::int64_t stride, std::int64_t rows, std::int64_t width, double* total) {
    dispatch<columns_body<R, T>>(x, stride, rows, width, total);
}

inline double identity_of(reduction kind) {
    constexpr double infinite = std::numeric_limits<double>::infinity();
    return kind == reduction::sum ? 0 : kind == reduction::product ? 1 : kind == reduction::maximum ? -infinite : infinite;
}
inline double combined(reduction kind, double a, double b) {
    switch (kind) {
    case reduction::sum: return a + b;
    case reduction::product: return a * b;
    case reduction::maximum: combine<reduction::maximum>(a, b); return a;
    case reduction::minimum: combine<reduction::minimum>(a, b); return a;
    }
    return a;
}

// Folds a sequence pairwise: the error grows with the logarithm of its length.
struct pairwise {
    reduction kind;
    std::uint64_t count = 0;
    double level[64];

    explicit pairwise(reduction k) : kind(k) {}

    void add(double value) {
        int l = 0;
        for (std::uint64_t bits = count; (bits & 1) != 0; bits >>= 1, ++l) value = combined(kind, level[l], value);
        level[l] = value;
        ++count;
    }
    double total() const {
        double value = identity_of(kind);
        for (int l = 0; l < 64; ++l)
            if ((count >> l & 1) != 0) value = combined(kind, level[l], value);
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
    enum { copy, short_rows, long_rows, by_columns } way = copy;
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
    const plan& p;
    const leaves<T>& leaf;
    const reduce_source<T>& source;
    T* out;
    double* workspace;

    const T* values(std::int64_t begin, std::int64_t count, T* buffer) const {
        if (source.direct != nullptr) return source.direct + begin;
        source.produce(source.state, begin, count, buffer);
        return buffer;
    }

    void copy_task(std::int64_t task) const {
        const std::int64_t end = std::min(p.total, (task + 1) * task_elements);
        for (std::int64_t i = task * task_elements; i < end; i += tile_elements) {
            const std::int64_t count = std::min(tile_elements, end - i);
            if (source.direct == nullptr) source.produce(source.state, i, count, out + i);
            else __builtin_memcpy(out + i, source.direct + i, static_cast<std::size_t>(count) * sizeof(T));
        }
    }

    // Rows that lie behind one another, several to a tile.
    void short_rows_task(std::int64_t task) const {
        alignas(64) T buffer[tile_elements];
        double folded[tile_elements / 2];
        const std::int64_t in_tile = tile_elements / p.inner, end = std::min(p.kept.size, (task + 1) * p.in_task);
        for (std::int64_t r = task * p.in_task; r < end; r += in_tile) {
            const std::int64_t count = std::min(in_tile, end - r);
            leaf.rows(values(r * p.inner, count * p.inner, buffer), count, p.inner, folded);
            for (std::int64_t i = 0; i < count; ++i) out[r + i] = static_cast<T>(folded[i]);
        }
    }

    // Tiles [first, last) of one output, in order: reduced outer index by reduced outer index, along the row.
    double row_part(std::int64_t output, std::int64_t first, std::int64_t last) const {
        alignas(64) T buffer[tile_elements];
        const std::int64_t in_row = divide_up(p.inner, tile_elements), base = p.kept.offset(output);
        pairwise sum(leaf.kind);
        while (first < last) {
            const std::int64_t row = first / in_row, tile = first % in_row;
            const std::int64_t begin = base + p.reduced.offset(row) + tile * tile_elements;
            const std::int64_t left = p.inner - tile * tile_elements;
            double folded[16];
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
            const double sum = row_part(i / p.parts, p.tiles * part / p.parts, p.tiles * (part + 1) / p.parts);
            if (p.parts == 1) out[i] = static_cast<T>(sum);
            else workspace[i] = sum;
        }
    }

    // Folds tiles [first, last) of one unit into total[0, width of the chunk); returns that width.
    std::int64_t column_part(std::int64_t unit, std::int64_t first, std::int64_t last, double* total) const {
        alignas(64) T buffer[tile_elements];
        const std::int64_t chunk = unit % p.chunks, from = chunk * p.width;
        const std::int64_t width = std::min(p.width, p.columns - from), packed = width * p.pack;
        const std::int64_t base = p.kept.offset(unit / p.chunks) + from, in_inner = divide_up(p.inner, p.tile_rows);
        for (std::int64_t i = 0; i < packed; ++i) total[i] = identity_of(leaf.kind);
        for (; first < last; ++first) {
            const std::int64_t row = first % in_inner * p.tile_rows, rows = std::min(p.tile_rows, p.inner - row);
            const std::int64_t begin = base + p.reduced.offset(first / in_inner) + row * p.columns;
            if (p.chunks > 1) {
                if (source.direct == nullptr)
                    for (std::int64_t r = 0; r < rows; ++r)
                        source.produce(source.state, begin + r * p.columns, width, buffer + r * width);
                const bool direct = source.direct != nullptr;
                leaf.columns(direct ? source.direct + begin : buffer, direct ? p.columns : width, rows, width, total);
                continue;
            }
            const T* x = values(begin, rows * width, buffer);
            if (rows >= p.pack) leaf.columns(x, packed, rows / p.pack, packed, total);
            if (rows % p.pack > 0) leaf.columns(x + rows / p.pack * packed, packed, 1, rows % p.pack * width, total);
        }
        for (std::int64_t i = width; i < packed; ++i) total[i % width] = combined(leaf.kind, total[i % width], total[i]);
        return width;
    }
    void store(std::int64_t unit, const double* total, std::int64_t width) const {
        T* into = out + unit / p.chunks * p.columns + unit % p.chunks * p.width;
        for (std::int64_t i = 0; i < width; ++i) into[i] = static_cast<T>(total[i]);
    }
    void columns_task(std::int64_t task) const {
        double total[widest_columns];
        const std::int64_t all = p.units() * p.parts, end = std::min(all, (task + 1) * p.in_task);
        for (std::int64_t i = task * p.in_task; i < end; ++i) {
            const std::int64_t unit = i / p.parts, part = i % p.parts;
            const std::int64_t width = column_part(unit, p.tiles * part / p.parts, p.tiles * (part + 1) / p.parts, total);
            if (p.parts == 1) store(unit, total, width);
            else __builtin_memcpy(workspace + i * p.width, total, static_cast<std::size_t>(width) * sizeof(double));
        }
    }
    void join_parts() const {
        for (std::int64_t unit = 0; unit < p.units(); ++unit) {
            const std::int64_t width = std::min(p.width, p.columns - unit % p.chunks * p.width);
            double* total = workspace + unit * p.parts * p.width;
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
        std::int64_t outputs = 1;
        int empty = 0;
        for (int i = rank; i-- > 0;) {
            if ((axes >> i & 1) == 0) outputs *= extents[i];
            else if (extents[i] == 0) empty = i;
        }
        if (outputs > 0 && (R == reduction::maximum || R == reduction::minimum))
            throw argument_error(std::string(R == reduction::maximum ? "max" : "min") + ": axis " +
                                 std::to_string(empty) + " has no elements");
        for (std::int64_t i = 0; i < outputs; ++i) out[i] = reduce_detail::identity<R, T>;
        return;
    }
    const reduce_detail::leaves<T> leaf{R, reduce_detail::run_rows<R, T>, reduce_detail::run_columns<R, T>};
    reduce_detail::driver<T>{p, leaf, source, out, static_cast<double*>(workspace)}.run();
}

namespace reduce_detail {

// First position of `value` (of NaN when value is one) in x[0, count); it is there.
template <class T>
struct find_body {
    template <class Isa>
    TG_INLINE static void run(const T* x, std::int64_t count, T value, std::int64_t* found) {
        std::int64_t i = 0;
        for (; i + 64 <= count; i += 64) {
            int hits = 0;
#pragma omp simd reduction(| : hits)
            for (int k = 0; k < 64; ++k) hits |= (x[i + k] == value) | ((x[i + k] != x[i + k]) & (value != value));
            if (hits != 0) break;
        }
        while (!(x[i] == value || (x[i] != x[i] && value != value))) ++i;
        *found = i;
    }
};

// Down the columns of x[length, width], rows `stride` apart; width up to widest_columns.
template <bool Maximum, class T>
struct arg_columns_body {
    template <class Isa>
    TG_INLINE static void run(const T* x, std::int64_t stride, std::int64_t length, std::int64_t width, std::int32_t* at) {
        T best[widest_columns];
        for (std::int64_t c = 0; c < width; ++c) {
            best[c] = x[c];
            at[c] = 0;
        }
        for (std::int64_t r = 1; r < length; ++r) {
            const T* row = x + r * stride;
            const std::int32_t number = static_cast<std::int32_t>(r);
#pragma omp simd
            for (std::int64_t c = 0; c < width; ++c) {
                const T value = row[c], so_far = best[c];
                const bool better =
                    (Maximum ? value > so_far : value < so_far) | ((value != value) & (so_far == so_far));
                best[c] = better ? value : so_far;
                at[c] = better ? number : at[c];
            }
        }
    }
};

template <bool Maximum, class T>
std::int64_t arg_row(const T* x, std::int64_t length) {
    constexpr reduction R = Maximum ? reduction::maximum : reduction::minimum;
    double best = 0;
    std::int64_t begin = 0, found = 0;
    for (std::int64_t i = 0; i < length; i += tile_elements) {
        double value;
        run_rows<R, T>(x + i, 1, std::min(tile_elements, length - i), &value);
        if (i == 0 || (Maximum ? value > best : value < best) || (value != value && best == best)) {
            best = value;
            begin = i;
        }
    }
    dispatch<find_body<T>>(x + begin, std::min(tile_elements, length - begin), static_cast<T>(best), &found);
    return begin + found;
}

} // namespace reduce_detail

/// Positions of the largest (or smallest) elements along one axis: out[axes before, axes behind], the first among equals,
/// a NaN before everything, as NumPy has it. Index is std::int32_t or std::int64_t. Throws argument_error when the axis is
/// empty and there are outputs, and when it is longer than an int32 can count.
template <bool Maximum, class T, class Index>
void arg_reduce(int rank, const std::int64_t* extents, int axis, const T* in, Index* out) {
    using namespace reduce_detail;
    std::int64_t outer = 1, inner = 1;
    const std::int64_t length = extents[axis];
    for (int i = 0; i < rank; ++i)
        if (i != axis) (i < axis ? outer : inner) *= extents[i];
    if (outer * inner == 0) return;
    if (length == 0 || length > std::numeric_limits<std::int32_t>::max())
        throw argument_error(std::string(Maximum ? "argmax" : "argmin") + ": axis " + std::to_string(axis) +
                             (length == 0 ? " has no elements" : " has more than 2^31 - 1 elements"));
    const bool parallel = outer * inner * length >= parallel_elements;
    if (inner == 1) {
        const std::int64_t in_task = std::max<std::int64_t>(1, task_elements / length);
        parallel_for(divide_up(outer, in_task), parallel, [&](std::int64_t task) {
            const std::int64_t end = std::min(outer, (task + 1) * in_task);
            for (std::int64_t r = task * in_task; r < end; ++r)
                out[r] = static_cast<Index>(arg_row<Maximum>(in + r * length, length));
        });
        return;
    }
    const std::int64_t chunks = divide_up(inner, widest_columns);
    const std::int64_t in_task = std::max<std::int64_t>(1, task_elements / (length * std::min(inner, widest_columns)));
    parallel_for(divide_up(outer * chunks, in_task), parallel, [&](std::int64_t task) {
        std::int32_t at[widest_columns];
        const std::int64_t end = std::min(outer * chunks, (task + 1) * in_task);
        for (std::int64_t i = task * in_task; i < end; ++i) {
            const std::int64_t from = i % chunks * widest_columns, width = std::min(widest_columns, inner - from);
            dispatch<arg_columns_body<Maximum, T>>(in + i / chunks * length * inner + from, inner, length, width, &at[0]);
            for (std::int64_t c = 0; c < width; ++c) out[i / chunks * inner + from + c] = static_cast<Index>(at[c]);
        }
    });
}

} // namespace tapegraph::cpu
