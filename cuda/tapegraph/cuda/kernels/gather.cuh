#pragma once

#include <tapegraph/core/shape.hpp>
#include <tapegraph/cuda/kernels/box.cuh>
#include <tapegraph/cuda/kernels/fault.cuh>

#include <cstdint>

/// Gathers elements by index. A thread per element (or word of a slice) of the result, with
/// neighbours side by side; no shared memory. An index outside its axis is reported, and the result
/// is zero in its place.

namespace tapegraph::cuda::kernels {

/// Indices of either type.
struct index_view {
    const void* at = nullptr;
    bool wide = false; ///< std::int64_t instead of std::int32_t

    __device__ std::int64_t operator[](std::int64_t i) const {
        return wide ? static_cast<const std::int64_t*>(at)[i] : static_cast<const std::int32_t*>(at)[i];
    }
};

__device__ inline bool inside(std::int64_t index, std::int64_t extent) { return index >= 0 && index < extent; }

/// Checks indices where nothing is gathered because slices are empty.
template <class = void> // a template, so that several sources may define it
__global__ void check_indices(std::int64_t first, std::int64_t end, std::int64_t extent, index_view indices,
                              fault_report report) {
    const std::int64_t i = first + thread_number();
    if (i < end && !inside(indices[i], extent)) report(i, indices[i], extent);
}

/// The rows that tuples of indices select: flat[i] = the row-major index of indices[i, :] within
/// `extents`, or -1.
struct tuple_shape {
    int depth = 0;
    std::int64_t extents[max_rank]{};
};
template <class = void> // a template, so that several sources may define it
__global__ void flatten_tuples(const __grid_constant__ tuple_shape t, std::int64_t first, std::int64_t end,
                               index_view indices, std::int64_t* flat, fault_report report) {
    const std::int64_t i = first + thread_number();
    if (i >= end) return;
    std::int64_t row = 0;
    for (int k = 0; k < t.depth; ++k) {
        const std::int64_t index = indices[i * t.depth + k];
        if (!inside(index, t.extents[k])) {
            report(i * t.depth + k, index, t.extents[k]);
            row = -1;
            break;
        }
        row = row * t.extents[k] + index;
    }
    flat[i] = row;
}

/// out[b, o, j, :] = table[b, o, indices[b, j], :]; table [batches, outer, rows, width] of words,
/// indices [batches, count], out [batches, outer, count, width], of which the box is a part.
struct gathering {
    std::int64_t outer, rows, count, width;
    bool checked; ///< indices outside have already been reported
};
template <class Word>
__global__ void gather(box<4> part, gathering g, index_view indices, const Word* table, Word* out,
                       fault_report report) {
    if (thread_number() >= part.elements) return;
    const auto [batch, o, pick, column] = part[thread_number()].at;
    const std::int64_t place = batch * g.count + pick, slab = batch * g.outer + o, index = indices[place];
    const bool valid = inside(index, g.rows);
    if (!valid && !g.checked) report(place, index, g.rows);
    out[(slab * g.count + pick) * g.width + column] =
        valid ? table[(slab * g.rows + index) * g.width + column] : Word{};
}

/// out[o, j, i] = x[o, indices[o, j, i], i]; x [outer, length, inner], indices and out [outer, picks, inner].
template <class Word>
__global__ void take_along(box<3> part, std::int64_t length, std::int64_t picks, std::int64_t inner, index_view indices,
                           const Word* x, Word* out, fault_report report) {
    if (thread_number() >= part.elements) return;
    const auto [o, j, i] = part[thread_number()].at;
    const std::int64_t place = (o * picks + j) * inner + i, index = indices[place];
    const bool valid = inside(index, length);
    if (!valid) report(place, index, length);
    out[place] = valid ? x[(o * length + index) * inner + i] : Word{};
}

/// out[o, k, i] = k == indices[o, i] ? on : off; indices [outer, inner], out [outer, depth, inner].
template <class Word>
__global__ void one_hot(box<3> part, std::int64_t depth, std::int64_t inner, index_view indices, Word on, Word off,
                        Word* out, fault_report report) {
    if (thread_number() >= part.elements) return;
    const auto [o, k, i] = part[thread_number()].at;
    const std::int64_t place = o * inner + i, index = indices[place];
    if (k == 0 && !inside(index, depth)) report(place, index, depth);
    out[(o * depth + k) * inner + i] = index == k ? on : off;
}

} // namespace tapegraph::cuda::kernels
