#pragma once

#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/ops/cumulative/wide_number.hpp>

#include <algorithm>
#include <cstdint>

/// First derivatives of products on the CPU: 16 blocks of lines side by side, of one line or of several.
/// The results are those of gradient_of_products (ops/cumulative/product_line.hpp), bit for bit: a number
/// is a double with an exponent of its own, and is normalized only before the double would leave its
/// range. Powers of two are exact, so it does not matter how often that happens.

namespace tapegraph::cpu::product_detail {

inline constexpr int lanes = 16, rows = 32;

/// Numbers of all lanes: part 2^exponent.
struct wide_row {
    double part[lanes];
    std::int64_t exponent[lanes];

    void set(int lane, double p, std::int64_t e) {
        part[lane] = p;
        exponent[lane] = e;
    }
    tapegraph::detail::wide_number get(int lane) const {
        return tapegraph::detail::wide_number::of(part[lane], exponent[lane]);
    }
};

/// The lanes' operands, a row for each element of their blocks, and the results. Past a block's end x is 1 and dy is -0, which
/// change nothing.
struct tile {
    alignas(64) double x[rows][lanes], dy[rows][lanes], result[rows][lanes];
    std::int64_t x_shift[rows][lanes], dy_shift[rows][lanes]; ///< where `shifted`: what they were divided by is 2^shift
    wide_row before, after;
    int count; ///< of rows
    bool running, exclusive;
    bool shifted;
    int period; ///< so many factors keep a part of [1, 2) between `least` and `most`

    using bits = std::uint64_t;
    static constexpr bits one = bits{1023} << 52, exponent_bits = bits{0x7ff} << 52;
    static constexpr int room = 220;
    static constexpr double most = 0x1p220, least = 0x1p-220;

    static TG_INLINE int exponent_of(double v) {
        return static_cast<int>(math::detail::to_bits(v) >> 52 & 0x7ff) - 1023;
    }
    static TG_INLINE double power(std::int64_t e) {
        return math::detail::from_bits<double>(static_cast<bits>(e + 1023) << 52);
    }
    static TG_INLINE double size_of(double v) { return v < 0 ? -v : v; }

