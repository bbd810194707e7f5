#pragma once

#include <tapegraph/ops/convolution/cpu_tiling.hpp>

#include <limits>

/// The tiling of a fast convolution. It follows from the shape and the vectors' width, never from
/// the number of threads, and the parts that depend on the batch change no sum of an output.

namespace tapegraph::cpu::detail {

/// Outputs of a tile in each direction. With 5 taps, 8 by 8 products give 16 outputs that take 25
/// each directly; with 3 taps, 6 by 6.
inline constexpr int fast_outputs = 4;

/// Stride 1 along undilated kernels of 3 by 3 and 5 by 5, padded by less than a kernel.
inline bool winograd_can(const convolution_geometry& g) {
    return g.groups == 1 && g.stride_height == 1 && g.stride_width == 1 && g.dilation_height == 1 &&
           g.dilation_width == 1 && g.kernel_height == g.kernel_width && (g.kernel_width == 3 || g.kernel_width == 5) &&
           g.pad_top < g.kernel_height && g.pad_left < g.kernel_width && g.in_height > 0 && g.in_width > 0 &&
           g.out_height > 0 && g.out_width > 0 && g.in_channels > 0 && g.out_channels > 0;
}
/// Whether transformed filters stay in a second-level cache.
inline bool in_cache(std::int64_t products, std::int64_t in_channels, std::int64_t out_channels) {
    return products * in_channels * out_channels <= std::int64_t{1} << 20;
}
/// Whether transforms pay, in products of direct sums, by what passes of 145 shapes and batches took
/// (docs/performance/convolutions.md). The filters are transformed for the whole batch, so that it chooses, too: in a
/// small one an image's results may be rounded otherwise than in a large one. Those of a forward pass count as where
/// they are kept and only read: which a program does must not choose, since both modes have the same bits.
inline bool winograd_pays(const convolution_geometry& g, convolution_pass pass) {
    constexpr std::int64_t fewest_channels = 32;
    // In quarters: integers choose alike whatever the compiler fuses. A product of transformed tiles, and what the
    // filters cost.
    constexpr std::int64_t product = 7, kept_in_cache = 32, kept = 80, made_in_cache = 48, made = 240;
    if (g.in_channels < fewest_channels || g.out_channels < fewest_channels) return false;
    const std::int64_t side = fast_outputs + g.kernel_width - 1, products = side * side;
    const std::int64_t tiles = divide_up(g.out_height, fast_outputs) * divide_up(g.out_width, fast_outputs);
    const bool cached = in_cache(products, g.in_channels, g.out_channels);
    const std::int64_t filter =
        pass == convolution_pass::forward ? (cached ? kept_in_cache : kept) : (cached ? made_in_cache : made);
    const std::int64_t direct = g.batch * g.out_height * g.out_width * g.kernel_height * g.kernel_width;
    return (product * g.batch * tiles + filter) * products < 4 * direct;
}

/// A long kernel along one dimension, by real Fourier transforms of overlapping tiles. A stride
/// becomes channels: `stride` neighbouring pixels form one, and a kernel of 40 with stride 4
/// becomes one of 10 with four times the channels.
struct line_tiles {
    std::int64_t lead;      ///< zeros prepended to the kernel's taps, so that padding is whole pixels
    std::int64_t taps;      ///< taps of the kernel, counted in merged pixels
    std::int64_t transform; ///< real numbers per transform; 0 where none pays
    std::int64_t outputs;   ///< of a tile
    std::int64_t across;    ///< tiles of an image

    /// Products of a tile: three for each complex number, and two real ones.
    static std::int64_t products(std::int64_t transform) { return 3 * (transform / 2 - 1) + 2; }

