#pragma once

#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/parallel.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

/// Maximum and average pooling of images [batch, height, width, channels], vectorised over channels.
///
/// Windows that do not overlap (stride >= window) partition the image: their gradients are written
/// in one pass, without zeroing first. Overlapping ones are added up window by window in row-major
/// order; tasks then divide the channels, so the order of addition does not depend on threads.

namespace tapegraph::cpu {

/// The sizes of a pooling in elements. Window (oy, ox) covers input rows oy * stride_height -
/// pad_top + i * dilation_height for i in [0, window_height), and columns likewise, as far as they
/// are inside the image.
struct pool_geometry {
    std::int64_t batch, in_height, in_width, channels;
    std::int64_t out_height, out_width;
    std::int64_t window_height, window_width;
    std::int64_t stride_height, stride_width;
    std::int64_t pad_top, pad_left;
    std::int64_t dilation_height = 1, dilation_width = 1; ///< between adjacent rows and columns of a window
};

namespace pool_detail {

inline constexpr std::int64_t parallel_elements = 32768;
inline constexpr std::int64_t task_elements = 32768;

// The part of a window inside the image: rows [top, bottom), columns [left, right), every down-th and across-th of them.
struct window {
    std::int64_t top, bottom, left, right, down, across;

    TG_INLINE window(const pool_geometry& g, std::int64_t oy, std::int64_t ox)
        : down(g.dilation_height), across(g.dilation_width) {
        const std::int64_t y = oy * g.stride_height - g.pad_top, x = ox * g.stride_width - g.pad_left;
        top = first(y, down);
        left = first(x, across);
        bottom = end(y, g.window_height, down, g.in_height);
        right = end(x, g.window_width, across, g.in_width);
    }
    TG_INLINE std::int64_t count() const {
        return bottom > top && right > left ? ((bottom - top + down - 1) / down) * ((right - left + across - 1) / across) : 0;
    }

private:
    TG_INLINE static std::int64_t first(std::int64_t at, std::int64_t step) {
        return at >= 0 ? at : at + (-at + step - 1) / step * step;
    }
    TG_INLINE static std::int64_t end(std::int64_t at, std::int64_t taps, std::int64_t step, std::int64_t size) {
        const std::int64_t last = at + (taps - 1) * step + 1;
        return last < size ? last : size;
    }
};

template <class T>
inline constexpr std::int64_t lanes = 64 / static_cast<std::int64_t>(sizeof(T));

// d max / d x: the first element equal to the maximum receives all of the remaining dy. NaN is the
// maximum of its window, and the first NaN receives dy.
enum class rule { maximum, average, maximum_gradient, average_gradient, select };

// Processes up to 64 bytes of channels at the elements of a window, in row-major order. The number
// of channels is a constant where possible, so that the loops over them become single instructions.
template <rule R, bool Add, class T>
struct block {
    const T* x;     ///< the image, the operand of maxima and averages
    const T* y;     ///< the pooled image
    const T* other; ///< dy of the pooled image; for select: ddx of the image
    T* out;         ///< pooled image, or dx

