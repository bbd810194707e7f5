#pragma once

#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/parallel.hpp>

#include <algorithm>
#include <cstdint>

/// Running sums, kept in double whatever T is. Blocks and their offsets follow from the shape, so the bits do not depend on
/// the number of threads.

namespace tapegraph::cpu {

namespace scan_detail {

inline constexpr std::int64_t block_elements = 32768;
inline constexpr std::int64_t most_blocks = 64;
inline constexpr std::int64_t columns = 256;

// x[k * stride] for k = 0 ... length - 1, the stride negative when running backwards; returns the sum behind the last.
template <class T>
double scan_row(const T* x, T* y, std::int64_t stride, std::int64_t length, bool exclusive, double sum) {
    if (exclusive) {
        for (std::int64_t k = 0; k < length; ++k) {
            const double value = static_cast<double>(x[k * stride]);
            y[k * stride] = static_cast<T>(sum);
            sum += value;
        }
    } else {
        for (std::int64_t k = 0; k < length; ++k) {
            sum += static_cast<double>(x[k * stride]);
            y[k * stride] = static_cast<T>(sum);
        }
    }
    return sum;
}

template <class T>
double sum_row(const T* x, std::int64_t stride, std::int64_t length) {
    double sum[4] = {};
    std::int64_t k = 0;
    for (; k + 4 <= length; k += 4)
        for (int i = 0; i < 4; ++i) sum[i] += static_cast<double>(x[(k + i) * stride]);
    for (; k < length; ++k) sum[0] += static_cast<double>(x[k * stride]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

template <class T>
struct columns_body {
    template <class Isa>
    TG_INLINE static void run(const T* x, T* y, std::int64_t stride, std::int64_t length, std::int64_t width, bool exclusive) {
        double sum[columns] = {};
        for (std::int64_t k = 0; k < length; ++k) {
            const T* from = x + k * stride;
            T* to = y + k * stride;
            if (exclusive) {
#pragma omp simd
                for (std::int64_t c = 0; c < width; ++c) {
                    const double value = static_cast<double>(from[c]);
                    to[c] = static_cast<T>(sum[c]);
                    sum[c] += value;
                }
            } else {
#pragma omp simd
                for (std::int64_t c = 0; c < width; ++c) {
                    sum[c] += static_cast<double>(from[c]);
                    to[c] = static_cast<T>(sum[c]);
                }
            }
        }
    }
};

} // namespace scan_detail

/// y = running sums of x along one axis; `exclusive` leaves the element itself out, `reverse` runs from the end. y may be x.
template <class T>
void cumulative_sum(int rank, const std::int64_t* extents, int axis, bool exclusive, bool reverse, const T* x, T* y) {
    using namespace scan_detail;
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
            dispatch<columns_body<T>>(x + at, y + at, stride, length, std::min(columns, inner - c), exclusive);
        });
        return;
    }
    // Few long rows: sums of blocks first, then every block from its offset.
    if (outer < 16 && length >= 2 * block_elements) {
        const std::int64_t blocks = std::min(most_blocks, length / block_elements);
        for (std::int64_t o = 0; o < outer; ++o) {
            const std::int64_t base = o * length + first;
            double offset[most_blocks];
            const auto begin = [&](std::int64_t block) { return length * block / blocks; };
            parallel_for(blocks - 1, true, [&](std::int64_t b) {
                offset[b + 1] = sum_row(x + base + begin(b) * stride, stride, begin(b + 1) - begin(b));
            });
            offset[0] = 0;
            for (std::int64_t b = 1; b < blocks; ++b) offset[b] += offset[b - 1];
            parallel_for(blocks, true, [&](std::int64_t b) {
                const std::int64_t at = base + begin(b) * stride;
                scan_row(x + at, y + at, stride, begin(b + 1) - begin(b), exclusive, offset[b]);
            });
        }
        return;
    }
    const std::int64_t in_task = std::max<std::int64_t>(1, block_elements / 2 / length);
    parallel_for((outer + in_task - 1) / in_task, parallel, [&](std::int64_t task) {
        for (std::int64_t o = task * in_task, end = std::min(outer, o + in_task); o < end; ++o)
            scan_row(x + o * length + first, y + o * length + first, stride, length, exclusive, 0);
    });
}

} // namespace tapegraph::cpu
