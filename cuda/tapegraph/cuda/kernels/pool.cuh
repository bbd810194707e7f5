#pragma once

#include <tapegraph/cuda/kernels/box.cuh>

#include <cstdint>
#include <limits>

/// Maximum and average pooling of images [batch, height, width, channels]. Memory plan: a thread per element of the result,
/// channels fastest, so that neighbours read and write side by side; a window's elements come through the caches. No shared
/// memory. Gradients are gathered: an element of the image collects its windows in row-major order, as the CPU adds them, so
/// the bits agree and nothing is added atomically.

namespace tapegraph::cuda::kernels {

/// Windows as in ops/pooling/cpu.hpp, in the integers a kernel computes with.
struct pool_shape {
    int in_height, in_width, channels, out_height, out_width;
    int window_height, window_width, stride_height, stride_width, pad_top, pad_left, dilation_height, dilation_width;
    bool overlapping;   ///< an element may be in several windows: then its gradient is a sum that begins with 0
    bool whole_count;   ///< averages divide by window_height * window_width, padding and all
    std::int64_t first; ///< the first row, of all images together, of a launch
    std::uint32_t elements;
    divisor by_row, by_channels, by_height;
};

/// Where a thread's element is.
struct pool_place {
    std::int64_t image;
    int row, column, channel;
};
__device__ inline pool_place place_in(const pool_shape& g, std::uint32_t element) {
    const std::uint32_t line = g.by_row.quotient(element), rest = g.by_row.remainder(element, line);
    const std::uint32_t column = g.by_channels.quotient(rest);
    const auto row = static_cast<std::uint32_t>(g.first + line), image = g.by_height.quotient(row);
    return {image, static_cast<int>(g.by_height.remainder(row, image)), static_cast<int>(column),
            static_cast<int>(g.by_channels.remainder(rest, column))};
}

/// The elements of an axis of a window that lie inside the image: first, first + step, ..., below end.
struct pool_range {
    int first, end;

    __device__ pool_range(int at, int taps, int step, int size)
        : first(at >= 0 ? at : at + (-at + step - 1) / step * step),
          end(at + (taps - 1) * step + 1 < size ? at + (taps - 1) * step + 1 : size) {}
    __device__ int count(int step) const { return end > first ? (end - first + step - 1) / step : 0; }
};
struct pool_window {
    pool_range rows, columns;

