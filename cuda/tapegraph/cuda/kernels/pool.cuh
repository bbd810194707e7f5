#pragma once

#include <tapegraph/cuda/kernels/box.cuh>

#include <cstdint>
#include <limits>

/// Maximum and average pooling of images [batch, height, width, channels]. No shared memory, no
/// atomic additions, and results have the CPU's bits. Memory plan:
///
///   pool_forward         A thread per window and vector of channels, which are fastest, so that
///                        neighbours read and write neighbouring memory. Where windows do not
///                        overlap everything is read once, in words of up to 16 bytes; elements of
///                        several windows come from the caches.
///   pool_gradient_apart  For small windows that do not overlap: a thread per window and vector of
///                        channels, as above. It reads the window's elements, y and dy once, and
///                        writes all of dx from its window to the next, with zeros where there is
///                        no window: every byte is transferred once.
///   pool_gradient        For all others: a thread per element of the image, which collects its
///                        windows in row-major order, as the CPU adds them; what it reads of them
///                        comes from the caches.
///   pool_select          A thread per window and channel.

namespace tapegraph::cuda::kernels {

/// The windows of ops/pooling/cpu.hpp, in the integers that a kernel computes with.
struct pool_shape {
    int in_height, in_width, channels, out_height, out_width;
    int window_height, window_width, stride_height, stride_width, pad_top, pad_left, dilation_height, dilation_width;
    bool overlapping;   ///< an element may be in several windows; its gradient is then a sum that begins with 0
    bool whole_count;   ///< averages divide by window_height * window_width, including padding
    std::int64_t first; ///< the first row of a launch, over all images together
    std::uint32_t elements;
    divisor by_row, by_channels, by_height; ///< of a row's and a pixel's vectors of channels, and of an image's rows
};

/// The position of a thread's element, or of the first of its `Lanes` channels.
struct pool_place {
    std::int64_t image;
    int row, column, channel;
};
template <int Lanes = 1>
__device__ pool_place place_in(const pool_shape& g, std::uint32_t element) {
    const std::uint32_t line = g.by_row.quotient(element), rest = g.by_row.remainder(element, line);
    const std::uint32_t column = g.by_channels.quotient(rest);
    const auto row = static_cast<std::uint32_t>(g.first + line), image = g.by_height.quotient(row);
    return {image, static_cast<int>(g.by_height.remainder(row, image)), static_cast<int>(column),
            static_cast<int>(g.by_channels.remainder(rest, column)) * Lanes};
}

/// Neighbouring channels, which are moved together.
template <class T, int Lanes>
struct alignas(sizeof(T) * Lanes) channel_vector {
    T at[Lanes];

    static __device__ channel_vector load(const T* from) { return *reinterpret_cast<const channel_vector*>(from); }
    __device__ void store(T* to) const { *reinterpret_cast<channel_vector*>(to) = *this; }
};

/// The offset of an element in its image.
__device__ inline std::int64_t in_place(const pool_shape& g, int row, int column, int channel) {
    return (static_cast<std::int64_t>(row) * g.in_width + column) * g.channels + channel;
}

/// The elements of an axis of a window that lie inside the image: first, first + step, ..., below
/// end.
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
    /// Whether all of the window is in the image, and it has this size without gaps.
    __device__ bool is(const pool_shape& g, int height, int width) const {
        return rows.end - rows.first == height && columns.end - columns.first == width && g.dilation_height == 1 &&
               g.dilation_width == 1;
    }
    /// The divisor of an average.
    template <class T>
    __device__ T scale(const pool_shape& g) const {
        const int count = g.whole_count ? g.window_height * g.window_width
                                        : rows.count(g.dilation_height) * columns.count(g.dilation_width);
        return static_cast<T>(count > 0 ? count : 1);
    }
    /// Calls f(offset in the image) in row-major order until f returns that it has seen enough.
    template <class F>
    __device__ void each(const pool_shape& g, int channel, const F& f) const {
        for (int row = rows.first; row < rows.end; row += g.dilation_height)
            for (int column = columns.first; column < columns.end; column += g.dilation_width)
                if (f(in_place(g, row, column, channel))) return;
    }
};

