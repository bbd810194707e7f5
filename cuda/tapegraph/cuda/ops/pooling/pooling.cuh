#pragma once

#include <tapegraph/cuda/ops/movement/boxes.cuh>
#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/cuda/kernels/pool.cuh>
#include <tapegraph/ops/pooling/kernel.hpp>

#include <algorithm>

/// Maximum and average pooling, and their gradients.

namespace tapegraph::cuda {

namespace detail {

/// Launches f over the elements of `over_rows` rows (of all images), `width` pixels each. `name`: the operation.
template <class... P, class... A>
void pool(const kernel_call& c, const char* name, const cpu::pool_geometry& g, bool of_input, bool whole_count,
          void (*f)(kernels::pool_shape, P...), A... tensors) {
    const std::int64_t height = of_input ? g.in_height : g.out_height, width = of_input ? g.in_width : g.out_width;
    const std::int64_t rows = g.batch * height, in_row = width * g.channels;
    if (rows * in_row == 0) return;
    constexpr std::int64_t most = std::int64_t{1} << 30; // 31 bits count rows, and the elements of one
    if (std::max({rows, in_row, g.in_height, g.in_width * g.channels}) > most)
        throw shape_error(std::string(name) + ": images of this size are not supported on devices");
    kernels::pool_shape s{};
    const auto as_int = [](std::int64_t v) { return static_cast<int>(v); };
    s.in_height = as_int(g.in_height), s.in_width = as_int(g.in_width), s.channels = as_int(g.channels);
    s.out_height = as_int(g.out_height), s.out_width = as_int(g.out_width);
    s.window_height = as_int(g.window_height), s.window_width = as_int(g.window_width);
    s.stride_height = as_int(g.stride_height), s.stride_width = as_int(g.stride_width);
    s.pad_top = as_int(g.pad_top), s.pad_left = as_int(g.pad_left);
    s.dilation_height = as_int(g.dilation_height), s.dilation_width = as_int(g.dilation_width);
    s.overlapping = cpu::pool_detail::overlapping(g);
    s.whole_count = whole_count;
    s.by_row = kernels::divisor(static_cast<std::uint32_t>(in_row));
    s.by_channels = kernels::divisor(static_cast<std::uint32_t>(g.channels));
    s.by_height = kernels::divisor(static_cast<std::uint32_t>(height));
    const std::int64_t step = std::max<std::int64_t>(1, std::min(most, most_elements) / in_row);
    for (s.first = 0; s.first < rows; s.first += step) {
        const std::int64_t elements = std::min(step, rows - s.first) * in_row;
        s.elements = static_cast<std::uint32_t>(elements);
        launch(c, name, over(elements), f, s, tensors...);
    }
}

} // namespace detail

template <class T>
struct kernel<max_pool_op, T> {
    static void run(const kernel_call& c) {
        detail::pool(c, "max_pool", runtime::pooling(runtime::attributes_of<max_pool_op>(c), c.in[0], c.out[0]), false,
                     false, kernels::pool_forward<true, T>, c.in[0].as<const T>(), c.out[0].as<T>());
    }
};
template <class T>
struct kernel<max_pool_gradient_op, T> {
    static void run(const kernel_call& c) {
        detail::pool(c, "max_pool_gradient", runtime::pooling(runtime::attributes_of<max_pool_op>(c), c.in[1], c.in[2]),
                     true, false, kernels::pool_gradient<true, T>, c.in[0].as<const T>(), c.in[1].as<const T>(),
                     c.in[2].as<const T>(), c.out[0].as<T>());
    }
};
template <class T>
struct kernel<max_pool_select_op, T> {
    static void run(const kernel_call& c) {
        detail::pool(c, "max_pool_select", runtime::pooling(runtime::attributes_of<max_pool_op>(c), c.in[1], c.in[2]),
                     false, false, kernels::pool_select<T>, c.in[0].as<const T>(), c.in[1].as<const T>(),
                     c.in[2].as<const T>(), c.out[0].as<T>());
    }
};
template <class T>
struct kernel<average_pool_op, T> {
    static void run(const kernel_call& c) {
        const auto a = runtime::attributes_of<average_pool_op>(c);
        detail::pool(c, "average_pool", runtime::pooling(a, c.in[0], c.out[0]), false, a.count_padding != 0,
                     kernels::pool_forward<false, T>, c.in[0].as<const T>(), c.out[0].as<T>());
    }
};
template <class T>
struct kernel<average_pool_gradient_op, T> {
    static void run(const kernel_call& c) {
        const auto a = runtime::attributes_of<average_pool_op>(c);
        detail::pool(c, "average_pool_gradient", runtime::pooling(a, c.out[0], c.in[0]), true, a.count_padding != 0,
                     kernels::pool_gradient<false, T>, c.in[0].as<const T>(), static_cast<const T*>(nullptr),
                     static_cast<const T*>(nullptr), c.out[0].as<T>());
    }
};

} // namespace tapegraph::cuda