    __device__ pool_window(const pool_shape& g, int oy, int ox)
        : rows(oy * g.stride_height - g.pad_top, g.window_height, g.dilation_height, g.in_height),
          columns(ox * g.stride_width - g.pad_left, g.window_width, g.dilation_width, g.in_width) {}
    /// What an average divides by.
    template <class T>
    __device__ T scale(const pool_shape& g) const {
        const int count = g.whole_count ? g.window_height * g.window_width
                                        : rows.count(g.dilation_height) * columns.count(g.dilation_width);
        return static_cast<T>(count > 0 ? count : 1);
    }
    /// Calls f(offset in the image) in row-major order until it says that it has seen enough.
    template <class F>
    __device__ void each(const pool_shape& g, int channel, const F& f) const {
        for (int row = rows.first; row < rows.end; row += g.dilation_height)
            for (int column = columns.first; column < columns.end; column += g.dilation_width)
                if (f((static_cast<std::int64_t>(row) * g.in_width + column) * g.channels + channel)) return;
    }
};

__device__ inline std::int64_t in_elements(const pool_shape& g) {
    return static_cast<std::int64_t>(g.in_height) * g.in_width * g.channels;
}
__device__ inline std::int64_t out_place(const pool_shape& g, std::int64_t image, int row, int column, int channel) {
    return ((image * g.out_height + row) * g.out_width + column) * g.channels + channel;
}

/// A window's maximum is `pooled`: the first element that equals it, or the first NaN, is where it comes from.
template <class T>
__device__ bool is_maximum(T value, T pooled) {
    return value == pooled || value != value;
}

template <bool Maximum, class T>
__global__ void pool_forward(pool_shape g, const T* x, T* y) {
    if (thread_number() >= g.elements) return;
    const pool_place p = place_in(g, thread_number());
    const pool_window window(g, p.row, p.column);
    x += p.image * in_elements(g);
    T state = Maximum ? -std::numeric_limits<T>::infinity() : T(0);
    window.each(g, p.channel, [&](std::int64_t at) {
        const T value = x[at];
        if constexpr (Maximum)
            state = (state > value || state != state) ? state : value;
        else
            state += value;
        return false;
    });
    y[out_place(g, p.image, p.row, p.column, p.channel)] = Maximum ? state : state / window.template scale<T>(g);
}

/// out[window] = ddx at the window's first maximum.
template <class T>
__global__ void pool_select(pool_shape g, const T* ddx, const T* x, const T* y, T* out) {
    if (thread_number() >= g.elements) return;
    const pool_place p = place_in(g, thread_number());
    const std::int64_t pixel = out_place(g, p.image, p.row, p.column, p.channel);
    const T pooled = y[pixel];
    x += p.image * in_elements(g), ddx += p.image * in_elements(g);
    T taken(0);
    pool_window(g, p.row, p.column).each(g, p.channel, [&](std::int64_t at) {
        const bool found = is_maximum(x[at], pooled);
        if (found) taken = ddx[at];
        return found;
    });
    out[pixel] = taken;
}

/// Along one axis the windows that hold element `at`: last, last - step, ..., not below first. Not every one of them if windows
/// are dilated.
struct windows_around {
    int first, last;

    __device__ windows_around(int at, int pad, int taps, int dilation, int stride, int windows) {
        const int low = at + pad - (taps - 1) * dilation, high = at + pad;
        first = low <= 0 ? 0 : (low + stride - 1) / stride;
        last = high / stride < windows - 1 ? high / stride : windows - 1;
    }
};

/// dx from dy; x and y are of the forward pass, and not used by averages.
template <bool Maximum, class T>
__global__ void pool_gradient(pool_shape g, const T* dy, const T* x, const T* y, T* dx) {
    if (thread_number() >= g.elements) return;
    const pool_place p = place_in(g, thread_number());
    const std::int64_t image = p.image * in_elements(g);
    const std::int64_t own = (static_cast<std::int64_t>(p.row) * g.in_width + p.column) * g.channels + p.channel;
    T value(0), sum(0);
    if constexpr (Maximum) value = x[image + own];
    const windows_around rows(p.row, g.pad_top, g.window_height, g.dilation_height, g.stride_height, g.out_height);
    const windows_around columns(p.column, g.pad_left, g.window_width, g.dilation_width, g.stride_width, g.out_width);
    for (int oy = rows.first; oy <= rows.last; ++oy) {
        if ((p.row + g.pad_top - oy * g.stride_height) % g.dilation_height != 0) continue;
        for (int ox = columns.first; ox <= columns.last; ++ox) {
            if ((p.column + g.pad_left - ox * g.stride_width) % g.dilation_width != 0) continue;
            const std::int64_t pixel = out_place(g, p.image, oy, ox, p.channel);
            const pool_window window(g, oy, ox);
            T share(0);
            if constexpr (Maximum) {
                const T pooled = y[pixel];
                bool first = is_maximum(value, pooled);
                if (first)
                    window.each(g, p.channel, [&](std::int64_t at) {
                        if (at == own) return true;
                        first = !is_maximum(x[image + at], pooled);
                        return !first;
                    });
                if (first) share = dy[pixel];
            } else {
                share = dy[pixel] / window.template scale<T>(g);
            }
            sum = g.overlapping ? sum + share : share;
        }
    }
    dx[image + own] = sum;
}

} // namespace tapegraph::cuda::kernels
