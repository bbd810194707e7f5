#pragma once

#include <tapegraph/core/math.hpp>
#include <tapegraph/core/philox.hpp>
#include <tapegraph/cpu/gemm_kernel.hpp>
#include <tapegraph/cpu/tasks.hpp>

#include <algorithm>
#include <limits>
#include <type_traits>

/// Tiles of attention on the CPU: a block of queries by a block of keys. Scores are stored [keys,
/// queries], so that what belongs to a query lies in a lane: maxima and sums over keys need no sums
/// across lanes, and every product reads its operands where they are (cpu/gemm_kernel.hpp).

TG_ROUNDS_EACH_BEGIN
namespace tapegraph::cpu {

/// queries [batch, time, heads, depth], keys [batch, steps, heads / shared, depth], values [batch,
/// steps, heads / shared, width].
struct attention_shape {
    std::int64_t batch = 0, time = 0, heads = 0, shared = 1, steps = 0, depth = 0, width = 0;
    bool biased = false;            ///< a number is added to every score
    std::int64_t bias_strides[4]{}; ///< of [batch, heads, time, steps]; 0 where all share a number
    bool causal = false;
    std::int64_t offset = 0; ///< causal: query i sees the keys up to i + offset
    bool equal = false;      ///< a query that sees nothing weighs all keys alike, instead of by 0
    bool drops = false;
    double rate = 0, scale = 1;

    TG_HD std::int64_t kv_heads() const { return heads / shared; }
    TG_HD std::int64_t results() const { return batch * time * heads * width; }
    double products() const {
        return static_cast<double>(batch * heads) * static_cast<double>(time) * static_cast<double>(steps) *
               static_cast<double>(depth + width);
    }
};

namespace attention_detail {

/// Queries and keys of a tile: the scores of both and what the products read of them stay in L2,
/// and so many keys keep the numbers of a query in registers for long.
inline constexpr std::int64_t most_queries = 64, most_keys = 128;
/// So many blocks of queries at most go through the keys side by side.
inline constexpr std::int64_t most_grouped = 16;
/// So many rows of a bias are looked through for keys that nobody sees.
inline constexpr std::int64_t most_scanned = 4;

template <class T>
inline constexpr T not_seen = -std::numeric_limits<T>::infinity();

/// c [m, n] (+)= a [m, k] b [k, n]. b is packed in panels, or its rows are `b_row` apart and padded
/// to whole vectors; c is, too, if n is a number of whole vectors.
template <class T>
struct tile_product {
    std::int64_t m, n, k;
    const T* a;
    std::int64_t a_row, a_inner;
    const T* b;
    std::int64_t b_row; ///< 0: packed
    T* c;
    std::int64_t c_row;
    bool accumulate = true;

    void run(const tile_kernels<T>& kernels) const {
        const panel_layout layout{n, kernels.lanes};
        tile_job<T> job{};
        job.walk.inner = k;
        job.walk.a_inner = a_inner;
        job.walk.b_inner = b_row;
        job.a_row = a_row;
        job.c_row = c_row;
        job.accumulate = accumulate;
        for (std::int64_t p = 0; p < layout.count(); ++p) {
            const std::int64_t column = p * 2 * kernels.lanes;
            job.b = b_row == 0 ? b + layout.offset(p, k) : b + column;
            job.columns = layout.columns(p);
            for_tiles(m, kernels.rows, [&](std::int64_t first, std::int64_t count) {
                job.a = a + first * a_row;
                job.c = c + first * c_row + column;
                kernels.run[layout.vectors(p) - 1][count - 1](job);
            });
        }
    }
    void run_where_used() const;
};

/// The same where b has an infinity or NaN, of which a zero in a takes no notice: a key that a query
/// does not see does not count.
template <class T>
struct where_used_body {
    template <class Isa>
    TG_INLINE static void run(const tile_product<T>* p) {
        for (std::int64_t i = 0; i < p->m; ++i) {
            T* const to = p->c + i * p->c_row;
            for (std::int64_t j = 0; j < p->k; ++j) {
                const T factor = p->a[i * p->a_row + j * p->a_inner], *const from = p->b + j * p->b_row;
                if (factor == T(0)) continue;
                TG_SIMD
                for (std::int64_t x = 0; x < p->n; ++x) to[x] += factor * from[x];
            }
        }
    }
};
template <class T>
void tile_product<T>::run_where_used() const {
    dispatch<where_used_body<T>>(this);
}

/// to [rows, to_row] = scale from [rows, columns], padded with zeros.
template <class T>
struct load_body {
    template <class Isa>
    TG_INLINE static void run(T* to, std::int64_t to_row, const T* from, std::int64_t from_row, std::int64_t rows,
                              std::int64_t columns, T scale) {
        constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T)), ahead = 16;
        for (std::int64_t r = 0; r < rows; ++r, to += to_row, from += from_row) {
            // The processor does not prefetch rows far apart by itself.
            for (std::int64_t c = 0; c < columns; c += line) __builtin_prefetch(from + ahead * from_row + c);
            TG_SIMD
            for (std::int64_t c = 0; c < columns; ++c) to[c] = from[c] * scale;
            for (std::int64_t c = columns; c < to_row; ++c) to[c] = T(0);
        }
    }
};

