#include <tapegraph/cuda/ops/convolution/storage.cuh>
#include <tapegraph/cuda/ops/pooling/of_convolution.cuh>

/// Instantiates everything that convolutions choose among.

namespace tapegraph::cuda {

template struct kernel<convolution_op, float>;
template struct kernel<convolution_bias_op<true>, float>;
template struct kernel<convolution_bias_pool_op<true>, float>;
template struct kernel<convolution_bias_op<true>, bfloat16>;
template struct kernel<convolution_bias_op<true>, half>;
template struct detail::widened_convolution<convolution_op, convolution_pass::forward>;
template struct detail::widened_convolution<convolution_input_gradient_op, convolution_pass::input_gradient>;
template struct detail::widened_convolution<convolution_filter_gradient_op, convolution_pass::filter_gradient>;
template struct kernel<convolution_input_gradient_op, float>;
template struct kernel<convolution_filter_gradient_op, float>;
template struct kernel<convolution_op, double>;
template struct kernel<convolution_input_gradient_op, double>;
template struct kernel<convolution_filter_gradient_op, double>;

} // namespace tapegraph::cuda
