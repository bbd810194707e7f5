#pragma once

#include <tapegraph/ops/reduction/cpu_softmax.hpp>

/// Cross entropy of logits and class numbers on the CPU, and its derivative. A row is read tile by
/// tile; each tile, which stays in the L1 cache, has a largest element and a sum of exponentials of
/// its own, and those of a row's tiles are joined in double. Tiles follow from the shape, so the
/// bits depend neither on threads nor on the instruction set.

TG_ROUNDS_EACH_BEGIN
namespace tapegraph::cpu {

namespace cross_entropy_detail {

using reduce_detail::divide_up;
using softmax_detail::block_elements, softmax_detail::part;
inline constexpr std::int64_t long_enough = 64;   // of a row, for vectors of its own
inline constexpr std::int64_t tiles_in_task = 16; // where rows are too few for all threads
inline constexpr std::int64_t rows_are_many = 16;

/// e^x for x <= 0, where the error may grow with |x| as that of a rounded difference of logits does:
/// 2^(k + r) with x / ln 2 = k + r, a relative error of epsilon (1 + |x|), and 0 below 2^-125. It
/// takes two thirds of the time of math::exp. Coefficients: tools/fit_polynomial.py, exp2.
TG_INLINE float exp_of_difference(float x) {
    using namespace math::detail;
    constexpr float lowest = -125;
    const float power = product(x, traits<float>::log2_e);
    const float kept = select(power < lowest, lowest, power), t = kept + traits<float>::round_magic;
    const float r = kept - (t - traits<float>::round_magic);
    const float y =
        polynomial(r, 1.0f, 0.693147182f, 0.240226477f, 0.0555032901f, 0.00961843599f, 0.00134003605f, 0.000153573856f);
    return select(power < lowest, 0.0f, product(y, from_exponent<float>(to_bits(t) + traits<float>::bias)));
}
TG_INLINE double exp_of_difference(double x) { return math::exp(x); }

/// e = exp(x - shift of the row), row by row.
template <class T>
struct raise_body {
    template <class Isa>
    TG_INLINE static void run(const T* x, const double* shift, T* e, std::int64_t rows, std::int64_t length) {
        for (std::int64_t r = 0; r < rows; ++r, x += length, e += length) {
            const T by = static_cast<T>(shift[r]);
            TG_SIMD
            for (std::int64_t i = 0; i < length; ++i) e[i] = exp_of_difference(x[i] - by);
        }
    }
};
/// e = exp(e), for rows too short for vectors of their own.
template <class T>
struct raise_all_body {
    template <class Isa>
    TG_INLINE static void run(T* e, std::int64_t count) {
        TG_SIMD
        for (std::int64_t i = 0; i < count; ++i) e[i] = exp_of_difference(e[i]);
    }
};
/// The largest element and the sum of exponentials of each row of a block.
template <class T>
void raise(const T* x, T* e, std::int64_t rows, std::int64_t length, double* largest, double* sum) {
    using namespace softmax_detail;
    run_rows<reduction::maximum>(x, rows, length, largest);
    if (length >= long_enough) {
        dispatch<raise_body<T>>(x, static_cast<const double*>(largest), e, rows, length);
    } else {
        step<row_step::subtract>(x, x, largest, e, rows, length);
        dispatch<raise_all_body<T>>(e, rows * length);
    }
    run_rows<reduction::sum>(static_cast<const T*>(e), rows, length, sum);
}
/// The same of a tile of a longer row. One that has only -infinity adds nothing.
template <class T>
void raise_tile(const T* x, T* e, std::int64_t count, double& largest, double& sum) {
    using namespace softmax_detail;
    run_rows<reduction::maximum>(x, std::int64_t{1}, count, &largest);
    const double shift = largest == -std::numeric_limits<double>::infinity() ? 0 : largest;
    dispatch<raise_body<T>>(x, &shift, e, std::int64_t{1}, count);
    run_rows<reduction::sum>(static_cast<const T*>(e), std::int64_t{1}, count, &sum);
}
/// Joins a row's tiles, and turns the tiles' sums into the factors that their exponentials need.
template <class T>
struct join_body {
    template <class Isa>
    TG_INLINE static void run(const double* largest, double* sums, std::int64_t tiles, double* best, double* total) {
        *best = largest[0];
        for (std::int64_t t = 1; t < tiles; ++t) reduce_detail::combine<reduction::maximum>(*best, largest[t]);
        *total = 0;
        for (std::int64_t t = 0; t < tiles; ++t) {
            const double factor =
                static_cast<double>(exp_of_difference(static_cast<T>(largest[t]) - static_cast<T>(*best)));
            *total += sums[t] * factor;
            sums[t] = factor;
        }
    }
};

/// log(sum) - (x[label] - largest).
template <class T, class Index>
struct losses_body {
    template <class Isa>
    TG_INLINE static void run(const T* x, const Index* labels, const double* largest, const double* sums,
                              std::int64_t rows, std::int64_t length, T* loss) {
        for (std::int64_t r = 0; r < rows; ++r)
            loss[r] = x[r * length + static_cast<std::int64_t>(labels[r])] - static_cast<T>(largest[r]);
        TG_SIMD
        for (std::int64_t r = 0; r < rows; ++r) loss[r] = math::log(static_cast<T>(sums[r])) - loss[r];
    }
};
/// e becomes dy (e / sum - 1 at the label).
template <class T, class Index>
struct slopes_body {
    template <class Isa>
    TG_INLINE static void run(const T* dy, const Index* labels, const double* sums, std::int64_t rows,
                              std::int64_t length, T* e) {
        for (std::int64_t r = 0; r < rows; ++r, e += length) {
            const T factor = static_cast<T>(static_cast<double>(dy[r]) / sums[r]);
            TG_SIMD
            for (std::int64_t i = 0; i < length; ++i) e[i] = e[i] * factor;
            e[labels[r]] = e[labels[r]] - dy[r];
        }
    }
};
template <class T>
struct scale_body {
    template <class Isa>
    TG_INLINE static void run(double factor, std::int64_t count, T* e) {
        const T by = static_cast<T>(factor);
        TG_SIMD
        for (std::int64_t i = 0; i < count; ++i) e[i] = e[i] * by;
    }
};

/// Calls block(first row, rows) for blocks of rows that fit a tile.
template <class F>
void over_blocks(std::int64_t rows, std::int64_t length, const F& block) {
    const std::int64_t in_block = block_elements / length;
    parallel_for(divide_up(rows, in_block), rows * length >= part,
                 [&](std::int64_t b) { block(b * in_block, std::min(in_block, rows - b * in_block)); });
}
/// For rows of several tiles: each(row, tile) for all tiles of a row, join(row), again(row, tile).
/// A row that is cut among threads is the same work.
template <class Each, class Join, class Again>
void over_tiles(std::int64_t rows, std::int64_t tiles, const Each& each, const Join& join, const Again& again) {
    if (rows >= rows_are_many || thread_count() == 1)
        return parallel_for(rows, true, [&](std::int64_t r) {
            for (std::int64_t t = 0; t < tiles; ++t) each(r, t);
            join(r);
            for (std::int64_t t = 0; t < tiles; ++t) again(r, t);
        });
    const std::int64_t tasks = divide_up(tiles, tiles_in_task);
    const auto in_tasks = [&](const auto& f) {
        parallel_for(rows * tasks, rows * tasks > 1, [&](std::int64_t task) {
            const std::int64_t r = task / tasks, first = task % tasks * tiles_in_task;
            for (std::int64_t t = first; t < std::min(tiles, first + tiles_in_task); ++t) f(r, t);
        });
    };
    in_tasks(each);
    for (std::int64_t r = 0; r < rows; ++r) join(r);
    in_tasks(again);
}

} // namespace cross_entropy_detail

/// Doubles of scratch memory that both functions below need.
inline std::int64_t cross_entropy_scratch(std::int64_t rows, std::int64_t length) {
    using namespace cross_entropy_detail;
    return length <= block_elements ? 0 : 2 * rows * divide_up(length, block_elements);
}

/// loss[r] = -log(softmax(x[r, :])[labels[r]]), for x [rows, length]; labels are within [0, length).
template <class T, class Index>
void sparse_cross_entropy(std::int64_t rows, std::int64_t length, const T* x, const Index* labels, T* loss,
                          double* scratch) {
    using namespace cross_entropy_detail;
    if (rows * length == 0) return;
    if (length <= block_elements)
        return over_blocks(rows, length, [&](std::int64_t first, std::int64_t count) {
            T raised[block_elements];
            double largest[block_elements], sums[block_elements];
            const T* const from = x + first * length;
            raise(from, raised, count, length, largest, sums);
            dispatch<losses_body<T, Index>>(from, labels + first, static_cast<const double*>(largest),
                                            static_cast<const double*>(sums), count, length, loss + first);
        });
    const std::int64_t tiles = divide_up(length, block_elements);
    double *const largest = scratch, *const sums = scratch + rows * tiles;
    over_tiles(
        rows, tiles,
        [&](std::int64_t r, std::int64_t t) {
            T raised[block_elements];
            const std::int64_t begin = t * block_elements;
            raise_tile(x + r * length + begin, raised, std::min(block_elements, length - begin), largest[r * tiles + t],
                       sums[r * tiles + t]);
        },
        [&](std::int64_t r) {
            double best = 0, total = 0;
            dispatch<join_body<T>>(static_cast<const double*>(largest + r * tiles), sums + r * tiles, tiles, &best,
                                   &total);
            dispatch<losses_body<T, Index>>(x + r * length, labels + r, static_cast<const double*>(&best),
                                            static_cast<const double*>(&total), std::int64_t{1}, length, loss + r);
        },
        [](std::int64_t, std::int64_t) {});
}

/// dx[r, :] = dy[r] (softmax(x[r, :]) - 1 at labels[r]).
template <class T, class Index>
void sparse_cross_entropy_gradient(std::int64_t rows, std::int64_t length, const T* dy, const T* x, const Index* labels,
                                   T* dx, double* scratch) {
    using namespace cross_entropy_detail;
    if (rows * length == 0) return;
    if (length <= block_elements)
        return over_blocks(rows, length, [&](std::int64_t first, std::int64_t count) {
            double largest[block_elements], sums[block_elements];
            T* const to = dx + first * length;
            raise(x + first * length, to, count, length, largest, sums);
            dispatch<slopes_body<T, Index>>(dy + first, labels + first, static_cast<const double*>(sums), count, length,
                                            to);
        });
    const std::int64_t tiles = divide_up(length, block_elements);
    double *const largest = scratch, *const factors = scratch + rows * tiles;
    over_tiles(
        rows, tiles,
        [&](std::int64_t r, std::int64_t t) {
            const std::int64_t begin = t * block_elements, at = r * length + begin;
            raise_tile(x + at, dx + at, std::min(block_elements, length - begin), largest[r * tiles + t],
                       factors[r * tiles + t]);
        },
        [&](std::int64_t r) {
            double best = 0, total = 0;
            dispatch<join_body<T>>(static_cast<const double*>(largest + r * tiles), factors + r * tiles, tiles, &best,
                                   &total);
            const double by = static_cast<double>(dy[r]) / total;
            for (std::int64_t t = 0; t < tiles; ++t) factors[r * tiles + t] *= by;
        },
        [&](std::int64_t r, std::int64_t t) {
            const std::int64_t begin = t * block_elements, at = r * length + begin, label = labels[r];
            const std::int64_t count = std::min(block_elements, length - begin);
            dispatch<scale_body<T>>(factors[r * tiles + t], count, dx + at);
            if (label >= begin && label < begin + count) dx[r * length + label] -= dy[r];
        });
}

} // namespace tapegraph::cpu
TG_ROUNDS_EACH_END
