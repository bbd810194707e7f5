#pragma once

#include <tapegraph/core/math.hpp>
#include <tapegraph/ops/pooling/kernel.hpp>
#include <tapegraph/ops/pooling/lp_pooling.hpp>

#include <algorithm>

/// lp_pool on the CPU: one row of windows after another, vectorised over channels, in row-major order within a window.

namespace tapegraph {

namespace detail {
/// |x|^p of numbers by the largest magnitude among them, so that no power overflows nor all underflow, and the root of the sum of
/// these. 1 and 2 need no power, and 2 is scaled by a power of two, exactly.
template <class T>
struct lp_norm {
    T p, inverse;
    explicit TG_HD lp_norm(double norm) : p(static_cast<T>(norm)), inverse(static_cast<T>(1 / norm)) {}
    /// What x is multiplied by (p = 2) or divided by, from the largest |x|.
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

TG_COMPILED_KERNELS(pooling, floating_types, lp_pool_op)

} // namespace runtime
} // namespace tapegraph