    template <bool Whole>
    TG_INLINE void run(const pool_geometry& g, const window& w, std::int64_t image, std::int64_t pixel, std::int64_t c,
                       std::int64_t length, T scale) const {
        constexpr std::int64_t most = lanes<T>;
        const std::int64_t n = Whole ? most : length;
        T state[most], left[most], pooled[most];
        TG_SIMD
        for (std::int64_t i = 0; i < n; ++i) {
            state[i] = R == rule::maximum ? -std::numeric_limits<T>::infinity() : T(0);
            if constexpr (R == rule::maximum_gradient) left[i] = other[pixel + c + i];
            if constexpr (R == rule::average_gradient) left[i] = other[pixel + c + i] / scale;
            if constexpr (R == rule::select) left[i] = T(1);
            if constexpr (R == rule::maximum_gradient || R == rule::select) pooled[i] = y[pixel + c + i];
        }
        for (std::int64_t row = w.top; row < w.bottom; row += w.down)
            for (std::int64_t column = w.left; column < w.right; column += w.across) {
                const std::int64_t at = ((image * g.in_height + row) * g.in_width + column) * g.channels + c;
                if constexpr (Whole) {
                    // Prefetches two windows ahead: the hardware does not follow the order of
                    // alternating blocks of several pixels.
                    const std::int64_t ahead = at + 2 * g.stride_width * g.channels;
                    if constexpr (R != rule::average_gradient) __builtin_prefetch((R == rule::select ? other : x) + ahead);
                    if constexpr (R == rule::select) __builtin_prefetch(x + ahead);
                    if constexpr (R == rule::maximum_gradient || R == rule::average_gradient)
                        __builtin_prefetch(out + ahead, 1);
                }
                TG_SIMD
                for (std::int64_t i = 0; i < n; ++i) {
                    if constexpr (R == rule::maximum) {
                        const T value = x[at + i], so_far = state[i];
                        state[i] = ((so_far > value) | (so_far != so_far)) ? so_far : value;
                    } else if constexpr (R == rule::average) {
                        state[i] += x[at + i];
                    } else if constexpr (R == rule::average_gradient) {
                        out[at + i] = Add ? out[at + i] + left[i] : left[i];
                    } else if constexpr (R == rule::maximum_gradient) {
                        const T value = x[at + i], rest = left[i];
                        const bool hit = (value == pooled[i]) | (value != value);
                        const T share = hit ? rest : T(0);
                        left[i] = hit ? T(0) : rest;
                        out[at + i] = Add ? out[at + i] + share : share;
                    } else {
                        const T value = x[at + i], open = left[i], taken = state[i], there = other[at + i];
                        const bool hit = ((value == pooled[i]) | (value != value)) & (open != T(0));
                        state[i] = hit ? there : taken;
                        left[i] = hit ? T(0) : open;
                    }
                }
            }
        if constexpr (R == rule::maximum || R == rule::average || R == rule::select) {
            TG_SIMD
            for (std::int64_t i = 0; i < n; ++i)
                out[pixel + c + i] = R == rule::average ? state[i] / scale : state[i];
        }
    }
};

// Processes one row of windows, channels [first, last).
template <rule R, bool Add, class T>
struct row_body {
    template <class Isa>
    TG_INLINE static void run(const pool_geometry* geometry, const block<R, Add, T>* of, std::int64_t row,
                              std::int64_t first, std::int64_t last, bool whole_count) {
        const pool_geometry g = *geometry;
        const block<R, Add, T> b = *of;
        constexpr std::int64_t n = lanes<T>;
        const std::int64_t image = row / g.out_height, oy = row % g.out_height;
        for (std::int64_t ox = 0; ox < g.out_width; ++ox) {
            const window w(g, oy, ox);
            const std::int64_t pixel = (row * g.out_width + ox) * g.channels;
            const std::int64_t count = whole_count ? g.window_height * g.window_width : w.count();
            const T scale = static_cast<T>(count > 0 ? count : 1);
            std::int64_t c = first;
            for (; c + n <= last; c += n) b.template run<true>(g, w, image, pixel, c, n, scale);
            if (c == last) continue;
            // Where values are written rather than added, the last block may repeat some channels.
            if (!Add && last - first >= n) b.template run<true>(g, w, image, pixel, last - n, n, scale);
            else b.template run<false>(g, w, image, pixel, c, last - c, scale);
        }
    }
};

// Zeros the parts of the input rows of output row `row` that no window covers; windows do not overlap.
template <class T>
void zero_gaps(const pool_geometry& g, std::int64_t row, T* dx) {
    const std::int64_t image = row / g.out_height, oy = row % g.out_height;
    const auto inside = [](std::int64_t v, std::int64_t end) { return std::clamp<std::int64_t>(v, 0, end); };
    const std::int64_t top = oy == 0 ? 0 : inside(oy * g.stride_height - g.pad_top, g.in_height);
    const std::int64_t bottom =
        oy + 1 == g.out_height ? g.in_height : inside((oy + 1) * g.stride_height - g.pad_top, g.in_height);
    const window band(g, oy, 0);
    for (std::int64_t y = top; y < bottom; ++y) {
        T* line = dx + (image * g.in_height + y) * g.in_width * g.channels;
        std::int64_t done = 0;
        for (std::int64_t ox = 0; y >= band.top && y < band.bottom && ox < g.out_width; ++ox) {
            const window w(g, oy, ox);
            if (w.left > done) std::fill(line + done * g.channels, line + w.left * g.channels, T(0));
            done = std::max(done, w.right);
        }
        if (done < g.in_width) std::fill(line + done * g.channels, line + g.in_width * g.channels, T(0));
    }
}

template <rule R, bool Add, class T>
void run(const pool_geometry& g, const block<R, Add, T>& b, bool whole_count) {
    constexpr bool gradient = R == rule::maximum_gradient || R == rule::average_gradient;
    const std::int64_t elements = g.batch * g.in_height * g.in_width * g.channels, rows = g.batch * g.out_height;
    const bool parallel = elements >= parallel_elements;
    if (elements == 0) return;
    if constexpr (Add) {
        // Cuts the channels at multiples of a cache line's lanes, into as many parts as give about
        // 16 tasks.
        const std::int64_t wanted = std::max<std::int64_t>(1, 16 / g.batch);
        const std::int64_t width = ((g.channels + wanted - 1) / wanted + 63) / 64 * 64;
        const std::int64_t cuts = (g.channels + width - 1) / width;
        parallel_for(g.batch * cuts, parallel, [&](std::int64_t task) {
            const std::int64_t image = task / cuts, first = task % cuts * width, last = std::min(g.channels, first + width);
            const std::int64_t pixels = g.in_height * g.in_width;
            for (std::int64_t i = 0; i < pixels; ++i)
                std::fill(b.out + (image * pixels + i) * g.channels + first, b.out + (image * pixels + i) * g.channels + last, T(0));
            for (std::int64_t oy = 0; oy < g.out_height; ++oy)
                dispatch<row_body<R, Add, T>>(&g, &b, image * g.out_height + oy, first, last, whole_count);
        });
        return;
    }
    if (rows == 0) {
        if (gradient) std::fill(b.out, b.out + elements, T(0));
        return;
    }
    const std::int64_t in_task = std::max<std::int64_t>(1, task_elements * rows / elements);
    parallel_for((rows + in_task - 1) / in_task, parallel, [&](std::int64_t task) {
        for (std::int64_t row = task * in_task, end = std::min(rows, row + in_task); row < end; ++row) {
            if constexpr (gradient) zero_gaps(g, row, b.out);
            dispatch<row_body<R, Add, T>>(&g, &b, row, std::int64_t{0}, g.channels, whole_count);
        }
    });
}

inline bool overlapping(const pool_geometry& g) {
    return g.stride_height < g.window_height || g.stride_width < g.window_width || g.dilation_height != 1 ||
           g.dilation_width != 1;
}

} // namespace pool_detail

/// y[b, oy, ox, c] = the largest element of its window in x; NaN if the window contains one.
template <class T>
void max_pool_forward(const pool_geometry& g, const T* x, T* y) {
    using namespace pool_detail;
    run(g, block<rule::maximum, false, T>{x, nullptr, nullptr, y}, false);
}

/// dx from dy: each window's derivative goes to its first maximum in row-major order. `y` is the
/// result of the forward pass.
template <class T>
void max_pool_gradient(const pool_geometry& g, const T* dy, const T* x, const T* y, T* dx) {
    using namespace pool_detail;
    if (overlapping(g)) run(g, block<rule::maximum_gradient, true, T>{x, y, dy, dx}, false);
    else run(g, block<rule::maximum_gradient, false, T>{x, y, dy, dx}, false);
}

/// out[window] = ddx at the window's first maximum: the adjoint of `max_pool_gradient` with respect to dy.
template <class T>
void max_pool_select(const pool_geometry& g, const T* ddx, const T* x, const T* y, T* out) {
    using namespace pool_detail;
    run(g, block<rule::select, false, T>{x, y, ddx, out}, false);
}

/// y = the mean of the window's elements inside the image; with `count_include_pad` the sum over window_height * window_width.
template <class T>
void average_pool_forward(const pool_geometry& g, const T* x, T* y, bool count_include_pad = false) {
    using namespace pool_detail;
    run(g, block<rule::average, false, T>{x, nullptr, nullptr, y}, count_include_pad);
}

/// dx[i] = the sum of dy / count over the windows that contain i.
template <class T>
void average_pool_gradient(const pool_geometry& g, const T* dy, T* dx, bool count_include_pad = false) {
    using namespace pool_detail;
    if (overlapping(g)) run(g, block<rule::average_gradient, true, T>{nullptr, nullptr, dy, dx}, count_include_pad);
    else run(g, block<rule::average_gradient, false, T>{nullptr, nullptr, dy, dx}, count_include_pad);
}

} // namespace tapegraph::cpu
