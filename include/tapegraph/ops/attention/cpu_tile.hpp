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

/// a * b, which no following sum is fused with.
template <class V>
TG_INLINE void product_alone(V& to, const V& a, const V& b) {
#if defined(__clang__)
    to = a * b;
#elif defined(__x86_64__) // g++ takes a barrier of 64 bytes apart
    to = a * b;
    __asm__("" : "+v"(to));
#else
    to = __builtin_assoc_barrier(a * b);
#endif
}

/// e = e^x for what is at most 0 up to rounding, or NaN; 0 below -87.7.
template <class Isa, class T, class V = vector<T, Isa::vector_bytes>>
TG_INLINE void exp_of_negative(typename V::type& e, const typename V::type& x) {
    using type = typename V::type;
    if constexpr (sizeof(T) == sizeof(float)) {
        typedef std::int32_t bits __attribute__((vector_size(Isa::vector_bytes)));
        // x = k ln 2 + r. The low bits of t are k + 127, the exponent of 2^k; at the bound that is 0. ln 2 as a float
        // is wrong by 2e-9, so that e is by 3e-9 |x|; what x was rounded by costs 6e-8 |x|.
        constexpr T magic = math::detail::traits<T>::round_magic + T(127);
        const type lowest = type{} - T(88), c = lowest > x ? lowest : x; // NaN stays
        type t = type{} + magic, r = c;
        V::multiply_add(t, c, T(math::detail::traits<T>::log2_e));
        V::multiply_add(r, t - magic, T(-0.693147182f));
        // 1 + r + r^2 q(r) is within 1.1e-7 of e^r.
        type q = type{} + T(0.00831238f);
        const auto times_r_plus = [&](T coefficient) __attribute__((always_inline)) {
            type next = type{} + coefficient;
            V::multiply_add(next, q, r);
            q = next;
        };
        times_r_plus(T(0.0418914f)), times_r_plus(T(0.1666712f)), times_r_plus(T(0.4999922f));
        times_r_plus(T(1)), times_r_plus(T(1));
        product_alone(e, q, __builtin_bit_cast(type, __builtin_bit_cast(bits, t) << 23));
    } else {
        T values[V::lanes];
        V::store(values, x);
        TG_SIMD
        for (int i = 0; i < V::lanes; ++i) values[i] = math::exp(values[i]);
        V::load(e, values);
    }
}

/// Raises scores [keys, columns] to exponentials: `largest` becomes the maximum of each column so far,
/// `total` the sum of exponentials relative to it, and `factor` what former sums are multiplied by.
/// Columns are whole vectors, whose maxima and sums stay in registers.
template <class T>
struct raise_body {
    template <class Isa>
    TG_INLINE static void run(T* scores, std::int64_t keys, std::int64_t columns, T* largest, T* total, T* factor) {
        using v = vector<T, Isa::vector_bytes>;
        using type = typename v::type;
        for (std::int64_t c = 0; c < columns; c += v::lanes, scores += v::lanes) {
            // Four maxima, since one would wait for the last.
            type old, best, second = type{} + not_seen<T>, third = second, fourth = second, x, sum{}, e;
            v::load(old, largest + c);
            best = old;
            std::int64_t k = 0;
            const auto take = [&](type & most, std::int64_t key) __attribute__((always_inline)) {
                v::load(x, scores + key * columns);
                most = x > most ? x : most;
            };
            for (; k + 4 <= keys; k += 4) take(best, k), take(second, k + 1), take(third, k + 2), take(fourth, k + 3);
            for (; k < keys; ++k) take(best, k);
            second = fourth > second ? fourth : second, best = third > best ? third : best;
            best = second > best ? second : best;
            v::store(largest + c, best);
            best = best == not_seen<T> ? type{} : best; // nothing seen so far
            for (k = 0; k < keys; ++k) {
                v::load(x, scores + k * columns);
                exp_of_negative<Isa, T>(e, x - best);
                v::store(scores + k * columns, e);
                sum += e;
            }
            exp_of_negative<Isa, T>(e, old - best);
            v::store(factor + c, e);
            v::load(x, total + c);
            v::multiply_add(sum, x, e);
            v::store(total + c, sum);
        }
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
/// P (dP - delta). Columns are whole vectors.
template <class T>
struct slopes_body {
    template <class Isa>
    TG_INLINE static void run(T* scores, T* slopes, std::int64_t keys, std::int64_t columns, const T* largest,
                              const T* inverse, const T* delta) {
        using v = vector<T, Isa::vector_bytes>;
        typename v::type largest_of, inverse_of, delta_of, x, p, d;
        for (std::int64_t c = 0; c < columns; c += v::lanes) {
            v::load(largest_of, largest + c), v::load(inverse_of, inverse + c), v::load(delta_of, delta + c);
            for (std::int64_t at = c; at < keys * columns; at += columns) {
                v::load(x, scores + at), v::load(d, slopes + at);
                exp_of_negative<Isa, T>(p, x - largest_of);
                p *= inverse_of;
                d = p * (d - delta_of);
                d = p == T(0) ? typename v::type{} : d; // a key that is not seen may have any number
                v::store(scores + at, p);
                v::store(slopes + at, d);
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