    /// The sizes of all numbers; those that are too large or too small are divided by a power of two.
    TG_INLINE void measure() {
        double high[lanes], low[lanes];
        for (int c = 0; c < lanes; ++c) high[c] = low[c] = 1;
        const auto look = [&](const double(&of)[rows][lanes]) {
            for (int j = 0; j < count; ++j) {
                TG_SIMD
                for (int c = 0; c < lanes; ++c) {
                    const double size = size_of(of[j][c]), some = size == 0 ? 1 : size;
                    high[c] = size > high[c] ? size : high[c];
                    low[c] = some < low[c] ? some : low[c];
                }
            }
        };
        look(x);
        if (running) look(dy);
        double highest = 1, lowest = 1;
        for (int c = 0; c < lanes; ++c) highest = std::max(highest, high[c]), lowest = std::min(lowest, low[c]);
        shifted = !(highest < most && lowest > least);
        period = shifted ? 1 : std::min(count, room / std::max(exponent_of(highest) + 1, 1 - exponent_of(lowest)));
        if (!shifted) return;
        const auto shift = [&](double(&of)[rows][lanes], std::int64_t(&by)[rows][lanes]) {
            for (int j = 0; j < count; ++j)
                for (int c = 0; c < lanes; ++c) {
                    const double v = of[j][c], size = size_of(v);
                    by[j][c] = size > 0x1p500 ? 600 : size < 0x1p-500 ? -600 : 0;
                    of[j][c] = v * (size > 0x1p500 ? 0x1p-600 : size < 0x1p-500 ? 0x1p600 : 1);
                }
        };
        shift(x, x_shift);
        if (running) shift(dy, dy_shift);
    }
    /// Parts become numbers of [1, 2), but zeros, infinities and NaN.
    static TG_INLINE void normalize(wide_row& a) {
        TG_SIMD
        for (int c = 0; c < lanes; ++c) {
            const bits b = math::detail::to_bits(a.part[c]), field = b >> 52 & 0x7ff;
            const bool plain = field != 0 && field != 0x7ff;
            a.part[c] = math::detail::from_bits<double>(plain ? (b & ~exponent_bits) | one : b);
            a.exponent[c] += plain ? static_cast<std::int64_t>(field) - 1023 : 0;
        }
    }
    /// a *= row j of x.
    TG_INLINE void multiply(wide_row& a, int j) const {
        TG_SIMD
        for (int c = 0; c < lanes; ++c) a.part[c] *= x[j][c];
        if (shifted)
            for (int c = 0; c < lanes; ++c) a.exponent[c] += x_shift[j][c];
    }
    /// a += row j of dy; a is normalized before and after. The number with the smaller exponent is scaled
    /// to the larger exponent. Parts are between 2^-574 and 2^525, so a number whose exponent is smaller
    /// by more than 1000 does not count.
    TG_INLINE void add(wide_row& a, int j) const {
        constexpr std::int64_t nothing = -(std::int64_t{1} << 40), apart = -1000;
        TG_SIMD
        for (int c = 0; c < lanes; ++c) {
            const double u = a.part[c], v = dy[j][c];
            const std::int64_t of_u = u == 0 ? nothing : a.exponent[c];
            const std::int64_t of_v = v == 0 ? nothing : shifted ? dy_shift[j][c] : 0;
            const std::int64_t e = of_u > of_v ? of_u : of_v;
            const double scaled_u = u * power(of_u - e < apart ? apart : of_u - e);
            const double scaled_v = v * power(of_v - e < apart ? apart : of_v - e);
            a.part[c] = scaled_u + scaled_v;
            a.exponent[c] = e;
        }
        normalize(a);
    }
    /// The same of numbers without exponents.
    TG_INLINE void add_flat(wide_row& a, int j) const {
        TG_SIMD
        for (int c = 0; c < lanes; ++c) a.part[c] += dy[j][c];
    }
    /// Whether all parts but zeros are between `least` and `most`.
    static TG_INLINE bool inside(const double (&part)[lanes]) {
        std::int64_t outside = 0;
        TG_SIMD
        for (int c = 0; c < lanes; ++c) {
            const double size = size_of(part[c]), some = size == 0 ? 1 : size;
            outside |= !(some < most && some > least); // NaN, too
        }
        return outside == 0;
    }
    /// Brings all exponents to 0, if the numbers are inside then.
    static TG_INLINE bool flatten(wide_row& a) {
        double whole[lanes];
        std::int64_t far = 0;
        for (int c = 0; c < lanes; ++c) {
            const std::int64_t e = a.part[c] == 0 ? 0 : a.exponent[c];
            far |= e < -room || e > room;
            whole[c] = a.part[c] * power(e < -room ? -room : e > room ? room : e);
        }
        if (far != 0 || !inside(whole)) return false;
        for (int c = 0; c < lanes; ++c) a.part[c] = whole[c], a.exponent[c] = 0;
        return true;
    }
    /// Advances a running sum of products to the previous element, and calls `use` in between. `flat`: its
    /// exponents are 0 and its parts are in range; otherwise it is normalized.
    template <class Use>
    TG_INLINE void step(wide_row& a, int j, bool& flat, const Use& use) const {
        if (flat) {
            if (!exclusive) add_flat(a, j);
            use();
            multiply(a, j);
            if (exclusive) add_flat(a, j);
            flat = inside(a.part);
            if (!flat) normalize(a);
            return;
        }
        if (!exclusive) add(a, j);
        use();
        multiply(a, j);
        normalize(a);
        if (exclusive) add(a, j);
        flat = !shifted && flatten(a);
    }
};

/// For each block, the product of its elements into `before`, and for running products the block's own
/// contribution to the elements before it into `after`.
struct block_products {
    template <class Isa>
    TG_INLINE static void run(tile* t) {
        t->measure();
        for (int c = 0; c < lanes; ++c) t->before.set(c, 1, 0), t->after.set(c, 0, 0);
        bool flat = !t->shifted;
        for (int j = t->count, left = t->period; j-- > 0;) {
            t->multiply(t->before, j);
            if (--left == 0) tile::normalize(t->before), left = t->period;
            if (t->running) t->step(t->after, j, flat, [] {});
        }
    }
};

/// The derivatives, from the products before the blocks and what flows back into them from the elements after.
struct block_gradients {
    template <class Isa>
    TG_INLINE static void run(tile* t) {
        t->measure();
        alignas(64) std::int64_t exponents[rows][lanes]; // of the parts since they were normalized last
        wide_row& left = t->before;
        int last[rows];
        for (int j = 0, since = 0; j < t->count; ++j) {
            last[j] = since;
            for (int c = 0; c < lanes; ++c) t->result[j][c] = left.part[c];
            if (since == j)
                for (int c = 0; c < lanes; ++c) exponents[j][c] = left.exponent[c];
            t->multiply(left, j);
            if (j + 1 - since == t->period) tile::normalize(left), since = j + 1;
        }
        // left right is 2^-493 to 2^442, so the first of two powers never rounds, and the last one alone does.
        double first[lanes], second[lanes];
        wide_row& right = t->after;
        const auto scale = [&](int j) {
            TG_SIMD
            for (int c = 0; c < lanes; ++c) {
                const std::int64_t e = exponents[last[j]][c] + right.exponent[c];
                const std::int64_t bounded = e < -1540 ? -1540 : e > 2000 ? 2000 : e;
                const std::int64_t half = bounded < -520 ? -520 : bounded > 1000 ? 1000 : bounded;
                first[c] = tile::power(half);
                second[c] = e < -1540 ? 0 : tile::power(bounded - half); // a product that underflows takes long
            }
        };
        const auto put = [&](int j) {
            TG_SIMD
            for (int c = 0; c < lanes; ++c) {
                const double product = t->result[j][c] * right.part[c], value = product * first[c] * second[c];
                t->result[j][c] = product - product == 0 ? value : product; // infinity 0 would be NaN
            }
        };
        bool flat = t->running && !t->shifted && tile::flatten(right), stale = true;
        for (int j = t->count, more = t->period; j-- > 0;) {
            stale = stale || last[j] != last[j + 1 < t->count ? j + 1 : j];
            if (t->running) {
                const bool were = flat;
                t->step(right, j, flat, [&] {
                    if (stale || !were) scale(j);
                    put(j);
                });
                stale = were != flat || !flat;
                continue;
            }
            if (stale) scale(j);
            put(j);
            t->multiply(right, j);
            stale = --more == 0;
            if (stale) tile::normalize(right), more = t->period;
        }
    }
};

} // namespace tapegraph::cpu::product_detail
