#pragma once

#include <tapegraph/cuda/kernels/dependent.cuh>
#include <tapegraph/cuda/kernels/folds.cuh>

/// Reductions over any axes, in two shapes.
///
/// Rows: the innermost axes are folded. `1 << width` neighbouring threads (up to a warp, or the
/// whole block) take a row, in steps of as many vectors, and fold their totals by shuffles; the
/// warps of a block do so in shared memory (8 totals).
///
/// Columns: the innermost axes are kept. A block is a box of threads: x along the columns, y down
/// the rows, z over the other kept axes; threads that differ in y fold their totals in shared
/// memory (a total per thread and lane), by halving. The sides of the box are chosen so that few
/// threads idle; they need not be powers of two: 150 columns are 38 vectors. Several rows may be
/// treated as one line of whole vectors, whose columns are then several totals per result. A thread
/// keeps its columns, so that an operand repeated along the rows is read once.
///
/// Where there are few rows or columns they are split into parts, and a second launch of the same
/// kernel folds the totals of the parts. Vectors, widths and parts follow from the shape alone and
/// everything is folded in one order, without atomics: results have the same bits in every run on
/// every device. (CUB's reductions choose by device.)
///
/// A run of `chain` vectors is folded in the element type, lane by lane and then by halving the
/// lanes; runs join the thread's total, in double where elements are float. A sum of floats is
/// therefore off by at most (chain + log2 of the lanes) / 2^24 of the sum of magnitudes, however
/// long it is.

