#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/ops/convolution/convolution.hpp>
#include <tapegraph/ops/convolution/geometry.hpp>

/// Derives the geometry of a convolution from a kernel's call, for the CPU's and a device's kernels
/// alike.

namespace tapegraph::runtime {

/// The geometry for the image, the filters and the output. Rank 3 (NWC) means height 1.
inline convolution_geometry geometry(const window_attributes& a, const buffer_view& x, const buffer_view& w,
                                     const buffer_view& y) {
    const bool flat = x.rank == 3;
    convolution_geometry g{};
    g.batch = x.extents[0];
    g.in_height = flat ? 1 : x.extents[1];
    g.in_width = x.extents[x.rank - 2];
    g.in_channels = x.extents[x.rank - 1];
    g.kernel_height = flat ? 1 : w.extents[0];
    g.kernel_width = w.extents[w.rank - 3];
    g.out_height = flat ? 1 : y.extents[1];
    g.out_width = y.extents[y.rank - 2];
    g.out_channels = y.extents[y.rank - 1];
    g.stride_height = flat ? 1 : a.stride[0];
    g.stride_width = a.stride[1];
    g.dilation_height = flat ? 1 : a.dilation[0];
    g.dilation_width = a.dilation[1];
    g.pad_top = flat ? 0 : a.leading(0, g.in_height, g.out_height, g.kernel_height);
    g.pad_left = a.leading(1, g.in_width, g.out_width, g.kernel_width);
    g.groups = a.groups;
    g.algorithm = static_cast<convolution_algorithm>(a.algorithm);
    return g;
}

/// The geometry of a call of convolution_op (x, w -> y), convolution_bias_op, which has the same
/// first operands, convolution_input_gradient_op (dy, w -> dx) and convolution_filter_gradient_op
/// (x, dy -> dw).
template <class Op>
convolution_geometry geometry_of(const kernel_call& c) {
    const auto a = attributes_from_words<convolution_op>(c.attributes);
    if constexpr (std::is_same_v<Op, convolution_input_gradient_op>)
        return geometry(a, c.out[0], c.in[1], c.in[0]);
    else if constexpr (std::is_same_v<Op, convolution_filter_gradient_op>)
        return geometry(a, c.in[0], c.out[0], c.in[1]);
    else
        return geometry(a, c.in[0], c.in[1], c.out[0]);
}

/// The geometry of the convolution in a convolution_bias_pool_op, before its outputs are pooled.
inline convolution_geometry unpooled_geometry(const kernel_call& c) {
    const auto a = attributes_from_words<convolution_op>(c.attributes);
    const buffer_view &x = c.in[0], &w = c.in[1];
    buffer_view y = c.out[0];
    for (int i = 0; i < 2; ++i) y.extents[i + 1] = a.output(i, x.extents[i + 1], w.extents[i]).value;
    return geometry(a, x, w, y);
}
/// The same geometry without a last row or column that no window of 2 by 2 covers.
inline convolution_geometry pooled_geometry(const kernel_call& c) {
    convolution_geometry g = unpooled_geometry(c);
    g.out_height = 2 * c.out[0].extents[1];
    g.out_width = 2 * c.out[0].extents[2];
    return g;
}

} // namespace tapegraph::runtime
