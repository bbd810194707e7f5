#pragma once

#include <tapegraph/core/math.hpp>
#include <tapegraph/ops/pooling/kernel.hpp>
#include <tapegraph/ops/pooling/lp_pooling.hpp>
#include <tapegraph/ops/reduction/scaled.hpp>

#include <algorithm>

/// lp_pool on the CPU: row by row of windows, vectorised over channels, in row-major order within a
/// window.

namespace tapegraph {

namespace detail {
/// The powers |x|^p of numbers, scaled by the largest magnitude among them so that none overflows and not
/// all underflow, and the root of their sum. Exponents 1 and 2 need no power function, and for 2 the
/// scale is a power of two, which is exact.
template <class T>
struct lp_norm {
    T p, inverse;
    explicit TG_HD lp_norm(double norm) : p(static_cast<T>(norm)), inverse(static_cast<T>(1 / norm)) {}
    /// The factor (p = 2) or divisor of x for the largest |x|.
    TG_HD T scale(T largest) const {
        if (p == 2) return inverse_scale_op::value(largest);
        return largest > 0 && largest < math::detail::traits<T>::infinity ? largest : T(1);
    }
    TG_HD T term(T x, T scale) const {
        const T y = p == 2 ? x * scale : x / scale;
        return p == 2 ? y * y : p == 1 ? math::abs(x) : math::pow(math::abs(y), p);
    }
    TG_HD T root(T sum, T scale) const {
        return p == 2 ? math::sqrt(sum) / scale : p == 1 ? sum : math::pow(sum, inverse) * scale;
    }
};

/// f of lp_slopes. `Whole`: an exponent that needs no power function, so that loops call none;
/// `any_power`: the exponent is known only at run time.
inline constexpr int any_power = -1;
template <class T, int Whole = any_power>
struct lp_slope {
    T exponent;
    bool odd;
    explicit TG_HD lp_slope(const lp_slopes& of) : exponent(static_cast<T>(of.exponent)), odd(of.odd != 0) {}
    TG_HD T operator()(T x, T y) const {
        const T power = power_of(math::abs(x) / y);
        const T with_sign =
            odd ? math::detail::select(x < 0, -power, math::detail::select(x == 0, T(0), power)) : power;
        return math::detail::select(y == 0, T(0), with_sign);
    }
    TG_HD T power_of(T r) const {
        if constexpr (Whole == 0) return T(1);
        if constexpr (Whole == 1) return r;
        if constexpr (Whole == 2) return math::detail::product(r, r);
        if (exponent == 0) return T(1);
        if (exponent == 1) return r;
        if (exponent == 2) return math::detail::product(r, r);
        return math::detail::select(r == 0, T(0), math::pow(r, exponent));
    }
};
template <class T, class F>
void with_lp_slope(const lp_slopes& of, const F& f) {
    if (of.exponent == 0) return f(lp_slope<T, 0>(of));
    if (of.exponent == 1) return f(lp_slope<T, 1>(of));
    if (of.exponent == 2) return f(lp_slope<T, 2>(of));
    f(lp_slope<T>(of));
}
/// Calls f(o), in ascending order, for the positions o in [0, count) whose windows along one axis contain
/// element `at`.
template <class Integer, class F>
TG_HD void each_window_of(Integer at, Integer pad, Integer taps, Integer dilation, Integer stride, Integer count,
                          const F& f) {
    for (Integer k = taps; k-- > 0;) {
        const Integer from = at + pad - k * dilation;
        if (from < 0 || from % stride != 0) continue;
        if (from / stride >= count) return;
        f(from / stride);
    }
}
} // namespace detail

namespace cpu {

struct lp_pool_body {
    static constexpr std::int64_t at_once = 64; // channels
    template <class Isa, class T>
    TG_INLINE static void run(const pool_geometry* g, tapegraph::detail::lp_norm<T> norm, std::int64_t row, const T* x,
                              T* y) {
        const std::int64_t image = row / g->out_height, oy = row % g->out_height, channels = g->channels;
        x += image * g->in_height * g->in_width * channels;
        y += row * g->out_width * channels;
        for (std::int64_t ox = 0; ox < g->out_width; ++ox, y += channels) {
            const pool_detail::window w(*g, oy, ox);
            for (std::int64_t c = 0; c < channels; c += at_once)
                window(w, g->in_width * channels, channels, norm, std::min(at_once, channels - c), x + c, y + c);
        }
    }

private:
    template <class T>
    TG_INLINE static void window(const pool_detail::window& w, std::int64_t row, std::int64_t column,
                                 const tapegraph::detail::lp_norm<T>& norm, std::int64_t width, const T* x, T* y) {
        T sum[at_once] = {}, scale[at_once] = {};
        const auto each = [&](const auto& f) {
            for (std::int64_t i = w.top; i < w.bottom; i += w.down)
                for (std::int64_t j = w.left; j < w.right; j += w.across) f(x + i * row + j * column);
        };
        if (norm.p != 1)
            each([&](const T* from) {
                for (std::int64_t c = 0; c < width; ++c) {
                    const T size = math::abs(from[c]);
                    scale[c] = size > scale[c] ? size : scale[c];
                }
            });
        for (std::int64_t c = 0; c < width; ++c) scale[c] = norm.scale(scale[c]);
        each([&](const T* from) {
            for (std::int64_t c = 0; c < width; ++c) sum[c] += norm.term(from[c], scale[c]);
        });
        for (std::int64_t c = 0; c < width; ++c) y[c] = norm.root(sum[c], scale[c]);
    }
};

/// lp_pool_gradient, row by row of the image: each element adds up its windows in row-major order.
struct lp_gradient_body {
    static constexpr std::int64_t at_once = 64; // channels
    template <class Isa, class Slope, class T>
    TG_INLINE static void run(const pool_geometry* g, Slope slope, std::int64_t row, const T* dy, const T* x,
                              const T* y, T* dx) {
        const std::int64_t image = row / g->in_height, channels = g->channels;
        for (std::int64_t column = 0; column < g->in_width; ++column)
            for (std::int64_t c = 0; c < channels; c += at_once) {
                const std::int64_t width = std::min(at_once, channels - c),
                                   at = (row * g->in_width + column) * channels + c;
                T sum[at_once] = {};
                tapegraph::detail::each_window_of(
                    row % g->in_height, g->pad_top, g->window_height, g->dilation_height, g->stride_height,
                    g->out_height, [&](std::int64_t oy) {
                        tapegraph::detail::each_window_of(
                            column, g->pad_left, g->window_width, g->dilation_width, g->stride_width, g->out_width,
                            [&](std::int64_t ox) {
                                const std::int64_t from =
                                    ((image * g->out_height + oy) * g->out_width + ox) * channels + c;
                                TG_SIMD
                                for (std::int64_t i = 0; i < width; ++i)
                                    sum[i] += math::detail::product(dy[from + i], slope(x[at + i], y[from + i]));
                            });
                    });
                for (std::int64_t i = 0; i < width; ++i) dx[at + i] = sum[i];
            }
    }
};
/// lp_pool_slope, a row of windows after another.
struct lp_slope_body {
    static constexpr std::int64_t at_once = 64; // channels
    template <class Isa, class Slope, class T>
    TG_INLINE static void run(const pool_geometry* g, Slope slope, std::int64_t row, const T* u, const T* x, const T* y,
                              T* out) {
        const std::int64_t image = row / g->out_height, channels = g->channels;
        const std::int64_t first = image * g->in_height * g->in_width * channels;
        for (std::int64_t ox = 0; ox < g->out_width; ++ox) {
            const pool_detail::window w(*g, row % g->out_height, ox);
            for (std::int64_t c = 0; c < channels; c += at_once) {
                const std::int64_t width = std::min(at_once, channels - c);
                const std::int64_t to = (row * g->out_width + ox) * channels + c;
                T sum[at_once] = {};
                for (std::int64_t i = w.top; i < w.bottom; i += w.down)
                    for (std::int64_t j = w.left; j < w.right; j += w.across) {
                        const std::int64_t at = first + (i * g->in_width + j) * channels + c;
                        TG_SIMD
                        for (std::int64_t k = 0; k < width; ++k)
                            sum[k] += math::detail::product(u[at + k], slope(x[at + k], y[to + k]));
                    }
                for (std::int64_t k = 0; k < width; ++k) out[to + k] = sum[k];
            }
        }
    }
};

} // namespace cpu

namespace runtime {

template <class T>
struct kernel<lp_pool_op, T> {
    static void run(const kernel_call& c) {
        const auto a = attributes_of<lp_pool_op>(c);
        const cpu::pool_geometry g = pooling(a.window, c.in[0], c.out[0]);
        const tapegraph::detail::lp_norm<T> norm(a.norm);
        cpu::parallel_for(g.batch * g.out_height, c.in[0].elements() >= cpu::pool_detail::parallel_elements,
                          [&](std::int64_t row) {
                              cpu::dispatch<cpu::lp_pool_body>(&g, norm, row, c.in[0].as<const T>(), c.out[0].as<T>());
                          });
    }
};

namespace detail {
template <class Body, class T>
void run_lp_slopes(const kernel_call& c, std::int64_t rows, const cpu::pool_geometry& g) {
    const auto of = attributes_from_words<tapegraph::detail::lp_pool_gradient_op>(c.attributes);
    tapegraph::detail::with_lp_slope<T>(of, [&](const auto& slope) {
        cpu::parallel_for(rows, c.in[1].elements() >= cpu::pool_detail::parallel_elements, [&](std::int64_t row) {
            cpu::dispatch<Body>(&g, slope, row, c.in[0].as<const T>(), c.in[1].as<const T>(), c.in[2].as<const T>(),
                                c.out[0].as<T>());
        });
    });
}
inline cpu::pool_geometry lp_geometry(const kernel_call& c) {
    return pooling(attributes_from_words<tapegraph::detail::lp_pool_gradient_op>(c.attributes).window, c.in[1],
                   c.in[2]);
}
} // namespace detail
template <class T>
struct kernel<tapegraph::detail::lp_pool_gradient_op, T> {
    static void run(const kernel_call& c) {
        const cpu::pool_geometry g = detail::lp_geometry(c);
        detail::run_lp_slopes<cpu::lp_gradient_body, T>(c, g.batch * g.in_height, g);
    }
};
template <class T>
struct kernel<tapegraph::detail::lp_pool_slope_op, T> {
    static void run(const kernel_call& c) {
        const cpu::pool_geometry g = detail::lp_geometry(c);
        detail::run_lp_slopes<cpu::lp_slope_body, T>(c, g.batch * g.out_height, g);
    }
};

} // namespace runtime
} // namespace tapegraph

#include <tapegraph/ops/compiled_kernels.hpp>