namespace tapegraph::cuda::kernels {

inline constexpr int reduce_threads = 256, chain = 8;

/// Folds `count` values into one: lane v takes lane v + count / 2 until one is left.
template <class Fold, int V>
__device__ __forceinline__ typename Fold::run halved(typename Fold::run (&x)[V]) {
    TG_UNROLL
    for (int half = V / 2; half > 0; half /= 2) {
        TG_UNROLL
        for (int v = 0; v < half; ++v) Fold::combine(x[v], x[v + half]);
    }
    return x[0];
}

template <class Source>
struct row_arguments {
    Source source;
    strided_index<1> kept, reduced;
    std::int64_t rows = 1, length = 1, parts = 1;
    int width = 0;       ///< 2^width threads per row: 0 to 5, or 8
    void* out = nullptr; ///< results; or totals [rows, parts] where there are several parts
};

/// Reads up to `lanes` elements of a row from element j on. Flat: both they and the operands are
/// contiguous.
template <bool Flat, class Source>
__device__ __forceinline__ void read_of_row(const row_arguments<Source>& p, std::int64_t base, std::int64_t j,
                                            int count, typename Source::batch& x) {
    if constexpr (Flat) {
        p.source.read_flat(base + j, count, x);
    } else {
        std::int64_t at[1];
        const std::int64_t place = p.reduced.offsets(j, at);
        if (p.reduced.rank <= 1 || place + count <= p.reduced.extents[p.reduced.rank - 1]) {
            p.source.read(base + at[0], count, x);
            return;
        }
        std::int64_t i[Source::lanes];
        TG_UNROLL
        for (int v = 0; v < Source::lanes; ++v) i[v] = base + p.reduced.offset(v < count ? j + v : j);
        p.source.read_scattered(i, count, x);
    }
}

/// Folds the vectors of a row that begin at `first`, `first + step`, ... below `last`.
template <class Fold, bool Flat, class Source>
__device__ __forceinline__ typename Fold::total fold_row(const row_arguments<Source>& p, std::int64_t base,
                                                         std::int64_t first, std::int64_t last, std::int64_t step) {
    constexpr int V = Source::lanes, ahead = Flat ? Source::ahead : 1;
    static_assert(chain % ahead == 0);
    typename Fold::total total = Fold::nothing();
    TG_ROLLED
    for (; first < last; first += chain * step) {
        const int left = last - first < chain * step ? static_cast<int>(last - first) : chain * step;
        typename Fold::run run[V];
        TG_UNROLL
        for (int v = 0; v < V; ++v) run[v] = Fold::no_run();
        TG_ROLLED
        for (int s = 0; s < chain; s += ahead) {
            typename Source::batch x[ahead];
            TG_UNROLL
            for (int k = 0; k < ahead; ++k) {
                const int at = (s + k) * step, count = left - at;
                if (count > 0) read_of_row<Flat>(p, base, first + at, count < V ? count : V, x[k]);
            }
            TG_UNROLL
            for (int k = 0; k < ahead; ++k) {
                const int count = left - (s + k) * step;
                if (count > 0)
                    Source::each(x[k], [&](int v, const auto& value) {
                        if (v < count) Fold::combine(run[v], Fold::from(value));
                    });
            }
        }
        Fold::combine(total, Fold::joined(halved<Fold>(run)));
    }
    return total;
}

/// One-dimensional blocks of `reduce_threads` threads, any number of blocks.
template <class Fold, class T, class Source>
__global__ void __launch_bounds__(reduce_threads)
    reduce_rows(const __grid_constant__ dependent<row_arguments<Source>> given) {
    const row_arguments<Source>& p = given.after_predecessors();
    using total_type = typename Fold::total;
    __shared__ total_type warps[reduce_threads / 32];
    const int lane = static_cast<int>(threadIdx.x) & ((1 << p.width) - 1);
    const int rows_here = reduce_threads >> p.width;
    const std::int64_t units = p.rows * p.parts;
    const int step = Source::lanes << p.width;
    const bool flat = p.reduced.rank <= 1 && p.source.flat();
    TG_ROLLED
    for (std::int64_t turn = std::int64_t{blockIdx.x} * rows_here; turn < units;
         turn += std::int64_t{gridDim.x} * rows_here) {
        const std::int64_t unit = turn + (threadIdx.x >> p.width);
        total_type total = Fold::nothing();
        if (unit < units) {
            std::int64_t row = unit, first = 0, last = p.length;
            if (p.parts > 1) {
                row = unit / p.parts;
                const std::int64_t part = unit - row * p.parts, steps = (p.length + step - 1) / step;
                first = steps * part / p.parts * step;
                last = part + 1 < p.parts ? steps * (part + 1) / p.parts * step : p.length;
            }
            const std::int64_t base = p.kept.offset(row);
            first += lane * Source::lanes;
            total = flat ? fold_row<Fold, true>(p, base, first, last, step)
                         : fold_row<Fold, false>(p, base, first, last, step);
        }
        TG_ROLLED
        for (int bits = (p.width > 5 ? 32 : 1 << p.width) / 2; bits > 0; bits /= 2)
            Fold::combine(total, Fold::exchanged(total, bits));
        if (p.width > 5) {
            if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = total;
            __syncthreads();
            if (threadIdx.x < 32) {
                total = threadIdx.x < reduce_threads / 32 ? warps[threadIdx.x] : Fold::nothing();
                TG_ROLLED
                for (int bits = reduce_threads / 64; bits > 0; bits /= 2)
                    Fold::combine(total, Fold::exchanged(total, bits));
            }
            __syncthreads(); // the next iteration writes there
        }
        if (lane != 0 || unit >= units) continue;
        if (p.parts == 1)
            put<T>(p.out, unit, total);
        else
            static_cast<total_type*>(p.out)[unit] = total;
    }
}

template <class Source>
struct column_arguments {
    Source source;
    strided_index<1> kept, reduced; ///< kept: without the columns
    std::int64_t units = 1, columns = 1, length = 1, parts = 1;
    divisor wide, box, by_high; ///< a block is `wide` by `high` threads by as many such boxes as fit
    int high = 1, y = 0;        ///< y: halvings until one of `high` is left
    /// Whether every operand either is in the domain's order and consists of whole vectors, or has
    /// the same elements in every row.
    bool steady = false;
    /// Blocks along the columns, and along the units; in total there are fewer than 2^31 tiles of
    /// work.
    divisor across, down;
    void* out = nullptr; ///< results; or totals [parts, units, columns] where there are several parts

    /// How many of `left` rows, at least one, belong to a thread. Divisions of 64 bits take a
    /// hundred instructions.
    __device__ __forceinline__ std::int64_t rows_of(std::int64_t left) const {
        return left <= 0x7FFFFFFF ? std::int64_t{by_high.quotient(static_cast<std::uint32_t>(left - 1))} + 1
                                  : (left - 1) / high + 1;
    }
};

/// The position of a thread in its block's box. Threads without one are below its last row, and
/// have no columns.
struct box_place {
    int x, y, z, deep;

