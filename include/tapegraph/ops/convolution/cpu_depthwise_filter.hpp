#pragma once

#include <tapegraph/ops/convolution/cpu_depthwise.hpp>

/// The gradient of depthwise convolutions by the filter. It is summed row by row, the taps of a kernel
/// row at once, in parts of the rows that follow from the shape and are added up in double.

TG_ROUNDS_EACH_BEGIN
namespace tapegraph::cpu::detail {

/// The products of one row of dy with one row of x, for `Taps` neighbouring columns of the kernel,
/// added to their sums [Taps, channels].
template <class T, int Taps>
struct depthwise_taps_body {
    template <class Isa>
    TG_INLINE static void run(const convolution_geometry* geometry, std::int64_t tap, const T* x, const T* dy,
                              T* sums) {
        using v = vector<T, Isa::vector_bytes>;
        const convolution_geometry& g = *geometry;
        std::int64_t c = 0;
        for (; c + 2 * v::lanes <= g.in_channels; c += 2 * v::lanes) strip<v, 2>(g, tap, x + c, dy + c, sums + c);
        rest<Isa::vector_bytes>(g, tap, c, x, dy, sums);
    }

private:
    // The channels from c on, by vectors and then by narrower ones.
    template <int Bytes>
    TG_INLINE static void rest(const convolution_geometry& g, std::int64_t tap, std::int64_t c, const T* x, const T* dy,
                               T* sums) {
        using v = vector<T, Bytes>;
        for (; c + v::lanes <= g.in_channels; c += v::lanes) strip<v, 1>(g, tap, x + c, dy + c, sums + c);
        if constexpr (v::lanes > 1) rest<Bytes / 2>(g, tap, c, x, dy, sums);
    }

    using all_taps = std::make_index_sequence<static_cast<std::size_t>(Taps)>;

    /// Vectors of one tap of the channels' strip: their sums, x for output 0, and the outputs that it has.
    template <class V, int Vectors>
    struct tap_sums {
        typename V::type sum[Vectors];
        const T* x;
        depthwise_outputs outputs;
    };
    template <class V, int Vectors, std::size_t... K>
    TG_INLINE static void read(typename V::type* to, const T* from, std::index_sequence<K...>) {
        (V::load(to[K], from + static_cast<std::int64_t>(K) * V::lanes), ...);
    }
    template <class V, int Vectors, std::size_t... K>
    TG_INLINE static void add(tap_sums<V, Vectors>& tap, std::int64_t at, const typename V::type* dy,
                              std::index_sequence<K...> all) {
        typename V::type x[Vectors];
        read<V, Vectors>(x, tap.x + at, all);
        (V::multiply_add(tap.sum[K], dy[K], x[K]), ...);
    }
    template <class V, int Vectors>
    TG_INLINE static void strip(const convolution_geometry& g, std::int64_t tap, const T* x, const T* dy, T* sums) {
        strip<V, Vectors>(g, tap, x, dy, sums, all_taps{},
                          std::make_index_sequence<static_cast<std::size_t>(Vectors)>{});
    }
    template <class V, int Vectors, std::size_t... I, std::size_t... K>
    TG_INLINE static void strip(const convolution_geometry& g, std::int64_t tap, const T* x, const T* dy, T* sums,
                                std::index_sequence<I...>, std::index_sequence<K...> all) {
        const std::int64_t channels = g.in_channels, step = g.stride_width * channels;
        tap_sums<V, Vectors> t[Taps];
        depthwise_outputs common{0, g.out_width};
        for (int i = 0; i < Taps; ++i) {
            const std::int64_t at = (tap + i) * g.dilation_width - g.pad_left;
            t[i].outputs = outputs_within(divide_up(std::max<std::int64_t>(0, -at), g.stride_width),
                                          floor_divide(g.in_width - 1 - at, g.stride_width) + 1, g.out_width);
            common = {std::max(common.first, t[i].outputs.first), std::min(common.last, t[i].outputs.last)};
            t[i].x = x + at * channels;
        }
        common.last = std::max(common.first, common.last);
        (read<V, Vectors>(t[I].sum, sums + static_cast<std::int64_t>(I) * channels, all), ...);
        typename V::type q[Vectors];
        for (std::int64_t j = common.first; j < common.last; ++j) {
            read<V, Vectors>(q, dy + j * channels, all);
            (add<V, Vectors>(t[I], j * step, q, all), ...);
        }
        const auto at_border = [&](tap_sums<V, Vectors> & one)
            __attribute__((always_inline)) { // what a border leaves of a tap
            for (std::int64_t j = one.outputs.first; j < one.outputs.last; ++j) {
                if (j == common.first) j = common.last;
                if (j >= one.outputs.last) break;
                read<V, Vectors>(q, dy + j * channels, all);
                add<V, Vectors>(one, j * step, q, all);
            }
        };
        (at_border(t[I]), ...);
        const auto keep = [&](std::int64_t i, tap_sums<V, Vectors> & one) __attribute__((always_inline)) {
            (V::store(sums + i * channels + static_cast<std::int64_t>(K) * V::lanes, one.sum[K]), ...);
        };
        (keep(static_cast<std::int64_t>(I), t[I]), ...);
    }
};

/// One row of dy, and the rows of x that the three rows of a 3 x 3 kernel read, null outside the image.
template <class T>
struct depthwise_nine_rows {
    const T *dy, *x[3];
    T* sums; // [9, channels]
};

/// The products of outputs [first, last) of such a row, added to their sums. A number of dy is read once for nine taps,
/// and where the next output begins at the next tap (Adjacent), so is a number of x for three.
template <class T, bool Adjacent>
struct depthwise_nine_body {
    template <class Isa>
    TG_INLINE static void run(const convolution_geometry* geometry, const depthwise_nine_rows<T>* rows,
                              std::int64_t first, std::int64_t last) {
        if constexpr (has_depthwise_blocks<Isa>) strips<Isa, Isa::vector_bytes>(*geometry, *rows, 0, first, last);
    }

private:
    template <class Isa, int Bytes>
    TG_INLINE static void strips(const convolution_geometry& g, const depthwise_nine_rows<T>& rows, std::int64_t c,
                                 std::int64_t first, std::int64_t last) {
        using v = vector<T, Bytes>;
        if constexpr (Bytes == 64) // two of them for 18 of 32 registers
            for (; c + 2 * v::lanes <= g.in_channels; c += 2 * v::lanes) one<v, 2, true>(g, rows, c, first, last);
        for (; c + v::lanes <= g.in_channels; c += v::lanes)
            one<v, 1, Bytes == Isa::vector_bytes>(g, rows, c, first, last);
        if constexpr (v::lanes > 1) strips<Isa, Bytes / 2>(g, rows, c, first, last);
    }
    template <class V, int Vectors, bool Widest>
    TG_INLINE static void one(const convolution_geometry& g, const depthwise_nine_rows<T>& rows, std::int64_t c,
                              std::int64_t first, std::int64_t last) {
        if (Widest && rows.x[0] != nullptr && rows.x[1] != nullptr && rows.x[2] != nullptr)
            strip<V, Vectors, Widest>(g, rows, c).add(first, last);
        else
            strip<V, Vectors, false>(g, rows, c).add(first, last);
    }

