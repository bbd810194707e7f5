#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/cpu/parallel.hpp>

#include <algorithm>
#include <cstdint>

/// Kernels of ops/ordering/places.hpp on the CPU.

namespace tapegraph {

namespace detail {
/// Whether a precedes b in an order with NaN last.
template <class T>
TG_HD constexpr bool stands_before(T a, T b) {
    return a < b || (b != b && a == a);
}
/// The number of elements of a sorted line that come before `value`, or with Right not after it.
template <bool Right, class T>
TG_HD constexpr std::int32_t bisected(const T* line, std::int64_t length, T value) {
    std::int64_t first = 0;
    while (length > 0) {
        const std::int64_t half = length / 2;
        const T middle = line[first + half];
        const bool middle_counts = Right ? !stands_before(value, middle) : stands_before(middle, value);
        first += middle_counts ? half + 1 : 0;
        length = middle_counts ? length - half - 1 : half;
    }
    return static_cast<std::int32_t>(first);
}
} // namespace detail

namespace cpu {

template <bool Right, class T>
void search_rows(std::int64_t rows, std::int64_t n, std::int64_t m, const T* sorted, const T* values,
                 std::int32_t* out) {
    constexpr std::int64_t in_task = 1024;
    const std::int64_t count = rows * m;
    parallel_for((count + in_task - 1) / in_task, count >= 8 * in_task, [=](std::int64_t task) {
        for (std::int64_t i = task * in_task, end = std::min(count, i + in_task); i < end; ++i)
            out[i] = tapegraph::detail::bisected<Right>(sorted + i / m * n, n, values[i]);
    });
}

inline void marked_places(std::int64_t rows, std::int64_t n, std::int64_t size, const std::uint8_t* marks,
                          std::int32_t* out) {
    parallel_for(rows, rows * n >= 65536, [=](std::int64_t row) {
        std::int32_t* const to = out + row * size;
        std::int64_t found = 0;
        for (std::int64_t i = 0; i < n && found < size; ++i)
            if (marks[row * n + i] != 0) to[found++] = static_cast<std::int32_t>(i + 1);
        std::fill(to + found, to + size, 0);
    });
}

inline void count_places(std::int64_t rows, std::int64_t n, std::int64_t length, const std::int32_t* x,
                         std::int32_t* out) {
    parallel_for(rows, rows * n >= 65536, [=](std::int64_t row) {
        std::int32_t* const to = out + row * length;
        std::fill(to, to + length, 0);
        for (std::int64_t i = row * n; i < (row + 1) * n; ++i)
            if (x[i] >= 0 && x[i] < length) ++to[x[i]];
    });
}

} // namespace cpu

} // namespace tapegraph
