#pragma once

#include <tapegraph/core/math/bits.hpp>
#include <tapegraph/cuda/kernels/gather.cuh>
#include <tapegraph/cuda/kernels/sort.cuh>

#include <cstdint>
#include <type_traits>

/// Additions at indexed positions without atomics (integers: scatter_integers.cuh). The indices
/// have been sorted, and each element of the result has one thread that adds its updates in the
/// order of the indices, as the CPU does. Memory plan:
///
///   scatter_add    A thread per element of the result searches its run among the sorted indices
///                  and reads the updates itself, a few at a time. No shared memory. It skips long
///                  runs.
///   scatter_runs   A block per long run (of a token that pads sentences, say) and up to 32
///                  columns: all threads load updates into shared memory (16 KiB), one thread per
///                  column adds them.

namespace tapegraph::cuda::kernels {

/// out [batches, outer, rows, width], of which the box is a part; updates [batches, outer, count,
/// width]. Sorted indices are rows of `count`, one for each batch, or with `by_column` for each
/// batch and column.
struct scattering {
    std::int64_t outer, rows, count, width;
    bool by_column;
    bool leave_long = false; ///< for scatter_add, when scatter_runs follows
    bool to_first = false;   ///< a run's sum goes to the place of its first update instead of the row of its key
};

/// The updates of one column of a slab, by position.
template <class T>
struct stored_column {
    const T* from;
    std::int64_t width;
    __device__ T operator[](std::int64_t position) const { return from[position * width]; }
};
template <class T>
__device__ stored_column<T> column_of(const T* updates, const scattering& s, std::int64_t, std::int64_t slab,
                                      std::int64_t column) {
    return {updates + slab * s.count * s.width + column, s.width};
}

/// Updates that are not stored: the rows of a table [batches, outer, sources, width] that `from`
/// [batches, count] names, times weights of its shape if these are not null. Of an index outside, which
/// has been reported, the row is zero.
template <class T>
struct messages {
    const T *table, *weights;
    index_view from;
    std::int64_t sources;
};
template <class T>
struct column_of_messages {
    const T *table, *weights;
    index_view from;
    std::int64_t first, sources, width;
    __device__ T operator[](std::int64_t position) const {
        const std::int64_t edge = first + position, source = from[edge];
        T value = inside(source, sources) ? table[source * width] : T(0);
        if constexpr (std::is_floating_point_v<T>)
            if (weights != nullptr) value = math::detail::product(value, weights[edge]);
        return value;
    }
};
template <class T>
__device__ column_of_messages<T> column_of(const messages<T>& m, const scattering& s, std::int64_t batch,
                                           std::int64_t slab, std::int64_t column) {
    return {m.table + slab * m.sources * s.width + column, m.weights, m.from, batch * s.count, m.sources, s.width};
}

template <class Key>
__device__ std::int64_t first_not_below(const sort_pair<Key>* pairs, std::int64_t low, std::int64_t high, Key key) {
    while (low < high) {
        const std::int64_t middle = (low + high) / 2;
        if (pairs[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/// The first sorted index of a batch, or of one of its columns.
template <class Key>
__device__ const sort_pair<Key>* sorted_row(const scattering& s, const sort_pair<Key>* sorted, std::int64_t batch,
                                            std::int64_t column) {
    return sorted + (s.by_column ? batch * s.width + column : batch) * s.count;
}

inline constexpr int long_run = 64; ///< scatter_runs handles runs of more updates

template <class T, class Key, class Updates = const T*>
__global__ void scatter_add(box<4> part, scattering s, const sort_pair<Key>* sorted, Updates updates, T* out) {
    if (thread_number() >= part.elements) return;
    const auto [batch, o, row, column] = part[thread_number()].at;
    const std::int64_t slab = batch * s.outer + o;
    const sort_pair<Key>* const pairs = sorted_row(s, sorted, batch, column);
    const Key key = static_cast<Key>(row);
    std::int64_t i = first_not_below(pairs, 0, s.count, key);
    T sum(0);
    if (i < s.count && pairs[i].key == key) {
        const bool is_long = i + long_run < s.count && pairs[i + long_run].key == key;
        if (is_long && s.leave_long) return;
        const auto from = column_of(updates, s, batch, slab, column);
        const std::int64_t most = !is_long && i + long_run < s.count ? i + long_run : s.count;
        const std::int64_t end = first_not_below(pairs, i + 1, most, static_cast<Key>(key + 1));
        constexpr int together = 4; // loads that do not wait for one another
        for (; i + together <= end; i += together) {
            T value[together];
            TG_UNROLL
            for (int k = 0; k < together; ++k) value[k] = from[pairs[i + k].position];
            TG_UNROLL
            for (int k = 0; k < together; ++k) sum = static_cast<T>(sum + value[k]);
        }
        for (; i < end; ++i) sum = static_cast<T>(sum + from[pairs[i].position]);
    }
    out[(slab * s.rows + row) * s.width + column] = sum;
}

inline constexpr int run_threads = 256;
template <class T>
inline constexpr int run_slots = sizeof(T) <= 4 ? 4096 : 2048;

/// Grid: [every long_run-th position of the sorted indices, batches and outer axes and tiles of
/// columns]. The block at the first such position in a long run handles the run. A tile has
/// `columns` columns, a power of two up to 32; with s.by_column it is 1.
template <class T, class Key, class Updates = const T*>
__global__ void scatter_runs(scattering s, int columns, std::int64_t first, const sort_pair<Key>* sorted,
                             Updates updates, T* out) {
    __shared__ T staged[run_slots<T>];
    const int t = static_cast<int>(threadIdx.x), own = t % columns, line = t / columns;
    const std::int64_t tiles = (s.width + columns - 1) / columns, number = first + blockIdx.y, slab = number / tiles;
    const std::int64_t column = (number - slab * tiles) * columns + own, batch = slab / s.outer;
    const sort_pair<Key>* const pairs = sorted_row(s, sorted, batch, column);
    const std::int64_t place = blockIdx.x * static_cast<std::int64_t>(long_run);
    const Key key = pairs[place].key;
    if (!s.to_first && static_cast<std::uint64_t>(key) >= static_cast<std::uint64_t>(s.rows))
        return; // outside: not added
    // The run begins after the position before, and does not end before long_run.
    const std::int64_t before = place >= long_run ? place - long_run : -1;
    if (before >= 0 && pairs[before].key == key) return;
    const std::int64_t begin = first_not_below(pairs, before + 1, place, key);
    if (begin + long_run >= s.count || pairs[begin + long_run].key != key) return;
    const std::int64_t end = first_not_below(pairs, begin + long_run, s.count, static_cast<Key>(key + 1));
    const int lines = run_threads / columns, together = run_slots<T> / columns;
    const auto from = column_of(updates, s, batch, slab, column);
    T sum(0);
    for (std::int64_t i = begin; i < end; i += together) {
        const int there = end - i < together ? static_cast<int>(end - i) : together;
        for (int k = line; k < there; k += lines)
            if (column < s.width) staged[k * columns + own] = from[pairs[i + k].position];
        __syncthreads();
        if (line == 0)
            for (int k = 0; k < there; ++k) sum = static_cast<T>(sum + staged[k * columns + own]);
        __syncthreads();
    }
    const std::int64_t row = s.to_first ? pairs[begin].position : slab * s.rows + static_cast<std::int64_t>(key);
    if (line == 0 && column < s.width) out[row * s.width + column] = sum;
}

} // namespace tapegraph::cuda::kernels
