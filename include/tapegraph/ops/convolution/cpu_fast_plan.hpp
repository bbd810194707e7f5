#pragma once

#include <tapegraph/ops/convolution/cpu_tiling.hpp>

/// How a convolution by fewer products is cut. Everything follows from the shape and the vectors' width, nothing from the number of
/// threads, and what follows from the batch changes no sum of an output.

namespace tapegraph::cpu::detail {

/// Outputs of a tile in each direction; with 5 taps 8 by 8 products make 16 outputs of 25 each, with 3 taps 6 by 6.
inline constexpr int fast_outputs = 4;

/// Stride 1 along undilated kernels of 3 by 3 and 5 by 5, padded by less than a kernel, between enough channels and with enough outputs
/// for the transforms to pay at any batch: what the batch decided, a batch of another size would round otherwise.
inline bool takes_fast(const convolution_geometry& g) {
    constexpr std::int64_t fewest_channels = 32, fewest_tiles = 16;
    return g.groups == 1 && g.stride_height == 1 && g.stride_width == 1 && g.dilation_height == 1 &&
           g.dilation_width == 1 && g.kernel_height == g.kernel_width && (g.kernel_width == 3 || g.kernel_width == 5) &&
           g.pad_top < g.kernel_height && g.pad_left < g.kernel_width && g.in_channels >= fewest_channels &&
           g.out_channels >= fewest_channels && g.in_height > 0 && g.in_width > 0 &&
           divide_up(g.out_height, fast_outputs) * divide_up(g.out_width, fast_outputs) >= fewest_tiles;
}

struct fast_plan {
    std::int64_t products;            ///< of a tile: what the transforms make
    std::int64_t down, across, tiles; ///< tiles of an image, and of all
    std::int64_t in_row, out_row;     ///< floats from one tile's channels to the next
    std::int64_t block, blocks;       ///< tiles that a thread keeps transformed, one after the other
    std::int64_t images;              ///< of a block of the input gradient, which has whole images or parts of one
    std::int64_t group;               ///< tiles of which the filter gradient adds up products at once
    panel_layout filters, turned;     ///< panels of out channels, and of in channels

    /// About a second-level cache full of 150 channels; and more than a thread's part of a group.
    static constexpr std::int64_t block_tiles = 48, group_tiles = 216;

    fast_plan(const convolution_geometry& g, int lanes) : filters{g.out_channels, lanes}, turned{g.in_channels, lanes} {
        const std::int64_t side = fast_outputs + g.kernel_width - 1;
        products = side * side;
        down = divide_up(g.out_height, fast_outputs);
        across = divide_up(g.out_width, fast_outputs);
        tiles = g.batch * down * across;
        // As many whole images as make about a block's tiles; of a larger image, parts of it.
        const std::int64_t each = down * across;
        images = std::max<std::int64_t>(1, (block_tiles + each / 2) / each);
        block = std::max(block_tiles, std::min(images * each, block_tiles * 3 / 2));
        blocks = divide_up(tiles, block_tiles);
        group = std::min(group_tiles, tiles);
        // Rows a multiple of four cache lines apart would share sets of a cache.
        in_row = row_of(g.in_channels, lanes);
        out_row = row_of(g.out_channels, lanes);
    }
    /// Floats of one product's filters, [panel][in channel][columns], a cache line and a half from a round number; and the other way
    /// round, [panel of in channels][out channel][columns].
    std::int64_t filter_stride() const { return filters.size(turned.n) + 48; }
    std::int64_t turned_stride() const { return turned.size(filters.n) + 48; }
    /// Floats of a block's transformed channels, [product][tile][row], and of a panel's results, [product][tile][columns].
    std::int64_t channel_block(std::int64_t row) const { return products * block * row; }
    std::int64_t result_block() const { return products * block * 2 * filters.lanes; }
    /// Floats of a group's transformed inputs and gradients, [product][panel][tile][columns].
    std::int64_t input_group() const { return products * group * in_row; }
    std::int64_t gradient_group() const { return products * group * filters.size(1); }

private:
    static std::int64_t row_of(std::int64_t channels, int lanes) {
        const std::int64_t row = panel_layout::padded(channels, lanes);
        return row % 64 == 0 ? row + lanes : row;
    }
};

/// Where the pixels of a tile lie: the first row and column in the image, and which image.
struct fast_tile {
    std::int64_t image, row, column;

    fast_tile(const fast_plan& plan, std::int64_t tile)
        : image(tile / (plan.down * plan.across)),
          row(tile / plan.across % plan.down * fast_outputs),
          column(tile % plan.across * fast_outputs) {}
};

} // namespace tapegraph::cpu::detail
