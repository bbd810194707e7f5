#pragma once

#include <tapegraph/ops/convolution/cpu_tiling.hpp>

#include <utility>

/// Forward passes of depthwise convolutions with 3 x 3 and 5 x 5 kernels of stride 1 and 2 and with 7 x 7 ones of stride
/// 1, and their gradients by the input, except that of 5 x 5 ones of stride 2, in blocks of two rows of outputs: a vector
/// of a is read once for all taps of all outputs in the block, and of the rows of a, which the first-level cache seldom
/// holds, most are read once for two rows of outputs. Blocks follow one another along the rows, and go through all
/// channels, so that memory is read and written in the order in which it lies.
///
/// The gradient by the input is a forward pass over images that are gone through from their last pixel: there,
///   dx[i, j] = sum over u, v of dy[(i + u - pad) / stride, (j + v - pad) / stride] * w[u, v]
/// over the taps for which that divides. Sums are those of cpu_depthwise.hpp, added in the same order.

TG_ROUNDS_EACH_BEGIN
namespace tapegraph::cpu::detail {

/// An image of a, which is x or dy, and one of outputs. Steps are elements from a pixel to the next one of its row or
/// its column.
template <class T>
struct depthwise_image {
    const T *a, *w, *bias; // the first pixel of a
    T* out;
    std::int64_t channels, a_height, a_width, a_row, a_step;
    std::int64_t out_height, out_width, out_row, out_step;
    std::int64_t pad_top, pad_left;
    bool relu;
    bool from_memory; // a is so large that it comes from memory
};

/// Not for vectors of 16 bytes in 16 registers: programs that compile their kernels need not wait for what few run.
template <class Isa>
inline constexpr bool has_depthwise_blocks = Isa::vector_bytes > 16 || Isa::registers > 16;
/// Whether the active instruction set has them.
inline bool depthwise_blocks_run() {
    return has_depthwise_blocks<baseline> || active_instruction_set() != instruction_set::baseline;
}

/// Two rows of outputs from `row` on,
///   out[i, j] = sum over u, v of a[(i * Stride + u - pad_top) / Step, (j * Stride + v - pad_left) / Step] * w[u, v].
/// If Step is 2, row - pad_top is even.
template <class T, int Taps, int Stride, int Step>
struct depthwise_block_body {
    template <class Isa>
    TG_INLINE static void run(const depthwise_image<T>* image, std::int64_t row) {
        if constexpr (has_half_blocks<Isa>)
            if (image->channels < Isa::vector_bytes / static_cast<int>(sizeof(T)))
                return block<vector<T, Isa::vector_bytes / 2>, 8, true>::rows(*image, row);
        if constexpr (has_depthwise_blocks<Isa>)
            block<vector<T, Isa::vector_bytes>,
                  Isa::registers == 32 ? 8
                  : Taps == 7          ? 6
                                       : 4,
                  (Isa::registers == 32 || Taps < 7)>::rows(*image, row);
    }

    /// Half vectors for fewer channels than a vector has lanes: of the commonest kernel alone, since each takes time to
    /// compile.
    template <class Isa>
    static constexpr bool has_half_blocks = Isa::vector_bytes == 64 && Taps == 3 && Stride == 1 && Step == 1;

private:
    static constexpr int reach(int outputs) { return ((outputs - 1) * Stride + Taps - 1) / Step + 1; }

    /// What a block has of an axis: pixels of a, and outputs.
    struct extent {
        std::int64_t a_first, a_last, first, last;

        extent(std::int64_t out, std::int64_t most, std::int64_t outputs, std::int64_t a, std::int64_t pixels)
            : a_first(std::max<std::int64_t>(0, -a)),
              a_last(pixels - a),
              first(std::max<std::int64_t>(0, -out)),
              last(std::min(most, outputs - out)) {}
        bool reads(std::int64_t i) const { return i >= a_first && i < a_last; }
        bool writes(std::int64_t i) const { return (Step == 1 || i >= first) && i < last; }
        bool whole(std::int64_t pixels, std::int64_t outputs) const {
            return a_first == 0 && a_last >= pixels && first == 0 && last == outputs;
        }
    };

