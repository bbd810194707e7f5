#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/cuda/ops/convolution/plan.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>

/// How TMA's im2col mode reads a pass of a convolution: the corners of its box, and the coordinates
/// and offsets that fetch the pixels of a tile for a tap and some channels. The device's kernel and
/// its tests on the CPU share this arithmetic.
///
/// The box contains the positions of a window's first tap for all outputs of an image. A fetch
/// begins at one of them and continues with the following ones, `stride` apart along a line, then
/// from the box's first column in the next line, then in the next image; the pixels that it
/// delivers lie `offset` further. Positions outside the image are delivered as zeros.
///
/// Where much of a window is padding, images come innermost: the columns of TMA's image are the
/// images, its rows the columns, its images the rows. The rows of a tile then are few positions of
/// many images, and taps that see only padding from there are left out.

namespace tapegraph::cuda {

/// Along one axis of the image. The box is [lower, in - 1 + upper].
struct im2col_axis {
    int in, out, taps, stride, dilation;
    int lower, upper;

    im2col_axis(std::int64_t in_, std::int64_t out_, std::int64_t taps_, std::int64_t stride_, std::int64_t pad,
                std::int64_t dilation_)
        : in(static_cast<int>(in_)),
          out(static_cast<int>(out_)),
          taps(static_cast<int>(taps_)),
          stride(static_cast<int>(stride_)),
          dilation(static_cast<int>(dilation_)),
          lower(static_cast<int>(-pad)),
          upper(static_cast<int>((out_ - 1) * stride_ - pad - (in_ - 1))) {}

    /// Whether the extents fit a descriptor with corners and offsets of so many bits.
    bool is_encodable(int bits) const {
        const int half = 1 << (bits - 1);
        return in > 0 && out > 0 && taps > 0 && stride >= 1 && stride <= 8 && lower >= -half && lower < half &&
               upper >= -half && upper < half && std::int64_t{taps - 1} * dilation < 2 * half;
    }
    bool is_one() const { return in == 1 && out == 1 && taps == 1 && lower == 0; }
    /// The position of the first tap of an output.
    TG_HD int place_of(int output) const { return lower + output * stride; }
    /// The part of all taps of all outputs that lies in the image.
    double part_in_image() const {
        return static_cast<double>(detail::meetings(in, out, taps, stride, -lower, dilation)) / taps / out;
    }
    /// The first tap that some output of [first, last] sees in the image, and the end of these taps.
    TG_HD int first_tap(int last) const {
        const int place = place_of(last);
        return place >= 0 ? 0 : (dilation - 1 - place) / dilation;
    }
    TG_HD int end_of_taps(int first) const {
        const int left = in - 1 - place_of(first), end = left < 0 ? 0 : left / dilation + 1;
        return end < taps ? end : taps;
    }
};

/// A pass as a forward pass. An input gradient of stride 1 convolves dy with the filter's taps in
/// reverse order. A filter gradient convolves x with dy, the one's channels taken for images, the
/// images for channels: dy's pixels are the taps, so strides and dilations change places.
struct im2col_convolution {
    im2col_axis rows, columns;
    int images, channels; ///< of the fetched images
    int results;          ///< channels of the results
    bool turned;          ///< taps are counted from the filter's last one
    bool flat;            ///< fetched by a map of three dimensions: filter gradients of images of height 1
    bool reorders;        ///< whether images may come innermost
    bool images_innermost;

    static constexpr int tile_rows = 256; ///< all tiles have so many rows, or a half

    im2col_convolution(const convolution_geometry& g, convolution_pass pass)
        : rows(axis(pass, g.in_height, g.out_height, g.kernel_height, g.stride_height, g.pad_top, g.dilation_height)),
          columns(axis(pass, g.in_width, g.out_width, g.kernel_width, g.stride_width, g.pad_left, g.dilation_width)),
          images(static_cast<int>(pass == convolution_pass::filter_gradient ? g.in_channels : g.batch)),
          channels(static_cast<int>(pass == convolution_pass::forward          ? g.in_channels
                                    : pass == convolution_pass::input_gradient ? g.out_channels
                                                                               : g.batch)),
          results(static_cast<int>(pass == convolution_pass::input_gradient ? g.in_channels : g.out_channels)),
          turned(pass == convolution_pass::input_gradient),
          flat(pass == convolution_pass::filter_gradient && rows.is_one()),
          reorders(pass != convolution_pass::filter_gradient),
          images_innermost(reorders && kept_taps() < 0.9) {}

