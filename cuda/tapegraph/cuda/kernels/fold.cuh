#pragma once

#include <tapegraph/ops/movement/index_map.hpp>
#include <tapegraph/core/shape.hpp>
#include <tapegraph/cuda/kernels/box.cuh>

#include <cstdint>

/// The adjoint of a mapped rearrangement. A thread per element of the result collects the elements
/// of dy that were made from it, in dy's order, so that sums have the CPU's bits and nothing is
/// added atomically. No shared memory.

namespace tapegraph::cuda::kernels {

struct folded_axis {
    divisor count;          ///< positions of the result in this launch
    std::int64_t first = 0; ///< the first of them
    std::int64_t out_stride = 0, dy_stride = 0;
    index_map map = index_map::keep;
    std::int64_t amount = 0, extent = 0, limit = 0; ///< as in rearranged_axis: extent of the result, limit of dy
};

struct folding {
    int rank = 0;
    std::uint32_t elements = 0;
    folded_axis axes[max_rank];
};

template <class T>
__global__ void fold(folding f, const T* dy, T* out) {
    std::uint32_t rest = thread_number();
    if (rest >= f.elements) return;
    // Iterates over the positions of all mapped axes, the last one fastest.
    index_positions at[max_rank];
    std::int64_t own[max_rank], stride[max_rank], from = 0, to = 0;
    int axis[max_rank];
    int mapped = max_rank;
    bool none = false;
    for (int i = f.rank; i-- > 0;) {
        const folded_axis& a = f.axes[i];
        const std::uint32_t next = i > 0 ? a.count.quotient(rest) : 0;
        const std::int64_t position = a.first + a.count.remainder(rest, next);
        rest = next;
        to += position * a.out_stride;
        if (a.map == index_map::keep) {
            from += position * a.dy_stride;
            continue;
        }
        --mapped;
        axis[mapped] = i;
        own[mapped] = position;
        stride[mapped] = a.dy_stride;
        at[mapped] = positions_of(a.map, a.extent, a.amount, position, a.limit);
        none = none || at[mapped].done();
        from += at[mapped].position() * a.dy_stride;
    }
    T sum(0);
    while (!none) {
        sum = static_cast<T>(sum + dy[from]);
        none = true;
        for (int i = max_rank; none && i-- > mapped;) {
            from -= at[i].position() * stride[i];
            at[i].next();
            none = at[i].done();
            if (none) {
                const folded_axis& a = f.axes[axis[i]];
                at[i] = positions_of(a.map, a.extent, a.amount, own[i], a.limit);
            }
            from += at[i].position() * stride[i];
        }
    }
    out[to] = sum;
}

} // namespace tapegraph::cuda::kernels
