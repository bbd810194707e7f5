#pragma once

#include <tapegraph/ops/reduction/cpu_normalization_lines.hpp>

#include <numeric>

/// Normalization of records that have rows: sums down the columns of a block of groups.

TG_ROUNDS_EACH_BEGIN
namespace tapegraph::cpu::normalization_detail {

inline constexpr std::int64_t lanes = 16; // of float, in 64 bytes

/// Some groups of all records: columns [at, at + width) of rows. `pack` rows of all channels count as
/// one of pack * width columns.
struct channel_block {
    std::int64_t group = 0, groups = 1, at = 0, width = 1, pack = 1;
};
struct column_plan {
    std::int64_t blocks = 1, groups = 1, pack = 1;
    explicit column_plan(const normalized_shape& s) {
        const std::int64_t wanted = s.examples * s.records >= 16 ? widest : narrow;
        const std::int64_t whole_groups = lanes / std::gcd(s.in_group, lanes); // that fill vectors
        groups = std::max<std::int64_t>(wanted / s.in_group, 1);
        if (whole_groups * s.in_group <= widest)
            groups = std::max(groups / whole_groups, std::int64_t{1}) * whole_groups;
        groups = std::min(groups, s.groups);
        blocks = divide_up(s.groups, groups);
        const std::int64_t whole = lanes / std::gcd(s.channels(), lanes); // rows that fill vectors
        if (blocks == 1 && s.channels() * whole <= widest)
            pack = std::clamp<std::int64_t>(narrow / (s.channels() * whole), 1, s.rows) * whole;
        if (pack > s.rows) pack = 1;
    }
    channel_block block(const normalized_shape& s, std::int64_t number) const {
        const std::int64_t first = number * groups, count = std::min(groups, s.groups - first);
        return {first, count, first * s.in_group, count * s.in_group, pack};
    }
};

/// Calls f(first column, columns, packed columns) for the block's columns, at most `widest` at once.
template <class F>
TG_INLINE void each_run(const channel_block& b, const F& f) {
    for (std::int64_t c = 0; c < b.width; c += widest) {
        const std::int64_t count = std::min(widest, b.width - c);
        f(c, count, count * b.pack);
    }
}

/// Goes down `rows` rows of `width` columns, which are `stride` elements apart, some columns at once whose
/// numbers stay in registers: f.load(column, numbers), f.step(element, numbers) for each row, and
/// f.flush(column, numbers) after each rows_in_t rows and after the last. V is a vector or a number.
template <class Isa, class T, class F>
struct walk_down {
    using lanes = unit<Isa, T>;
    using vector = typename lanes::vector;
    typedef T short_vector __attribute__((vector_size(16)));
    static constexpr int at_once = F::registers * lanes::parts > 8 ? 2 : 4; // vectors
    template <int Vectors>
    using places = std::make_index_sequence<static_cast<std::size_t>(Vectors)>;

