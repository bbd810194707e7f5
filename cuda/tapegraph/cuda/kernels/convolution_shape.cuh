#pragma once

#include <tapegraph/cuda/kernels/platform.cuh>
#include <tapegraph/ops/convolution/geometry.hpp>

/// A convolution's geometry in the integers that kernels compute with: converts indices to pixels
/// and taps, and finds which taps a range of pixels needs at all.

namespace tapegraph::cuda::kernels {

/// The position of a window, or of a pixel of x whose outputs are searched: its offset in memory,
/// row and column.
struct gathered_line {
    std::int64_t offset;
    int row, column;
};
/// The displacement of a tap from there.
struct gathered_step {
    int offset, row, column;
};
inline constexpr int far_outside = 1 << 30; ///< added to or subtracted from a position, it is outside every image

/// The image, row and column of a pixel.
struct pixel_place {
    int image, row, column;
};

/// The rows and columns that a run of pixels covers, inclusive.
struct pixel_range {
    int first_row, last_row, first_column, last_column;
};

/// The order of the pixels of a stack of images along a product's rows. By default image after
/// image; with `batch_innermost` the first pixels of all images, then the second ones, and so on. A
/// run of pixels then covers few positions of the image, and a tap that is outside is outside for
/// all of them.
struct pixel_order {
    int batch, height, width;
    bool batch_innermost;
    divisor by_inner, by_width;

    pixel_order(std::int64_t batch_, std::int64_t height_, std::int64_t width_, bool batch_innermost_)
        : batch(int(batch_)),
          height(int(height_)),
          width(int(width_)),
          batch_innermost(batch_innermost_),
          by_inner(unsigned(batch_innermost_ ? batch_ : height_ * width_)),
          by_width(unsigned(width_)) {}

    __host__ __device__ int count() const { return batch * height * width; }
    __host__ __device__ pixel_place at(int index) const {
        const std::uint32_t outer = by_inner.quotient(static_cast<std::uint32_t>(index));
        const std::uint32_t inner = by_inner.remainder(static_cast<std::uint32_t>(index), outer);
        const std::uint32_t pixel = batch_innermost ? outer : inner, row = by_width.quotient(pixel);
        return {static_cast<int>(batch_innermost ? inner : outer), static_cast<int>(row),
                static_cast<int>(by_width.remainder(pixel, row))};
    }
    /// The index of a pixel in memory.
    __host__ __device__ std::int64_t position(int index) const {
        if (!batch_innermost) return index;
        const std::uint32_t pixel = by_inner.quotient(static_cast<std::uint32_t>(index));
        const std::uint32_t image = by_inner.remainder(static_cast<std::uint32_t>(index), pixel);
        return static_cast<std::int64_t>(image) * height * width + pixel;
    }
    __host__ __device__ pixel_range range(int first, int last) const {
        const pixel_place a = at(first), b = at(last);
        if (!batch_innermost && a.image != b.image) return {0, height - 1, 0, width - 1};
        const bool one_row = a.row == b.row;
        return {a.row, b.row, one_row ? a.column : 0, one_row ? b.column : width - 1};
    }
};

/// Bit masks of the kernel rows and columns that are needed. Those from 32 on always are.
struct needed_taps {
    std::uint32_t rows = ~0u, columns = ~0u;

    __host__ __device__ bool all(int kernel_height, int kernel_width) const {
        const auto whole = [](int taps) { return taps >= 32 ? ~0u : (1u << taps) - 1; };
        return rows == whole(kernel_height) && columns == whole(kernel_width);
    }
    __host__ __device__ bool operator()(int u, int v) const {
        return (u >= 32 || (rows >> u & 1) != 0) && (v >= 32 || (columns >> v & 1) != 0);
    }
};

/// The geometry along one spatial axis, with extents `in` and `out`.
struct window_axis {
    int in, out, taps, stride, pad, dilation;
    divisor by_stride;

    window_axis(std::int64_t in_, std::int64_t out_, std::int64_t taps_, std::int64_t stride_, std::int64_t pad_,
                std::int64_t dilation_)
        : in(int(in_)),
          out(int(out_)),
          taps(int(taps_)),
          stride(int(stride_)),
          pad(int(pad_)),
          dilation(int(dilation_)),
          by_stride(unsigned(stride_)) {}

