#pragma once

#include <tapegraph/cuda/kernels/scatter.cuh>

#include <cstdint>

/// Sums over rows of equal index, and rows written to indexed positions. The keys of the indices
/// have been sorted, each with its position. Memory plan:
///
///   sum_runs       A thread per position and column; at the first position of a run it adds the
///                  run's rows in their order and writes the sum to the first of them. Neighbours
///                  have neighbouring columns. No shared memory. It leaves long runs to
///                  scatter_runs.
///   spread_sums    A thread per position and column copies its run's sum from there.
///   assign_rows    A thread per word of a row.

namespace tapegraph::cuda::kernels {

/// rows and out [s.count, s.width]; the box is a part of [places, columns].
template <class T, class Key>
__global__ void sum_runs(box<2> part, scattering s, const sort_pair<Key>* sorted, const T* rows, T* out) {
    if (thread_number() >= part.elements) return;
    const auto [place, column] = part[thread_number()].at;
    const Key key = sorted[place].key;
    if (place > 0 && sorted[place - 1].key == key) return;
    if (s.leave_long && place + long_run < s.count && sorted[place + long_run].key == key) return;
    T sum(0);
    for (std::int64_t i = place; i < s.count && sorted[i].key == key; ++i)
        sum = static_cast<T>(sum + rows[sorted[i].position * s.width + column]);
    out[sorted[place].position * s.width + column] = sum;
}

template <class T, class Key>
__global__ void spread_sums(box<2> part, scattering s, const sort_pair<Key>* sorted, T* out) {
    if (thread_number() >= part.elements) return;
    const auto [place, column] = part[thread_number()].at;
    const Key key = sorted[place].key;
    if (place == 0 || sorted[place - 1].key != key) return;
    const std::int64_t first = first_not_below(sorted, 0, place, key);
    out[sorted[place].position * s.width + column] = out[sorted[first].position * s.width + column];
}

/// table[indices[i], :] = rows[i, :]; rows [count, width] of words, of which the box is a part.
/// Rows of equal indices are equal.
template <class Word>
__global__ void assign_rows(box<2> part, std::int64_t n, std::int64_t width, index_view indices, const Word* rows,
                            Word* table, fault_report report) {
    if (thread_number() >= part.elements) return;
    const auto [place, column] = part[thread_number()].at;
    const std::int64_t index = indices[place];
    if (inside(index, n))
        table[index * width + column] = rows[place * width + column];
    else
        report(place, index, n);
}

} // namespace tapegraph::cuda::kernels
