#pragma once

#include <tapegraph/ops/convolution/call_geometry.hpp>
#include <tapegraph/ops/pooling/cpu_of_convolution.hpp>
#include <tapegraph/ops/pooling/pooling.hpp>
#include <tapegraph/runtime/kernel.hpp>

namespace tapegraph::runtime {

template <bool Relu, class T>
struct kernel<convolution_bias_pool_op<Relu>, T> {
    static std::size_t workspace(const kernel_call& c) {
        return cpu::convolution_pool_workspace_bytes<T>(pooled_geometry(c), thread_count());
    }
    static void run(const kernel_call& c) {
        cpu::convolution_pool_forward<T>(pooled_geometry(c), c.in[0].as<const T>(), c.in[1].as<const T>(),
                                         c.out[0].as<T>(), c.workspace, {c.in[2].as<const T>(), Relu});
    }
};

TG_COMPILED_KERNELS(pooling, floating_types, convolution_bias_pool_op<false>)
TG_COMPILED_KERNELS(pooling, floating_types, convolution_bias_pool_op<true>)

} // namespace tapegraph::runtime
