#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/cpu/reduce_leaves.hpp>

namespace tapegraph::cpu {

namespace reduce_detail {

inline constexpr std::int64_t most_rows = 256; // searched together

// The first position of `value` in x[0, 16 sizeof...(I)), or that count. I counts down, so that the
// earliest match is kept.
template <class T, int... I>
TG_INLINE std::int32_t first_in(const T* x, T value, std::integer_sequence<int, I...>) {
    std::int32_t first[16];
    TG_SIMD
    for (int k = 0; k < 16; ++k) {
        std::int32_t at = 16 * static_cast<int>(sizeof...(I));
        ((at = x[16 * I + k] == value ? 16 * I + k : at), ...);
        first[k] = at;
    }
    compare_halves<reduction::minimum, 8>(first);
    return first[0];
}

// at[r] = first position of best[r] in row r of x[rows, length]; it exists.
template <class T>
struct find_rows_body {
    template <int... I>
    TG_INLINE static void find(const T* x, std::int64_t rows, std::int64_t length, const accumulator<T>* best,
                               std::int32_t* at, std::integer_sequence<int, I...> sixteens) {
        constexpr std::int64_t block = 16 * sizeof...(I);
        const T* const end = x + rows * length;
        for (std::int64_t r = 0; r < rows; ++r, x += length) {
            const T value = static_cast<T>(best[r]);
            const T* p = x;
            std::int64_t found = block;
            if (value == value) // whole blocks: positions after the row come later than the match
                for (; end - p >= block; p += block)
                    if ((found = first_in(p, value, sixteens)) < block) break;
            if (found < block)
                p += found;
            else
                while (*p != value && *p == *p) ++p;
            at[r] = static_cast<std::int32_t>(p - x);
        }
    }
    template <class Isa>
    TG_INLINE static void run(const T* x, std::int64_t rows, std::int64_t length, const accumulator<T>* best,
                              std::int32_t* at) {
        if (length <= 16)
            find(x, rows, length, best, at, std::integer_sequence<int, 0>{});
        else
            find(x, rows, length, best, at, std::integer_sequence<int, 3, 2, 1, 0>{});
    }
};

// Searches down the columns of x[length, width], with rows `stride` apart and width up to
// widest_columns.
template <bool Maximum, class T>
struct arg_columns_body {
    template <class Isa>
    TG_INLINE static void run(const T* x, std::int64_t stride, std::int64_t length, std::int64_t width,
                              std::int32_t* at) {
        T best[widest_columns];
        for (std::int64_t c = 0; c < width; ++c) {
            best[c] = x[c];
            at[c] = 0;
        }
        for (std::int64_t r = 1; r < length; ++r) {
            const T* row = x + r * stride;
            const std::int32_t number = static_cast<std::int32_t>(r);
            TG_SIMD
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

// Searches rows no longer than a tile, as many at once as fit into one.
template <bool Maximum, class T, class Index>
void arg_short_rows(const T* x, std::int64_t rows, std::int64_t length, Index* out) {
    constexpr reduction R = Maximum ? reduction::maximum : reduction::minimum;
    accumulator<T> best[most_rows];
    std::int32_t at[most_rows];
    const std::int64_t in_tile = std::min(most_rows, tile_elements / length);
    for (std::int64_t r = 0; r < rows; r += in_tile) {
        const std::int64_t count = std::min(in_tile, rows - r);
        run_rows<R, T>(x + r * length, count, length, best);
        dispatch<find_rows_body<T>>(x + r * length, count, length, &best[0], &at[0]);
        for (std::int64_t i = 0; i < count; ++i) out[r + i] = static_cast<Index>(at[i]);
    }
}

// Finds the first tile of a long row that contains the best element, and searches it.
template <bool Maximum, class T>
std::int64_t arg_row(const T* x, std::int64_t length) {
    constexpr reduction R = Maximum ? reduction::maximum : reduction::minimum;
    accumulator<T> best = 0;
    std::int64_t begin = 0;
    for (std::int64_t i = 0; i < length; i += tile_elements) {
        accumulator<T> value;
        run_rows<R, T>(x + i, 1, std::min(tile_elements, length - i), &value);
        if (i == 0 || (Maximum ? value > best : value < best) || (value != value && best == best)) {
            best = value;
            begin = i;
        }
    }
    std::int32_t found;
    dispatch<find_rows_body<T>>(x + begin, 1, std::min(tile_elements, length - begin), &best, &found);
    return begin + found;
}

// Throws argument_error for an axis that is empty or too long for its positions.
void check_arg_axis(bool maximum, int axis, std::int64_t length);

} // namespace reduce_detail

/// Positions of the largest (or smallest) elements along one axis: out[axes before, axes after],
/// the first among equals, with a NaN before everything, as in NumPy. Index is std::int32_t or
/// std::int64_t. Throws argument_error when the axis is empty and there are outputs, and when it is
/// longer than an int32 can count.
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
            const std::int64_t begin = task * in_task;
            if (length <= tile_elements)
                return arg_short_rows<Maximum>(in + begin * length, end - begin, length, out + begin);
            for (std::int64_t r = begin; r < end; ++r)
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
            dispatch<arg_columns_body<Maximum, T>>(in + i / chunks * length * inner + from, inner, length, width,
                                                   &at[0]);
            for (std::int64_t c = 0; c < width; ++c) out[i / chunks * inner + from + c] = static_cast<Index>(at[c]);
        }
    });
}

#if TG_DEFINES(ordering)

TG_DEFINITION void reduce_detail::check_arg_axis(bool maximum, int axis, std::int64_t length) {
    if (length == 0 || length > std::numeric_limits<std::int32_t>::max())
        throw argument_error(std::string(maximum ? "argmax" : "argmin") + ": axis " + std::to_string(axis) +
                             (length == 0 ? " has no elements" : " has more than 2^31 - 1 elements"));
}

#endif

} // namespace tapegraph::cpu