    template <class V, int Vectors>
    struct vectors {
        typename V::type of[Vectors];
        TG_INLINE void load(const T* from) {
            for (int k = 0; k < Vectors; ++k) V::load(of[k], from + k * V::lanes);
        }
        TG_INLINE void store(T* to) const {
            for (int k = 0; k < Vectors; ++k) V::store(to + k * V::lanes, of[k]);
        }
        TG_INLINE void add(const vectors& a, const vectors& b) {
            for (int k = 0; k < Vectors; ++k) V::multiply_add(of[k], a.of[k], b.of[k]);
        }
    };

    /// The channels of a vector. Inside: all rows of x are.
    template <class V, int Vectors, bool Inside>
    struct strip {
        using type = vectors<V, Vectors>;
        const std::int64_t channels, width, stride, dilation, pad;
        const T *dy, *x[3];
        T* sums;
        type sum[9], by[3] = {};

        TG_INLINE strip(const convolution_geometry& g, const depthwise_nine_rows<T>& rows, std::int64_t c)
            : channels(g.in_channels),
              width(g.in_width),
              stride(g.stride_width),
              dilation(g.dilation_width),
              pad(g.pad_left),
              dy(rows.dy + c),
              x{from(rows.x[0], c), from(rows.x[1], c), from(rows.x[2], c)},
              sums(rows.sums + c) {}

        TG_INLINE void add(std::int64_t first, std::int64_t last) {
            load_sums(std::make_index_sequence<9>{});
            if constexpr (Adjacent) {
                next(first);
                column<0>(first - pad);
                if (last - first > 1) {
                    next(first + 1);
                    column<0, 1>(first + 1 - pad);
                    for (std::int64_t j = first + 2; j < last; ++j) {
                        next(j);
                        column<0, 1, 2>(j - pad);
                    }
                    by[2] = by[1];
                    by[1] = by[0];
                    column<1, 2>(last - pad);
                } else {
                    by[1] = by[0];
                    column<1>(last - pad);
                }
                by[2] = by[1];
                column<2>(last + 1 - pad);
            } else {
                for (std::int64_t j = first; j < last; ++j) {
                    by[0].load(dy + j * channels);
                    by[2] = by[1] = by[0];
                    column<0>(j * stride - pad);
                    column<1>(j * stride - pad + dilation);
                    column<2>(j * stride - pad + 2 * dilation);
                }
            }
            store_sums(std::make_index_sequence<9>{});
        }