    template <class V, std::size_t... K>
    TG_INLINE static void columns(const F& f, std::int64_t rows, std::int64_t stride, std::int64_t c,
                                  std::index_sequence<K...>) {
        constexpr auto width = static_cast<std::int64_t>(sizeof(V) / sizeof(T));
        typename F::template numbers<V> n[sizeof...(K)];
        (f.load(c + static_cast<std::int64_t>(K) * width, n[K]), ...);
        for (std::int64_t begin = 0; begin < rows; begin += rows_in_t) {
            const std::int64_t end = std::min(rows, begin + rows_in_t);
            for (std::int64_t r = begin; r < end; ++r)
                (f.step(r * stride + c + static_cast<std::int64_t>(K) * width, n[K]), ...);
            (f.flush(c + static_cast<std::int64_t>(K) * width, n[K]), ...);
        }
    }
    TG_INLINE static void run(const F& f, std::int64_t rows, std::int64_t stride, std::int64_t width) {
        std::int64_t c = 0;
        for (; c + at_once * lanes::part_lanes <= width; c += at_once * lanes::part_lanes)
            columns<vector>(f, rows, stride, c, places<at_once>{});
        for (; c + lanes::part_lanes <= width; c += lanes::part_lanes) columns<vector>(f, rows, stride, c, places<1>{});
        constexpr auto in_short = static_cast<std::int64_t>(sizeof(short_vector) / sizeof(T));
        for (; c + in_short <= width; c += in_short) columns<short_vector>(f, rows, stride, c, places<1>{});
        for (; c < width; ++c) columns<T>(f, rows, stride, c, places<1>{});
    }
};

/// The same for all rows of a record in a run of columns; rows that do not fill a pack come last.
template <class Isa, class T, class F>
TG_INLINE void each_row(const normalized_shape& s, std::int64_t pack, std::int64_t columns, const F& f) {
    const std::int64_t packs = s.rows / pack, stride = s.channels() * pack, rest = s.rows % pack * columns;
    walk_down<Isa, T, F>::run(f, packs, stride, columns * pack);
    if (rest == 0) return;
    F last = f;
    last.skip(packs * stride);
    walk_down<Isa, T, F>::run(last, 1, rest, rest);
}

/// Adds `count` values of V's lanes to the totals of their columns.
template <class T, class V>
TG_INLINE void join(double* total, V& sum) {
    T lane[sizeof(V) / sizeof(T)];
    write(lane, sum);
    for (std::size_t i = 0; i < sizeof(V) / sizeof(T); ++i) total[i] += static_cast<double>(lane[i]);
    sum = V{};
}
template <class T>
struct sum_down {
    static constexpr int registers = 1;
    const T* x;
    double* total;
    template <class V>
    struct numbers {
        V sum;
    };
    template <class V>
    TG_INLINE void load(std::int64_t, numbers<V>& n) const {
        n.sum = V{};
    }
    template <class V>
    TG_INLINE void step(std::int64_t i, numbers<V>& n) const {
        V v;
        read(v, x + i);
        n.sum = n.sum + v;
    }
    template <class V>
    TG_INLINE void flush(std::int64_t c, numbers<V>& n) const {
        join<T>(total + c, n.sum);
    }
    TG_INLINE void skip(std::int64_t elements) { x += elements; }
};
template <class T>
struct squares_down {
    static constexpr int registers = 2;
    const T *x, *mean;
    double* total;
    template <class V>
    struct numbers {
        V sum, mean;
    };
    template <class V>
    TG_INLINE void load(std::int64_t c, numbers<V>& n) const {
        n.sum = V{};
        read(n.mean, mean + c);
    }
    template <class V>
    TG_INLINE void step(std::int64_t i, numbers<V>& n) const {
        V v;
        read(v, x + i);
        v = v - n.mean;
        n.sum = n.sum + v * v;
    }
    template <class V>
    TG_INLINE void flush(std::int64_t c, numbers<V>& n) const {
        join<T>(total + c, n.sum);
    }
    TG_INLINE void skip(std::int64_t elements) { x += elements; }
};
/// Sums of dy times the normalized x, and of dy.
template <class T>
struct products_down {
    static constexpr int registers = 4;
    const T *dy, *x, *mean, *inverse;
    double *product, *plain;
    template <class V>
    struct numbers {
        V product, plain, mean, inverse;
    };
    template <class V>
    TG_INLINE void load(std::int64_t c, numbers<V>& n) const {
        n.product = n.plain = V{};
        read(n.mean, mean + c);
        read(n.inverse, inverse + c);
    }
    template <class V>
    TG_INLINE void step(std::int64_t i, numbers<V>& n) const {
        V v, d;
        read(v, x + i);
        read(d, dy + i);
        n.product = n.product + d * ((v - n.mean) * n.inverse);
        n.plain = n.plain + d;
    }
    template <class V>
    TG_INLINE void flush(std::int64_t c, numbers<V>& n) const {
        join<T>(product + c, n.product);
        join<T>(plain + c, n.plain);
    }
    TG_INLINE void skip(std::int64_t elements) { dy += elements, x += elements; }
};
template <class T>
struct normalize_down {
    static constexpr int registers = 3;
    const T *x, *mean, *factor, *offset;
    T* y;
    template <class V>
    struct numbers {
        V mean, factor, offset;
    };
    template <class V>
    TG_INLINE void load(std::int64_t c, numbers<V>& n) const {
        read(n.mean, mean + c);
        read(n.factor, factor + c);
        read(n.offset, offset + c);
    }
    template <class V>
    TG_INLINE void step(std::int64_t i, numbers<V>& n) const {
        V v;
        read(v, x + i);
        v = (v - n.mean) * n.factor + n.offset;
        write(y + i, v);
    }
    template <class V>
    TG_INLINE void flush(std::int64_t, numbers<V>&) const {}
    TG_INLINE void skip(std::int64_t elements) { x += elements, y += elements; }
};
/// dx = s dy gamma - s mean(g) - n s mean(g n), of which `numbers` has the factors.
template <class T>
struct gradient_down {
    static constexpr int registers = 5;
    const T *dy, *x, *mean, *inverse, *factor, *plain, *product;
    T* dx;
    template <class V>
    struct numbers {
        V mean, inverse, factor, plain, product;
    };
    template <class V>
    TG_INLINE void load(std::int64_t c, numbers<V>& n) const {
        read(n.mean, mean + c);
        read(n.inverse, inverse + c);
        read(n.factor, factor + c);
        read(n.plain, plain + c);
        read(n.product, product + c);
    }
    template <class V>
    TG_INLINE void step(std::int64_t i, numbers<V>& n) const {
        V v, d;
        read(v, x + i);
        read(d, dy + i);
        v = n.inverse * ((d * n.factor - n.plain) - (v - n.mean) * n.inverse * n.product);
        write(dx + i, v);
    }
    template <class V>
    TG_INLINE void flush(std::int64_t, numbers<V>&) const {}
    TG_INLINE void skip(std::int64_t elements) { dy += elements, x += elements, dx += elements; }
};

/// Adds the sums of packed columns to those of the pack's first row.
TG_INLINE void fold_pack(double* total, std::int64_t columns, std::int64_t pack) {
    for (std::int64_t p = 1; p < pack; ++p)
        for (std::int64_t c = 0; c < columns; ++c) total[c] += total[p * columns + c];
}

/// A number of each group, for each column of a run, repeated for the rows of a pack.
template <class T, class F>
TG_INLINE void spread(const normalized_shape& s, std::int64_t first, std::int64_t columns, std::int64_t pack, T* to,
                      const F& f) {
    for (std::int64_t c = 0; c < columns; ++c) to[c] = f((first + c) / s.in_group, first + c);
    for (std::int64_t c = columns; c < columns * pack; ++c) to[c] = to[c - columns];
}

/// The statistics of the block's groups; x is the block's first element of the record.
template <class Isa, class T>
TG_INLINE void block_statistics(const normalized_shape& s, const channel_block& b, const T* x,
                                group_statistics<T>* to) {
    double total[widest], sum[widest];
    const double count = static_cast<double>(s.rows * s.in_group);
    const auto fold = [&](std::int64_t first, std::int64_t columns) __attribute__((always_inline)) {
        fold_pack(total, columns, b.pack);
        for (std::int64_t c = 0; c < columns; ++c) sum[(first + c) / s.in_group] += total[c];
    };
    std::fill_n(sum, b.groups, 0.0);
    if (s.centered)
        each_run(
            b, [&](std::int64_t first, std::int64_t columns, std::int64_t packed) __attribute__((always_inline)) {
                std::fill_n(total, packed, 0.0);
                each_row<Isa, T>(s, b.pack, columns, sum_down<T>{x + first, total});
                fold(first, columns);
            });
    for (std::int64_t g = 0; g < b.groups; ++g) to[g].mean = static_cast<T>(sum[g] / count);
    std::fill_n(sum, b.groups, 0.0);
    each_run(
        b, [&](std::int64_t first, std::int64_t columns, std::int64_t packed) __attribute__((always_inline)) {
            T mean[widest];
            std::fill_n(total, packed, 0.0);
            spread(
                s, first, columns, b.pack,
                mean, [&](std::int64_t g, std::int64_t) __attribute__((always_inline)) { return to[g].mean; });
            each_row<Isa, T>(s, b.pack, columns, squares_down<T>{x + first, mean, total});
            fold(first, columns);
        });
    for (std::int64_t g = 0; g < b.groups; ++g) to[g].inverse = inverse_of<T>(sum[g], count, s.epsilon);
}

/// A block of one record; operands begin at the block's first element or channel.
template <class T>
struct forward_block_body {
    template <class Isa>
    TG_INLINE static void run(const normalized_shape* shape, const channel_block* block, const T* x, const T* gamma,
                              const T* beta, T* y) {
        const normalized_shape& s = *shape;
        const channel_block& b = *block;
        group_statistics<T> of[widest];
        block_statistics<Isa>(s, b, x, of);
        each_run(
            b, [&](std::int64_t first, std::int64_t columns, std::int64_t) __attribute__((always_inline)) {
                T mean[widest], factor[widest], offset[widest];
                spread(
                    s, first, columns, b.pack,
                    mean, [&](std::int64_t g, std::int64_t) __attribute__((always_inline)) { return of[g].mean; });
                spread(
                    s, first, columns, b.pack,
                    factor, [&](std::int64_t g, std::int64_t c) __attribute__((always_inline)) {
                        return of[g].inverse * gamma[c];
                    });
                spread(
                    s, first, columns, b.pack,
                    offset, [&](std::int64_t, std::int64_t c) __attribute__((always_inline)) { return beta[c]; });
                each_row<Isa, T>(s, b.pack, columns, normalize_down<T>{x + first, mean, factor, offset, y + first});
            });
    }
};

/// Adds to total[2, channels] and sets the groups' statistics.
template <class T>
struct sums_of_block_body {
    template <class Isa>
    TG_INLINE static void run(const normalized_shape* shape, const channel_block* block, const T* dy, const T* x,
                              const T* gamma, T* stats, double* total) {
        const normalized_shape& s = *shape;
        const channel_block& b = *block;
        group_statistics<T> of[widest];
        double plain[widest], product[widest];
        block_statistics<Isa>(s, b, x, of);
        std::fill_n(plain, b.groups, 0.0);
        std::fill_n(product, b.groups, 0.0);
        each_run(
            b, [&](std::int64_t first, std::int64_t columns, std::int64_t packed) __attribute__((always_inline)) {
                T mean[widest], inverse[widest];
                double products[widest], sums[widest];
                std::fill_n(products, packed, 0.0);
                std::fill_n(sums, packed, 0.0);
                spread(
                    s, first, columns, b.pack,
                    mean, [&](std::int64_t g, std::int64_t) __attribute__((always_inline)) { return of[g].mean; });
                spread(
                    s, first, columns, b.pack,
                    inverse, [&](std::int64_t g, std::int64_t) __attribute__((always_inline)) {
                        return of[g].inverse;
                    });
                each_row<Isa, T>(s, b.pack, columns,
                                 products_down<T>{dy + first, x + first, mean, inverse, products, sums});
                fold_pack(products, columns, b.pack);
                fold_pack(sums, columns, b.pack);
                for (std::int64_t c = 0; c < columns; ++c) {
                    const std::int64_t g = (first + c) / s.in_group;
                    const double factor = static_cast<double>(gamma[first + c]);
                    total[first + c] += products[c];
                    total[s.channels() + first + c] += sums[c];
                    product[g] += factor * products[c];
                    plain[g] += factor * sums[c];
                }
            });
        const double count = static_cast<double>(s.rows * s.in_group);
        for (std::int64_t g = 0; g < b.groups; ++g) {
            stats[4 * g] = of[g].mean;
            stats[4 * g + 1] = of[g].inverse;
            stats[4 * g + 2] = s.centered ? static_cast<T>(plain[g] / count) : T(0);
            stats[4 * g + 3] = static_cast<T>(product[g] / count);
        }
    }
};

template <class T>
struct gradient_block_body {
    template <class Isa>
    TG_INLINE static void run(const normalized_shape* shape, const channel_block* block, const T* dy, const T* x,
                              const T* gamma, const T* stats, T* dx) {
        const normalized_shape& s = *shape;
        const channel_block& b = *block;
        each_run(
            b, [&](std::int64_t first, std::int64_t columns, std::int64_t) __attribute__((always_inline)) {
                T numbers[5][widest];
                for (std::int64_t k = 0; k < 4; ++k)
                    spread(
                        s, first, columns, b.pack,
                        numbers[k], [&](std::int64_t g, std::int64_t) __attribute__((always_inline)) {
                            return stats[4 * g + k];
                        });
                spread(
                    s, first, columns, b.pack,
                    numbers[4], [&](std::int64_t, std::int64_t c) __attribute__((always_inline)) { return gamma[c]; });
                each_row<Isa, T>(s, b.pack, columns,
                                 gradient_down<T>{dy + first, x + first, numbers[0], numbers[1], numbers[4], numbers[2],
                                                  numbers[3], dx + first});
            });
    }
};

} // namespace tapegraph::cpu::normalization_detail
TG_ROUNDS_EACH_END
