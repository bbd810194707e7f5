#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/ops/movement/cpu.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

/// Selects elements and rows by index, and computes the adjoints. Index is std::int32_t or
/// std::int64_t. Indices are checked before anything runs in parallel (an exception must not leave
/// a parallel region). Additions happen in the order of the indices, for any number of threads.

namespace tapegraph::cpu {

namespace gather_detail {

inline constexpr std::int64_t parallel_elements = 32768;
inline constexpr std::int64_t task_elements = 16384;

/// Throws range_error for the first index outside [0, limit).
template <class Index>
TG_VECTORISES void check(const char* operation, const Index* indices, std::int64_t count, std::int64_t limit) {
    for (std::int64_t i = 0; i < count; i += 1024) {
        const std::int64_t end = std::min(count, i + 1024);
        int bad = 0;
        TG_SIMD
        for (std::int64_t k = i; k < end; ++k)
            bad |= (indices[k] < 0) | (static_cast<std::int64_t>(indices[k]) >= limit);
        if (bad == 0) continue;
        for (std::int64_t k = i; k < end; ++k)
            if (indices[k] < 0 || indices[k] >= limit)
                throw index_error(index_outside(operation, indices[k], std::to_string(k), limit), indices[k], k);
    }
}

// Adds columns [first, last) of the updates to the rows [low, high) of out, in the order of the
// updates.
template <class T, class Index>
struct add_rows_body {
    template <class Isa>
    TG_INLINE static void run(const Index* indices, std::int64_t count, const T* updates, std::int64_t width,
                              std::int64_t first, std::int64_t last, std::int64_t low, std::int64_t high, T* out) {
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t row = indices[i];
            if (row < low || row >= high) continue;
            const T* from = updates + i * width;
            T* into = out + row * width;
            TG_SIMD
            for (std::int64_t c = first; c < last; ++c) into[c] += from[c];
        }
    }
};

// y[i] = x[indices[i]], or, where rows are `stride` apart and one element per column is selected,
// y[i] = x[indices[i] * stride + i].
template <int Size, class Index>
void take_row(const void* from, const Index* indices, std::int64_t count, std::int64_t stride, void* to) {
    using element = typename layout_detail::word<Size>::type;
    const element* x = static_cast<const element*>(from);
    element* y = static_cast<element*>(to);
    if (stride == 1)
        for (std::int64_t i = 0; i < count; ++i) y[i] = x[indices[i]];
    else
        for (std::int64_t i = 0; i < count; ++i) y[i] = x[indices[i] * stride + i];
}

template <class F>
void over_rows(std::int64_t rows, std::int64_t row_elements, const F& f) {
    const std::int64_t in_task = std::max<std::int64_t>(1, task_elements / std::max<std::int64_t>(1, row_elements));
    parallel_for((rows + in_task - 1) / in_task, rows * row_elements >= parallel_elements, [&](std::int64_t task) {
        for (std::int64_t r = task * in_task, end = std::min(rows, r + in_task); r < end; ++r) f(r);
    });
}

} // namespace gather_detail

namespace gather_detail {

template <int Bytes, class Index>
void copy_slices(const char* table, const Index* indices, std::int64_t count, std::size_t, char* out, bool) {
    for (std::int64_t i = 0; i < count; ++i)
        std::memcpy(out + i * Bytes, table + static_cast<std::int64_t>(indices[i]) * Bytes, Bytes);
}
template <class Index>
void copy_any_slices(const char* table, const Index* indices, std::int64_t count, std::size_t size, char* out,
                     bool streaming) {
    const auto bytes = static_cast<std::int64_t>(size), prefetched = std::min<std::int64_t>(bytes, 2048);
    const std::int64_t ahead = std::min<std::int64_t>(16, 4096 / bytes);
    for (std::int64_t i = 0; i < count; ++i, out += bytes) {
        // Prefetches, because the processor cannot predict the next slices.
        if (i + ahead < count)
            for (std::int64_t line = 0; line < prefetched; line += 64)
                __builtin_prefetch(table + static_cast<std::int64_t>(indices[i + ahead]) * bytes + line);
        const char* const from = table + static_cast<std::int64_t>(indices[i]) * bytes;
        if (streaming)
            layout_detail::move_streaming(out, from, bytes);
        else
            layout_detail::move_bytes(out, from, bytes);
    }
    if (streaming) layout_detail::finish_streaming();
}

} // namespace gather_detail

