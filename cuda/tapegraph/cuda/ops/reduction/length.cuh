#pragma once

#include <tapegraph/cuda/kernels/box.cuh>
#include <tapegraph/cuda/kernels/strided_index.cuh>
#include <tapegraph/cuda/lines.cuh>
#include <tapegraph/ops/reduction/length_kernel.hpp>

/// Lengths of floats or doubles, a thread for each: a root, and seldom its numbers once more.

namespace tapegraph::cuda {

namespace kernels {
template <class T>
__global__ void lengths(strided_index<1> kept, strided_index<1> along, const T* x, const T* squares, T* out,
                        std::int64_t first, std::int64_t end) {
    const std::int64_t i = first + thread_number();
    if (i >= end) return;
    const T* const from = x + kept.offset(i);
    out[i] =
        tapegraph::detail::length_of(squares[i], along.size, [&](std::int64_t j) { return from[along.offset(j)]; });
}
} // namespace kernels

template <class T>
    requires std::is_floating_point_v<T>
struct kernel<tapegraph::detail::length_op, T> {
    static void run(const kernel_call& c) {
        const std::int64_t count = c.out[0].elements();
        if (count == 0) return;
        kernels::strided_index<1> kept, along;
        const buffer_view &x = c.in[0], &sums = c.in[1];
        std::int64_t strides[max_rank], stride = 1;
        for (int i = x.rank; i-- > 0; stride *= x.extents[i]) strides[i] = stride;
        for (int i = 0; i < x.rank; ++i)
            if (x.extents[i] == 0)
                along.size = 0; // there are results, so a reduced axis is empty
            else if (x.extents[i] != 1)
                (sums.extents[i] == 1 ? along : kept).add(x.extents[i], &strides[i]);
        detail::for_pieces(count, [&](std::int64_t first, std::int64_t pieces) {
            launch(c, "length", detail::over(pieces, 128), kernels::lengths<T>, kept, along, x.as<const T>(),
                   sums.as<const T>(), c.out[0].as<T>(), first, first + pieces);
        });
    }
};

} // namespace tapegraph::cuda
