#pragma once

#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/tasks.hpp>
#include <tapegraph/cpu/vector.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

/// A matrix times a vector, bound by reading the matrix once: dot products where its rows are
/// stored along k, sums of scaled rows where they are stored across k.

TG_ROUNDS_EACH_BEGIN
namespace tapegraph::cpu::detail {

/// y[i] (+)= sum over k of matrix[i, k] * x[k], i in [0, rows). `by_columns`: the matrix is stored [k, rows].
template <class T>
struct gemm_vector_arguments {
    std::int64_t rows, k;
    const T* matrix;
    std::int64_t matrix_row;
    bool by_columns;
    const T* x;
    std::int64_t x_stride;
    T* y;
    std::int64_t y_stride;
    bool accumulate;
};

// Columns of the matrix that one task of the column kernel sums at a time; they fit easily into L1.
inline constexpr std::int64_t vector_strip = 1024;

/// Scratch: x without its stride, then a strip of y for each thread.
inline std::int64_t gemm_vector_elements(std::int64_t, std::int64_t, std::int64_t k, int threads) {
    return k + 16 + threads * vector_strip;
}

/// Dot products of rows with x. Each of the elements in 64 bytes of x has a sum of its own, in as many vectors as the processor
/// needs for them, so that vectors of every width give the same bits.
template <class T>
struct dot_rows_body {
    template <class Isa>
    TG_INLINE static void run(const T* matrix, std::int64_t matrix_row, const T* x, std::int64_t k, std::int64_t rows,
                              T* y, std::int64_t y_stride, bool accumulate) {
        constexpr std::size_t parts = 64 / Isa::vector_bytes;
        all<vector<T, Isa::vector_bytes>, 8 / parts>( // eight vectors of sums are in registers
            std::make_index_sequence<parts>{}, matrix, matrix_row, x, k, rows, y, y_stride, accumulate);
    }

private:
    static constexpr std::int64_t step = 64 / sizeof(T);

