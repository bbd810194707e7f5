#pragma once

#include <tapegraph/cuda/ops/pooling/pooling.cuh>
#include <tapegraph/ops/pooling/lp_pooling_kernel.hpp>

/// lp_pool on a device. Memory plan: as kernels/pool.cuh.

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
} // namespace kernels

template <class T>
struct kernel<lp_pool_op, T> {
    static void run(const kernel_call& c) {
        const auto a = runtime::attributes_of<lp_pool_op>(c);
        detail::pool(c, "lp_pool", runtime::pooling(a.window, c.in[0], c.out[0]), false, false, kernels::lp_pool<T>,
                     tapegraph::detail::lp_norm<T>(a.norm), c.in[0].as<const T>(), c.out[0].as<T>());
    }
};

} // namespace tapegraph::cuda
