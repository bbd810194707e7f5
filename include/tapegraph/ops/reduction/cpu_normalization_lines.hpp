#pragma once

#include <tapegraph/core/math.hpp>
#include <tapegraph/cpu/reduce_leaves.hpp>

#include <algorithm>

/// Normalization on the CPU. A record without rows is a line per group, read where it lies in the
/// caches; other records are read row by row, with a sum per channel. Sums run over lanes of 64
/// bytes, or over up to 64 rows, then in double. Tasks follow from the shape, so the bits depend
/// neither on threads nor on the instruction set.

TG_ROUNDS_EACH_BEGIN
namespace tapegraph::cpu {

/// Of x [examples, records, rows, groups, in_group].
struct normalized_shape {
    std::int64_t examples = 1, records = 1, rows = 1, groups = 1, in_group = 1;
    std::int64_t sharing = 1; ///< examples that share their parameters, one after the other
    bool centered = true;
    double epsilon = 0;

    TG_HD constexpr std::int64_t channels() const { return groups * in_group; }
    TG_HD constexpr std::int64_t record() const { return rows * channels(); }
    TG_HD constexpr std::int64_t elements() const { return examples * records * record(); }
    /// Whether each group of a record is one run of elements, long enough for lanes.
    TG_HD constexpr bool by_lines() const { return rows == 1 && (groups == 1 || in_group >= 16); }
    /// Of an example's derivatives by parameters, and statistics (ops/reduction/normalization.hpp).
    TG_HD constexpr std::int64_t sums() const { return 2 * channels() + 4 * records * groups; }
};

namespace normalization_detail {

using reduce_detail::divide_up;
using reduce_detail::unit;
inline constexpr std::int64_t widest = 1024, tile = 2048, rows_in_t = 64, task = 16384, most_parts = 32, narrow = 64;

// Not by memcpy, which g++ passes through the stack in halves for vectors of 32 bytes.
template <class V, class T>
TG_INLINE void read(V& v, const T* p) {
    if constexpr (sizeof(V) == sizeof(T))
        v = *p;
    else
        v = *reinterpret_cast<const typename cpu::vector<T, static_cast<int>(sizeof(V))>::storage*>(p);
}
template <class V, class T>
TG_INLINE void write(T* p, const V& v) {
    if constexpr (sizeof(V) == sizeof(T))
        *p = v;
    else
        *reinterpret_cast<typename cpu::vector<T, static_cast<int>(sizeof(V))>::storage*>(p) = v;
}

/// Sums f over [begin, end), at most a tile. f(i, v) sets v[0], ..., v[Sums - 1] to the terms from i
/// on; v are vectors or numbers.
template <class Isa, class T, int Sums, class F>
struct tile_sums {
    using lanes = unit<Isa, T>;
    using vector = typename lanes::vector;
    static constexpr int together = 4 / Sums;