    template <class Arguments>
    __device__ __forceinline__ explicit box_place(const Arguments& p)
        : deep(reduce_threads / static_cast<int>(p.box.value)) {
        const auto thread = static_cast<std::uint32_t>(threadIdx.x);
        const std::uint32_t of = p.box.quotient(thread), in = p.box.remainder(thread, of), row = p.wide.quotient(in);
        x = static_cast<int>(p.wide.remainder(in, row));
        z = static_cast<int>(of);
        y = z < deep ? static_cast<int>(row) : p.high;
    }
};

/// Folds every `high`-th of the rows [first, last) where `steady` holds. Operands that have the
/// same elements in every row are read before the first one. For the others some rows are always in
/// flight, because a row is read as soon as one has been folded (compilers move independent
/// accesses before the first use, and then use fewer registers instead). The order is that of the
/// other ways.
template <class Fold, class Source>
__device__ __forceinline__ void fold_steadily(const column_arguments<Source>& p, std::int64_t base, std::int64_t first,
                                              std::int64_t last, typename Fold::total (&total)[Source::lanes]) {
    using access = typename Source::access;
    constexpr int V = Source::lanes, ahead = access::rows_ahead;
    static_assert(chain % ahead == 0);
    if (first >= last) return;
    const std::int64_t row = p.reduced.strides[0][0], down = row * p.high;
    std::int64_t at = base + first * row;
    int rows = static_cast<int>(p.rows_of(last - first)); // a part of a tensor that fits into memory
    int unread = rows;
    typename Source::batch still, x[ahead];
    access::read_still(p.source.in, at, still);
    const auto read_next = [&](typename Source::batch& to) {
        to = still;
        access::read_moving(p.source.in, at, to);
        at += --unread > 0 ? down : 0; // after the last row the last one again, which is not folded
    };
    TG_UNROLL
    for (int k = 0; k < ahead; ++k) read_next(x[k]);
    TG_ROLLED
    for (; rows > 0; rows -= chain) {
        typename Fold::run run[V];
        TG_UNROLL
        for (int v = 0; v < V; ++v) run[v] = Fold::no_run();
        TG_ROLLED
        for (int s = 0; s < chain && s < rows; s += ahead) {
            TG_UNROLL
            for (int k = 0; k < ahead; ++k) {
                if (s + k < rows)
                    p.source.each(x[k], [&](int v, const auto& value) { Fold::combine(run[v], Fold::from(value)); });
                read_next(x[k]);
            }
        }
        TG_UNROLL
        for (int v = 0; v < V; ++v) Fold::combine(total[v], Fold::joined(run[v]));
    }
}

/// Folds every `high`-th of the rows [first, last), `count` columns of each.
template <class Fold, bool Flat, class Source>
__device__ __forceinline__ void fold_columns(const column_arguments<Source>& p, std::int64_t base, int count,
                                             std::int64_t first, std::int64_t last,
                                             typename Fold::total (&total)[Source::lanes]) {
    constexpr int V = Source::lanes, ahead = Flat ? Source::ahead : 1;
    static_assert(chain % ahead == 0);
    const std::int64_t down = p.reduced.strides[0][0] * p.high; // from row to row, if they are contiguous
    std::int64_t left = first < last ? p.rows_of(last - first) : 0;
    TG_ROLLED
    for (; left > 0; left -= chain, first += std::int64_t{chain} * p.high) {
        const int rows = left < chain ? static_cast<int>(left) : chain;
        const std::int64_t from = base + first * p.reduced.strides[0][0];
        typename Fold::run run[V];
        TG_UNROLL
        for (int v = 0; v < V; ++v) run[v] = Fold::no_run();
        TG_ROLLED
        for (int s = 0; s < chain; s += ahead) {
            typename Source::batch x[ahead];
            TG_UNROLL
            for (int k = 0; k < ahead; ++k) {
                if (s + k >= rows) continue;
                if constexpr (Flat)
                    p.source.read_flat(from + (s + k) * down, count, x[k]);
                else
                    p.source.read(base + p.reduced.offset(first + std::int64_t{s + k} * p.high), count, x[k]);
            }
            TG_UNROLL
            for (int k = 0; k < ahead; ++k)
                if (s + k < rows)
                    Source::each(x[k], [&](int v, const auto& value) { Fold::combine(run[v], Fold::from(value)); });
        }
        TG_UNROLL
        for (int v = 0; v < V; ++v) Fold::combine(total[v], Fold::joined(run[v]));
    }
}

/// Blocks per multiprocessor for which registers are reserved: otherwise the compiler plans for
/// three or four and spills.
inline constexpr int column_blocks = 2;

/// One-dimensional blocks of `reduce_threads` threads, any number of blocks. Steady columns have a
/// kernel of their own, since a kernel reserves registers for all of its paths.
template <class Fold, class T, bool Steady, class Source>
__global__ void __launch_bounds__(reduce_threads, Steady ? column_blocks : 1)
    reduce_columns(const __grid_constant__ dependent<column_arguments<Source>> given) {
    const column_arguments<Source>& p = given.after_predecessors();
    constexpr int V = Source::lanes;
    __shared__ typename Fold::total shared[V * reduce_threads];
    const int thread = static_cast<int>(threadIdx.x), across = static_cast<int>(p.wide.value);
    const box_place place(p);
    const int x = place.x, y = place.y;
    const std::int64_t wide = std::int64_t{V} * across;
    const std::int64_t tiles = std::int64_t{p.across.value} * p.down.value * p.parts;
    [[maybe_unused]] const bool flat = p.reduced.rank <= 1 && p.source.flat();
    TG_ROLLED
    for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const auto number = static_cast<std::uint32_t>(tile);
        const std::uint32_t line = p.across.quotient(number), part = p.down.quotient(line);
        const std::int64_t column = p.across.remainder(number, line) * wide + x * V, left = p.columns - column;
        const std::int64_t unit = std::int64_t{p.down.remainder(line, part)} * place.deep + place.z;
        const int count = y == p.high || unit >= p.units || left <= 0 ? 0 : (left < V ? static_cast<int>(left) : V);
        typename Fold::total total[V];
        TG_UNROLL
        for (int v = 0; v < V; ++v) total[v] = Fold::nothing();
        if (count > 0) {
            std::int64_t first = 0, last = p.length;
            if (p.parts > 1) {
                first = p.length * part / p.parts;
                last = p.length * (part + 1) / p.parts;
            }
            const std::int64_t base = p.kept.offset(unit) + column;
            if constexpr (Steady)
                fold_steadily<Fold>(p, base, first + y, last, total);
            else if (flat)
                fold_columns<Fold, true>(p, base, count, first + y, last, total);
            else
                fold_columns<Fold, false>(p, base, count, first + y, last, total);
        }
        if (p.y > 0) {
            TG_UNROLL
            for (int v = 0; v < V; ++v) shared[v * reduce_threads + thread] = total[v];
            TG_ROLLED
            for (int half = 1 << p.y >> 1; half > 0; half /= 2) {
                __syncthreads();
                if (y >= half || y + half >= p.high) continue;
                TG_UNROLL
                for (int v = 0; v < V; ++v) {
                    Fold::combine(total[v], shared[v * reduce_threads + thread + half * across]);
                    shared[v * reduce_threads + thread] = total[v];
                }
            }
            __syncthreads(); // the next iteration writes there
        }
        if (y != 0) continue;
        const std::int64_t at = unit * p.columns + column;
        TG_UNROLL
        for (int v = 0; v < V; ++v) {
            if (v >= count) continue;
            if (p.parts == 1)
                put<T>(p.out, at + v, total[v]);
            else
                static_cast<typename Fold::total*>(p.out)[part * p.units * p.columns + at + v] = total[v];
        }
    }
}

/// Writes the result of an empty reduction.
template <class Word>
__global__ void fill_words(Word* out, Word value, std::int64_t count) {
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
         i += std::int64_t{gridDim.x} * blockDim.x)
        out[i] = value;
}

} // namespace tapegraph::cuda::kernels