__device__ inline std::int64_t in_elements(const pool_shape& g) {
    return static_cast<std::int64_t>(g.in_height) * g.in_width * g.channels;
}
__device__ inline std::int64_t out_place(const pool_shape& g, std::int64_t image, int row, int column, int channel) {
    return ((image * g.out_height + row) * g.out_width + column) * g.channels + channel;
}
/// As above, for a launch over windows, whose threads are in the order of memory.
template <int Lanes>
__device__ std::int64_t out_place(const pool_shape& g, std::uint32_t element) {
    return (g.first * g.by_row.value + element) * Lanes;
}

/// Whether an element may be the source of a window's maximum `pooled`: the first that equals it,
/// or the first NaN, is the source.
template <class T>
__device__ bool is_maximum(T value, T pooled) {
    return value == pooled || value != value;
}

/// The elements of a window of constant size at `from`: all are read before any is used.
template <int Height, int Width, int Lanes, class T>
struct whole_window {
    channel_vector<T, Lanes> at[Height * Width];

    __device__ whole_window(const pool_shape& g, const T* from) {
        TG_UNROLL
        for (int i = 0; i < Height * Width; ++i) at[i] = channel_vector<T, Lanes>::load(from + offset(g, i));
    }
    static __device__ std::int64_t offset(const pool_shape& g, int i) {
        return (static_cast<std::int64_t>(i / Width) * g.in_width + i % Width) * g.channels;
    }
};

/// Calls f for vectors of the window's channels, in row-major order. Windows of the usual sizes are
/// read at once.
template <int Lanes, class T, class F>
__device__ void each_vector(const pool_shape& g, const pool_window& window, const T* image, int channel, const F& f) {
    const auto whole = [&]<int Height, int Width>(constant<Height>, constant<Width>) {
        const whole_window<Height, Width, Lanes, T> w(
            g, image + in_place(g, window.rows.first, window.columns.first, channel));
        TG_UNROLL
        for (int i = 0; i < Height * Width; ++i) f(w.at[i]);
    };
    if (window.is(g, 2, 2)) return whole(constant<2>(), constant<2>());
    if (window.is(g, 1, 2)) return whole(constant<1>(), constant<2>());
    window.each(g, channel, [&](std::int64_t at) {
        f(channel_vector<T, Lanes>::load(image + at));
        return false;
    });
}

