#pragma once

#include <tapegraph/cuda/kernels/operand.cuh>
#include <tapegraph/ops/convolution/cpu_fast_plan.hpp>
#include <tapegraph/ops/convolution/cpu_toom_cook.hpp>

#include <cstdint>

/// Transforms between images or filters and the factors and results of products (Winograd,
/// Toom-Cook): the CPU's tiles of 4 by 4 outputs with its points. Factors are [product][tile][channel]
/// and [product][in channel][out channel]; their rows are padded to whole 16 bytes with zeros. A
/// thread computes a channel of a tile in registers, neighbours along the channels, so every access
/// of a warp is one run of memory. No shared memory.

namespace tapegraph::cuda::kernels {

/// The CPU's channel_map for one channel. (nvcc 13.0 ends in an internal error where it sees the
/// CPU's vectors in functions that devices may call, so these are functions of their own.)
template <class Numbers, class Map>
struct line_map {
    static constexpr int rows = Map::rows, columns = Map::columns;

    template <int I, int J>
    TG_HD static void add_term(float& sum, const float& x) {
        constexpr double factor = Map::at(I, J);
        if constexpr (factor == 1)
            sum += x;
        else if constexpr (factor == -1)
            sum -= x;
        else if constexpr (factor != 0)
            sum = multiply_add(x, static_cast<float>(factor), sum);
    }

    // One row of the map, every Step-th term from First on.
    template <int I, int First, int Step, int... K>
    TG_HD static void row(float& sum, const float (&x)[columns], std::integer_sequence<int, K...>) {
        sum = 0;
        (add_term<I, First + Step * K>(sum, x[First + Step * K]), ...);
    }
    template <int I>
    TG_HD static void rows_from(const float (&x)[columns], float (&y)[rows]) {
        if constexpr (Numbers::pairs(I)) {
            float even, odd;
            row<I, 0, 2>(even, x, std::make_integer_sequence<int, (columns + 1) / 2>{});
            row<I, 1, 2>(odd, x, std::make_integer_sequence<int, columns / 2>{});
            y[I] = even + odd;
            y[I + 1] = even - odd;
        } else if constexpr (I == 0 || !Numbers::pairs(I - 1)) {
            row<I, 0, 1>(y[I], x, std::make_integer_sequence<int, columns>{});
        }
    }
    /// y = M x.
    template <int... I>
    TG_HD static void forward(const float (&x)[columns], float (&y)[rows], std::integer_sequence<int, I...>) {
        (rows_from<I>(x, y), ...);
    }

    // Multiplies column J of the map by values, those of pairs already added and subtracted.
    template <int I, int J>
    TG_HD static void add_folded(float& sum, const float (&folded)[rows]) {
        if constexpr (I == 0 || !Numbers::pairs(I - 1))
            add_term<I, J>(sum, folded[Numbers::pairs(I) && J % 2 == 1 ? I + 1 : I]);
    }
    template <int J, int... I>
    TG_HD static void column(float& sum, const float (&folded)[rows], std::integer_sequence<int, I...>) {
        sum = 0;
        (add_folded<I, J>(sum, folded), ...);
    }
    template <int I>
    TG_HD static void fold(const float (&x)[rows], float (&folded)[rows]) {
        if constexpr (Numbers::pairs(I)) {
            folded[I] = x[I] + x[I + 1];
            folded[I + 1] = x[I] - x[I + 1];
        } else if constexpr (I == 0 || !Numbers::pairs(I - 1)) {
            folded[I] = x[I];
        }
    }
    /// y = M^T x.
    template <int... I, int... J>
    TG_HD static void backward(const float (&x)[rows], float (&y)[columns], std::integer_sequence<int, I...> all,
                               std::integer_sequence<int, J...>) {
        float folded[rows];
        (fold<I>(x, folded), ...);
        (column<J>(y[J], folded, all), ...);
    }

    using all_rows = std::make_integer_sequence<int, rows>;
    using all_columns = std::make_integer_sequence<int, columns>;
};

/// A map of a toom_cook, along both axes of a tile. Loops over rows and columns are unrolled: all
/// indices are constants, and the tile stays in registers.
template <int Taps, template <class> class MapOf>
struct tile_map {
    using numbers = cpu::detail::toom_cook<cpu::detail::fast_outputs, Taps>;
    using map = MapOf<numbers>;
    using lines = line_map<numbers, map>;
    static constexpr int rows = map::rows, columns = map::columns;

