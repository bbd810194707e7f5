#include <tapegraph/cuda/ops/pooling/of_convolution.cuh>
#include <tapegraph/cuda/ops/convolution/storage.cuh>

/// Everything that convolutions choose among.

namespace tapegraph::cuda {

template struct kernel<convolution_op, float>;
template struct kernel<convolution_bias_op<true>, float>;
template struct kernel<convolution_bias_pool_op<true>, float>;
template struct kernel<convolution_bias_op<true>, bfloat16>;
template struct kernel<convolution_bias_op<true>, half>;
template struct kernel<convolution_input_gradient_op, float>;
template struct kernel<convolution_filter_gradient_op, float>;
template struct kernel<convolution_op, double>;
template struct kernel<convolution_input_gradient_op, double>;
template struct kernel<convolution_filter_gradient_op, double>;

} // namespace tapegraph::cuda
