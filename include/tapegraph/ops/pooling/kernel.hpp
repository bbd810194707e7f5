#pragma once

#include <tapegraph/ops/pooling/cpu.hpp>
#include <tapegraph/ops/pooling/pooling.hpp>
#include <tapegraph/runtime/kernel.hpp>

namespace tapegraph::runtime {

/// The geometry of a pooling for the image and the pooled image. Rank 3 (NWC) means height 1.
inline cpu::pool_geometry pooling(const window_attributes& a, const buffer_view& x, const buffer_view& y) {
    const bool flat = x.rank == 3;
    cpu::pool_geometry g{};
    g.batch = x.extents[0];
    g.in_height = flat ? 1 : x.extents[1];
    g.in_width = x.extents[x.rank - 2];
    g.channels = x.extents[x.rank - 1];
    g.out_height = flat ? 1 : y.extents[1];
    g.out_width = y.extents[y.rank - 2];
    g.window_height = a.window[0];
    g.window_width = a.window[1];
    g.stride_height = a.stride[0];
    g.stride_width = a.stride[1];
    g.dilation_height = a.dilation[0];
    g.dilation_width = a.dilation[1];
    g.pad_top = flat ? 0 : a.leading(0, g.in_height, g.out_height, g.window_height);
    g.pad_left = a.leading(1, g.in_width, g.out_width, g.window_width);
    return g;
}

template <class T>
struct kernel<max_pool_op, T> {
    static void run(const kernel_call& c) {
        cpu::max_pool_forward<T>(pooling(attributes_of<max_pool_op>(c), c.in[0], c.out[0]), c.in[0].as<const T>(),
                                 c.out[0].as<T>());
    }
};
template <class T>
struct kernel<max_pool_gradient_op, T> {
    static void run(const kernel_call& c) {
        cpu::max_pool_gradient<T>(pooling(attributes_of<max_pool_op>(c), c.in[1], c.in[2]), c.in[0].as<const T>(),
                                  c.in[1].as<const T>(), c.in[2].as<const T>(), c.out[0].as<T>());
    }
};
template <class T>
struct kernel<max_pool_select_op, T> {
    static void run(const kernel_call& c) {
        cpu::max_pool_select<T>(pooling(attributes_of<max_pool_op>(c), c.in[1], c.in[2]), c.in[0].as<const T>(),
                                c.in[1].as<const T>(), c.in[2].as<const T>(), c.out[0].as<T>());
    }
};
template <class T>
struct kernel<average_pool_op, T> {
    static void run(const kernel_call& c) {
        cpu::average_pool_forward<T>(pooling(attributes_of<average_pool_op>(c), c.in[0], c.out[0]),
                                     c.in[0].as<const T>(), c.out[0].as<T>(),
                                     attributes_of<average_pool_op>(c).count_padding != 0);
    }
};
template <class T>
struct kernel<average_pool_gradient_op, T> {
    static void run(const kernel_call& c) {
        cpu::average_pool_gradient<T>(pooling(attributes_of<average_pool_op>(c), c.out[0], c.in[0]),
                                      c.in[0].as<const T>(), c.out[0].as<T>(),
                                      attributes_of<average_pool_op>(c).count_padding != 0);
    }
};

} // namespace tapegraph::runtime

#include <tapegraph/ops/compiled_kernels.hpp>