    /// M x M^T: load(i) is element i of [columns, columns], store(i, y) stores it of [rows, rows].
    template <class Load, class Store>
    __device__ static void forward(const Load& load, const Store& store) {
        float half[rows][columns];
        TG_UNROLL
        for (int j = 0; j < columns; ++j) {
            float x[columns], y[rows];
            TG_UNROLL
            for (int i = 0; i < columns; ++i) x[i] = load(i * columns + j);
            lines::forward(x, y, typename lines::all_rows{});
            TG_UNROLL
            for (int i = 0; i < rows; ++i) half[i][j] = y[i];
        }
        TG_UNROLL
        for (int i = 0; i < rows; ++i) {
            float y[rows];
            lines::forward(half[i], y, typename lines::all_rows{});
            TG_UNROLL
            for (int j = 0; j < rows; ++j) store(i * rows + j, y[j]);
        }
    }
    /// M^T x M from [rows, rows] to [columns, columns], of which only rows from First on, Count of
    /// them, and columns likewise are stored; the others are not computed.
    template <int FirstRow, int RowCount, int FirstColumn, int ColumnCount, class Load, class Store>
    __device__ static void backward(const Load& load, const Store& store) {
        float half[RowCount][rows];
        TG_UNROLL
        for (int j = 0; j < rows; ++j) {
            float x[rows], y[columns];
            TG_UNROLL
            for (int i = 0; i < rows; ++i) x[i] = load(i * rows + j);
            lines::backward(x, y, typename lines::all_rows{}, typename lines::all_columns{});
            TG_UNROLL
            for (int i = 0; i < RowCount; ++i) half[i][j] = y[FirstRow + i];
        }
        TG_UNROLL
        for (int i = 0; i < RowCount; ++i) {
            float y[columns];
            lines::backward(half[i], y, typename lines::all_rows{}, typename lines::all_columns{});
            TG_UNROLL
            for (int j = 0; j < ColumnCount; ++j) store(i, j, y[FirstColumn + j]);
        }
    }
};
template <class Numbers>
using input_map = typename Numbers::input;
template <class Numbers>
using output_map = typename Numbers::output;
template <class Numbers>
using filter_map = typename Numbers::filter;

/// Where a thread works: the tile's number, its image, its first pixel (which may be outside), and
/// a channel.
struct tile_place {
    int tile, image, row, column, channel;
};

/// Tiles of images [batch, height, width, channels], one every four pixels, the first at (-top,
/// -left); and the factors made of them, [product][tile][pitch].
struct winograd_tiles {
    int height, width, channels, top, left;
    int tiles;           ///< of all images; those after them, if any, are zeros
    int down, across;    ///< tiles of an image
    int pitch;           ///< channels of a factor
    int count;           ///< threads: tiles, and zeros after them, times pitch
    std::int64_t stride; ///< from one product's factors to the next's
    divisor by_pitch, by_image, by_across;

    __device__ tile_place at(int index) const {
        const std::uint32_t tile = by_pitch.quotient(static_cast<std::uint32_t>(index));
        const std::uint32_t image = by_image.quotient(tile), within = by_image.remainder(tile, image);
        const std::uint32_t row = by_across.quotient(within), column = by_across.remainder(within, row);
        return {static_cast<int>(tile), static_cast<int>(image),
                static_cast<int>(row) * cpu::detail::fast_outputs - top,
                static_cast<int>(column) * cpu::detail::fast_outputs - left,
                static_cast<int>(by_pitch.remainder(static_cast<std::uint32_t>(index), tile))};
    }
};

/// The pixels of a tile, of which an image has elements that 32 bits count: which rows and columns
/// are inside, as bits, and offsets, which wrap around outside.
struct tile_pixels {
    std::uint32_t rows = 0, columns = 0;
    std::uint32_t first, down, across;
    std::int64_t image;

