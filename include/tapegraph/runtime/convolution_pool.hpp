#pragma once

#include <tapegraph/cpu/convolution.hpp>
#include <tapegraph/cpu/pool.hpp>
#include <tapegraph/ops/pooling.hpp>
#include <tapegraph/runtime/kernel.hpp>
#include <tapegraph/runtime/window_geometry.hpp>

namespace tapegraph::runtime {

// Some images at a time: they are convolved into scratch memory and pooled from there while they lie in the caches.
template <bool Relu, class T>
struct kernel<convolution_bias_pool_op<Relu>, T> {
    static std::size_t workspace(const kernel_call& c) {
        const convolution_geometry g = chunk(pooled_geometry(c));
        return image_bytes(g) * static_cast<std::size_t>(g.batch) +
               cpu::convolution_workspace_bytes<T>(g, cpu::convolution_pass::forward, thread_count());
    }
    static void run(const kernel_call& c) {
        const convolution_geometry all = pooled_geometry(c);
        if (c.out[0].elements() == 0) return;
        convolution_geometry g = chunk(all);
        T* const y = static_cast<T*>(c.workspace);
        cpu::detail::workspace_cutter cut(static_cast<std::byte*>(c.workspace) +
                                          image_bytes(g) * static_cast<std::size_t>(g.batch));
        void* const rest = cut.take<T>(0);
        cpu::detail::take_forward_scratch<T>(cut, g, thread_count());
        T* const packed = cut.take<T>(cpu::detail::forward_filter_elements<T>(g, cpu::tile_kernels<T>::most_lanes));
        cpu::pack_filters(g, c.in[1].as<const T>(), packed);
        const std::int64_t in_image = g.in_height * g.in_width * g.in_channels;
        const std::int64_t out_image = g.out_height / 2 * (g.out_width / 2) * g.out_channels;
        const std::int64_t images = g.batch;
        for (std::int64_t first = 0; first < all.batch; first += images) {
            g.batch = std::min(images, all.batch - first);
            cpu::convolution_forward_packed<T>(g, c.in[0].as<const T>() + first * in_image, packed, y, rest,
                                               {c.in[2].as<const T>(), Relu});
            cpu::pool_geometry p{};
            p.batch = g.batch, p.channels = g.out_channels;
            p.in_height = g.out_height, p.in_width = g.out_width;
            p.out_height = g.out_height / 2, p.out_width = g.out_width / 2;
            p.window_height = p.window_width = p.stride_height = p.stride_width = 2;
            cpu::max_pool_forward<T>(p, y, c.out[0].as<T>() + first * out_image);
        }
    }

private:
    // As many images as half a megabyte holds for each thread: a part of the second-level cache.
    static convolution_geometry chunk(convolution_geometry g) {
        const auto room = static_cast<std::int64_t>(std::size_t{512 * 1024} * static_cast<std::size_t>(thread_count()) /
                                                    std::max<std::size_t>(1, image_bytes(g)));
        g.batch = std::min(g.batch, std::max<std::int64_t>(1, room));
        return g;
    }
    static std::size_t image_bytes(const convolution_geometry& g) {
        return (static_cast<std::size_t>(g.out_height * g.out_width * g.out_channels) * sizeof(T) + 63) / 64 * 64;
    }
};

} // namespace tapegraph::runtime
