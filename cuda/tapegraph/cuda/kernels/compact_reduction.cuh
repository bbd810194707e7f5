#pragma once

#include <tapegraph/cuda/kernels/dependent.cuh>
#include <tapegraph/cuda/kernels/reduction.cuh>

/// The reductions of kernels/reduction.cuh, rows or columns, in one kernel with a third of their
/// code, for formulas that would each need a copy of it. It folds in the same order and gives the
/// same bits. Operands that are read in order are distinguished only for columns of whole vectors,
/// which costs some integer arithmetic per vector elsewhere, and rows are folded in shared memory,
/// too (a total per thread and lane).

namespace tapegraph::cuda::kernels {

/// The values of one of a region's results, all of one type.
template <class Region>
struct compact_source;
template <class Slots, int Register, int... Others, class... Instructions>
struct compact_source<region<Slots, results<Register, Others...>, Instructions...>> {
    using access = region_access<region<Slots, results<Register, Others...>, Instructions...>>;
    using element =
        std::remove_cvref_t<decltype(machine::reg_at<Register>(std::declval<typename access::evaluator::file&>()))>;
    static constexpr int lanes = access::lanes;
    using batch = typename access::inputs;

    typename access::operands in;
    int wanted = 0; ///< index of the result

    template <class F>
    __device__ __forceinline__ void each(batch& x, const F& f) const {
        typename access::outputs y;
        access::evaluate(x, y);
        TG_UNROLL
        for (int v = 0; v < lanes; ++v)
            f(v, number_of<element>(chosen(y, v, std::make_integer_sequence<int, int(sizeof...(Others))>{})));
    }

private:
    // By selections, since the results of a formula's derivative share most of their instructions.
    template <int... K>
    __device__ __forceinline__ auto chosen(typename access::outputs& y, int v, std::integer_sequence<int, K...>) const {
        auto word = lanes_of<0>(y)[v];
        ((word = wanted == K + 1 ? lanes_of<K + 1>(y)[v] : word), ...);
        return word;
    }
};

template <class Source>
inline constexpr bool is_compact = false;
template <class Region>
inline constexpr bool is_compact<compact_source<Region>> = true;

/// As column_arguments; for rows, `high` is the number of their threads and there is one column.
template <class Source>
struct compact_arguments : column_arguments<Source> {
    bool by_rows = false;
};

/// Folds every `high`-th row of [first, last), or vector of a row. The total of a row is that of
/// its first lane.
template <class Fold, class Source>
__device__ __forceinline__ void fold_compact(const compact_arguments<Source>& p, std::int64_t base, int count,
                                             std::int64_t first, std::int64_t last,
                                             typename Fold::total (&total)[Source::lanes]) {
    constexpr int V = Source::lanes;
    const std::int64_t step = std::int64_t{p.by_rows ? V : 1} * p.high;
    TG_ROLLED
    while (first < last) {
        typename Fold::run run[V];
        TG_UNROLL
        for (int v = 0; v < V; ++v) run[v] = Fold::no_run();
        TG_ROLLED
        for (int s = 0; s < chain && first < last; ++s, first += step) {
            const int here = !p.by_rows ? count : last - first < V ? static_cast<int>(last - first) : V;
            std::int64_t at[1], offsets[Source::access::operands::lists];
            const std::int64_t place = p.reduced.offsets(first, at);
            const bool together =
                !p.by_rows || p.reduced.rank <= 1 || place + here <= p.reduced.extents[p.reduced.rank - 1];
            typename Source::batch x{};
            if (!together || !Source::access::read_together(p.source.in, base + at[0], here, x, offsets))
                Source::access::read_singly(
                    p.source.in,
                    [&](int v) { return together ? base + at[0] + v : base + p.reduced.offset(first + v); }, here, x);
            p.source.each(x, [&](int v, const auto& value) {
                if (v < here) Fold::combine(run[v], Fold::from(value));
            });
        }
        if (p.by_rows) {
            Fold::combine(total[0], Fold::joined(halved<Fold>(run)));
        } else {
            TG_UNROLL
            for (int v = 0; v < V; ++v) Fold::combine(total[v], Fold::joined(run[v]));
        }
    }
}

/// One-dimensional blocks of `reduce_threads` threads, any number of blocks.
template <class Fold, class T, class Source>
__global__ void __launch_bounds__(reduce_threads, column_blocks)
    reduce_compact(const __grid_constant__ dependent<compact_arguments<Source>> given) {
    const compact_arguments<Source>& p = given.after_predecessors();
    constexpr int V = Source::lanes;
    __shared__ typename Fold::total shared[V * reduce_threads];
    const int thread = static_cast<int>(threadIdx.x), across = static_cast<int>(p.wide.value);
    const box_place box(p);
    const int x = box.x, y = box.y;
    const std::int64_t wide = std::int64_t{V} * across;
    const std::int64_t tiles = std::int64_t{p.across.value} * p.down.value * p.parts;
    TG_ROLLED
    for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const auto number = static_cast<std::uint32_t>(tile);
        const std::uint32_t line = p.across.quotient(number), part = p.down.quotient(line);
        const std::int64_t column = p.across.remainder(number, line) * wide + x * V, left = p.columns - column;
        const std::int64_t unit = std::int64_t{p.down.remainder(line, part)} * box.deep + box.z;
        const int count = y == p.high || unit >= p.units || left <= 0 ? 0 : (left < V ? static_cast<int>(left) : V);
        typename Fold::total total[V];
        TG_UNROLL
        for (int v = 0; v < V; ++v) total[v] = Fold::nothing();
        if (count > 0) {
            std::int64_t first = 0, last = p.length;
            if (p.parts > 1) { // of a row: whole steps
                const std::int64_t step = p.by_rows ? wide * p.high : 1, steps = (p.length + step - 1) / step;
                first = steps * part / p.parts * step;
                if (part + 1 < p.parts) last = steps * (part + 1) / p.parts * step;
            }
            const std::int64_t base = p.kept.offset(unit) + column;
            first += y * (p.by_rows ? V : 1);
            if (p.steady)
                fold_steadily<Fold, Source>(p, base, first, last, total);
            else
                fold_compact<Fold>(p, base, count, first, last, total);
        }
        if (p.y > 0) {
            TG_UNROLL
            for (int v = 0; v < V; ++v) shared[v * reduce_threads + thread] = total[v];
            int done = 0;
            TG_ROLLED
            for (int s = 0; s < p.y; ++s) {
                // In the order in which reduce_rows folds the threads of a warp and then the warps.
                const int half =
                    p.by_rows && p.y > 5 ? (s < 5 ? 16 >> s : 1 << (p.y - 1) >> (s - 5)) : 1 << (p.y - 1) >> s;
                __syncthreads();
                done |= half;
                if ((y & done) != 0 || y + half >= p.high) continue;
                TG_UNROLL
                for (int v = 0; v < V; ++v) {
                    Fold::combine(total[v], shared[v * reduce_threads + thread + half * across]);
                    shared[v * reduce_threads + thread] = total[v];
                }
            }
            __syncthreads(); // the next iteration writes there
        }
        if (y != 0) continue;
        TG_UNROLL
        for (int v = 0; v < V; ++v) {
            if (v >= count) continue;
            const std::int64_t at = unit * p.columns + column + v;
            if (p.parts == 1)
                put<T>(p.out, at, total[v]);
            else
                static_cast<typename Fold::total*>(
                    p.out)[p.by_rows ? unit * p.parts + part : part * p.units * p.columns + at] = total[v];
        }
    }
}

} // namespace tapegraph::cuda::kernels
