#pragma once

#include <cuda/device_array.hpp>

#include <tapegraph/ops/convolution/geometry.hpp>

#include <cmath>
#include <vector>

/// Shared by tests of convolutions on a device: geometries, inputs, and the sums written out.
/// Inputs are small integers, so that every sum is exact in float and the comparison is equality:
/// an indexing mistake cannot hide behind a tolerance.

namespace convolution_testing {

namespace tg = tapegraph;
using namespace on_device;

inline tg::convolution_geometry geometry(int batch, int height, int width, int in, int kh, int kw, int out,
                                         int stride_h = 1, int stride_w = 1, int top = 0, int left = 0, int bottom = 0,
                                         int right = 0, int dilation_h = 1, int dilation_w = 1, int groups = 1) {
    tg::convolution_geometry g{};
    g.batch = batch, g.in_height = height, g.in_width = width, g.in_channels = in;
    g.kernel_height = kh, g.kernel_width = kw, g.out_channels = out;
    g.stride_height = stride_h, g.stride_width = stride_w, g.pad_top = top, g.pad_left = left;
    g.dilation_height = dilation_h, g.dilation_width = dilation_w, g.groups = groups;
    g.out_height = (height + top + bottom - g.span_height()) / stride_h + 1;
    g.out_width = (width + left + right - g.span_width()) / stride_w + 1;
    return g;
}

// The cases that the CUTLASS tests call awkward: one pixel, filters larger than the image, even
// filters, padding beyond the stride, mixed strides and dilations, fewer channels than a tile and
// no multiple of it, groups, 1-D.
inline const tg::convolution_geometry geometries[]{
    geometry(1, 1, 1, 1, 1, 1, 1),
    geometry(2, 6, 5, 3, 3, 3, 7),
    geometry(1, 3, 3, 2, 5, 5, 4, 1, 1, 2, 2, 2, 2),
    geometry(2, 7, 6, 5, 2, 3, 9, 1, 2, 1, 0, 0, 1),
    geometry(1, 9, 11, 3, 3, 3, 5, 3, 2, 1, 2, 2, 1),
    geometry(1, 11, 9, 4, 3, 2, 6, 2, 3, 2, 1, 2, 1, 2, 3),
    geometry(2, 5, 5, 6, 3, 3, 9, 1, 1, 1, 1, 1, 1, 1, 1, 3),
    geometry(3, 4, 4, 6, 3, 3, 6, 2, 2, 1, 1, 1, 1, 1, 1, 6),
    geometry(2, 1, 37, 5, 1, 8, 33, 1, 4, 0, 2, 0, 2),
    geometry(1, 6, 6, 33, 1, 1, 65),
    geometry(1, 8, 8, 17, 3, 3, 35, 1, 1, 1, 1, 1, 1),
};

/// Calls f(x index, w index, y index) for every product of the convolution.
template <class F>
void for_each_product(const tg::convolution_geometry& g, const F& f) {
    for (std::int64_t b = 0; b < g.batch; ++b)
        for (std::int64_t i = 0; i < g.out_height; ++i)
            for (std::int64_t j = 0; j < g.out_width; ++j)
                for (std::int64_t o = 0; o < g.out_channels; ++o)
                    for (std::int64_t u = 0; u < g.kernel_height; ++u)
                        for (std::int64_t v = 0; v < g.kernel_width; ++v)
                            for (std::int64_t c = 0; c < g.group_in(); ++c) {
                                const std::int64_t row = i * g.stride_height - g.pad_top + u * g.dilation_height;
                                const std::int64_t column = j * g.stride_width - g.pad_left + v * g.dilation_width;
                                if (row < 0 || row >= g.in_height || column < 0 || column >= g.in_width) continue;
                                const std::int64_t channel = o / g.group_out() * g.group_in() + c;
                                f(((b * g.in_height + row) * g.in_width + column) * g.in_channels + channel,
                                  ((u * g.kernel_width + v) * g.group_in() + c) * g.out_channels + o,
                                  ((b * g.out_height + i) * g.out_width + j) * g.out_channels + o);
                            }
}

struct sizes {
    std::int64_t x, w, y;
    explicit sizes(const tg::convolution_geometry& g)
        : x(g.batch * g.in_height * g.in_width * g.in_channels),
          w(g.kernel_height * g.kernel_width * g.group_in() * g.out_channels),
          y(g.batch * g.out_height * g.out_width * g.out_channels) {}
};

/// y, dx and dw, written out.
template <class T>
struct expected {
    std::vector<T> x, w, dy, bias, y, activated, dx, dw;
    explicit expected(const tg::convolution_geometry& g) {
        const sizes n(g);
        x = whole_numbers<T>(n.x, 1), w = whole_numbers<T>(n.w, 2), dy = whole_numbers<T>(n.y, 3);
        bias = whole_numbers<T>(g.out_channels, 4);
        y.resize(dy.size()), dx.resize(x.size()), dw.resize(w.size());
        for_each_product(g, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
            const auto a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(j),
                       c = static_cast<std::size_t>(k);
            y[c] += x[a] * w[b], dx[a] += dy[c] * w[b], dw[b] += dy[c] * x[a];
        });
        activated = y;
        for (std::size_t i = 0; i < y.size(); ++i)
            activated[i] = std::max(T(0), y[i] + bias[i % static_cast<std::size_t>(g.out_channels)]);
    }
};

} // namespace convolution_testing