/// Sets `finite` to false where x [rows, columns] has an infinity or NaN.
template <class T>
struct finite_body {
    template <class Isa>
    TG_INLINE static void run(const T* x, std::int64_t row, std::int64_t rows, std::int64_t columns, bool* finite) {
        // Adding one to an exponent of all ones carries into the sign.
        using bits = math::detail::bits_t<T>;
        constexpr bits sign = math::detail::sign_bit<T>, one = bits{1} << math::detail::traits<T>::mantissa;
        bits carried = 0;
        for (std::int64_t r = 0; r < rows; ++r, x += row) {
            TG_SIMD
            for (std::int64_t c = 0; c < columns; ++c) carried |= (math::detail::to_bits(x[c]) & ~sign) + one;
        }
        if ((carried & sign) != 0) *finite = false;
    }
};

/// to [rows, columns] = from factors[row].
template <class T>
struct scale_rows_body {
    template <class Isa>
    TG_INLINE static void run(T* to, std::int64_t to_row, const T* from, std::int64_t from_row, std::int64_t rows,
                              std::int64_t columns, const T* factors) {
        for (std::int64_t r = 0; r < rows; ++r) {
            const T factor = factors[r];
            TG_SIMD
            for (std::int64_t c = 0; c < columns; ++c) to[r * to_row + c] = from[r * from_row + c] * factor;
        }
    }
};

/// Adds a bias, [keys, columns] like the scores, or one number for each key. Where it is -infinity
/// the score is, whatever it was.
template <class T>
struct add_bias_body {
    template <class Isa>
    TG_INLINE static void run(T* scores, const T* bias, std::int64_t bias_key, bool each_query, std::int64_t keys,
                              std::int64_t columns) {
        for (std::int64_t k = 0; k < keys; ++k, scores += columns, bias += bias_key) {
            if (each_query) {
                TG_SIMD
                for (std::int64_t c = 0; c < columns; ++c)
                    scores[c] = math::detail::select(bias[c] == not_seen<T>, not_seen<T>, scores[c] + bias[c]);
            } else {
                const T b = *bias;
                TG_SIMD
                for (std::int64_t c = 0; c < columns; ++c)
                    scores[c] = math::detail::select(b == not_seen<T>, not_seen<T>, scores[c] + b);
            }
        }
    }
};

#if defined(__FMA__) || defined(__FP_FAST_FMA) || defined(__aarch64__) || defined(__s390x__) ||                        \
    defined(__ARM_FEATURE_FMA)
inline constexpr bool baseline_fuses = true;
#else
inline constexpr bool baseline_fuses = false;
#endif

/// a * b + c, rounded once where the instruction set has that, else twice, whichever compiler makes it.
template <class Isa, class T>
TG_INLINE T fused_sum(T a, T b, T c) {
    if constexpr (std::is_same_v<Isa, baseline> && !baseline_fuses)
        return math::detail::mul_add(a, b, c);
    else if constexpr (sizeof(T) == sizeof(float))
        return __builtin_fmaf(a, b, c);
    else
        return __builtin_fma(a, b, c);
}

/// e^x for what is at most 0 up to rounding, or NaN; 0 below -87.7.
template <class Isa, class T>
TG_INLINE T exp_of_negative(T x) {
    if constexpr (sizeof(T) == sizeof(float)) {
        using math::detail::traits;
        // x = k ln 2 + r; the polynomial is that of math::exp, with fewer roundings. At the bound 2^k is 0.
        const T c = math::detail::select(x < T(-88), T(-88), x);
        const T t = fused_sum<Isa>(c, T(traits<T>::log2_e), T(traits<T>::round_magic)), k = t - traits<T>::round_magic;
        const T r = fused_sum<Isa>(-k, T(traits<T>::ln2_low), fused_sum<Isa>(-k, T(traits<T>::ln2_high), c));
        T q = fused_sum<Isa>(T(0.00138823956f), r, T(0.00836718082f));
        q = fused_sum<Isa>(q, r, T(0.041667223f));
        q = fused_sum<Isa>(q, r, T(0.16666539f));
        q = fused_sum<Isa>(q, r, T(0.49999997f));
        const T e = fused_sum<Isa>(fused_sum<Isa>(q, r, T(1)), r, T(1));
        const auto field = math::detail::to_bits(t) - math::detail::to_bits(T(traits<T>::round_magic));
        return math::detail::product(e, math::detail::from_exponent<T>(field + traits<T>::bias));
    } else {
        return math::exp(x);
    }
}