    /// `pays`: none where direct sums are as quick. What a transform costs is counted in products of direct sums, by constants that a
    /// least-squares fit gave for 13 shapes (docs/performance/convolutions.md). The batch must not choose, because an image's
    /// results would depend on it, so that filters, which a batch shares, count as for one of eight.
    line_tiles(const convolution_geometry& g, bool pays)
        : lead(divide_up(g.pad_left, g.stride_width) * g.stride_width - g.pad_left),
          taps(divide_up(g.kernel_width + lead, g.stride_width)),
          transform(0),
          outputs(0),
          across(0) {
        struct size {
            std::int64_t n;
            double logarithm;
        };
        static constexpr size sizes[8]{{24, 4.6}, {32, 5},  {48, 5.6},  {64, 6},
                                       {96, 6.6}, {128, 7}, {192, 7.6}, {256, 8}};
        constexpr double product = 1.75, line = 4, filter = 5.8, filter_product = 1.5, typical_batch = 8, gain = 1.1;
        const auto in = static_cast<double>(g.in_channels * g.stride_width), out = static_cast<double>(g.out_channels);
        double best = std::numeric_limits<double>::infinity();
        if (pays) best = static_cast<double>(g.out_width * g.kernel_width * g.in_channels) * out / gain;
        for (const size& s : sizes) {
            if (s.n < taps + 8) continue;
            const std::int64_t tiles = divide_up(g.out_width, s.n - taps + 1);
            const double numbers = static_cast<double>(s.n) * s.logarithm, made = static_cast<double>(products(s.n));
            const double cost = static_cast<double>(tiles) * (product * made * in * out + line * numbers * (in + out)) +
                                (filter * numbers + filter_product * made) * in * out / typical_batch;
            if (cost >= best) continue;
            best = cost;
            transform = s.n;
            across = tiles;
            outputs = divide_up(g.out_width, tiles);
        }
    }
};

/// Undilated kernels of one dimension, with strides as phases, that fit into the longest transform.
inline bool fourier_can(const convolution_geometry& g) {
    return g.groups == 1 && g.in_height == 1 && g.kernel_height == 1 && g.out_height == 1 && g.pad_top == 0 &&
           g.dilation_width == 1 && g.pad_left < g.kernel_width && g.in_width > 0 && g.out_width > 0 &&
           g.in_channels > 0 && g.out_channels > 0 && line_tiles(g, false).transform != 0;
}
/// Whether there are enough channels, and enough pixels in the whole batch to pay for reading
/// transformed filters, which have several times as many numbers. As for small images above, the
/// results of a smaller batch are rounded differently.
inline bool fourier_pays(const convolution_geometry& g) {
    constexpr std::int64_t fewest_channels = 32, fewest_pixels = 64;
    return g.in_channels * g.stride_width >= fewest_channels && g.out_channels >= fewest_channels &&
           g.batch * g.out_width >= fewest_pixels && line_tiles(g, true).transform != 0;
}

/// The algorithm for a pass of a shape: the requested one, where it applies, otherwise direct sums.
/// `automatic` selects the one that pays.
inline convolution_algorithm algorithm_for_shape(const convolution_geometry& g,
                                                 convolution_algorithm requested_algorithm, convolution_pass pass) {
    using enum convolution_algorithm;
    const bool open = requested_algorithm == automatic;
    if ((open || requested_algorithm == winograd) && winograd_can(g) && (!open || winograd_pays(g, pass)))
        return winograd;
    if ((open || requested_algorithm == fourier) && fourier_can(g) && (!open || fourier_pays(g))) return fourier;
    return direct;
}

struct fast_plan {
    convolution_geometry g;           ///< strides as phases: more channels, stride 1
    std::int64_t taps;                ///< 3 or 5 in both directions; 0: a transform along a line
    std::int64_t transform;           ///< real numbers per transform
    std::int64_t outputs;             ///< per tile, from left to right
    std::int64_t lead_rows, rows;     ///< rows of zeros before those of w, and those of w ([tap][in channel])
    std::int64_t image;               ///< floats per image
    std::int64_t products;            ///< per tile, as the transforms give them
    std::int64_t down, across, tiles; ///< tiles per image, and in total
    std::int64_t in_row, out_row;     ///< floats from one tile's channels to the next
    std::int64_t block, blocks;       ///< tiles that a thread keeps transformed, one after the other
    std::int64_t images;              ///< per block of the input gradient, which has whole images or parts of one
    std::int64_t group;               ///< tiles over which the filter gradient adds up products at once
    panel_layout filters, turned;     ///< panels of out channels, and of in channels

