#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/layout.hpp>
#include <tapegraph/cpu/parallel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

/// Elements and rows picked by index, and the adjoints. Index is std::int32_t or std::int64_t. Indices are checked before
/// anything runs in parallel (an exception must not leave a parallel region); additions happen in the order of the indices,
/// for any number of threads.

namespace tapegraph::cpu {

namespace gather_detail {

inline constexpr std::int64_t parallel_elements = 32768;
inline constexpr std::int64_t task_elements = 16384;

/// Throws range_error for the first index outside [0, limit).
template <class Index>
void check(const char* operation, const Index* indices, std::int64_t count, std::int64_t limit) {
    for (std::int64_t i = 0; i < count; i += 1024) {
        const std::int64_t end = std::min(count, i + 1024);
        int bad = 0;
#pragma omp simd reduction(| : bad)
        for (std::int64_t k = i; k < end; ++k)
            bad |= (indices[k] < 0) | (static_cast<std::int64_t>(indices[k]) >= limit);
        if (bad == 0) continue;
        for (std::int64_t k = i; k < end; ++k)
            if (indices[k] < 0 || indices[k] >= limit)
                throw range_error(std::string(operation) + ": index " + std::to_string(indices[k]) + " at position " +
                                  std::to_string(k) + " is outside [0, " + std::to_string(limit) + ")");
    }
}

// Columns [first, last) of the updates are added to the rows [low, high) of out, in the order of the updates.
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
#pragma omp simd
            for (std::int64_t c = first; c < last; ++c) into[c] += from[c];
        }
    }
};

template <int Size, class Index>
void take_row(const void* from, const Index* indices, std::int64_t count, void* to) {
    using element = typename layout_detail::word<Size>::type;
    const element* x = static_cast<const element*>(from);
    element* y = static_cast<element*>(to);
    for (std::int64_t i = 0; i < count; ++i) y[i] = x[indices[i]];
}

template <class F>
void over_rows(std::int64_t rows, std::int64_t row_elements, const F& f) {
    const std::int64_t in_task = std::max<std::int64_t>(1, task_elements / std::max<std::int64_t>(1, row_elements));
    parallel_for((rows + in_task - 1) / in_task, rows * row_elements >= parallel_elements, [&](std::int64_t task) {
        for (std::int64_t r = task * in_task, end = std::min(rows, r + in_task); r < end; ++r) f(r);
    });
}

} // namespace gather_detail

/// out[i, :] = table[indices[i], :]; table [rows, width] of elements of `size` bytes (any), out [count, width].
/// Throws range_error for an index outside [0, rows).
template <class Index>
void gather_rows(std::int64_t rows, std::int64_t width, std::size_t size, const void* table, std::int64_t count,
                 const Index* indices, void* out) {
    gather_detail::check("gather", indices, count, rows);
    const std::size_t bytes = static_cast<std::size_t>(width) * size;
    if (bytes == 0) return;
    gather_detail::over_rows(count, width, [&](std::int64_t i) {
        std::memcpy(static_cast<char*>(out) + static_cast<std::size_t>(i) * bytes,
                    static_cast<const char*>(table) + static_cast<std::size_t>(indices[i]) * bytes, bytes);
    });
}

/// out [rows, width] = zeros, then out[indices[i], :] += updates[i, :] for i = 0, 1, ...: the adjoint of `gather_rows`.
/// Throws range_error for an index outside [0, rows).
template <class T, class Index>
void scatter_add_rows(std::int64_t rows, std::int64_t width, const T* updates, std::int64_t count, const Index* indices, T* out) {
    using namespace gather_detail;
    check("scatter_add", indices, count, rows);
    zero(static_cast<std::size_t>(rows * width) * sizeof(T), out);
    // Threads divide the columns, or the rows of out where columns are few; either way each element has one thread.
    const bool parallel = count * width >= parallel_elements;
    const std::int64_t parts = parallel ? thread_count() : 1;
    parallel_for(parts, parallel, [&](std::int64_t part) {
        if (width >= 32 * parts) {
            const std::int64_t step = ((width + parts - 1) / parts + 15) / 16 * 16;
            dispatch<add_rows_body<T, Index>>(indices, count, updates, width, std::min(width, part * step),
                                              std::min(width, (part + 1) * step), std::int64_t{0}, rows, out);
        } else {
            dispatch<add_rows_body<T, Index>>(indices, count, updates, width, std::int64_t{0}, width, rows * part / parts,
                                              rows * (part + 1) / parts, out);
        }
    });
}

/// out[o, j] = x[o, indices[o, j]]; x [outer, length] of elements of `size` bytes (1, 2, 4 or 8), indices and out [outer, picks].
/// Throws range_error for an index outside [0, length).
template <class Index>
void take_along_last(std::int64_t outer, std::int64_t length, std::size_t size, const void* x, std::int64_t picks,
                     const Index* indices, void* out) {
    using namespace gather_detail;
    check("take_along_axis", indices, outer * picks, length);
    const auto take = size == 1   ? &take_row<1, Index>
                      : size == 2 ? &take_row<2, Index>
                      : size == 4 ? &take_row<4, Index>
                      : size == 8 ? &take_row<8, Index>
                                  : nullptr;
    if (take == nullptr) throw dtype_error("take_along_axis: elements of " + std::to_string(size) + " bytes are not supported");
    const std::int64_t step = static_cast<std::int64_t>(size);
    over_rows(outer, picks, [&](std::int64_t o) {
        take(static_cast<const char*>(x) + o * length * step, indices + o * picks, picks,
             static_cast<char*>(out) + o * picks * step);
    });
}

/// out [outer, length] = zeros, then out[o, indices[o, j]] += values[o, j] for j = 0, 1, ...: the adjoint of `take_along_last`.
/// Throws range_error for an index outside [0, length).
template <class T, class Index>
void put_along_last(std::int64_t outer, std::int64_t length, const T* values, std::int64_t picks, const Index* indices, T* out) {
    gather_detail::check("put_along_axis", indices, outer * picks, length);
    gather_detail::over_rows(outer, length + picks, [&](std::int64_t o) {
        T* into = out + o * length;
        std::fill(into, into + length, T(0));
        for (std::int64_t j = o * picks; j < (o + 1) * picks; ++j) into[indices[j]] += values[j];
    });
}

/// out[i, k] = k == indices[i] ? on : off; out [count, depth]. Throws range_error for an index outside [0, depth).
template <class T, class Index>
void one_hot(std::int64_t count, const Index* indices, std::int64_t depth, T on, T off, T* out) {
    gather_detail::check("one_hot", indices, count, depth);
    gather_detail::over_rows(count, depth, [&](std::int64_t i) {
        std::fill(out + i * depth, out + (i + 1) * depth, off);
        out[i * depth + indices[i]] = on;
    });
}

} // namespace tapegraph::cpu
