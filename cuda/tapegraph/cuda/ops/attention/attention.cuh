#pragma once

#include <tapegraph/cuda/kernels/flash_attention.cuh>
#include <tapegraph/cuda/lines.cuh>
#include <tapegraph/cuda/ops/attention/flash.cuh>

/// Attention and its derivative on a device: by flash_attention.cuh where that takes the shape, else
/// plainly.

namespace tapegraph::cuda {

namespace detail {
inline std::int64_t attention_blocks(std::int64_t heads, std::int64_t rows, std::int64_t columns) {
    using namespace kernels;
    return heads * divide_up(rows, attention_side) * divide_up(columns, attention_columns);
}
/// Calls f(arguments, launch shape) for `blocks` blocks.
template <class T, class F>
void for_attention(kernels::attention_arguments<T> g, std::int64_t blocks, const F& f) {
    if (blocks == 0) return;
    for_pieces(blocks, [&](std::int64_t first, std::int64_t count) {
        g.first = first;
        f(g, driver::launch_shape{static_cast<unsigned>(count), kernels::attention_side * kernels::attention_side});
    });
}
} // namespace detail

template <std::floating_point T>
struct kernel<attention_op, T> {
    static void run(const kernel_call& c) {
        const kernels::attention_arguments<T> g{runtime::detail::attention_shape_of(c, 0),
                                                runtime::detail::attention_operands_of<T>(c, 0)};
        T* const y = c.out[0].as<T>();
        const cpu::attention_shape& s = g.s;
        if constexpr (sizeof(T) == sizeof(float))
            if (detail::takes_flash(g)) return detail::flash_attention(c, g, y);
        const std::int64_t width = s.width > 0 ? s.width : 1; // the numbers of queries are needed all the same
        detail::for_attention(g, detail::attention_blocks(s.batch * s.heads, s.time, width),
                              [&](const auto& part, const driver::launch_shape& shape) {
                                  launch(c, "attention", shape, kernels::attention_forward<T>, part, y,
                                         y + s.results());
                              });
    }
};

template <std::floating_point T>
struct kernel<attention_gradient_op, T> {
    static std::size_t workspace(const kernel_call& c) {
        const auto s = runtime::detail::attention_shape_of(c, 1);
        return static_cast<std::size_t>(s.batch * s.heads * s.time) * sizeof(T);
    }
    static void run(const kernel_call& c) {
        kernels::attention_arguments<T> g{runtime::detail::attention_shape_of(c, 1),
                                          runtime::detail::attention_operands_of<T>(c, 1)};
        const cpu::attention_shape& s = g.s;
        const T* const y = c.in[6].as<const T>();
        T* const delta = static_cast<T*>(c.workspace);
        g.numbers = y + s.results();
        g.dy = c.in[0].as<const T>();
        g.delta = delta;
        const std::int64_t heads = s.batch * s.heads, kv_heads = s.batch * s.kv_heads();
        T *const dq = c.out[0].as<T>(), *const dk = dq + c.in[1].elements(), *const dv = dk + c.in[2].elements();
        if constexpr (sizeof(T) == sizeof(float))
            if (detail::takes_flash(g)) return detail::flash_attention_gradient(c, g, y, delta, dq, dk, dv);
        if (heads * s.time > 0)
            detail::for_pieces(heads * s.time, [&](std::int64_t first, std::int64_t count) {
                g.first = first;
                launch(c, "attention_gradient", detail::over(count, 128), kernels::attention_delta<T>, g, first + count,
                       y, delta);
            });
        detail::for_attention(g, detail::attention_blocks(heads, s.time, s.depth),
                              [&](const auto& part, const driver::launch_shape& shape) {
                                  launch(c, "attention_gradient", shape, kernels::attention_by_queries<T>, part, dq);
                              });
        detail::for_attention(g, detail::attention_blocks(kv_heads, s.steps, s.depth),
                              [&](const auto& part, const driver::launch_shape& shape) {
                                  launch(c, "attention_gradient", shape, kernels::attention_by_keys<false, T>, part,
                                         dk);
                              });
        detail::for_attention(g, detail::attention_blocks(kv_heads, s.steps, s.width),
                              [&](const auto& part, const driver::launch_shape& shape) {
                                  launch(c, "attention_gradient", shape, kernels::attention_by_keys<true, T>, part, dv);
                              });
    }
};

template <std::floating_point T>
struct kernel<random_address_op<T>, T> {
    static void run(const kernel_call& c) {
        const auto a = runtime::attributes_of<random_address_op<T>>(c);
        const std::int64_t count = c.out[0].elements();
        if (count == 0) return;
        launch(c, "random address", detail::over(count, 32), kernels::random_address<T>, c.random,
               static_cast<std::uint32_t>(a.ordinal), count, c.out[0].as<T>());
    }
};
template <std::floating_point T>
struct kernel<numbers_at_op, T> {
    static void run(const kernel_call& c) {
        if (c.out[0].elements() == 0) return;
        detail::for_pieces(c.out[0].elements(), [&](std::int64_t first, std::int64_t count) {
            launch(c, "numbers_at", detail::over(count, 128), kernels::numbers_at<T>, c.in[0].as<const T>(), first,
                   first + count, c.out[0].as<T>());
        });
    }
};

} // namespace tapegraph::cuda
