#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/cpu/gemm_kernel.hpp>
#include <tapegraph/cpu/tasks.hpp>
#include <tapegraph/ops/convolution/geometry.hpp>
#include <tapegraph/runtime/continuation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

/// Shared by the three passes of a convolution: the geometry and padded copies of an image.

namespace tapegraph::cpu {

using tapegraph::convolution_geometry;

enum class convolution_pass { forward, input_gradient, filter_gradient };

/// The epilogue of y after the sum: + bias[out_channels], then max(0, .), then any elementwise kernel.
template <class T>
struct convolution_epilogue {
    const T* bias = nullptr;
    bool relu = false;
    runtime::continuation* next = nullptr;
};

namespace detail {

inline double multiply_adds(const convolution_geometry& g) {
    return static_cast<double>(g.batch * g.out_height * g.out_width) *
           static_cast<double>(g.out_channels * g.kernel_height * g.kernel_width * g.group_in());
}

/// Part of one image: rows and columns of height by width pixels, counted from (row, column), which may lie outside.
struct image_window {
    std::int64_t row, column, height, width;

    bool inside(std::int64_t image_height, std::int64_t image_width) const {
        return row >= 0 && column >= 0 && row + height <= image_height && column + width <= image_width;
    }
};

/// to[height, width, channels] = the window of an image, zero outside.
template <class T>
void copy_window(T* to, const T* image, std::int64_t image_height, std::int64_t image_width, std::int64_t channels,
                 const image_window& window) {
    const std::int64_t left = std::clamp<std::int64_t>(-window.column, 0, window.width);
    const std::int64_t right = std::clamp<std::int64_t>(image_width - window.column, left, window.width);
    for (std::int64_t i = 0; i < window.height; ++i, to += window.width * channels) {
        const std::int64_t row = window.row + i;
        if (row < 0 || row >= image_height) {
            std::fill_n(to, window.width * channels, T(0));
            continue;
        }
        std::fill_n(to, left * channels, T(0));
        std::copy_n(image + (row * image_width + window.column + left) * channels, (right - left) * channels,
                    to + left * channels);
        std::fill_n(to + right * channels, (window.width - right) * channels, T(0));
    }
}

} // namespace detail
} // namespace tapegraph::cpu