    /// About a second-level cache full of 150 channels, and more than a thread's part of a group.
    static constexpr std::int64_t block_tiles = 48, group_tiles = 216;

    fast_plan(const convolution_geometry& given, int lanes)
        : g(given),
          lead_rows(0),
          rows(given.kernel_height * given.kernel_width * given.in_channels),
          image(given.in_height * given.in_width * given.in_channels) {
        if (given.algorithm == convolution_algorithm::winograd) {
            const std::int64_t side = fast_outputs + g.kernel_width - 1;
            taps = g.kernel_width;
            transform = 0;
            outputs = fast_outputs;
            products = side * side;
            down = divide_up(g.out_height, fast_outputs);
            across = divide_up(g.out_width, fast_outputs);
        } else {
            const line_tiles tiling(given, false);
            taps = 0;
            transform = tiling.transform;
            outputs = tiling.outputs;
            products = line_tiles::products(transform);
            down = 1;
            across = tiling.across;
            lead_rows = tiling.lead * given.in_channels;
            g.in_width = divide_up(given.in_width, given.stride_width);
            g.in_channels = given.in_channels * given.stride_width;
            g.pad_left = divide_up(given.pad_left, given.stride_width);
            g.kernel_width = tiling.taps;
            g.stride_width = 1;
        }
        filters = {g.out_channels, lanes};
        turned = {g.in_channels, lanes};
        tiles = g.batch * down * across;
        // As many whole images as make about a block's tiles, or parts of a larger image.
        const std::int64_t each = down * across;
        images = std::max<std::int64_t>(1, (block_tiles + each / 2) / each);
        block = std::max(block_tiles, std::min(images * each, block_tiles * 3 / 2));
        blocks = divide_up(tiles, block_tiles);
        group = std::min(group_tiles, tiles);
        // Rows a multiple of four cache lines apart would share sets of a cache.
        in_row = row_of(g.in_channels, lanes);
        out_row = row_of(g.out_channels, lanes);
    }
    /// Floats from one product's filters to the next's, [panel][in channel][columns]; for the
    /// turned filters, [panel of in channels][out channel][columns].
    std::int64_t filter_stride() const { return spread(filters.size(turned.n)); }
    std::int64_t turned_stride() const { return spread(turned.size(filters.n)); }
    /// The strides of a block's transformed channels, [tile][row], and of a panel's results,
    /// [tile][columns].
    std::int64_t channel_stride(std::int64_t row) const { return spread(block * row); }
    std::int64_t result_stride() const { return spread(block * 2 * filters.lanes); }
    /// The strides of a group's transformed inputs, [tile][row], and gradients,
    /// [panel][tile][columns].
    std::int64_t input_stride() const { return spread(group * in_row); }
    std::int64_t gradient_stride() const { return spread(group * filters.size(1)); }

private:
    // A transform reads or writes all products of a tile; an odd number of cache lines between them
    // places them in different cache sets.
    static std::int64_t spread(std::int64_t floats) { return (divide_up(floats, 16) | 1) * 16; }
    static std::int64_t row_of(std::int64_t channels, int lanes) {
        const std::int64_t row = panel_layout::padded(channels, lanes);
        return row % 64 == 0 ? row + lanes : row;
    }
};

/// The position of a tile's pixels: the first row and column in the image, and the image.
struct fast_tile {
    std::int64_t image, row, column;

    fast_tile(const fast_plan& plan, std::int64_t tile)
        : image(tile / (plan.down * plan.across)),
          row(tile / plan.across % plan.down * fast_outputs),
          column(tile % plan.across * plan.outputs) {}
};

} // namespace tapegraph::cpu::detail
