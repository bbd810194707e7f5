#pragma once

#include <tapegraph/core/convolution_algorithm.hpp>

#include <cstdint>

namespace tapegraph {

/// x [batch, in_height, in_width, in_channels], w [kernel_height, kernel_width, in_channels /
/// groups, out_channels], y [batch, out_height, out_width, out_channels]:
///   y[b, i, j, o] = sum over u, v, c of
///       x[b, i * stride_height - pad_top + u * dilation_height, ..., c] * w[u, v, c, o]
/// where x is zero outside. The output's size determines the padding at the bottom and right. A 1-D
/// convolution has height 1. Group g reads channels [g, g + 1) * in_channels / groups and writes
/// the same share of out_channels.
struct convolution_geometry {
    std::int64_t batch, in_height, in_width, in_channels;
    std::int64_t kernel_height, kernel_width;
    std::int64_t out_height, out_width, out_channels;
    std::int64_t stride_height = 1, stride_width = 1;
    std::int64_t pad_top = 0, pad_left = 0;
    std::int64_t dilation_height = 1, dilation_width = 1;
    std::int64_t groups = 1;
    convolution_algorithm algorithm = convolution_algorithm::automatic; ///< the requested one

    /// Input channels of a group.
    std::int64_t group_in() const { return in_channels / groups; }
    /// Output channels of a group.
    std::int64_t group_out() const { return out_channels / groups; }
    /// The extent from the first input a kernel covers to one past the last.
    std::int64_t span_height() const { return (kernel_height - 1) * dilation_height + 1; }
    /// The same along a row.
    std::int64_t span_width() const { return (kernel_width - 1) * dilation_width + 1; }
    /// Whether (kernel column, channel) is contiguous in memory, so that a kernel row is one run.
    bool row_is_contiguous() const { return groups == 1 && (dilation_width == 1 || kernel_width == 1); }
};

} // namespace tapegraph
