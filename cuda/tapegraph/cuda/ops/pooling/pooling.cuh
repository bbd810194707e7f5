#pragma once

#include <tapegraph/cuda/kernel.cuh>
#include <tapegraph/cuda/kernels/pool.cuh>
#include <tapegraph/cuda/ops/movement/boxes.cuh>
#include <tapegraph/ops/pooling/kernel.hpp>

#include <algorithm>
#include <cstdint>
#include <initializer_list>

/// Kernels of maximum and average pooling, and their gradients.

namespace tapegraph::cuda {

namespace detail {

/// Launches f over the elements of the image or of the pooled image, with `Lanes` channels per
/// thread. `name` is the operation's.
template <int Lanes = 1, class... P, class... A>
void pool(const kernel_call& c, const char* name, const cpu::pool_geometry& g, bool of_input, bool whole_count,
          void (*f)(kernels::pool_shape, P...), A... tensors) {
    const std::int64_t height = of_input ? g.in_height : g.out_height, width = of_input ? g.in_width : g.out_width;
    const std::int64_t rows = g.batch * height, in_row = width * (g.channels / Lanes);
    if (rows * in_row == 0) return;
    constexpr std::int64_t most = std::int64_t{1} << 30; // 31 bits count rows, and the elements of one
    if (std::max({rows, width * g.channels, g.in_height, g.in_width * g.channels}) > most)
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
    s.by_channels = kernels::divisor(static_cast<std::uint32_t>(g.channels / Lanes));
    s.by_height = kernels::divisor(static_cast<std::uint32_t>(height));
    const std::int64_t step = std::max<std::int64_t>(1, std::min(most, most_elements) / in_row);
    for (s.first = 0; s.first < rows; s.first += step) {
        const std::int64_t elements = std::min(step, rows - s.first) * in_row;
        s.elements = static_cast<std::uint32_t>(elements);
        launch(c, name, over(elements), f, s, tensors...);
    }
}

/// Calls f(constant<n>()), where n is the number of channels that a thread takes at once: 16 bytes
/// of them, or 8 if the number of channels and the tensors' addresses allow no more.
template <class T, int Bytes = 16, class F>
void by_lanes(std::int64_t channels, std::initializer_list<const void*> tensors, const F& f) {
    constexpr int lanes = Bytes / static_cast<int>(sizeof(T));
    if constexpr (lanes <= 1) {
        f(kernels::constant<1>());
    } else {
        const bool aligned = std::all_of(tensors.begin(), tensors.end(), [](const void* at) {
            return reinterpret_cast<std::uintptr_t>(at) % Bytes == 0;
        });
        if (aligned && channels % lanes == 0)
            f(kernels::constant<lanes>());
        else
            by_lanes<T, Bytes / 2>(channels, tensors, f);
    }
}

/// The most elements that one thread takes one after another; beyond that there would be too few
/// threads.
inline constexpr std::int64_t most_in_window = 16;

template <bool Maximum, class T>
void pool_forward(const kernel_call& c, const char* name, const cpu::pool_geometry& g, bool whole_count) {
    const T* const x = c.in[0].as<const T>();
    T* const y = c.out[0].as<T>();
    const auto go = [&]<int Lanes>(kernels::constant<Lanes>) {
        pool<Lanes>(c, name, g, false, whole_count, kernels::pool_forward<Maximum, Lanes, T>, x, y);
    };
    if (g.window_height * g.window_width <= most_in_window)
        by_lanes<T>(g.channels, {x, y}, go);
    else
        go(kernels::constant<1>());
}

/// x and y are null for averages.
template <bool Maximum, class T>
void pool_gradient(const kernel_call& c, const char* name, const cpu::pool_geometry& g, bool whole_count, const T* x,
                   const T* y) {
    const T* const dy = c.in[0].as<const T>();
    T* const dx = c.out[0].as<T>();
    if (cpu::pool_detail::overlapping(g) || g.out_height == 0 || g.out_width == 0 ||
        g.stride_height * g.stride_width > most_in_window)
        return pool(c, name, g, true, whole_count, kernels::pool_gradient<Maximum, T>, dy, x, y, dx);
    by_lanes<T>(g.channels, {dy, x, y, dx}, [&]<int Lanes>(kernels::constant<Lanes>) {
        pool<Lanes>(c, name, g, false, whole_count, kernels::pool_gradient_apart<Maximum, Lanes, T>, dy, x, y, dx);
    });
}

} // namespace detail

template <class T>
struct kernel<max_pool_op, T> {
    static void run(const kernel_call& c) {
        detail::pool_forward<true, T>(
            c, "max_pool", runtime::pooling(runtime::attributes_of<max_pool_op>(c), c.in[0], c.out[0]), false);
    }
};
template <class T>
struct kernel<max_pool_gradient_op, T> {
    static void run(const kernel_call& c) {
        detail::pool_gradient<true, T>(c, "max_pool_gradient",
                                       runtime::pooling(runtime::attributes_of<max_pool_op>(c), c.in[1], c.in[2]),
                                       false, c.in[1].as<const T>(), c.in[2].as<const T>());
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
        detail::pool_forward<false, T>(c, "average_pool", runtime::pooling(a, c.in[0], c.out[0]), a.count_padding != 0);
    }
};
template <class T>
struct kernel<average_pool_gradient_op, T> {
    static void run(const kernel_call& c) {
        const auto a = runtime::attributes_of<average_pool_op>(c);
        detail::pool_gradient<false, T>(c, "average_pool_gradient", runtime::pooling(a, c.out[0], c.in[0]),
                                        a.count_padding != 0, nullptr, nullptr);
    }
};

} // namespace tapegraph::cuda