    private:
        TG_INLINE static const T* from(const T* row, std::int64_t c) {
            return Inside || row != nullptr ? row + c : nullptr;
        }
        // by[v] is what tap v meets in a column of x.
        TG_INLINE void next(std::int64_t j) {
            by[2] = by[1];
            by[1] = by[0];
            by[0].load(dy + j * channels);
        }
        template <int... Taps>
        TG_INLINE void column(std::int64_t at) {
            if (at < 0 || at >= width) return;
            row<0, Taps...>(at * channels);
            row<1, Taps...>(at * channels);
            row<2, Taps...>(at * channels);
        }
        template <int Row, int... Taps>
        TG_INLINE void row(std::int64_t at) {
            if (!Inside && x[Row] == nullptr) return;
            type value;
            value.load(x[Row] + at);
            (sum[3 * Row + Taps].add(value, by[Taps]), ...);
        }
        template <std::size_t... K>
        TG_INLINE void load_sums(std::index_sequence<K...>) {
            (sum[K].load(sums + static_cast<std::int64_t>(K) * channels), ...);
        }
        template <std::size_t... K>
        TG_INLINE void store_sums(std::index_sequence<K...>) {
            (sum[K].store(sums + static_cast<std::int64_t>(K) * channels), ...);
        }
    };
};

/// The number of parts into which the rows of dy are divided, each with sums of its own.
inline std::int64_t depthwise_parts(const convolution_geometry& g) {
    const std::int64_t rows = g.batch * g.out_height, in_part = divide_up(2048, g.out_width);
    return std::clamp<std::int64_t>(divide_up(rows, in_part), 1, 32);
}
inline std::int64_t depthwise_sums(const convolution_geometry& g) {
    return depthwise_parts(g) * g.kernel_height * g.kernel_width * g.in_channels;
}

/// `sums` has depthwise_sums(g) elements.
template <class T>
void depthwise_filter_gradient(const convolution_geometry& g, const T* x, const T* dy, T* dw, T* sums, bool parallel) {
    const std::int64_t channels = g.in_channels, filters = g.kernel_height * g.kernel_width * channels;
    const std::int64_t rows = g.batch * g.out_height, parts = depthwise_parts(g);
    const bool nine = g.kernel_height == 3 && g.kernel_width == 3 && depthwise_blocks_run();
    const bool adjacent = g.stride_width == 1 && g.dilation_width == 1;
    // Where channels need several strips of vectors, so few outputs that what the next strip reads is still near.
    const bool longest = active_instruction_set() == instruction_set::avx512;
    const std::int64_t strip = active_tile_kernels<T>().lanes * (longest ? 2 : 1);
    const std::int64_t run = equal_part(g.out_width, channels <= strip ? g.out_width : longest ? 16 : 8);
    for_tasks(parts, parallel, [&](std::int64_t part, int) {
        T* const own = sums + part * filters;
        std::fill_n(own, filters, T(0));
        for (std::int64_t row = rows * part / parts; row < rows * (part + 1) / parts; ++row) {
            const std::int64_t image = row / g.out_height;
            const std::int64_t top = row % g.out_height * g.stride_height - g.pad_top;
            if (nine) {
                depthwise_nine_rows<T> rows_of{dy + row * g.out_width * channels, {}, own};
                for (std::int64_t u = 0; u < 3; ++u) {
                    const std::int64_t at = top + u * g.dilation_height;
                    if (at >= 0 && at < g.in_height)
                        rows_of.x[u] = x + (image * g.in_height + at) * g.in_width * channels;
                }
                for (std::int64_t first = 0; first < g.out_width; first += run) {
                    const std::int64_t last = std::min(first + run, g.out_width);
                    const depthwise_nine_rows<T>* const p = &rows_of;
                    if (adjacent)
                        dispatch_fused<depthwise_nine_body<T, true>>(&g, p, first, last);
                    else
                        dispatch_fused<depthwise_nine_body<T, false>>(&g, p, first, last);
                }
                continue;
            }
            for (std::int64_t u = 0; u < g.kernel_height; ++u) {
                const std::int64_t at = row % g.out_height * g.stride_height - g.pad_top + u * g.dilation_height;
                if (at < 0 || at >= g.in_height) continue;
                const T* const from = x + (image * g.in_height + at) * g.in_width * channels;
                const T* const by = dy + row * g.out_width * channels;
                for (std::int64_t tap = 0; tap < g.kernel_width;) {
                    T* const to = own + (u * g.kernel_width + tap) * channels;
                    const auto add = [&]<int Taps>(std::integral_constant<int, Taps>) {
                        dispatch_fused<depthwise_taps_body<T, Taps>>(&g, tap, from, by, to);
                        tap += Taps;
                    };
                    if (g.kernel_width - tap >= 3)
                        add(std::integral_constant<int, 3>{});
                    else
                        add(std::integral_constant<int, 1>{});
                }
            }
        }
    });
    for_tasks(divide_up(filters, 4096), parallel && parts > 1, [&](std::int64_t task, int) {
        for (std::int64_t i = task * 4096; i < std::min(filters, (task + 1) * 4096); ++i) {
            double sum = 0;
            for (std::int64_t part = 0; part < parts; ++part) sum += static_cast<double>(sums[part * filters + i]);
            dw[i] = static_cast<T>(sum);
        }
    });
}

} // namespace tapegraph::cpu::detail
TG_ROUNDS_EACH_END
