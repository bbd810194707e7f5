#pragma once

#include <tapegraph/ops/convolution/cpu_tiling.hpp>

#include <numeric>

/// Depthwise convolutions (one input and one output channel per group). There are no matrices to
/// multiply, so lanes are channels, and every pass is a sum of elementwise products over a grid of
/// two strides,
///   out[c] (+)= sum over i, j of a[i, j, c] * b[i, j, c].

namespace tapegraph::cpu::detail {

inline bool is_depthwise(const convolution_geometry& g) {
    return g.groups > 1 && g.group_in() == 1 && g.group_out() == 1;
}

inline std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

/// The positions along one axis that contribute: `count` of them, a at first_a + t * step_a, b at
/// first_b + t * step_b.
struct depthwise_axis {
    std::int64_t count, first_a, step_a, first_b, step_b;
};

// Forward, output i: a is x at i * stride - pad + u * dilation, b is w at u.
inline depthwise_axis forward_axis(std::int64_t i, std::int64_t in, std::int64_t kernel, std::int64_t stride,
                                   std::int64_t pad, std::int64_t dilation) {
    const std::int64_t at = i * stride - pad;
    const std::int64_t first = std::max<std::int64_t>(0, -floor_divide(at, dilation));
    const std::int64_t last = std::min(kernel - 1, floor_divide(in - 1 - at, dilation));
    return {last - first + 1, at + first * dilation, dilation, first, 1};
}

// Input gradient, input i: a is dy at (i + pad - u * dilation) / stride where that divides, b is w at u.
inline depthwise_axis input_axis(std::int64_t i, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                                 std::int64_t pad, std::int64_t dilation) {
    const std::int64_t common = std::gcd(stride, dilation), step = stride / common, back = dilation / common;
    std::int64_t u = 0;
    while (u < step && (i + pad - u * dilation) % stride != 0) ++u;
    if (u >= step || u >= kernel) return {0, 0, 0, 0, 0};
    std::int64_t at = floor_divide(i + pad - u * dilation, stride);
    const std::int64_t skip = at >= out ? divide_up(at - out + 1, back) : 0;
    u += skip * step;
    at -= skip * back;
    if (at < 0 || u >= kernel) return {0, 0, 0, 0, 0};
    return {std::min((kernel - u + step - 1) / step, at / back + 1), at, -back, u, step};
}

// Filter gradient, kernel position u: a is x at i * stride - pad + u * dilation, b is dy at i.
inline depthwise_axis filter_axis(std::int64_t u, std::int64_t in, std::int64_t out, std::int64_t stride,
                                  std::int64_t pad, std::int64_t dilation) {
    const std::int64_t at = u * dilation - pad;
    const std::int64_t first = std::max<std::int64_t>(0, -floor_divide(at, stride));
    const std::int64_t last = std::min(out - 1, floor_divide(in - 1 - at, stride));
    return {last - first + 1, at + first * stride, stride, first, 1};
}

template <class T>
struct depthwise_body {
    template <class Isa>
    TG_INLINE static void run(const depthwise_axis& rows, const depthwise_axis& columns, const T* a, std::int64_t a_row,
                              const T* b, std::int64_t b_row, std::int64_t pixel, T* out, std::int64_t channels,
                              bool accumulate) {
        using v = vector<T, Isa::vector_bytes>;
        for (std::int64_t c = 0; c < channels; c += v::lanes) {
            const int lanes = static_cast<int>(std::min<std::int64_t>(v::lanes, channels - c));
            typename v::type sum = {}, x, y;
            if (accumulate) load(sum, out + c, lanes);
            for (std::int64_t i = 0; i < rows.count; ++i) {
                const T* p = a + (rows.first_a + i * rows.step_a) * a_row + columns.first_a * pixel + c;
                const T* q = b + (rows.first_b + i * rows.step_b) * b_row + columns.first_b * pixel + c;
                for (std::int64_t j = 0; j < columns.count; ++j) {
                    load(x, p, lanes);
                    load(y, q, lanes);
                    sum += x * y;
                    p += columns.step_a * pixel;
                    q += columns.step_b * pixel;
                }
            }
            if (lanes == v::lanes)
                v::store(out + c, sum);
            else
                v::store_first(out + c, sum, lanes);
        }
    }

private:
    template <class V>
    TG_INLINE static void load(V& value, const T* p, int lanes) {
        using v = vector<T, static_cast<int>(sizeof(V))>;
        if (lanes == v::lanes)
            v::load(value, p);
        else
            v::load_first(value, p, lanes);
    }
};

template <class T>
void depthwise_forward(const convolution_geometry& g, const T* x, const T* w, T* y,
                       const convolution_epilogue<T>& epilogue, bool parallel) {
    const std::int64_t channels = g.out_channels;
    for_tasks(g.batch * g.out_height, parallel, [&](std::int64_t task, int) {
        const T* image = x + task / g.out_height * g.in_height * g.in_width * channels;
        const depthwise_axis rows = forward_axis(task % g.out_height, g.in_height, g.kernel_height, g.stride_height,
                                                 g.pad_top, g.dilation_height);
        for (std::int64_t j = 0; j < g.out_width; ++j) {
            T* to = y + (task * g.out_width + j) * channels;
            dispatch<depthwise_body<T>>(
                rows, forward_axis(j, g.in_width, g.kernel_width, g.stride_width, g.pad_left, g.dilation_width), image,
                g.in_width * channels, w, g.kernel_width * channels, channels, to, channels, false);
            if (epilogue.bias != nullptr)
                for (std::int64_t c = 0; c < channels; ++c) to[c] += epilogue.bias[c];
            if (epilogue.relu)
                for (std::int64_t c = 0; c < channels; ++c) to[c] = to[c] <= T(0) ? T(0) : to[c];
        }
    });
}

template <class T>
void depthwise_input_gradient(const convolution_geometry& g, const T* dy, const T* w, T* dx, bool parallel) {
    const std::int64_t channels = g.in_channels;
    for_tasks(g.batch * g.in_height, parallel, [&](std::int64_t task, int) {
        const T* image = dy + task / g.in_height * g.out_height * g.out_width * channels;
        const depthwise_axis rows = input_axis(task % g.in_height, g.out_height, g.kernel_height, g.stride_height,
                                               g.pad_top, g.dilation_height);
        for (std::int64_t j = 0; j < g.in_width; ++j)
            dispatch<depthwise_body<T>>(
                rows, input_axis(j, g.out_width, g.kernel_width, g.stride_width, g.pad_left, g.dilation_width), image,
                g.out_width * channels, w, g.kernel_width * channels, channels,
                dx + (task * g.in_width + j) * channels, channels, false);
    });
}

template <class T>
void depthwise_filter_gradient(const convolution_geometry& g, const T* x, const T* dy, T* dw, bool parallel) {
    const std::int64_t channels = g.in_channels;
    // A task is one kernel position and a few cache lines of channels.
    const std::int64_t strip = 64;
    const std::int64_t strips = divide_up(channels, strip);
    for_tasks(g.kernel_height * g.kernel_width * strips, parallel, [&](std::int64_t task, int) {
        const std::int64_t c = task % strips * strip, position = task / strips;
        const depthwise_axis rows = filter_axis(position / g.kernel_width, g.in_height, g.out_height, g.stride_height,
                                                g.pad_top, g.dilation_height);
        const depthwise_axis columns = filter_axis(position % g.kernel_width, g.in_width, g.out_width, g.stride_width,
                                                   g.pad_left, g.dilation_width);
        for (std::int64_t image = 0; image < g.batch; ++image)
            dispatch<depthwise_body<T>>(rows, columns, x + image * g.in_height * g.in_width * channels + c,
                                        g.in_width * channels, dy + image * g.out_height * g.out_width * channels + c,
                                        g.out_width * channels, channels, dw + position * channels + c,
                                        std::min(strip, channels - c), image > 0);
    });
}

} // namespace tapegraph::cpu::detail