    /// The output whose window begins `way` after the begin of the padding, or -1 where the stride
    /// does not divide `way`.
    __host__ __device__ int output_of(int way) const {
        if (way < 0) return -1;
        const std::uint32_t i = by_stride.quotient(static_cast<std::uint32_t>(way));
        const bool hit = by_stride.remainder(static_cast<std::uint32_t>(way), i) == 0 && static_cast<int>(i) < out;
        return hit ? static_cast<int>(i) : -1;
    }
    /// The output that reads an input through a tap, or -1.
    __host__ __device__ int output_of(int input, int tap) const { return output_of(input + pad - tap * dilation); }
    /// Taps through which some output in [first, last] reads an input.
    __host__ __device__ std::uint32_t taps_of_outputs(int first, int last) const {
        std::uint32_t bits = 0;
        for (int u = 0; u < taps && u < 32; ++u) {
            const int low = first * stride - pad + u * dilation, high = last * stride - pad + u * dilation;
            if (high >= 0 && low < in) bits |= 1u << u;
        }
        return bits;
    }
    /// Taps through which some input in [first, last] is read by an output.
    __host__ __device__ std::uint32_t taps_of_inputs(int first, int last) const {
        std::uint32_t bits = 0;
        for (int u = 0; u < taps && u < 32; ++u) {
            const int low = first + pad - u * dilation, high = last + pad - u * dilation;
            if (high < 0) continue;
            // The first output at or after `low`: its window must begin within the range.
            const int i =
                low <= 0 ? 0 : static_cast<int>(by_stride.quotient(static_cast<std::uint32_t>(low + stride - 1)));
            if (i < out && i * stride <= high) bits |= 1u << u;
        }
        return bits;
    }
};

/// The (u, v, channel) of an index that counts taps, channels fastest.
struct tap_place {
    int u, v, channel;
};

struct convolution_shape {
    window_axis rows, columns;
    int in_channels, out_channels, group_in, group_out;
    pixel_order in_pixels, out_pixels;
    divisor by_group_in, by_group_out, by_kernel_width;

    explicit convolution_shape(const convolution_geometry& g, bool batch_innermost = false)
        : rows(g.in_height, g.out_height, g.kernel_height, g.stride_height, g.pad_top, g.dilation_height),
          columns(g.in_width, g.out_width, g.kernel_width, g.stride_width, g.pad_left, g.dilation_width),
          in_channels(int(g.in_channels)),
          out_channels(int(g.out_channels)),
          group_in(int(g.group_in())),
          group_out(int(g.group_out())),
          in_pixels(g.batch, g.in_height, g.in_width, batch_innermost),
          out_pixels(g.batch, g.out_height, g.out_width, batch_innermost),
          by_group_in(unsigned(group_in)),
          by_group_out(unsigned(group_out)),
          by_kernel_width(unsigned(g.kernel_width)) {}

    __host__ __device__ int taps() const { return rows.taps * columns.taps; }
    __host__ __device__ tap_place tap(int k, const divisor& by_channels) const {
        const std::uint32_t tap = by_channels.quotient(static_cast<std::uint32_t>(k));
        const std::uint32_t u = by_kernel_width.quotient(tap);
        return {static_cast<int>(u), static_cast<int>(by_kernel_width.remainder(tap, u)),
                static_cast<int>(by_channels.remainder(static_cast<std::uint32_t>(k), tap))};
    }
    /// Taps needed by output pixels [first, last] of a forward pass, and by input pixels [first,
    /// last] of an input gradient.
    __host__ __device__ needed_taps taps_of_outputs(int first, int last) const {
        const pixel_range r = out_pixels.range(first, last);
        return {rows.taps_of_outputs(r.first_row, r.last_row), columns.taps_of_outputs(r.first_column, r.last_column)};
    }
    __host__ __device__ needed_taps taps_of_inputs(int first, int last) const {
        const pixel_range r = in_pixels.range(first, last);
        return {rows.taps_of_inputs(r.first_row, r.last_row), columns.taps_of_inputs(r.first_column, r.last_column)};
    }
};

} // namespace tapegraph::cuda::kernels
