#include <tapegraph/cuda/kernels/convolution.cuh>
#include <tapegraph/cuda/kernels/implicit_gemm.cuh>
#include <tapegraph/cuda/kernels/recurrent_resident.cuh>
#include <tapegraph/cuda/kernels/tensor_gemm.cuh>
#include <tapegraph/cuda/kernels/tensor_step.cuh>
#include <tapegraph/cuda/ops/recurrent/plan.cuh>

#include <tapegraph/ops/recurrent/cpu_lstm_cell.hpp>

/// The kernels whose machine code tools/sass_gate.py reads: those with a main loop that is counted,
/// or steps that must not wait. No host code is compiled from this file.

namespace tapegraph::cuda::kernels {

#define TG_RESIDENT(CELL, T, RESIDENT, EXCHANGE)                                                                       \
    template __global__ void recurrent_forward_resident<CELL, T, RESIDENT, EXCHANGE<T, 1>>(                            \
        recurrent_forward_operands<T>, recurrent_shape, recurrent_split, unsigned*);                                   \
    template __global__ void recurrent_backward_resident<CELL, T, RESIDENT, EXCHANGE<T, CELL::columns>>(               \
        recurrent_backward_operands<T>, recurrent_shape, recurrent_split, unsigned*);
TG_RESIDENT(cpu::lstm_cell, float, 8, grid_exchange)
#if __CUDA_ARCH__ >= 900
TG_RESIDENT(cpu::lstm_cell, float, 8, cluster_exchange)
#endif

#define TG_MULTIPLY_ADDS(PROBLEM)                                                                                      \
    template __global__ void implicit_gemm<PROBLEM<float>, tile_shape<64, 160, 8, 4, 20>, 2>(PROBLEM<float>);
TG_MULTIPLY_ADDS(forward_problem)
#if __CUDA_ARCH__ == 900
TG_MULTIPLY_ADDS(input_gradient_problem)
TG_MULTIPLY_ADDS(filter_gradient_problem)
#endif

#define TG_TENSOR_CORES(PROBLEM, T)                                                                                    \
    template __global__ void tensor_gemm<PROBLEM<T>, tensor_tile<128, 160, 16, 2, 4, 4>, 2, tensor_precision::tf32>(   \
        PROBLEM<T>);
#if __CUDA_ARCH__ >= 800
TG_TENSOR_CORES(forward_problem, float)
TG_TENSOR_CORES(forward_problem, bfloat16)
#endif
#if __CUDA_ARCH__ == 900
TG_TENSOR_CORES(input_gradient_problem, float)
TG_TENSOR_CORES(filter_gradient_problem, float)
TG_TENSOR_CORES(input_gradient_problem, bfloat16)
TG_TENSOR_CORES(filter_gradient_problem, bfloat16)
template __global__ void
    tensor_gemm<forward_problem<float>, tensor_tile<64, 64, 16, 2, 2, 4>, 2, tensor_precision::tf32x3>(
        forward_problem<float>);
#endif

#define TG_TENSOR_STEP(LARGE, PRECISION)                                                                               \
    template __global__ void                                                                                           \
        tensor_step<tensor_forward_step<cpu::lstm_cell, 0>,                                                            \
                    recurrent_detail::tensor_step_tile_of<cpu::lstm_cell, recurrent_pass::forward, 0, LARGE>,          \
                    tensor_precision::PRECISION>(tensor_forward_step<cpu::lstm_cell, 0>);                              \
    template __global__ void                                                                                           \
        tensor_step<tensor_backward_step<cpu::lstm_cell, 0>,                                                           \
                    recurrent_detail::tensor_step_tile_of<cpu::lstm_cell, recurrent_pass::backward, 0, LARGE>,         \
                    tensor_precision::PRECISION>(tensor_backward_step<cpu::lstm_cell, 0>);
#if __CUDA_ARCH__ >= 800
TG_TENSOR_STEP(false, tf32)
TG_TENSOR_STEP(true, tf32)
#endif
#if __CUDA_ARCH__ == 900
TG_TENSOR_STEP(false, tf32x3)
#endif

} // namespace tapegraph::cuda::kernels
