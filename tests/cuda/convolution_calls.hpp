#pragma once

#include <cuda/calls.hpp>

#include <cuda/convolution_reference.hpp>
#include <tapegraph/ops/convolution/convolution.hpp>

/// Builds calls of convolution operations: attributes, shapes and integral values.

namespace tapegraph::testing {

inline window_attributes attributes_of(const convolution_geometry& g) {
    window_attributes a;
    a.stride[0] = g.stride_height, a.stride[1] = g.stride_width;
    a.dilation[0] = g.dilation_height, a.dilation[1] = g.dilation_width;
    a.mode = static_cast<std::int64_t>(padding_mode::explicit_amounts);
    a.before[0] = g.pad_top, a.before[1] = g.pad_left, a.groups = g.groups;
    a.algorithm = static_cast<std::int64_t>(g.algorithm);
    // The padding after the image that the output's size requires.
    a.after[0] = (g.out_height - 1) * g.stride_height + g.span_height() - g.in_height - g.pad_top;
    a.after[1] = (g.out_width - 1) * g.stride_width + g.span_width() - g.in_width - g.pad_left;
    return a;
}
inline extents image(const convolution_geometry& g) { return {g.batch, g.in_height, g.in_width, g.in_channels}; }
inline extents filter(const convolution_geometry& g) {
    return {g.kernel_height, g.kernel_width, g.group_in(), g.out_channels};
}
inline extents convolved(const convolution_geometry& g) { return {g.batch, g.out_height, g.out_width, g.out_channels}; }
inline extents pooled(const convolution_geometry& g) {
    return {g.batch, g.out_height / 2, g.out_width / 2, g.out_channels};
}

template <class T>
argument whole(const extents& e, std::uint32_t seed) {
    return filled<T>(e, [&](std::int64_t i) { return static_cast<int>(scattered(i, 7, seed)) - 3; });
}

} // namespace tapegraph::testing