    /// Held: there are registers for two rows of a filter.
    template <class V, int Columns, bool Held>
    struct block {
        using type = typename V::type;
        static constexpr int outputs = 2 * Columns, filters = Taps * Taps;
        using every_output = std::make_index_sequence<outputs>;
        using every_pixel = std::make_index_sequence<static_cast<std::size_t>(reach(Columns))>;
        using every_tap = std::make_index_sequence<static_cast<std::size_t>(Taps)>;

        const depthwise_image<T>& g;
        const extent &down, &across;

        TG_INLINE static void rows(const depthwise_image<T>& g, std::int64_t row) {
            const std::int64_t a_row = (row * Stride - g.pad_top) / Step;
            const extent down(row, 2, g.out_height, a_row, g.a_height);
            for (std::int64_t column = Step == 1 ? 0 : -(g.pad_left & 1); column < g.out_width; column += Columns) {
                const std::int64_t a_column = (column * Stride - g.pad_left) / Step;
                const extent across(column, Columns, g.out_width, a_column, g.a_width);
                const block at{g, down, across};
                const T* const a = g.a + a_row * g.a_row + a_column * g.a_step;
                T* const out = g.out + row * g.out_row + column * g.out_step;
                // Larger kernels have no code of their own for blocks within the image.
                if (Taps == 3 && across.whole(reach(Columns), Columns))
                    at.template channels<true>(a, out);
                else
                    at.template channels<false>(a, out);
            }
        }
        template <bool Inside>
        TG_INLINE void channels(const T* a, T* out) const {
            for (std::int64_t c = 0; c < g.channels; c += V::lanes) {
                if (c + V::lanes > g.channels) c = g.channels - V::lanes; // once more, with the same values
                sums<Inside>(a + c, out + c, c, std::make_index_sequence<filters>{},
                             std::make_index_sequence<static_cast<std::size_t>(reach(2))>{}, every_output{});
            }
        }
        // Packs, because g++ does not unroll loops over vectors everywhere.
        template <bool Inside, std::size_t... F, std::size_t... R, std::size_t... K>
        TG_INLINE void sums(const T* a, T* out, std::int64_t c, std::index_sequence<F...>, std::index_sequence<R...>,
                            std::index_sequence<K...>) const {
            type sum[outputs] = {};
            // With a stride hardly any row is read twice, and half a line at a time waits for each of them.
            if constexpr (Stride == 2 && sizeof(type) < 64)
                if (g.from_memory && c % (64 / static_cast<std::int64_t>(sizeof(T))) == 0)
                    for (std::int64_t i = 0; i < reach(2); ++i)
                        for (std::int64_t p = 0; p < Columns * Stride; ++p)
                            __builtin_prefetch(a + i * g.a_row + (p + reach(Columns)) * g.a_step);
            if constexpr (Taps == 3) {
                type w[filters];
                (V::load(w[F], g.w + c + static_cast<std::int64_t>(F) * g.channels), ...);
                (row<Inside, static_cast<int>(R)>(a + static_cast<std::int64_t>(R) * g.a_row, sum, w, every_pixel{}),
                 ...);
            } else {
                for (std::int64_t i = std::max<std::int64_t>(0, down.a_first),
                                  end = std::min<std::int64_t>(Taps + Stride, down.a_last);
                     i < end; ++i) {
                    const T *const from = a + i * g.a_row, *const w = g.w + c + i * Taps * g.channels;
                    if (i < Stride)
                        line<true, false>(from, w, sum, every_tap{}, every_pixel{});
                    else if (i < Taps)
                        line<true, true>(from, w, sum, every_tap{}, every_pixel{});
                    else
                        line<false, true>(from, w, sum, every_tap{}, every_pixel{});
                }
            }
            (finish<Inside, static_cast<int>(K)>(out, sum[K], c), ...);
        }
        template <bool Inside, int R, std::size_t... P>
        TG_INLINE void row(const T* a, type (&sum)[outputs], const type (&w)[filters],
                           std::index_sequence<P...>) const {
            if (!down.reads(R)) return;
            (pixel<Inside, R, static_cast<int>(P)>(a + static_cast<std::int64_t>(P) * g.a_step, sum, w, every_output{}),
             ...);
        }
        template <bool Inside, int R, int P, std::size_t... K>
        TG_INLINE void pixel(const T* a, type (&sum)[outputs], const type (&w)[filters],
                             std::index_sequence<K...>) const {
            if (!Inside && !across.reads(P)) return;
            type x;
            V::load(x, a);
            (tap<R * Step - static_cast<int>(K) / Columns * Stride, P * Step - static_cast<int>(K) % Columns * Stride>(
                 sum[K], x, w),
             ...);
        }
        template <int U, int W>
        TG_INLINE static void tap(type& sum, const type& x, const type (&w)[filters]) {
            if constexpr (U >= 0 && U < Taps && W >= 0 && W < Taps) V::multiply_add(sum, x, w[U * Taps + W]);
        }
        // A row of a for two rows of outputs: row i of the filter, at w, for the first, and row i - Stride for the second.
        template <bool First, bool Second, std::size_t... J, std::size_t... P>
        TG_INLINE void line(const T* a, const T* w, type (&sum)[outputs], std::index_sequence<J...>,
                            std::index_sequence<P...>) const {
            type first[Taps], second[Taps];
            if constexpr (Held && First) (V::load(first[J], w + static_cast<std::int64_t>(J) * g.channels), ...);
            if constexpr (Held && Second)
                (V::load(second[J], w + (static_cast<std::int64_t>(J) - Stride * Taps) * g.channels), ...);
            (place<First, Second, static_cast<int>(P)>(a + static_cast<std::int64_t>(P) * g.a_step, w, first, second,
                                                       sum,
                                                       std::make_index_sequence<static_cast<std::size_t>(Columns)>{}),
             ...);
        }
        template <bool First, bool Second, int P, std::size_t... K>
        TG_INLINE void place(const T* a, const T* w, const type (&first)[Taps], const type (&second)[Taps],
                             type (&sum)[outputs], std::index_sequence<K...>) const {
            if (!across.reads(P)) return;
            type x;
            V::load(x, a);
            // Filters that no register holds are operands in memory: g++ would load all of them, and store them again.
            std::int64_t apart = g.channels;
            const T* before = Second ? w - Stride * Taps * apart : w;
            TG_IN_REGISTER(w)
            TG_IN_REGISTER(before)
            TG_IN_REGISTER(apart)
            const auto add = [&]<int W>(std::integral_constant<int, W>, type & one, type & two)
                __attribute__((always_inline)) {
                if constexpr (W >= 0 && W < Taps) {
                    type by;
                    if constexpr (First) {
                        if constexpr (Held)
                            by = first[W];
                        else
                            V::load(by, w + W * apart);
                        V::multiply_add(one, x, by);
                    }
                    if constexpr (Second) {
                        if constexpr (Held)
                            by = second[W];
                        else
                            V::load(by, before + W * apart);
                        V::multiply_add(two, x, by);
                    }
                }
            };
            (add(std::integral_constant<int, P - static_cast<int>(K) * Stride>{}, sum[K], sum[Columns + K]), ...);
        }
        template <bool Inside, int K>
        TG_INLINE void finish(T* out, type& sum, std::int64_t c) const {
            constexpr int i = K / Columns, j = K % Columns;
            if (!down.writes(i) || (!Inside && !across.writes(j))) return;
            if (g.bias != nullptr) {
                type bias;
                V::load(bias, g.bias + c);
                sum += bias;
            }
            if (g.relu) sum = sum <= type{} ? type{} : sum; // keeps NaN
            V::store(out + i * g.out_row + j * g.out_step, sum);
        }
    };
};

/// The kernel for blocks of a pass; null where the shape has none.
template <class T>
auto depthwise_block_kernel(const convolution_geometry& g, bool forward) {
    using kernel = void (*)(const depthwise_image<T>*, std::int64_t);
    const auto of = []<int Taps, int Stride, int Step>(std::integer_sequence<int, Taps, Stride, Step>) -> kernel {
        return &dispatch_fused<depthwise_block_body<T, Taps, Stride, Step>, const depthwise_image<T>*, std::int64_t>;
    };
    const std::int64_t taps = g.kernel_height, stride = g.stride_height;
    const bool square =
        g.kernel_width == taps && g.stride_width == stride && g.dilation_height == 1 && g.dilation_width == 1;
    const bool halves = active_instruction_set() == instruction_set::avx512 && stride == 1 && taps == 3;
    if (!depthwise_blocks_run() || !square || g.in_channels < active_tile_kernels<T>().lanes / (halves ? 2 : 1))
        return kernel{};
    if (stride == 1 && taps == 3) return of(std::integer_sequence<int, 3, 1, 1>{});
    if (stride == 1 && taps == 5) return of(std::integer_sequence<int, 5, 1, 1>{});
    if (stride == 1 && taps == 7) return of(std::integer_sequence<int, 7, 1, 1>{});
    if (stride == 2 && taps == 3)
        return forward ? of(std::integer_sequence<int, 3, 2, 1>{}) : of(std::integer_sequence<int, 3, 1, 2>{});
    if (stride == 2 && taps == 5 && forward) return of(std::integer_sequence<int, 5, 2, 1>{});
    return kernel{};
}

/// A pass in blocks: a is x or dy, out is y or dx. False where the shape has none.
template <class T>
bool depthwise_in_blocks(const convolution_geometry& g, bool forward, const T* a, const T* w, T* out,
                         const convolution_epilogue<T>& epilogue, bool parallel) {
    const auto run = depthwise_block_kernel<T>(g, forward);
    if (run == nullptr) return false;
    const std::int64_t step = forward ? g.in_channels : -g.in_channels;
    depthwise_image<T> all{};
    all.w = w;
    all.bias = epilogue.bias;
    all.relu = epilogue.relu;
    all.channels = g.in_channels;
    all.a_step = all.out_step = step;
    all.a_height = forward ? g.in_height : g.out_height;
    all.a_width = forward ? g.in_width : g.out_width;
    all.a_row = all.a_width * step;
    all.out_height = forward ? g.out_height : g.in_height;
    all.out_width = forward ? g.out_width : g.in_width;
    all.out_row = all.out_width * step;
    constexpr std::int64_t large = std::int64_t{16} << 20; // bytes
    all.from_memory =
        g.batch * all.a_height * all.a_width * g.in_channels * static_cast<std::int64_t>(sizeof(T)) > large;
    all.pad_top = forward ? g.pad_top : g.pad_top + g.in_height - 1 - (g.out_height - 1) * g.stride_height;
    all.pad_left = forward ? g.pad_left : g.pad_left + g.in_width - 1 - (g.out_width - 1) * g.stride_width;
    const std::int64_t first = forward || g.stride_height == 1 ? 0 : -(all.pad_top & 1);
    const std::int64_t blocks = divide_up(all.out_height - first, 2);
    const auto image_of = [&](auto* images, std::int64_t i, std::int64_t pixels) {
        return images + (forward ? i * pixels : (i + 1) * pixels - 1) * g.in_channels;
    };
    for_tasks(g.batch * blocks, parallel, [&](std::int64_t task, int) {
        const std::int64_t i = task / blocks, row = first + task % blocks * 2;
        depthwise_image<T> image = all;
        const std::int64_t pixels = all.a_height * all.a_width;
        image.a = pixels == 0 ? w : image_of(a, i, pixels); // of an empty image nothing is read: not null
        image.out = image_of(out, i, all.out_height * all.out_width);
        run(&image, row);
        if (epilogue.next != nullptr)
            epilogue.next->on_rows((i * all.out_height + row) * all.out_width,
                                   std::min<std::int64_t>(2, all.out_height - row) * all.out_width);
    });
    if (epilogue.next != nullptr) epilogue.next->done = true;
    return true;
}

} // namespace tapegraph::cpu::detail
TG_ROUNDS_EACH_END
