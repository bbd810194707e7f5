#include <tapegraph/cuda/kernels/convolution.cuh>
#include <tapegraph/cuda/kernels/few_channels.cuh>
#include <tapegraph/cuda/kernels/implicit_gemm.cuh>

/// Kernels that multiply matrices, one of each, compiled to PTX, in which their multiplications
/// must be fused.

namespace tapegraph::cuda::kernels {

using tile = tile_shape<64, 64, 16, 4, 8>;
template __global__ void implicit_gemm<forward_problem<float>, tile, 4>(forward_problem<float>);
template __global__ void implicit_gemm<forward_problem<double>, tile, 2>(forward_problem<double>);
template __global__ void few_channels_forward<float, 3, 4>(few_channels_problem<float>);
template __global__ void few_channels_filter_gradient<float, 3, 4>(few_channels_problem<float>);

} // namespace tapegraph::cuda::kernels