    template <std::size_t... S>
    TG_INLINE static void add_part(const F& f, std::int64_t i, lanes* sums, std::size_t part,
                                   std::index_sequence<S...>) {
        vector v[Sums];
        f(i, v);
        ((sums[S].part[part] = sums[S].part[part] + v[S]), ...);
    }
    template <std::size_t... P>
    TG_INLINE static void add(const F& f, std::int64_t i, lanes* sums, std::index_sequence<P...>) {
        (add_part(f, i + static_cast<std::int64_t>(P) * lanes::part_lanes, sums, P, std::make_index_sequence<Sums>{}),
         ...);
    }
    template <std::size_t... U>
    TG_INLINE static void add_units(const F& f, std::int64_t i, lanes (*sums)[Sums], std::index_sequence<U...>) {
        (add(f, i + static_cast<std::int64_t>(U) * lanes::lanes, sums[U], typename lanes::all_parts{}), ...);
    }
    TG_INLINE static void run(const F& f, std::int64_t begin, std::int64_t end, double* total) {
        lanes sums[together][Sums] = {};
        std::int64_t i = begin;
        for (; i + together * lanes::lanes <= end; i += together * lanes::lanes)
            add_units(f, i, sums, std::make_index_sequence<together>{});
        for (; i + lanes::lanes <= end; i += lanes::lanes) add(f, i, sums[0], typename lanes::all_parts{});
        fold(sums, total, std::make_index_sequence<Sums>{});
        if (i == end) return;
        T rest[Sums] = {};
        for (; i < end; ++i) {
            T v[Sums];
            f(i, v);
            for (int s = 0; s < Sums; ++s) rest[s] += v[s];
        }
        for (int s = 0; s < Sums; ++s) total[s] += static_cast<double>(rest[s]);
    }

private:
    template <std::size_t... S>
    TG_INLINE static void fold(lanes (*sums)[Sums], double* total, std::index_sequence<S...>) {
        if constexpr (together == 4) {
            (sums[0][S].template fold<reduction::sum>(sums[2][S]), ...);
            (sums[1][S].template fold<reduction::sum>(sums[3][S]), ...);
        }
        (sums[0][S].template fold<reduction::sum>(sums[1][S]), ...);
        ((total[S] += static_cast<double>(sums[0][S].template total<reduction::sum>())), ...);
    }
};
template <class Isa, class T, int Sums, class F>
TG_INLINE void line_sums(std::int64_t count, double* total, const F& f) {
    for (int s = 0; s < Sums; ++s) total[s] = 0;
    for (std::int64_t i = 0; i < count; i += tile)
        tile_sums<Isa, T, Sums, F>::run(f, i, std::min(count, i + tile), total);
}

template <class T>
struct group_statistics {
    T mean, inverse;
};
template <class T>
TG_INLINE T inverse_of(double squares, double count, double epsilon) {
    return static_cast<T>(1 / math::sqrt(squares / count + epsilon));
}

/// The terms dy gamma and dy gamma n of a line, n the normalized x; adds dy n and dy to the parameters' sums.
template <class T>
struct products_along {
    const T *dy, *x, *gamma;
    T *products, *plain;
    T mean, inverse;
    template <class V>
    TG_INLINE void operator()(std::int64_t i, V* v) const {
        V normal, d, sum;
        read(normal, x + i);
        read(d, dy + i);
        read(v[0], gamma + i);
        normal = (normal - mean) * inverse;
        read(sum, plain + i);
        sum = sum + d;
        write(plain + i, sum);
        read(sum, products + i);
        sum = sum + d * normal;
        write(products + i, sum);
        v[0] = v[0] * d;
        v[1] = v[0] * normal;
    }
};

inline constexpr std::int64_t most_lines = 32;
/// The lines that stay in the first-level cache together: divisions and roots of one do not wait for
/// those of another.
TG_INLINE std::int64_t lines_at_once(const normalized_shape& s) {
    return std::clamp<std::int64_t>(tile / s.in_group, 1, most_lines);
}

/// The statistics of `count` lines from x on, at most most_lines.
template <class Isa, class T>
TG_INLINE void line_statistics(const normalized_shape& s, const T* x, std::int64_t count, T* means, T* inverses) {
    const std::int64_t n = s.in_group;
    const double size = static_cast<double>(n);
    double total[most_lines] = {};
    if (s.centered)
        for (std::int64_t l = 0; l < count; ++l)
            line_sums<Isa, T, 1>(
                n, total + l, [from = x + l * n](std::int64_t i, auto* v) __attribute__((always_inline)) {
                    read(v[0], from + i);
                });
    TG_SIMD
    for (std::int64_t l = 0; l < count; ++l) means[l] = static_cast<T>(total[l] / size);
    for (std::int64_t l = 0; l < count; ++l)
        line_sums<Isa, T, 1>(
            n, total + l,
            [ from = x + l * n, mean = means[l] ](std::int64_t i, auto* v) __attribute__((always_inline)) {
                read(v[0], from + i);
                v[0] = v[0] - mean;
                v[0] = v[0] * v[0];
            });
    TG_SIMD
    for (std::int64_t l = 0; l < count; ++l) inverses[l] = inverse_of<T>(total[l], size, s.epsilon);
}

/// Lines [first, end) of one example, whose groups' parameters begin at gamma and beta.
template <class T>
struct forward_lines_body {
    template <class Isa>
    TG_INLINE static void run(const normalized_shape* shape, const T* x, const T* gamma, const T* beta, T* y,
                              std::int64_t first, std::int64_t end) {
        const normalized_shape& s = *shape;
        const std::int64_t n = s.in_group, at_once = lines_at_once(s);
        T means[most_lines], inverses[most_lines];
        for (std::int64_t begin = first; begin < end; begin += at_once) {
            const std::int64_t count = std::min(at_once, end - begin);
            line_statistics<Isa>(s, x + begin * n, count, means, inverses);
            for (std::int64_t l = 0; l < count; ++l) {
                const std::int64_t line = begin + l, parameters = line % s.groups * n;
                const T *const from = x + line * n, *const factor = gamma + parameters,
                               *const offset = beta + parameters;
                T* const to = y + line * n;
                const T mean = means[l], inverse = inverses[l];
                TG_SIMD
                for (std::int64_t i = 0; i < n; ++i) to[i] = (from[i] - mean) * (inverse * factor[i]) + offset[i];
            }
        }
    }
};

/// Lines [first, end) of one example. Adds to `run` [2, channels], which joins `total` after rows_in_t
/// records; without a total there are no more of them. `stats` has
/// 4 numbers per line.
template <class T>
struct sums_of_lines_body {
    template <class Isa>
    TG_INLINE static void run(const normalized_shape* shape, const T* dy, const T* x, const T* gamma, T* stats,
                              std::int64_t first, std::int64_t end, T* run, double* total) {
        const normalized_shape& s = *shape;
        const std::int64_t n = s.in_group, channels = s.channels(), at_once = lines_at_once(s),
                           in_run = rows_in_t * s.groups;
        const double size = static_cast<double>(n);
        T means[most_lines], inverses[most_lines];
        double products[most_lines][2];
        for (std::int64_t from_line = first; from_line < end; from_line += in_run) {
            const std::int64_t to_line = std::min(end, from_line + in_run);
            for (std::int64_t begin = from_line; begin < to_line; begin += at_once) {
                const std::int64_t count = std::min(at_once, to_line - begin);
                line_statistics<Isa>(s, x + begin * n, count, means, inverses);
                for (std::int64_t l = 0; l < count; ++l) {
                    const std::int64_t line = begin + l, at = line % s.groups * n;
                    line_sums<Isa, T, 2>(n, products[l],
                                         products_along<T>{dy + line * n, x + line * n, gamma + at, run + at,
                                                           run + channels + at, means[l], inverses[l]});
                }
                for (std::int64_t l = 0; l < count; ++l) {
                    T* const to = stats + 4 * (begin + l);
                    to[0] = means[l];
                    to[1] = inverses[l];
                    to[2] = s.centered ? static_cast<T>(products[l][0] / size) : T(0);
                    to[3] = static_cast<T>(products[l][1] / size);
                }
            }
            if (total == nullptr) continue;
            TG_SIMD
            for (std::int64_t c = 0; c < 2 * channels; ++c) {
                total[c] += static_cast<double>(run[c]);
                run[c] = 0;
            }
        }
    }
};

template <class T>
struct gradient_lines_body {
    template <class Isa>
    TG_INLINE static void run(const normalized_shape* shape, const T* dy, const T* x, const T* gamma, const T* stats,
                              T* dx, std::int64_t first, std::int64_t end) {
        const normalized_shape& s = *shape;
        const std::int64_t n = s.in_group;
        for (std::int64_t line = first; line < end; ++line) {
            const T *const from = x + line * n, *const slope = dy + line * n,
                           *const factor = gamma + line % s.groups * n;
            T* const to = dx + line * n;
            const T mean = stats[4 * line], inverse = stats[4 * line + 1], plain = stats[4 * line + 2],
                    product = stats[4 * line + 3];
            TG_SIMD
            for (std::int64_t i = 0; i < n; ++i)
                to[i] = inverse * ((slope[i] * factor[i] - plain) - (from[i] - mean) * inverse * product);
        }
    }
};

} // namespace normalization_detail
} // namespace tapegraph::cpu
TG_ROUNDS_EACH_END