    template <class V, std::size_t AtOnce, class Parts>
    TG_INLINE static void all(Parts parts, const T* matrix, std::int64_t matrix_row, const T* x, std::int64_t k,
                              std::int64_t rows, T* y, std::int64_t y_stride, bool accumulate) {
        constexpr auto count = static_cast<std::int64_t>(AtOnce);
        std::int64_t i = 0;
        for (; i + count <= rows; i += count)
            some<V>(std::make_index_sequence<AtOnce>{}, parts, matrix + i * matrix_row, matrix_row, x, k,
                    y + i * y_stride, y_stride, accumulate);
        if constexpr (AtOnce > 1)
            all<V, AtOnce / 2>(parts, matrix + i * matrix_row, matrix_row, x, k, rows - i, y + i * y_stride, y_stride,
                               accumulate);
    }
    template <class V, std::size_t... Row, std::size_t... Part>
    TG_INLINE static void some(std::index_sequence<Row...> rows, std::index_sequence<Part...>, const T* matrix,
                               std::int64_t matrix_row, const T* x, std::int64_t k, T* y, std::int64_t y_stride,
                               bool accumulate) {
        typename V::type sum[sizeof...(Row)][sizeof...(Part)] = {};
        std::int64_t n = 0;
        for (; n + step <= k; n += step) (add<V, Part>(rows, sum, matrix + n, matrix_row, x + n), ...);
        T lane[sizeof...(Row)][step];
        (store<V, sizeof...(Part)>(lane[Row], sum[Row]), ...);
        finish(lane[0], sizeof...(Row), matrix + n, matrix_row, x + n, k - n, y, y_stride, accumulate);
    }
    template <class V, std::size_t Part, std::size_t... Row, class Sums>
    TG_INLINE static void add(std::index_sequence<Row...>, Sums& sum, const T* matrix, std::int64_t matrix_row,
                              const T* x) {
        constexpr std::int64_t at = static_cast<std::int64_t>(Part) * V::lanes;
        typename V::type a, b;
        V::load(b, x + at);
        ((V::load(a, matrix + static_cast<std::int64_t>(Row) * matrix_row + at), sum[Row][Part] += a * b), ...);
    }
    template <class V, std::size_t Parts>
    TG_INLINE static void store(T* lane, const typename V::type (&part)[Parts]) {
        for (std::size_t p = 0; p < Parts; ++p) V::store(lane + p * V::lanes, part[p]);
    }
    // The sums' lanes, and then the last `rest` products: a loop, because eight rows side by side take long to compile.
    TG_INLINE static void finish(const T* lane, std::size_t rows, const T* matrix, std::int64_t matrix_row, const T* x,
                                 std::int64_t rest, T* y, std::int64_t y_stride, bool accumulate) {
        for (std::size_t row = 0; row < rows; ++row, lane += step, matrix += matrix_row, y += y_stride) {
            T sum = 0;
            for (std::int64_t n = 0; n < step; ++n) sum += lane[n];
            for (std::int64_t n = 0; n < rest; ++n) sum += matrix[n] * x[n];
            *y = sum + (accumulate ? *y : T(0));
        }
    }
};

/// strip[j] = sum over k of matrix[k, j] * x[k], four k at a time.
template <class T>
struct sum_rows_body {
    template <class Isa>
    TG_INLINE static void run(const T* matrix, std::int64_t matrix_row, const T* x, std::int64_t k,
                              std::int64_t columns, T* strip) {
        TG_SIMD
        for (std::int64_t j = 0; j < columns; ++j) strip[j] = T(0);
        std::int64_t i = 0;
        for (; i + 4 <= k; i += 4) {
            const T* m = matrix + i * matrix_row;
            const T *m1 = m + matrix_row, *m2 = m1 + matrix_row, *m3 = m2 + matrix_row;
            const T x0 = x[i], x1 = x[i + 1], x2 = x[i + 2], x3 = x[i + 3];
            TG_SIMD
            for (std::int64_t j = 0; j < columns; ++j) strip[j] += (m[j] * x0 + m1[j] * x1) + (m2[j] * x2 + m3[j] * x3);
        }
        for (; i < k; ++i) {
            const T* m = matrix + i * matrix_row;
            const T x0 = x[i];
            TG_SIMD
            for (std::int64_t j = 0; j < columns; ++j) strip[j] += m[j] * x0;
        }
    }
};

template <class T>
void gemm_vector(const gemm_vector_arguments<T>& g, T* scratch) {
    const T* x = g.x;
    if (g.x_stride != 1) {
        for (std::int64_t i = 0; i < g.k; ++i) scratch[i] = g.x[i * g.x_stride];
        x = scratch;
    }
    T* strips = scratch + (g.k + 15) / 16 * 16;
    const bool parallel = worth_threads(static_cast<double>(g.rows) * static_cast<double>(g.k));
    if (!g.by_columns) {
        const std::int64_t rows = std::max<std::int64_t>(4, divide_up(32768, g.k + 1) / 4 * 4);
        for_tasks(divide_up(g.rows, rows), parallel, [&](std::int64_t task, int) {
            const std::int64_t first = task * rows;
            dispatch<dot_rows_body<T>>(g.matrix + first * g.matrix_row, g.matrix_row, x, g.k,
                                       std::min(rows, g.rows - first), g.y + first * g.y_stride, g.y_stride,
                                       g.accumulate);
        });
        return;
    }
    // Strips short enough to divide among threads, but at least a few cache lines wide.
    const std::int64_t width =
        std::min(vector_strip, std::max<std::int64_t>(128, divide_up(divide_up(g.rows, 8), 32) * 32));
    for_tasks(divide_up(g.rows, width), parallel, [&](std::int64_t task, int thread) {
        const std::int64_t first = task * width, count = std::min(width, g.rows - first);
        T* strip = strips + thread * vector_strip;
        dispatch<sum_rows_body<T>>(g.matrix + first, g.matrix_row, x, g.k, count, strip);
        T* y = g.y + first * g.y_stride;
        if (g.accumulate)
            for (std::int64_t j = 0; j < count; ++j) y[j * g.y_stride] += strip[j];
        else
            for (std::int64_t j = 0; j < count; ++j) y[j * g.y_stride] = strip[j];
    });
}

} // namespace tapegraph::cpu::detail
TG_ROUNDS_EACH_END