/// out[b, o, j, :] = table[b, o, indices[b, j], :]; table is [batches, outer, rows, width] with
/// elements of any `size` in bytes, indices [batches, count], out [batches, outer, count, width].
/// Throws range_error for an index outside [0, rows).
template <class Index>
void gather_slices(std::int64_t batches, std::int64_t outer, std::int64_t rows, std::int64_t width, std::size_t size,
                   const void* table, std::int64_t count, const Index* indices, void* out,
                   const char* operation = "gather", bool checked = false) {
    using namespace gather_detail;
    if (!checked) check(operation, indices, batches * count, rows);
    const std::size_t bytes = static_cast<std::size_t>(width) * size;
    if (bytes == 0 || count == 0) return;
    const auto move = bytes == 1    ? &copy_slices<1, Index>
                      : bytes == 2  ? &copy_slices<2, Index>
                      : bytes == 4  ? &copy_slices<4, Index>
                      : bytes == 8  ? &copy_slices<8, Index>
                      : bytes == 16 ? &copy_slices<16, Index>
                      : bytes == 32 ? &copy_slices<32, Index>
                                    : &copy_any_slices<Index>;
    const std::int64_t slabs = batches * outer, step = std::max<std::int64_t>(1, task_elements / width);
    const std::int64_t pieces = (count + step - 1) / step, units = slabs * pieces;
    const std::int64_t in_task = std::max<std::int64_t>(1, task_elements / (std::min(step, count) * width));
    const bool streaming =
        bytes >= 256 && static_cast<std::int64_t>(bytes) * slabs * count >= layout_detail::streaming_bytes;
    parallel_for((units + in_task - 1) / in_task, slabs * count * width >= parallel_elements, [&](std::int64_t task) {
        for (std::int64_t unit = task * in_task, end = std::min(units, unit + in_task); unit < end; ++unit) {
            const std::int64_t slab = unit / pieces, first = unit % pieces * step;
            move(static_cast<const char*>(table) + static_cast<std::size_t>(slab * rows) * bytes,
                 indices + slab / outer * count + first, std::min(step, count - first), bytes,
                 static_cast<char*>(out) + static_cast<std::size_t>(slab * count + first) * bytes, streaming);
        }
    });
}

/// One batch, with slices along the first axis: table [rows, width], out [count, width].
template <class Index>
void gather_rows(std::int64_t rows, std::int64_t width, std::size_t size, const void* table, std::int64_t count,
                 const Index* indices, void* out) {
    gather_slices(1, 1, rows, width, size, table, count, indices, out);
}

/// out [batches, outer, rows, width] = zeros, then out[b, o, indices[b, j], :] += updates[b, o, j, :] for j = 0, 1, ...: the
/// adjoint of `gather_slices`. Throws range_error for an index outside [0, rows).
template <class T, class Index>
void scatter_add_slices(std::int64_t batches, std::int64_t outer, std::int64_t rows, std::int64_t width,
                        const T* updates, std::int64_t count, const Index* indices, T* out,
                        const char* operation = "scatter_add", bool checked = false) {
    using namespace gather_detail;
    if (!checked) check(operation, indices, batches * count, rows);
    const std::int64_t slabs = batches * outer;
    zero(static_cast<std::size_t>(slabs * rows * width) * sizeof(T), out);
    // Threads divide the slabs; where there are few, they also divide the columns, or the rows of
    // out where columns are few, too. Either way one thread owns each element.
    const bool parallel = slabs * count * width >= parallel_elements;
    const std::int64_t threads = parallel ? thread_count() : 1, parts = slabs >= 4 * threads ? 1 : threads;
    parallel_for(slabs * parts, parallel, [&](std::int64_t task) {
        const std::int64_t slab = task / parts, part = task % parts;
        const Index* const index = indices + slab / outer * count;
        const T* const from = updates + slab * count * width;
        T* const to = out + slab * rows * width;
        if (width >= 32 * parts) {
            const std::int64_t step = ((width + parts - 1) / parts + 15) / 16 * 16;
            dispatch<add_rows_body<T, Index>>(index, count, from, width, std::min(width, part * step),
                                              std::min(width, (part + 1) * step), std::int64_t{0}, rows, to);
        } else {
            dispatch<add_rows_body<T, Index>>(index, count, from, width, std::int64_t{0}, width, rows * part / parts,
                                              rows * (part + 1) / parts, to);
        }
    });
}

/// One batch, with slices along the first axis.
template <class T, class Index>
void scatter_add_rows(std::int64_t rows, std::int64_t width, const T* updates, std::int64_t count, const Index* indices,
                      T* out) {
    scatter_add_slices(1, 1, rows, width, updates, count, indices, out);
}

