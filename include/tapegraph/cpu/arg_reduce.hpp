#pragma once

#include <tapegraph/cpu/reduce_leaves.hpp>

namespace tapegraph::cpu {

namespace reduce_detail {

// First position of `value` (of NaN when value is one) in x[0, count); it is there.
template <class T>
struct find_body {
    template <class Isa>
    TG_INLINE static void run(const T* x, std::int64_t count, T value, std::int64_t* found) {
        std::int64_t i = 0;
        for (; i + 64 <= count; i += 64) {
            int hits = 0;
#pragma omp simd reduction(| : hits)
            for (int k = 0; k < 64; ++k) hits |= (x[i + k] == value) | ((x[i + k] != x[i + k]) & (value != value));
            if (hits != 0) break;
        }
        while (!(x[i] == value || (x[i] != x[i] && value != value))) ++i;
        *found = i;
    }
};

// Down the columns of x[length, width], rows `stride` apart; width up to widest_columns.
template <bool Maximum, class T>
struct arg_columns_body {
    template <class Isa>
    TG_INLINE static void run(const T* x, std::int64_t stride, std::int64_t length, std::int64_t width, std::int32_t* at) {
        T best[widest_columns];
        for (std::int64_t c = 0; c < width; ++c) {
            best[c] = x[c];
            at[c] = 0;
        }
        for (std::int64_t r = 1; r < length; ++r) {
            const T* row = x + r * stride;
            const std::int32_t number = static_cast<std::int32_t>(r);
#pragma omp simd
            for (std::int64_t c = 0; c < width; ++c) {
                const T value = row[c], so_far = best[c];
                const bool better =
                    (Maximum ? value > so_far : value < so_far) | ((value != value) & (so_far == so_far));
                best[c] = better ? value : so_far;
                at[c] = better ? number : at[c];
            }
        }
    }
};

template <bool Maximum, class T>
std::int64_t arg_row(const T* x, std::int64_t length) {
    constexpr reduction R = Maximum ? reduction::maximum : reduction::minimum;
    accumulator<T> best = 0;
    std::int64_t begin = 0, found = 0;
    for (std::int64_t i = 0; i < length; i += tile_elements) {
        accumulator<T> value;
        run_rows<R, T>(x + i, 1, std::min(tile_elements, length - i), &value);
        if (i == 0 || (Maximum ? value > best : value < best) || (value != value && best == best)) {
            best = value;
            begin = i;
        }
    }
    dispatch<find_body<T>>(x + begin, std::min(tile_elements, length - begin), static_cast<T>(best), &found);
    return begin + found;
}

// Throws argument_error for an axis whose positions cannot be told.
inline void check_arg_axis(bool maximum, int axis, std::int64_t length) {
    if (length == 0 || length > std::numeric_limits<std::int32_t>::max())
        throw argument_error(std::string(maximum ? "argmax" : "argmin") + ": axis " + std::to_string(axis) +
                             (length == 0 ? " has no elements" : " has more than 2^31 - 1 elements"));
}

} // namespace reduce_detail

/// Positions of the largest (or smallest) elements along one axis: out[axes before, axes behind], the first among equals,
/// a NaN before everything, as NumPy has it. Index is std::int32_t or std::int64_t. Throws argument_error when the axis is
/// empty and there are outputs, and when it is longer than an int32 can count.
template <bool Maximum, class T, class Index>
void arg_reduce(int rank, const std::int64_t* extents, int axis, const T* in, Index* out) {
    using namespace reduce_detail;
    std::int64_t outer = 1, inner = 1;
    const std::int64_t length = extents[axis];
    for (int i = 0; i < rank; ++i)
        if (i != axis) (i < axis ? outer : inner) *= extents[i];
    if (outer * inner == 0) return;
    check_arg_axis(Maximum, axis, length);
    const bool parallel = outer * inner * length >= parallel_elements;
    if (inner == 1) {
        const std::int64_t in_task = std::max<std::int64_t>(1, task_elements / length);
        parallel_for(divide_up(outer, in_task), parallel, [&](std::int64_t task) {
            const std::int64_t end = std::min(outer, (task + 1) * in_task);
            for (std::int64_t r = task * in_task; r < end; ++r)
                out[r] = static_cast<Index>(arg_row<Maximum>(in + r * length, length));
        });
        return;
    }
    const std::int64_t chunks = divide_up(inner, widest_columns);
    const std::int64_t in_task = std::max<std::int64_t>(1, task_elements / (length * std::min(inner, widest_columns)));
    parallel_for(divide_up(outer * chunks, in_task), parallel, [&](std::int64_t task) {
        std::int32_t at[widest_columns];
        const std::int64_t end = std::min(outer * chunks, (task + 1) * in_task);
        for (std::int64_t i = task * in_task; i < end; ++i) {
            const std::int64_t from = i % chunks * widest_columns, width = std::min(widest_columns, inner - from);
            dispatch<arg_columns_body<Maximum, T>>(in + i / chunks * length * inner + from, inner, length, width, &at[0]);
            for (std::int64_t c = 0; c < width; ++c) out[i / chunks * inner + from + c] = static_cast<Index>(at[c]);
        }
    });
}

} // namespace tapegraph::cpu