/// Raises scores [keys, columns] to exponentials: `largest` becomes the maximum of each column so far,
/// `total` the sum of exponentials relative to it, and `factor` what former sums are multiplied by.
template <class T>
struct raise_body {
    template <class Isa>
    TG_INLINE static void run(T* scores, std::int64_t keys, std::int64_t columns, T* largest, T* total, T* factor) {
        T best[most_queries], sum[most_queries];
        for (std::int64_t c = 0; c < columns; ++c) best[c] = largest[c], sum[c] = T(0);
        for (std::int64_t k = 0; k < keys; ++k) {
            const T* const row = scores + k * columns;
            TG_SIMD
            for (std::int64_t c = 0; c < columns; ++c)
                best[c] = math::detail::select(row[c] > best[c], row[c], best[c]);
        }
        for (std::int64_t c = 0; c < columns; ++c) {
            const T old = largest[c];
            largest[c] = best[c];
            best[c] = best[c] == not_seen<T> ? T(0) : best[c]; // nothing seen so far
            factor[c] = exp_of_negative<Isa>(old - best[c]);
        }
        for (std::int64_t k = 0; k < keys; ++k) {
            T* const row = scores + k * columns;
            TG_SIMD
            for (std::int64_t c = 0; c < columns; ++c) {
                const T e = exp_of_negative<Isa>(row[c] - best[c]);
                row[c] = e;
                sum[c] += e;
            }
        }
        for (std::int64_t c = 0; c < columns; ++c) total[c] = fused_sum<Isa>(total[c], factor[c], sum[c]);
    }
};

/// Multiplies weights by 1 / (1 - rate) where the number drawn for them is at least `rate`, else by 0.
template <class T>
struct drop_body {
    template <class Isa>
    TG_INLINE static void run(T* weights, const T* drawn, std::int64_t count, T rate, T factor) {
        TG_SIMD
        for (std::int64_t i = 0; i < count; ++i)
            weights[i] = math::detail::select(drawn[i] >= rate, weights[i] * factor, T(0));
    }
};

/// From scores s and dP [keys, columns] to the weights P = exp(s - largest) inverse and the slopes
/// P (dP - delta).
template <class T>
struct slopes_body {
    template <class Isa>
    TG_INLINE static void run(T* scores, T* slopes, std::int64_t keys, std::int64_t columns, const T* largest,
                              const T* inverse, const T* delta) {
        for (std::int64_t k = 0; k < keys; ++k, scores += columns, slopes += columns) {
            TG_SIMD
            for (std::int64_t c = 0; c < columns; ++c) {
                const T p = exp_of_negative<Isa>(scores[c] - largest[c]) * inverse[c];
                const T d = p * (slopes[c] - delta[c]);
                scores[c] = p;
                slopes[c] = math::detail::select(p == T(0), T(0), d); // a key that is not seen may have any number
            }
        }
    }
};

/// delta[r]: the sum of dy y over row r.
template <class T>
struct row_products_body {
    template <class Isa>
    TG_INLINE static void run(const T* dy, std::int64_t dy_row, const T* y, std::int64_t y_row, std::int64_t rows,
                              std::int64_t columns, T* delta) {
        for (std::int64_t r = 0; r < rows; ++r) {
            const T *const a = dy + r * dy_row, *const b = y + r * y_row;
            constexpr std::int64_t lanes = 16; // the order of the sum, whatever the vectors' width
            T sums[lanes]{};
            std::int64_t c = 0;
            for (; c + lanes <= columns; c += lanes) {
                TG_SIMD
                for (std::int64_t lane = 0; lane < lanes; ++lane) sums[lane] += a[c + lane] * b[c + lane];
            }
            for (std::int64_t lane = 0; c < columns; ++c, ++lane) sums[lane] += a[c] * b[c];
            for (std::int64_t half = lanes / 2; half > 0; half /= 2)
                for (std::int64_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
            delta[r] = sums[0];
        }
    }
};

/// Uniform numbers for `count` weights of one query, which follow each other.
template <class T>
struct draw_body {
    template <class Isa>
    TG_INLINE static void run(T* to, std::int64_t first, std::int64_t count, const random::address* from) {
        random::detail::fill<random::detail::uniform>(to, first, count, *from);
    }
};

} // namespace attention_detail
} // namespace tapegraph::cpu
TG_ROUNDS_EACH_END
