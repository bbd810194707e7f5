#include <tapegraph/cuda/kernels/convolution.cuh>
#include <tapegraph/cuda/kernels/tensor_gemm.cuh>

/// The convolution kernels in shapes that a GPU is to run them in.

namespace tapegraph::cuda::kernels {

using ffma_tile = tile_shape<128, 128, 8, 8, 8>;
using double_tile = tile_shape<64, 64, 8, 4, 4>;
template __global__ void implicit_gemm<forward_problem<float>, ffma_tile>(forward_problem<float>);
template __global__ void implicit_gemm<input_gradient_problem<float>, ffma_tile>(input_gradient_problem<float>);
template __global__ void implicit_gemm<filter_gradient_problem<float>, ffma_tile>(filter_gradient_problem<float>);
template __global__ void implicit_gemm<forward_problem<double>, double_tile>(forward_problem<double>);
template __global__ void sum_splits<float>(const float*, float*, std::int64_t, int);
template __global__ void sum_splits<double>(const double*, double*, std::int64_t, int);

} // namespace tapegraph::cuda::kernels
