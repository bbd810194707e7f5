#pragma once

#include <tapegraph/cuda/kernels/sort.cuh>

#include <cstdint>

/// Additions where indices point, without atomics: the indices have been sorted, and a thread per element of the result adds what
/// belongs there in the order of the indices, as the CPU does. No shared memory.

namespace tapegraph::cuda::kernels {

/// out [batches, outer, rows, width], of which the box is a part; updates [batches, outer, count, width]. Sorted indices
/// lie in rows of `count`, one for each batch, or with `by_column` for each batch and column.
struct scattering {
    std::int64_t outer, rows, count, width;
    bool by_column;
};

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

template <class T, class Key>
__global__ void scatter_add(box<4> part, scattering s, const sort_pair<Key>* sorted, const T* updates, T* out) {
    if (thread_number() >= part.elements) return;
    const auto [batch, o, row, column] = part[thread_number()].at;
    const std::int64_t slab = batch * s.outer + o;
    const sort_pair<Key>* const pairs = sorted + (s.by_column ? batch * s.width + column : batch) * s.count;
    const Key key = static_cast<Key>(row);
    std::int64_t i = first_not_below(pairs, 0, s.count, key);
    T sum(0);
    if (i < s.count && pairs[i].key == key) {
        const std::int64_t end = first_not_below(pairs, i + 1, s.count, static_cast<Key>(key + 1));
        const T* const from = updates + slab * s.count * s.width + column;
        constexpr int together = 4; // loads that do not wait for one another
        for (; i + together <= end; i += together) {
            T value[together];
            TG_UNROLL
            for (int k = 0; k < together; ++k) value[k] = from[pairs[i + k].position * s.width];
            TG_UNROLL
            for (int k = 0; k < together; ++k) sum = static_cast<T>(sum + value[k]);
        }
        for (; i < end; ++i) sum = static_cast<T>(sum + from[pairs[i].position * s.width]);
    }
    out[(slab * s.rows + row) * s.width + column] = sum;
}

} // namespace tapegraph::cuda::kernels