    /// The same of so many images.
    im2col_convolution of_images(int count) const {
        im2col_convolution c = *this;
        c.images = count;
        c.images_innermost = reorders && c.kept_taps() < 0.9;
        return c;
    }
    /// The number of pixels that are fetched from, and the number of pixels of the results.
    std::int64_t sources() const { return std::int64_t{images} * rows.in * columns.in; }
    int pixels() const { return images * rows.out * columns.out; }
    int taps() const { return rows.taps * columns.taps; }
    /// The part of all taps that is computed with images innermost; 1 where they cannot be: a tile
    /// must not reach from one row of an image to the next, where TMA's coordinate would lie outside.
    double kept_taps() const {
        const std::int64_t line = std::int64_t{images} * columns.out;
        if (rows.stride != 1 || line <= 0 || line % tile_rows != 0) return 1;
        const double down = rows.part_in_image();
        if (down * columns.part_in_image() > 0.9) return 1; // tiles of one position each; not worth a closer look
        std::int64_t across = 0;
        for (std::int64_t at = 0; at < line; at += tile_rows)
            across += std::max(0, columns.end_of_taps(static_cast<int>(at / images)) -
                                      columns.first_tap(static_cast<int>((at + tile_rows - 1) / images)));
        return down * static_cast<double>(across * tile_rows) / static_cast<double>(columns.taps * line);
    }
    /// The images of which a line of the results is whole tiles.
    int fewest_innermost() const { return tile_rows / std::gcd(tile_rows, columns.out); }
    /// Whether the mode supports this pass; all counts must fit into 31 bits.
    static bool has(const convolution_geometry& g, convolution_pass pass) {
        const auto counted = [&](std::int64_t height, std::int64_t width, std::int64_t channels) {
            return height > 0 && width > 0 && channels > 0 && height <= detail::most_counted &&
                   width <= detail::most_counted && channels <= detail::most_counted &&
                   g.batch <= detail::most_counted / height / width / channels;
        };
        if (g.groups != 1 || g.batch < 1) return false;
        if (pass == convolution_pass::input_gradient && (g.stride_height != 1 || g.stride_width != 1)) return false;
        if (!counted(g.in_height, g.in_width, g.in_channels) || !counted(g.out_height, g.out_width, g.out_channels) ||
            g.kernel_height > 256 || g.kernel_width > 256 || g.dilation_height > 255 || g.dilation_width > 255)
            return false;
        const im2col_convolution c(g, pass);
        return c.rows.is_encodable(8) && c.columns.is_encodable(c.flat ? 16 : 8) &&
               std::int64_t{c.taps()} * c.channels <= detail::most_counted / c.results &&
               std::int64_t{c.images} * c.rows.out * c.columns.out <= detail::most_counted / c.results;
    }

private:
    static im2col_axis axis(convolution_pass pass, std::int64_t in, std::int64_t out, std::int64_t taps,
                            std::int64_t stride, std::int64_t pad, std::int64_t dilation) {
        switch (pass) {
        case convolution_pass::input_gradient: return {out, in, taps, 1, (taps - 1) * dilation - pad, dilation};
        case convolution_pass::filter_gradient: return {in, taps, out, dilation, pad, stride};
        default: return {in, out, taps, stride, pad, dilation};
        }
    }
};

/// Where a fetch begins, and the offset of a tap's pixels from there.
struct im2col_start {
    int column, row, image;
};
struct im2col_fetch {
    int channel, offset_column, offset_row, offset_image;
    int filter_tap; ///< index of the tap in the filter's memory
};
/// The taps of a tile: `down` by `across` of them, from (row, column) on.
struct im2col_taps {
    int row, column, down, across;
};

/// The fetches of a kernel, step by step along k: taps, and within each tap `depth` channels at a
/// time.
struct im2col_walk {
    im2col_axis rows, columns;
    int steps_of_tap, depth, last_tap;
    bool turned;
    int innermost; ///< images, where they are innermost; or 0

    im2col_walk(const im2col_convolution& c, int depth_)
        : rows(c.rows),
          columns(c.columns),
          steps_of_tap((c.channels + depth_ - 1) / depth_),
          depth(depth_),
          last_tap(c.taps() - 1),
          turned(c.turned),
          innermost(c.images_innermost ? c.images : 0) {}

    /// The steps of all taps.
    TG_HD int steps() const { return (last_tap + 1) * steps_of_tap; }
    /// The taps of the tile of `count` rows from this one on: at least one. Kernels of images innermost
    /// have their own arithmetic, because the others would wait for its divisions.
    template <bool Innermost>
    TG_HD im2col_taps taps_of([[maybe_unused]] int row, [[maybe_unused]] int count) const {
        if constexpr (Innermost) {
            const int first = row / innermost, last = (row + count - 1) / innermost, line = first / columns.out;
            const int begin = columns.first_tap(last - line * columns.out), i = rows.first_tap(line);
            const int across = columns.end_of_taps(first - line * columns.out) - begin,
                      down = rows.end_of_taps(line) - i;
            if (across <= 0 || down <= 0) return {0, 0, 1, 1}; // only padding
            return {i, begin, down, across};
        } else {
            return {0, 0, rows.taps, columns.taps};
        }
    }
    /// The start of the tile with this first row.
    template <bool Innermost>
    TG_HD im2col_start start(int row) const {
        const int across = Innermost ? row / innermost : row, line = across / columns.out;
        const int column = columns.place_of(across - line * columns.out);
        if constexpr (Innermost)
            return {row - across * innermost, column, rows.place_of(line)};
        else
            return {column, rows.place_of(line % rows.out), line / rows.out};
    }
    template <bool Innermost>
    TG_HD im2col_fetch fetch([[maybe_unused]] const im2col_taps& taps, int tap, int step_of_tap) const {
        const int across = Innermost ? taps.across : columns.taps, down = tap / across, right = tap - down * across;
        const int channel = step_of_tap * depth;
        if constexpr (Innermost) {
            const int u = taps.row + down, v = taps.column + right, index = u * columns.taps + v;
            return {channel, 0, v * columns.dilation, u * rows.dilation, turned ? last_tap - index : index};
        } else {
            return {channel, right * columns.dilation, down * rows.dilation, 0, turned ? last_tap - tap : tap};
        }
    }
    /// The pixel of the results that a row of the product is.
    template <bool Innermost>
    TG_HD int pixel_of(int row) const {
        if constexpr (!Innermost) return row;
        const int place = row / innermost;
        return (row - place * innermost) * (rows.out * columns.out) + place;
    }
};

} // namespace tapegraph::cuda