    /// Of images with these extents, from a pixel on.
    __device__ tile_pixels(int height, int width, int channels, const tile_place& p, int row, int column, int side)
        : first(static_cast<std::uint32_t>((row * width + column) * channels + p.channel)),
          down(static_cast<std::uint32_t>(width * channels)),
          across(static_cast<std::uint32_t>(channels)),
          image(static_cast<std::int64_t>(p.image) * height * width * channels) {
        TG_UNROLL
        for (int i = 0; i < side; ++i) {
            rows |= static_cast<std::uint32_t>(row + i >= 0 && row + i < height) << i;
            columns |= static_cast<std::uint32_t>(column + i >= 0 && column + i < width) << i;
        }
    }
    __device__ bool inside(int i, int j) const { return (rows >> i & columns >> j & 1) != 0; }
    __device__ std::uint32_t offset(int i, int j) const {
        return first + static_cast<std::uint32_t>(i) * down + static_cast<std::uint32_t>(j) * across;
    }
};

__device__ inline int thread_index() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

/// to = B d B^T for tiles d of inputs, or A d A^T for tiles of gradients, and 0 for the channels of
/// the padding.
template <int Taps, template <class> class MapOf>
__global__ void __launch_bounds__(128) winograd_factors(winograd_tiles t, const float* images, float* to) {
    using map = tile_map<Taps, MapOf>;
    const int index = thread_index();
    if (index >= t.count) return;
    const tile_place p = t.at(index);
    tile_pixels pixels(t.height, t.width, t.channels, p, p.row, p.column, map::columns);
    if (p.channel >= t.channels || p.tile >= t.tiles) pixels.rows = 0;
    const float* const from = images + pixels.image;
    float* const at = to + index;
    map::forward(
        [&](int i) {
            const int row = i / map::columns, column = i % map::columns;
            return pixels.inside(row, column) ? from[pixels.offset(row, column)] : 0.0f;
        },
        [&](int i, float y) { at[i * t.stride] = y; });
}

/// Filters w [taps, taps, in, out] and their factors [product][in][pitch], padded along both.
struct winograd_filters {
    int in, out, pitch;
    int count; ///< threads: padded in channels times pitch
    std::int64_t stride;
    divisor by_pitch;
};

/// to = G w G^T, and 0 for the channels of the padding.
template <int Taps>
__global__ void __launch_bounds__(128) winograd_filter_factors(winograd_filters f, const float* w, float* to) {
    using map = tile_map<Taps, filter_map>;
    const int index = thread_index();
    if (index >= f.count) return;
    const auto in = static_cast<int>(f.by_pitch.quotient(static_cast<std::uint32_t>(index)));
    const int out = index - in * f.pitch;
    const bool real = in < f.in && out < f.out;
    const float* const from = w + static_cast<std::int64_t>(in) * f.out + out;
    const std::int64_t tap = static_cast<std::int64_t>(f.in) * f.out;
    float* const at = to + index;
    map::forward([&](int i) { return real ? from[i * tap] : 0.0f; }, [&](int i, float y) { at[i * f.stride] = y; });
}

/// Adds the parts of sums, [product][part][count], to the first of each, in order. A row of blocks
/// computes a product's.
template <class T>
__global__ void __launch_bounds__(128) winograd_add_parts(T* sums, int count, int parts, std::int64_t stride) {
    const int index = thread_index();
    if (index >= count) return;
    T* const first = sums + static_cast<std::int64_t>(blockIdx.y) * parts * stride + index;
    T sum = *first;
    for (int part = 1; part < parts; ++part) sum += first[part * stride];
    *first = sum;
}

/// dw = G^T sums G.
template <int Taps>
__global__ void __launch_bounds__(128) winograd_filter_gradients(winograd_filters f, const float* sums, float* dw) {
    using map = tile_map<Taps, filter_map>;
    const int index = thread_index();
    if (index >= f.count) return;
    const auto in = static_cast<int>(f.by_pitch.quotient(static_cast<std::uint32_t>(index)));
    const int out = index - in * f.pitch;
    if (in >= f.in || out >= f.out) return;
    const float* const from = sums + index;
    float* const to = dw + static_cast<std::int64_t>(in) * f.out + out;
    const std::int64_t tap = static_cast<std::int64_t>(f.in) * f.out;
    map::template backward<0, Taps, 0, Taps>([&](int i) { return from[i * f.stride]; },
                                             [&](int u, int v, float y) { to[(u * Taps + v) * tap] = y; });
}

/// y = relu(A^T sums A + bias). `Pooled`: y is [batch, height / 2, width / 2, channels], the largest
/// of 2 by 2 outputs, which are in one tile.
template <int Taps, bool Pooled>
__global__ void __launch_bounds__(128)
    winograd_outputs(winograd_tiles t, const float* sums, const float* bias, bool relu, float* y) {
    using map = tile_map<Taps, output_map>;
    constexpr int side = map::columns;
    const int index = thread_index();
    if (index >= t.count) return;
    const tile_place p = t.at(index);
    if (p.channel >= t.channels) return;
    constexpr int each = Pooled ? 2 : 1;
    const tile_pixels results(t.height / each, t.width / each, t.channels, p, p.row / each, p.column / each,
                              side / each);
    float* const to = y + results.image;
    const float* const from = sums + index;
    const float shift = bias == nullptr ? 0.0f : bias[p.channel]; // read once: stores may alias it
    float window[side / 2]{};                                     // the largest so far of each window of two rows
    map::template backward<0, side, 0, side>(
        [&](int i) { return from[i * t.stride]; },
        [&](int i, int j, float sum) {
            float value = with_epilogue(sum, bias == nullptr ? nullptr : &shift, 0, relu);
            if constexpr (Pooled) {
                value = i % 2 == 0 && j % 2 == 0 ? value : larger(window[j / 2], value);
                window[j / 2] = value;
                if (i % 2 == 0 || j % 2 == 0) return;
            }
            if (results.inside(i / each, j / each)) to[results.offset(i / each, j / each)] = value;
        });
}

/// Adds one tile's part of B^T sums B to a block of four by four pixels: the tile that begins `Down`
/// blocks before it and `Across` blocks to its left, both 0 or 1.
template <int Taps, int Down, int Across>
__device__ void add_tile(const float* sums, std::int64_t stride, float (&block)[4][4]) {
    using map = tile_map<Taps, input_map>;
    constexpr int side = cpu::detail::fast_outputs, rest = map::columns - side;
    constexpr int rows = Down == 0 ? side : rest, columns = Across == 0 ? side : rest;
    map::template backward<Down * side, rows, Across * side, columns>([&](int i) { return sums[i * stride]; },
                                                                      [&](int i, int j, float y) { block[i][j] += y; });
}

/// dx, by blocks of four by four pixels that begin where tiles do: the sum over the tiles that
/// overlap, always in one order. `t` has blocks instead of tiles; tiles are [down, across] in an
/// image.
template <int Taps>
__global__ void __launch_bounds__(128)
    winograd_input_gradients(winograd_tiles t, int down, int across, const float* sums, float* dx) {
    static_assert(cpu::detail::fast_outputs == 4 && Taps <= 5); // a pixel is in two tiles of an axis at most
    const int index = thread_index();
    if (index >= t.count) return;
    const tile_place p = t.at(index);
    if (p.channel >= t.channels) return;
    const int i = (p.row + t.top) / 4, j = (p.column + t.left) / 4;
    const float* const from =
        sums +
        (static_cast<std::int64_t>(p.image) * down * across + static_cast<std::int64_t>(i) * across + j) * t.pitch +
        p.channel;
    const std::int64_t above = static_cast<std::int64_t>(across) * t.pitch;
    float block[4][4]{};
    if (i > 0 && i <= down && j > 0 && j <= across) add_tile<Taps, 1, 1>(from - above - t.pitch, t.stride, block);
    if (i > 0 && i <= down && j < across) add_tile<Taps, 1, 0>(from - above, t.stride, block);
    if (i < down && j > 0 && j <= across) add_tile<Taps, 0, 1>(from - t.pitch, t.stride, block);
    if (i < down && j < across) add_tile<Taps, 0, 0>(from, t.stride, block);
    const tile_pixels pixels(t.height, t.width, t.channels, p, p.row, p.column, 4);
    float* const to = dx + pixels.image;
    TG_UNROLL
    for (int r = 0; r < 4; ++r) {
        TG_UNROLL
        for (int c = 0; c < 4; ++c)
            if (pixels.inside(r, c)) to[pixels.offset(r, c)] = block[r][c];
    }
}

} // namespace tapegraph::cuda::kernels
