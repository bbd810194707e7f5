#pragma once

#include <tapegraph/core/math.hpp>
#include <tapegraph/cpu/reduce_leaves.hpp>

/// softmax, log_softmax and their gradients on the CPU. Rows are processed in blocks that stay in
/// the L1 cache, so that a row is read from memory once; rows longer than a block tile by tile, and
/// few long rows in parts. Sums run over lanes of 64 bytes, then in double, and the blocks follow
/// from the shape, so the bits depend neither on threads nor on the instruction set.

TG_ROUNDS_EACH_BEGIN
namespace tapegraph::cpu {

namespace softmax_detail {

using reduce_detail::run_rows;
inline constexpr std::int64_t block_elements = 2048, part = 32768, most_parts = 64, columns = 64;

/// Arguments are differences from the largest one, or logarithms of probabilities.
template <class T>
TG_INLINE T exp_of(T x) {
    return math::detail::falling_exp(x);
}

/// to = exp(from), element by element.
template <class T>
struct exp_body {
    template <class Isa>
    TG_INLINE static void run(const T* from, T* to, std::int64_t count) {
        TG_SIMD
        for (std::int64_t i = 0; i < count; ++i) to[i] = exp_of(from[i]);
    }
};

enum class row_step { subtract, multiply, subtract_twice, product, gradient, log_gradient };

/// One step on rows of a block, with one or two numbers per row.
template <row_step S, class T>
struct rows_step_body {
    TG_INLINE static T value(T x, T y, T a, T b) {
        if constexpr (S == row_step::subtract) return x - a;
        if constexpr (S == row_step::multiply) return x * a;
        if constexpr (S == row_step::subtract_twice) return (x - a) - b;
        if constexpr (S == row_step::product) return x * y;
        if constexpr (S == row_step::gradient) return y * (x - a);
        if constexpr (S == row_step::log_gradient) return x - y * a;
    }
    template <class Isa>
    TG_INLINE static void run(const T* x, const T* y, const double* a, const double* b, T* to, std::int64_t rows,
                              std::int64_t length) {
        for (std::int64_t r = 0; r < rows; ++r, x += length, y += length, to += length) {
            const T first = static_cast<T>(a[r]), second = static_cast<T>(b[r]);
            TG_SIMD
            for (std::int64_t i = 0; i < length; ++i) to[i] = value(x[i], y[i], first, second);
        }
    }
};
template <row_step S, class T>
void step(const T* x, const T* y, const double* a, T* to, std::int64_t rows, std::int64_t length,
          const double* b = nullptr) {
    dispatch<rows_step_body<S, T>>(x, y, a, b == nullptr ? a : b, to, rows, length);
}

/// Turns sums of exponentials into factors of rows, or into their logarithms, which are subtracted.
template <bool Log, class T>
struct of_sums_body {
    TG_INLINE static double value(double sum) {
        return Log ? static_cast<double>(math::log(static_cast<T>(sum))) : 1 / sum;
    }
    template <class Isa>
    TG_INLINE static void run(double* sums, std::int64_t count) {
        TG_SIMD
        for (std::int64_t i = 0; i < count; ++i) sums[i] = value(sums[i]);
    }
};

/// Computes y from x [rows, length]; `Log`: the logarithms. Processes a whole block, which is at
/// most a tile.
template <bool Log>
struct forward {
    template <class T>
    static void block(const T* x, const T*, T* y, std::int64_t rows, std::int64_t length) {
        T raised[Log ? block_elements : 1];
        double a[block_elements];
        T* const e = Log ? raised : y;
        run_rows<reduction::maximum>(x, rows, length, a);
        step<row_step::subtract>(x, x, a, y, rows, length);
        dispatch<exp_body<T>>(static_cast<const T*>(y), e, rows * length);
        run_rows<reduction::sum>(static_cast<const T*>(e), rows, length, a);
        dispatch<of_sums_body<Log, T>>(static_cast<double*>(a), rows);
        step<Log ? row_step::subtract : row_step::multiply>(static_cast<const T*>(y), static_cast<const T*>(y), a, y,
                                                            rows, length);
    }
    static constexpr bool has_largest = true;
    /// For a tile of a longer row, whose largest element is known: its part of the sum.
    template <class T>
    static double sum(const T* x, const T*, T* y, double largest, std::int64_t count) {
        T raised[Log ? block_elements : 1], *const e = Log ? raised : y;
        double total = 0;
        step<row_step::subtract>(x, x, &largest, e, 1, count);
        dispatch<exp_body<T>>(static_cast<const T*>(e), e, count);
        run_rows<reduction::sum>(static_cast<const T*>(e), 1, count, &total);
        return total;
    }
    template <class T>
    static double of_sum(double sum) {
        dispatch<of_sums_body<Log, T>>(&sum, std::int64_t{1});
        return sum;
    }
    template <class T>
    static void finish(const T* x, const T*, T* y, double largest, double of, std::int64_t count) {
        if constexpr (Log)
            step<row_step::subtract_twice>(x, x, &largest, y, 1, count, &of);
        else
            step<row_step::multiply>(static_cast<const T*>(y), static_cast<const T*>(y), &of, y, 1, count);
    }
};

/// Computes the derivative by x from dy and y [rows, length].
template <bool Log>
struct backward {
    template <class T>
    static void block(const T* dy, const T* y, T* dx, std::int64_t rows, std::int64_t length) {
        T made[block_elements];
        double a[block_elements];
        if constexpr (Log) {
            run_rows<reduction::sum>(dy, rows, length, a);
            dispatch<exp_body<T>>(y, static_cast<T*>(made), rows * length);
            step<row_step::log_gradient>(dy, static_cast<const T*>(made), a, dx, rows, length);
        } else {
            constexpr double none = 0;
            step<row_step::product>(dy, y, &none, static_cast<T*>(made), 1, rows * length);
            run_rows<reduction::sum>(static_cast<const T*>(made), rows, length, a);
            step<row_step::gradient>(dy, y, a, dx, rows, length);
        }
    }
    static constexpr bool has_largest = false;
    template <class T>
    static double sum(const T* dy, const T* y, T*, double none, std::int64_t count) {
        T made[block_elements];
        double total = 0;
        if constexpr (!Log) {
            step<row_step::product>(dy, y, &none, static_cast<T*>(made), 1, count);
            dy = made;
        }
        run_rows<reduction::sum>(dy, 1, count, &total);
        return total;
    }
    template <class T>
    static double of_sum(double sum) {
        return sum;
    }
    template <class T>
    static void finish(const T* dy, const T* y, T* dx, double, double sum, std::int64_t count) {
        T made[Log ? block_elements : 1];
        if constexpr (Log) {
            dispatch<exp_body<T>>(y, static_cast<T*>(made), count);
            step<row_step::log_gradient>(dy, static_cast<const T*>(made), &sum, dx, 1, count);
        } else {
            step<row_step::gradient>(dy, y, &sum, dx, 1, count);
        }
    }
};

/// A row longer than a tile, in `parts` that run in parallel.
template <class Way, class T>
void long_row(const T* x, const T* y, T* to, std::int64_t length, std::int64_t parts) {
    double found[most_parts] = {}, largest = 0, total = 0;
    const auto each_part = [&](const auto& f) {
        parallel_for(parts, parts > 1, [&](std::int64_t p) {
            const std::int64_t end = length * (p + 1) / parts;
            for (std::int64_t i = length * p / parts; i < end; i += block_elements)
                f(p, i, std::min(block_elements, end - i));
        });
    };
    if constexpr (Way::has_largest) {
        for (std::int64_t p = 0; p < parts; ++p) found[p] = -std::numeric_limits<double>::infinity();
        each_part([&](std::int64_t p, std::int64_t i, std::int64_t count) {
            double of_tile = 0;
            run_rows<reduction::maximum>(x + i, 1, count, &of_tile);
            reduce_detail::combine<reduction::maximum>(found[p], of_tile);
        });
        largest = found[0];
        for (std::int64_t p = 1; p < parts; ++p) reduce_detail::combine<reduction::maximum>(largest, found[p]);
    }
    for (std::int64_t p = 0; p < parts; ++p) found[p] = 0;
    each_part([&](std::int64_t p, std::int64_t i, std::int64_t count) {
        found[p] += Way::template sum<T>(x + i, y + i, to + i, largest, count);
    });
    for (std::int64_t p = 0; p < parts; ++p) total += found[p];
    const double of = Way::template of_sum<T>(total);
    each_part([&](std::int64_t, std::int64_t i, std::int64_t count) {
        Way::template finish<T>(x + i, y + i, to + i, largest, of, count);
    });
}

/// Sums down columns, in runs that are joined: a single run of a thousand doubles would err by ten
/// units in the last place.
struct column_sums {
    static constexpr std::int64_t longest = 64;
    double run[columns] = {}, sum[columns] = {};
    TG_INLINE void join(std::int64_t row, std::int64_t rows) {
        if ((row + 1) % longest != 0 && row + 1 != rows) return;
        for (std::int64_t c = 0; c < columns; ++c) sum[c] += run[c], run[c] = 0;
    }
};

/// Up to `columns` neighbouring lines along an axis that is not the last.
template <class Way, class T>
struct columns_body;
template <bool Log, class T>
struct columns_body<forward<Log>, T> {
    template <class Isa>
    TG_INLINE static void run(const T* x, const T*, T* y, std::int64_t stride, std::int64_t length,
                              std::int64_t width) {
        T largest[columns], shift[columns];
        column_sums total;
        for (std::int64_t c = 0; c < width; ++c) largest[c] = x[c];
        for (std::int64_t k = 1; k < length; ++k) {
            const T* const from = x + k * stride;
            TG_SIMD
            for (std::int64_t c = 0; c < width; ++c) {
                const T best = from[c] > largest[c] ? from[c] : largest[c];
                largest[c] = from[c] != from[c] ? from[c] : best;
            }
        }
        for (std::int64_t k = 0; k < length; ++k) {
            T raised[columns], *const e = Log ? raised : y + k * stride;
            const T* const from = x + k * stride;
            TG_SIMD
            for (std::int64_t c = 0; c < width; ++c) e[c] = exp_of(from[c] - largest[c]);
            TG_SIMD
            for (std::int64_t c = 0; c < width; ++c) total.run[c] += static_cast<double>(e[c]);
            total.join(k, length);
        }
        of_sums_body<Log, T>::template run<Isa>(total.sum, width);
        for (std::int64_t c = 0; c < width; ++c) shift[c] = static_cast<T>(total.sum[c]);
        for (std::int64_t k = 0; k < length; ++k) {
            const T* const from = x + k * stride;
            T* const to = y + k * stride;
            TG_SIMD
            for (std::int64_t c = 0; c < width; ++c) to[c] = Log ? (from[c] - largest[c]) - shift[c] : to[c] * shift[c];
        }
    }
};
template <bool Log, class T>
struct columns_body<backward<Log>, T> {
    template <class Isa>
    TG_INLINE static void run(const T* dy, const T* y, T* dx, std::int64_t stride, std::int64_t length,
                              std::int64_t width) {
        T sum[columns];
        column_sums total;
        for (std::int64_t k = 0; k < length; ++k) {
            const std::int64_t at = k * stride;
            TG_SIMD
            for (std::int64_t c = 0; c < width; ++c)
                total.run[c] += static_cast<double>(Log ? dy[at + c] : dy[at + c] * y[at + c]);
            total.join(k, length);
        }
        for (std::int64_t c = 0; c < width; ++c) sum[c] = static_cast<T>(total.sum[c]);
        for (std::int64_t k = 0; k < length; ++k) {
            const std::int64_t at = k * stride;
            T* const to = dx + at;
            TG_SIMD
            for (std::int64_t c = 0; c < width; ++c)
                to[c] = Log ? dy[at + c] - exp_of(y[at + c]) * sum[c] : y[at + c] * (dy[at + c] - sum[c]);
        }
    }
};

} // namespace softmax_detail

/// Applies `Way` to every line of x (and y, for gradients) along an axis of [outer, length, inner].
/// `to` may be x.
template <class Way, class T>
void along_lines(std::int64_t outer, std::int64_t length, std::int64_t inner, const T* x, const T* y, T* to) {
    using namespace softmax_detail;
    const std::int64_t elements = outer * length * inner;
    if (elements == 0) return;
    const bool parallel = elements >= part;
    if (inner > 1) {
        const std::int64_t chunks = reduce_detail::divide_up(inner, columns);
        parallel_for(outer * chunks, parallel, [&](std::int64_t task) {
            const std::int64_t c = task % chunks * columns, at = task / chunks * length * inner + c;
            dispatch<columns_body<Way, T>>(x + at, y + at, to + at, inner, length, std::min(columns, inner - c));
        });
    } else if (length > block_elements) {
        const std::int64_t parts = outer < 16 ? std::clamp<std::int64_t>(length / part, 1, most_parts) : 1;
        parallel_for(outer, parallel && parts == 1, [&](std::int64_t row) {
            const std::int64_t at = row * length;
            long_row<Way>(x + at, y + at, to + at, length, parts);
        });
    } else {
        const std::int64_t in_block = block_elements / length;
        parallel_for(reduce_detail::divide_up(outer, in_block), parallel, [&](std::int64_t block) {
            const std::int64_t first = block * in_block, at = first * length;
            Way::block(x + at, y + at, to + at, std::min(in_block, outer - first), length);
        });
    }
}

} // namespace tapegraph::cpu
TG_ROUNDS_EACH_END
