#pragma once

#include <tapegraph/core/math.hpp>
#include <tapegraph/ops/pooling/kernel.hpp>
#include <tapegraph/ops/pooling/lp_pooling.hpp>

/// lp_pool on the CPU: one row of windows after another, vectorised over channels, in row-major order within a window.

namespace tapegraph {

namespace detail {
/// |x|^p, and its root; 1 and 2 are exact and need no power.
template <class T>
struct lp_norm {
    T p, inverse;
    explicit TG_HD lp_norm(double norm) : p(static_cast<T>(norm)), inverse(static_cast<T>(1 / norm)) {}
    TG_HD T term(T x) const { return p == 2 ? x * x : p == 1 ? math::abs(x) : math::pow(math::abs(x), p); }
    TG_HD T root(T sum) const { return p == 2 ? math::sqrt(sum) : p == 1 ? sum : math::pow(sum, inverse); }
};
} // namespace detail

namespace cpu {

struct lp_pool_body {
    template <class Isa, class T>
    TG_INLINE static void run(const pool_geometry* g, tapegraph::detail::lp_norm<T> norm, std::int64_t row, const T* x,
                              T* y) {
        const std::int64_t image = row / g->out_height, oy = row % g->out_height, channels = g->channels;
        x += image * g->in_height * g->in_width * channels;
        y += row * g->out_width * channels;
        for (std::int64_t ox = 0; ox < g->out_width; ++ox, y += channels) {
            const pool_detail::window w(*g, oy, ox);
            for (std::int64_t c = 0; c < channels; ++c) y[c] = 0;
            for (std::int64_t i = w.top; i < w.bottom; i += w.down)
                for (std::int64_t j = w.left; j < w.right; j += w.across) {
                    const T* const from = x + (i * g->in_width + j) * channels;
                    for (std::int64_t c = 0; c < channels; ++c) y[c] += norm.term(from[c]);
                }
            for (std::int64_t c = 0; c < channels; ++c) y[c] = norm.root(y[c]);
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

TG_COMPILED_KERNELS(pooling, floating_types, lp_pool_op)

} // namespace runtime
} // namespace tapegraph