/// Flattens index tuples: flat[i] = the row-major number of indices[i, :] within the `depth`
/// extents. Throws range_error for the first index outside its extent.
template <class Index>
void flat_indices(const char* operation, std::int64_t count, std::int64_t depth, const std::int64_t* extents,
                  const Index* indices, std::int64_t* flat) {
    for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t row = 0;
        for (std::int64_t k = 0; k < depth; ++k) {
            const auto index = static_cast<std::int64_t>(indices[i * depth + k]);
            if (index < 0 || index >= extents[k])
                throw range_error(index_outside(operation, index,
                                                "[" + std::to_string(i) + ", " + std::to_string(k) + "]", extents[k]));
            row = row * extents[k] + index;
        }
        flat[i] = row;
    }
}

/// out[o, j, i] = x[o, indices[o, j, i], i]; x is [outer, length, inner] with elements of `size`
/// bytes (1, 2, 4 or 8), indices and out are [outer, picks, inner]. Throws range_error for an index
/// outside [0, length).
template <class Index>
void take_along(std::int64_t outer, std::int64_t length, std::int64_t inner, std::size_t size, const void* x,
                std::int64_t picks, const Index* indices, void* out) {
    using namespace gather_detail;
    check("take_along", indices, outer * picks * inner, length);
    const auto take = size == 1   ? &take_row<1, Index>
                      : size == 2 ? &take_row<2, Index>
                      : size == 4 ? &take_row<4, Index>
                      : size == 8 ? &take_row<8, Index>
                                  : nullptr;
    if (take == nullptr)
        throw dtype_error("take_along: elements of " + std::to_string(size) + " bytes are not supported");
    const auto step = static_cast<std::int64_t>(size);
    if (inner == 1) { // one call per row
        over_rows(outer, picks, [&](std::int64_t o) {
            take(static_cast<const char*>(x) + o * length * step, indices + o * picks, picks, 1,
                 static_cast<char*>(out) + o * picks * step);
        });
        return;
    }
    over_rows(outer * picks, inner, [&](std::int64_t row) {
        take(static_cast<const char*>(x) + row / picks * length * inner * step, indices + row * inner, inner, inner,
             static_cast<char*>(out) + row * inner * step);
    });
}

/// out [outer, length, inner] = zeros, then out[o, indices[o, j, i], i] += values[o, j, i] for j = 0, 1, ...: the adjoint of
/// `take_along`. Throws range_error for an index outside [0, length).
template <class T, class Index>
void put_along(std::int64_t outer, std::int64_t length, std::int64_t inner, const T* values, std::int64_t picks,
               const Index* indices, T* out) {
    using namespace gather_detail;
    check("put_along", indices, outer * picks * inner, length);
    // A task owns a slab's elements, or some of its columns where slabs are large and few.
    const std::int64_t wide = (length + picks) * inner > task_elements ? std::min<std::int64_t>(inner, 256) : inner;
    const std::int64_t pieces = wide == 0 ? 0 : (inner + wide - 1) / wide;
    over_rows(outer * pieces, (length + picks) * wide, [&](std::int64_t task) {
        const std::int64_t o = task / pieces, first = task % pieces * wide, last = std::min(inner, first + wide);
        T* const into = out + o * length * inner;
        for (std::int64_t k = 0; k < length; ++k) std::fill(into + k * inner + first, into + k * inner + last, T(0));
        for (std::int64_t j = 0; j < picks; ++j) {
            const std::int64_t row = (o * picks + j) * inner;
            for (std::int64_t i = first; i < last; ++i) into[indices[row + i] * inner + i] += values[row + i];
        }
    });
}

/// out[o, k, i] = k == indices[o, i] ? on : off; indices are [outer, inner], out [outer, depth,
/// inner]. Throws range_error for an index outside [0, depth).
template <class T, class Index>
void one_hot(std::int64_t outer, std::int64_t inner, const Index* indices, std::int64_t depth, T on, T off, T* out) {
    gather_detail::check("one_hot", indices, outer * inner, depth);
    gather_detail::over_rows(outer, depth * inner, [&](std::int64_t o) {
        T* const to = out + o * depth * inner;
        std::fill(to, to + depth * inner, off);
        for (std::int64_t i = 0; i < inner; ++i) to[indices[o * inner + i] * inner + i] = on;
    });
}

} // namespace tapegraph::cpu
