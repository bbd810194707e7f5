#pragma once

#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/parallel.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

/// Running sums and products, accumulated in double for floats and in 64 bits for integers. Blocks
/// and their offsets follow from the shape, so the bits do not depend on the number of threads.

namespace tapegraph::cpu {

enum class scanning { sum, product };

namespace scan_detail {

inline constexpr std::int64_t block_elements = 32768;
inline constexpr std::int64_t most_blocks = 64;
inline constexpr std::int64_t columns = 256;

template <class T>
using accumulator = std::conditional_t<std::is_floating_point_v<T>, double,
                                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;

template <scanning S, class A>
TG_INLINE A joined(A a, A b) {
    return S == scanning::sum ? a + b : a * b;
}

// Scans x[k * stride] for k = 0 ... length - 1, with a negative stride when running backwards;
// returns the total after the last.
template <scanning S, class T>
accumulator<T> scan_row(const T* x, T* y, std::int64_t stride, std::int64_t length, bool exclusive,
                        accumulator<T> total) {
    if (exclusive) {
        for (std::int64_t k = 0; k < length; ++k) {
            const auto value = static_cast<accumulator<T>>(x[k * stride]);
            y[k * stride] = static_cast<T>(total);
            total = joined<S>(total, value);
        }
    } else {
        for (std::int64_t k = 0; k < length; ++k) {
            total = joined<S>(total, static_cast<accumulator<T>>(x[k * stride]));
            y[k * stride] = static_cast<T>(total);
        }
    }
    return total;
}

template <scanning S, class T>
accumulator<T> fold_row(const T* x, std::int64_t stride, std::int64_t length) {
    using A = accumulator<T>;
    constexpr A start = S == scanning::sum ? A(0) : A(1);
    A total[4] = {start, start, start, start};
    std::int64_t k = 0;
    for (; k + 4 <= length; k += 4)
        for (int i = 0; i < 4; ++i) total[i] = joined<S>(total[i], static_cast<A>(x[(k + i) * stride]));
    for (; k < length; ++k) total[0] = joined<S>(total[0], static_cast<A>(x[k * stride]));
    return joined<S>(joined<S>(total[0], total[1]), joined<S>(total[2], total[3]));
}

template <scanning S, class T>
struct columns_body {
    template <class Isa>
    TG_INLINE static void run(const T* x, T* y, std::int64_t stride, std::int64_t length, std::int64_t width,
                              bool exclusive) {
        using A = accumulator<T>;
        A total[columns];
        for (std::int64_t c = 0; c < columns; ++c) total[c] = S == scanning::sum ? A(0) : A(1);
        for (std::int64_t k = 0; k < length; ++k) {
            const T* from = x + k * stride;
            T* to = y + k * stride;
            if (exclusive) {
                TG_SIMD
                for (std::int64_t c = 0; c < width; ++c) {
                    const A value = static_cast<A>(from[c]);
                    to[c] = static_cast<T>(total[c]);
                    total[c] = joined<S>(total[c], value);
                }
            } else {
                TG_SIMD
                for (std::int64_t c = 0; c < width; ++c) {
                    total[c] = joined<S>(total[c], static_cast<A>(from[c]));
                    to[c] = static_cast<T>(total[c]);
                }
            }
        }
    }
};

// Scans several rows, `apart` elements from one another, in lockstep: a single row would wait for
// one addition after another. All operands of a step are read before its results are written, which
// may be a multiple of 4 KiB after them.
template <scanning S, bool Exclusive, class T, std::size_t... R>
void scan_rows(const T* x, T* y, std::int64_t apart, std::int64_t stride, std::int64_t length, accumulator<T> start,
               std::index_sequence<R...>) {
    using A = accumulator<T>;
    A total[]{(static_cast<void>(R), start)...};
    for (std::int64_t k = 0; k < length; ++k, x += stride, y += stride) {
        const A value[]{static_cast<A>(x[static_cast<std::int64_t>(R) * apart])...};
        const A next[]{joined<S>(total[R], value[R])...};
        ((y[static_cast<std::int64_t>(R) * apart] = static_cast<T>(Exclusive ? total[R] : next[R])), ...);
        ((total[R] = next[R]), ...);
    }
}

} // namespace scan_detail

/// y = running sums or products of x along one axis; `exclusive` leaves out the element itself,
/// `reverse` runs from the end. y may be x.
template <scanning S, class T>
void scan(int rank, const std::int64_t* extents, int axis, bool exclusive, bool reverse, const T* x, T* y) {
    using namespace scan_detail;
    using A = accumulator<T>;
    constexpr A start = S == scanning::sum ? A(0) : A(1);
    std::int64_t outer = 1, inner = 1;
    const std::int64_t length = extents[axis];
    for (int i = 0; i < rank; ++i)
        if (i != axis) (i < axis ? outer : inner) *= extents[i];
    const std::int64_t elements = outer * inner * length;
    if (elements == 0) return;
    const bool parallel = elements >= block_elements;
    const std::int64_t stride = reverse ? -inner : inner, first = reverse ? (length - 1) * inner : 0;

    if (inner > 1) {
        const std::int64_t chunks = (inner + columns - 1) / columns;
        parallel_for(outer * chunks, parallel, [&](std::int64_t task) {
            const std::int64_t c = task % chunks * columns, at = task / chunks * length * inner + first + c;
            dispatch<columns_body<S, T>>(x + at, y + at, stride, length, std::min(columns, inner - c), exclusive);
        });
        return;
    }
    // For few long rows: totals of blocks first, then every block from its offset.
    if (outer < 16 && length >= 2 * block_elements) {
        const std::int64_t blocks = std::min(most_blocks, length / block_elements);
        for (std::int64_t o = 0; o < outer; ++o) {
            const std::int64_t base = o * length + first;
            A offset[most_blocks];
            const auto begin = [&](std::int64_t block) { return length * block / blocks; };
            parallel_for(blocks - 1, true, [&](std::int64_t b) {
                offset[b + 1] = fold_row<S>(x + base + begin(b) * stride, stride, begin(b + 1) - begin(b));
            });
            offset[0] = start;
            for (std::int64_t b = 1; b < blocks; ++b) offset[b] = joined<S>(offset[b], offset[b - 1]);
            parallel_for(blocks, true, [&](std::int64_t b) {
                const std::int64_t at = base + begin(b) * stride;
                scan_row<S>(x + at, y + at, stride, begin(b + 1) - begin(b), exclusive, offset[b]);
            });
        }
        return;
    }
    // At least four rows per task, unless that would leave too few tasks for the threads.
    const std::int64_t in_task = std::max<std::int64_t>(outer < 64 ? 1 : 4, block_elements / 2 / length);
    parallel_for((outer + in_task - 1) / in_task, parallel, [&](std::int64_t task) {
        // Scans four rows at once, each from another quarter of the task: memory is read and
        // written in a few long runs.
        const std::int64_t begin = task * in_task, end = std::min(outer, begin + in_task), quarter = (end - begin) / 4;
        constexpr auto four = std::make_index_sequence<4>{};
        const auto rows = exclusive ? &scan_rows<S, true, T, 0, 1, 2, 3> : &scan_rows<S, false, T, 0, 1, 2, 3>;
        for (std::int64_t o = begin; o < begin + quarter; ++o)
            rows(x + o * length + first, y + o * length + first, quarter * length, stride, length, start, four);
        for (std::int64_t o = begin + 4 * quarter; o < end; ++o)
            scan_row<S>(x + o * length + first, y + o * length + first, stride, length, exclusive, start);
    });
}

template <class T>
void cumulative_sum(int rank, const std::int64_t* extents, int axis, bool exclusive, bool reverse, const T* x, T* y) {
    scan<scanning::sum>(rank, extents, axis, exclusive, reverse, x, y);
}

} // namespace tapegraph::cpu
