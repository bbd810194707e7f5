#pragma once

#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/tasks.hpp>
#include <tapegraph/cpu/vector.hpp>

#include <algorithm>
#include <cstdint>

/// A matrix times a vector, bound by reading the matrix once: dot products where its rows are
/// stored along k, sums of scaled rows where they are stored across k.

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

/// Dot products of four rows at a time with x.
template <class T>
struct dot_rows_body {
    template <class Isa>
    TG_INLINE static void run(const T* matrix, std::int64_t matrix_row, const T* x, std::int64_t k, std::int64_t rows,
                              T* y, std::int64_t y_stride, bool accumulate) {
        using v = vector<T, Isa::vector_bytes>;
        std::int64_t i = 0;
        for (; i + 4 <= rows; i += 4) {
            typename v::type sum[8] = {}, a, b;
            const T* m[4] = {matrix + i * matrix_row, matrix + (i + 1) * matrix_row, matrix + (i + 2) * matrix_row,
                             matrix + (i + 3) * matrix_row};
            std::int64_t n = 0;
            for (; n + 2 * v::lanes <= k; n += 2 * v::lanes) {
                v::load(b, x + n);
                v::load(a, m[0] + n);
                sum[0] += a * b;
                v::load(a, m[1] + n);
                sum[1] += a * b;
                v::load(a, m[2] + n);
                sum[2] += a * b;
                v::load(a, m[3] + n);
                sum[3] += a * b;
                v::load(b, x + n + v::lanes);
                v::load(a, m[0] + n + v::lanes);
                sum[4] += a * b;
                v::load(a, m[1] + n + v::lanes);
                sum[5] += a * b;
                v::load(a, m[2] + n + v::lanes);
                sum[6] += a * b;
                v::load(a, m[3] + n + v::lanes);
                sum[7] += a * b;
            }
            for (int r = 0; r < 4; ++r)
                finish<v>(sum[r], sum[r + 4], m[r], x, n, k, y + (i + r) * y_stride, accumulate);
        }
        for (; i < rows; ++i) {
            typename v::type sum[2] = {}, a, b;
            const T* m = matrix + i * matrix_row;
            std::int64_t n = 0;
            for (; n + 2 * v::lanes <= k; n += 2 * v::lanes) {
                v::load(a, m + n);
                v::load(b, x + n);
                sum[0] += a * b;
                v::load(a, m + n + v::lanes);
                v::load(b, x + n + v::lanes);
                sum[1] += a * b;
            }
            finish<v>(sum[0], sum[1], m, x, n, k, y + i * y_stride, accumulate);
        }
    }

private:
    template <class V>
    TG_INLINE static void finish(typename V::type& even, typename V::type& odd, const T* m, const T* x, std::int64_t n,
                                 std::int64_t k, T* y, bool accumulate) {
        even += odd;
        T lane[V::lanes];
        V::store(lane, even);
        T sum = 0;
        for (int j = 0; j < V::lanes; ++j) sum += lane[j];
        for (; n < k; ++n) sum += m[n] * x[n];
        *y = accumulate ? *y + sum : sum;
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
            for (std::int64_t j = 0; j < columns; ++j)
                strip[j] += (m[j] * x0 + m1[j] * x1) + (m2[j] * x2 + m3[j] * x3);
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
