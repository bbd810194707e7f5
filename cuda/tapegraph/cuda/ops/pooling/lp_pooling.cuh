#pragma once

#include <tapegraph/cuda/ops/pooling/pooling.cuh>
#include <tapegraph/ops/pooling/lp_pooling_kernel.hpp>

/// lp_pool and its derivatives on a device. Memory plan: as kernels/pool.cuh, a thread for each sum.

namespace tapegraph::cuda {

namespace kernels {
template <class T>
__global__ void lp_pool(pool_shape g, tapegraph::detail::lp_norm<T> norm, const T* x, T* y) {
    if (thread_number() >= g.elements) return;
    const pool_place p = place_in(g, thread_number());
    x += p.image * in_elements(g);
    const pool_window window(g, p.row, p.column);
    T largest(0), sum(0);
    window.each(g, p.channel, [&](std::int64_t at) {
        const T size = math::abs(x[at]);
        largest = size > largest ? size : largest;
        return false;
    });
    const T scale = norm.scale(largest);
    window.each(g, p.channel, [&](std::int64_t at) {
        sum += norm.term(x[at], scale);
        return false;
    });
    y[out_place(g, p.image, p.row, p.column, p.channel)] = norm.root(sum, scale);
}
template <class T>
__global__ void lp_pool_gradient(pool_shape g, tapegraph::detail::lp_slope<T> slope, const T* dy, const T* x,
                                 const T* y, T* dx) {
    if (thread_number() >= g.elements) return;
    const pool_place p = place_in(g, thread_number());
    const std::int64_t at = p.image * in_elements(g) + in_place(g, p.row, p.column, p.channel);
    T sum(0);
    tapegraph::detail::each_window_of(
        p.row, g.pad_top, g.window_height, g.dilation_height, g.stride_height, g.out_height, [&](int oy) {
            tapegraph::detail::each_window_of(p.column, g.pad_left, g.window_width, g.dilation_width, g.stride_width,
                                              g.out_width, [&](int ox) {
                                                  const std::int64_t from = out_place(g, p.image, oy, ox, p.channel);
                                                  sum += math::detail::product(dy[from], slope(x[at], y[from]));
                                              });
        });
    dx[at] = sum;
}
template <class T>
__global__ void lp_pool_slope(pool_shape g, tapegraph::detail::lp_slope<T> slope, const T* u, const T* x, const T* y,
                              T* out) {
    if (thread_number() >= g.elements) return;
    const pool_place p = place_in(g, thread_number());
    const std::int64_t image = p.image * in_elements(g), to = out_place(g, p.image, p.row, p.column, p.channel);
    T sum(0);
    pool_window(g, p.row, p.column).each(g, p.channel, [&](std::int64_t at) {
        sum += math::detail::product(u[image + at], slope(x[image + at], y[to]));
        return false;
    });
    out[to] = sum;
}
} // namespace kernels

template <class T>
struct kernel<lp_pool_op, T> {
    static void run(const kernel_call& c) {
        const auto a = runtime::attributes_of<lp_pool_op>(c);
        detail::pool(c, "lp_pool", runtime::pooling(a.window, c.in[0], c.out[0]), false, false, kernels::lp_pool<T>,
                     tapegraph::detail::lp_norm<T>(a.norm), c.in[0].as<const T>(), c.out[0].as<T>());
    }
};

namespace detail {
template <class T>
void lp_slopes(const kernel_call& c, const char* name, bool of_input,
               void (*f)(kernels::pool_shape, tapegraph::detail::lp_slope<T>, const T*, const T*, const T*, T*)) {
    const tapegraph::detail::lp_slope<T> slope(
        attributes_from_words<tapegraph::detail::lp_pool_gradient_op>(c.attributes));
    pool(c, name, runtime::detail::lp_geometry(c), of_input, false, f, slope, c.in[0].as<const T>(),
         c.in[1].as<const T>(), c.in[2].as<const T>(), c.out[0].as<T>());
}
} // namespace detail

template <class T>
struct kernel<tapegraph::detail::lp_pool_gradient_op, T> {
    static void run(const kernel_call& c) {
        detail::lp_slopes<T>(c, "lp_pool_gradient", true, kernels::lp_pool_gradient<T>);
    }
};
template <class T>
struct kernel<tapegraph::detail::lp_pool_slope_op, T> {
    static void run(const kernel_call& c) {
        detail::lp_slopes<T>(c, "lp_pool_slope", false, kernels::lp_pool_slope<T>);
    }
};

} // namespace tapegraph::cuda
