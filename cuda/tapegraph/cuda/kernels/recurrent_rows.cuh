#pragma once

#include <tapegraph/cuda/kernels/recurrent_cell.cuh>

/// Copies the states that a recurrent layer left to the rows of a result. A warp copies a row at a
/// time; any grid, blocks of whole warps.

namespace tapegraph::cuda::kernels {

template <class T>
struct recurrent_copy {
    step_rows<const T> h, c;  ///< states after every step
    const T *h0, *c0;         ///< [batch, units]: those after step -1; null: zeros
    step_rows<const T> reset; ///< if r h is stored with every h, r of the step after it
    int reset_width;          ///< units from one row of these to the next
    T* out;                   ///< [batch, rows + cell, units or, with r h, 2 units]
    std::int64_t rows;        ///< h of steps first to first + rows - 1
    int first, cell;          ///< cell: 1 if c of the last step follows
};

template <class T>
__global__ void copy_recurrent_rows(recurrent_copy<T> p, recurrent_shape s) {
    const int lane = static_cast<int>(threadIdx.x % 32), warps = static_cast<int>(blockDim.x / 32);
    const std::int64_t each = p.rows + p.cell, width = p.reset.data == nullptr ? s.units : 2ll * s.units;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / 32; i < s.batch * each;
         i += static_cast<std::int64_t>(gridDim.x) * warps) {
        const int sample = static_cast<int>(i / each);
        const std::int64_t row = i % each;
        const bool of_c = row == p.rows;
        const int step = of_c ? s.time - 1 : p.first + static_cast<int>(row);
        const T* const from =
            of_c ? s.before(p.c, p.c0, sample, step + 1, 0) : s.before(p.h, p.h0, sample, step + 1, 0);
        T* const to = p.out + i * width;
        for (int unit = lane; unit < s.units; unit += 32) {
            const T h = from == nullptr ? T(0) : from[unit];
            to[unit] = h;
            if (p.reset.data != nullptr)
                to[s.units + unit] = p.reset.data[s.row(p.reset, sample, step + 1, p.reset_width) + unit] * h;
        }
    }
}

} // namespace tapegraph::cuda::kernels