template <bool Maximum, int Lanes, class T>
__global__ void pool_forward(pool_shape g, const T* __restrict__ x, T* __restrict__ y) {
    if (thread_number() >= g.elements) return;
    const pool_place p = place_in<Lanes>(g, thread_number());
    const pool_window window(g, p.row, p.column);
    channel_vector<T, Lanes> state;
    TG_UNROLL
    for (int i = 0; i < Lanes; ++i) state.at[i] = Maximum ? -std::numeric_limits<T>::infinity() : T(0);
    each_vector<Lanes>(g, window, x + p.image * in_elements(g), p.channel, [&](const channel_vector<T, Lanes>& values) {
        TG_UNROLL
        for (int i = 0; i < Lanes; ++i) {
            const T value = values.at[i], so_far = state.at[i];
            if constexpr (Maximum)
                state.at[i] = (so_far > value || so_far != so_far) ? so_far : value;
            else
                state.at[i] = so_far + value;
        }
    });
    if constexpr (!Maximum) {
        const T scale = window.template scale<T>(g);
        TG_UNROLL
        for (int i = 0; i < Lanes; ++i) state.at[i] = state.at[i] / scale;
    }
    state.store(y + out_place<Lanes>(g, thread_number()));
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

/// The windows along one axis that contain element `at`: last, last - step, ..., not below first.
/// Not all of them contain it if windows are dilated.
struct windows_around {
    int first, last;

    __device__ windows_around(int at, int pad, int taps, int dilation, int stride, int windows) {
        const int low = at + pad - (taps - 1) * dilation, high = at + pad;
        first = low <= 0 ? 0 : (low + stride - 1) / stride;
        last = high / stride < windows - 1 ? high / stride : windows - 1;
    }
};

/// dx from dy; x and y are of the forward pass and are not used by averages.
template <bool Maximum, class T>
__global__ void pool_gradient(pool_shape g, const T* dy, const T* x, const T* y, T* dx) {
    if (thread_number() >= g.elements) return;
    const pool_place p = place_in(g, thread_number());
    const std::int64_t image = p.image * in_elements(g);
    const std::int64_t own = in_place(g, p.row, p.column, p.channel);
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

/// The elements along one axis from a window to the next, for windows that do not overlap,
/// including those before the first and after the last window. Every element is in exactly one such
/// range.
struct pool_strip {
    int first, end;

    __device__ pool_strip(int window, int windows, int stride, int pad, int size)
        : first(inside(window * stride - pad, size)),
          end(window + 1 == windows ? size : inside((window + 1) * stride - pad, size)) {}
    __device__ bool is(const pool_range& range) const { return first == range.first && end == range.end; }

private:
    static __device__ int inside(int at, int size) { return at < 0 ? 0 : at < size ? at : size; }
};

/// As pool_gradient, for windows that do not overlap and are not dilated.
template <bool Maximum, int Lanes, class T>
__global__ void pool_gradient_apart(pool_shape g, const T* __restrict__ dy, const T* __restrict__ x,
                                    const T* __restrict__ y, T* __restrict__ dx) {
    using channels = channel_vector<T, Lanes>;
    if (thread_number() >= g.elements) return;
    const pool_place p = place_in<Lanes>(g, thread_number());
    const pool_window window(g, p.row, p.column);
    const pool_strip rows(p.row, g.out_height, g.stride_height, g.pad_top, g.in_height);
    const pool_strip columns(p.column, g.out_width, g.stride_width, g.pad_left, g.in_width);
    const std::int64_t image = p.image * in_elements(g);
    const std::int64_t pixel = out_place<Lanes>(g, thread_number());

    // What remains of dy: the first maximum takes all of it.
    channels left = channels::load(dy + pixel), pooled;
    if constexpr (Maximum) {
        pooled = channels::load(y + pixel);
    } else {
        const T scale = window.template scale<T>(g);
        TG_UNROLL
        for (int i = 0; i < Lanes; ++i) left.at[i] = left.at[i] / scale;
    }
    const auto share_of = [&](const channels& values) {
        channels share;
        TG_UNROLL
        for (int i = 0; i < Lanes; ++i) {
            const bool found = is_maximum(values.at[i], pooled.at[i]);
            share.at[i] = found ? left.at[i] : T(0);
            left.at[i] = found ? T(0) : left.at[i];
        }
        return share;
    };
    const auto whole = [&]<int Height, int Width>(constant<Height>, constant<Width>) {
        using elements = whole_window<Height, Width, Lanes, T>;
        const std::int64_t first = image + in_place(g, rows.first, columns.first, p.channel);
        if constexpr (Maximum) {
            const elements of(g, x + first);
            TG_UNROLL
            for (int i = 0; i < Height * Width; ++i) share_of(of.at[i]).store(dx + first + elements::offset(g, i));
        } else {
            TG_UNROLL
            for (int i = 0; i < Height * Width; ++i) left.store(dx + first + elements::offset(g, i));
        }
    };
    if (rows.is(window.rows) && columns.is(window.columns)) {
        if (window.is(g, 2, 2)) return whole(constant<2>(), constant<2>());
        if (window.is(g, 1, 2)) return whole(constant<1>(), constant<2>());
    }
    for (int row = rows.first; row < rows.end; ++row)
        for (int column = columns.first; column < columns.end; ++column) {
            const std::int64_t at = image + in_place(g, row, column, p.channel);
            channels share;
            TG_UNROLL
            for (int i = 0; i < Lanes; ++i) share.at[i] = T(0);
            if (row >= window.rows.first && row < window.rows.end && column >= window.columns.first &&
                column < window.columns.end) {
                if constexpr (Maximum)
                    share = share_of(channels::load(x + at));
                else
                    share = left;
            }
            share.store(dx + at);
        }
}

} // namespace tapegraph::cuda::kernels
