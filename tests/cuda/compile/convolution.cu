#include <tapegraph/cuda/ops/convolution/storage.cuh>
#include <tapegraph/cuda/ops/pooling/of_convolution.cuh>

/// Instantiates everything that convolutions choose among. CI has neither those of
/// half, which are bfloat16's with another conversion, nor those that pool.

namespace tapegraph::cuda {

template struct kernel<convolution_op, float>;
template struct kernel<convolution_bias_op<true>, float>;
template struct kernel<convolution_input_gradient_op, float>;
template struct kernel<convolution_filter_gradient_op, float>;
template struct kernel<convolution_op, double>;
template struct kernel<convolution_input_gradient_op, double>;
template struct kernel<convolution_filter_gradient_op, double>;
template struct kernel<convolution_bias_op<true>, bfloat16>;
#ifdef TG_EVERY_KERNEL
template struct kernel<convolution_bias_op<true>, half>;
template struct kernel<convolution_bias_pool_op<true>, float>;
template struct detail::widened_convolution<convolution_op, convolution_pass::forward>;
template struct detail::widened_convolution<convolution_input_gradient_op, convolution_pass::input_gradient>;
template struct detail::widened_convolution<convolution_filter_gradient_op, convolution_pass::filter_gradient>;
#else
template struct detail::narrow_call<convolution_input_gradient_op, bfloat16, convolution_pass::input_gradient>;
template struct detail::narrow_call<convolution_filter_gradient_op, bfloat16, convolution_pass::filter_gradient>;
#endif

} // namespace tapegraph::cuda
