#pragma once

#include <tapegraph/cuda/ops/convolution/convolution.cuh>
#include <tapegraph/cuda/kernels/finish_product.cuh>
#include <tapegraph/cuda/widened.cuh>
#include <tapegraph/ops/convolution/kernel.hpp>

#include <algorithm>

/// Convolution, bias and relu of 16-bit elements: the float kernel on converted operands, whose sums are rounded on the way
/// out. Each of the three operations rounds its result, as it does alone.

namespace tapegraph::cuda {

template <bool Relu, storage_type T>
struct kernel<convolution_bias_op<Relu>, T> {
    static std::size_t workspace(const kernel_call& c) {
        const runtime::detail::widened_call wide(c);
        return wide.bytes + kernel<convolution_op, float>::workspace(wide.call);
    }
    static void run(const kernel_call& c) {
        const runtime::detail::widened_call wide(c);
        for (int i = 0; i < 2; ++i) detail::convert<float, T>(c, wide.call.in[i], c.in[i]);
        kernel<convolution_op, float>::run(wide.call);
        const std::int64_t channels = c.in[2].elements();
        if (c.out[0].elements() == 0) return;
        const std::int64_t pixels = c.out[0].elements() / channels;
        launch(c, convolution_bias_op<Relu>::name.data(),
               {static_cast<unsigned>(std::min<std::int64_t>((pixels + 7) / 8, 65535)), dim3(32, 8)},
               kernels::narrow_product<T>, wide.call.out[0].as<const float>(), c.in[2].as<const T>(), c.out[0].as<T>(),
               pixels, channels, Relu);
    }
};

} // namespace tapegraph::cuda
