#pragma once

#include <tapegraph/ops/movement/index_map.hpp>
#include <tapegraph/core/shape.hpp>
#include <tapegraph/cuda/kernels/box.cuh>

#include <cstdint>

/// Moves elements: every element of the result comes from one position, or is a constant. Nothing
/// depends on the elements' type, only on their size. Memory plan:
///
///   rearrange         A thread per element of the result, with neighbours side by side; no shared
///                     memory. Where runs are contiguous on both sides, the host combines them into
///                     words of 16 bytes.
///   transpose_tiles   For operand and result with different contiguous axes: a tile of 32 x 32 is
///                     read along the one and written along the other. Shared memory: the tile, its
///                     rows one element more than a multiple of the banks apart.

namespace tapegraph::cuda::kernels {

enum class axis_rule : int {
    strided, ///< the operand contains the position itself
    placed,  ///< element i of the operand is at begin + step * i, with a constant between them
    mapped   ///< an index_map
};

/// One axis of the result, or of the part of it that a launch covers.
struct rearranged_axis {
    divisor count;          ///< positions in this launch
    std::int64_t first = 0; ///< the first of them
    std::int64_t out_stride = 0, in_stride = 0;
    axis_rule rule = axis_rule::strided;
    index_map map = index_map::keep;
    std::int64_t begin = 0, step = 1;   ///< for placed
    std::int64_t amount = 0;            ///< for mapped
    std::int64_t extent = 0, limit = 0; ///< extent of the operand's axis; of the result's
};

struct rearrangement {
    int rank = 0;
    std::uint32_t elements = 0; ///< below 2^31
    rearranged_axis axes[max_rank];
};

/// The operand's position for `position` of the result, or -1.
__device__ inline std::int64_t source_of(const rearranged_axis& a, std::int64_t position) {
    if (a.rule == axis_rule::strided) return position;
    if (a.rule == axis_rule::placed) {
        const std::int64_t away = a.step > 0 ? position - a.begin : a.begin - position,
                           step = a.step > 0 ? a.step : -a.step;
        if (away < 0) return -1;
        const std::int64_t i = step == 1 ? away : away / step;
        return i < a.extent && i * step == away ? i : -1;
    }
    constexpr std::int64_t narrow = std::int64_t{1} << 29; // 32 bits hold all that is computed, and divide faster
    if (a.limit < narrow && a.extent < narrow && a.amount < narrow && a.amount > -narrow)
        return run_at<std::int32_t>(a.map, static_cast<std::int32_t>(a.extent), static_cast<std::int32_t>(a.amount),
                                    static_cast<std::int32_t>(position), static_cast<std::int32_t>(a.limit))
            .first;
    return run_at<std::int64_t>(a.map, a.extent, a.amount, position, a.limit).first;
}

template <class Word>
__global__ void rearrange(rearrangement r, const Word* in, Word* out, Word fill) {
    std::uint32_t rest = thread_number();
    if (rest >= r.elements) return;
    std::int64_t from = 0, to = 0;
    bool inside = true;
    for (int i = r.rank; i-- > 0;) {
        const rearranged_axis& a = r.axes[i];
        const std::uint32_t next = i > 0 ? a.count.quotient(rest) : 0;
        const std::int64_t position = a.first + a.count.remainder(rest, next);
        rest = next;
        const std::int64_t source = source_of(a, position);
        inside = inside && source >= 0;
        from += source * a.in_stride;
        to += position * a.out_stride;
    }
    out[to] = inside ? in[from] : fill;
}

/// A copy in which the operand is contiguous along the rows and the result along the columns.
struct turned_copy {
    std::int64_t rows = 1, columns = 1;
    std::int64_t in_column = 0, out_row = 0; ///< strides; the others are 1
    divisor row_tiles, column_tiles;
    int rank = 0; ///< of the outer axes
    divisor count[max_rank];
    std::int64_t in[max_rank]{}, out[max_rank]{};
};

inline constexpr int transpose_tile = 32, transpose_lines = 8; ///< a block has 32 x 8 threads

template <class Word>
__global__ void transpose_tiles(turned_copy t, const Word* in, Word* out) {
    constexpr int pad =
        sizeof(Word) < 4 ? 4 / static_cast<int>(sizeof(Word)) : 1; // an odd number of banks from row to row
    __shared__ Word tile[transpose_tile][transpose_tile + pad];
    std::uint32_t rest = blockIdx.x;
    std::uint32_t next = t.column_tiles.quotient(rest);
    const std::int64_t column = static_cast<std::int64_t>(t.column_tiles.remainder(rest, next)) * transpose_tile;
    rest = next, next = t.row_tiles.quotient(rest);
    const std::int64_t row = static_cast<std::int64_t>(t.row_tiles.remainder(rest, next)) * transpose_tile;
    rest = next;
    for (int i = t.rank; i-- > 0;) {
        next = t.count[i].quotient(rest);
        const std::int64_t position = t.count[i].remainder(rest, next);
        rest = next;
        in += position * t.in[i];
        out += position * t.out[i];
    }
    const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
    TG_UNROLL
    for (int k = y; k < transpose_tile; k += transpose_lines)
        if (row + x < t.rows && column + k < t.columns) tile[k][x] = in[row + x + (column + k) * t.in_column];
    __syncthreads();
    TG_UNROLL
    for (int k = y; k < transpose_tile; k += transpose_lines)
        if (row + k < t.rows && column + x < t.columns) out[(row + k) * t.out_row + column + x] = tile[x][k];
}

} // namespace tapegraph::cuda::kernels
