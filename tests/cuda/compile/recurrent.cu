#include <tapegraph/cuda/recurrent.cuh>

/// LSTMs: every way of running them, and what copies their rows. What is here may spill nothing.

namespace tapegraph::cuda::kernels {

#define TG_LSTM_RESIDENT(T, RESIDENT, EXCHANGE)                                                                        \
    template __global__ void lstm_forward_resident<T, RESIDENT, EXCHANGE<T, 1>>(lstm_forward_operands<T>, lstm_shape,  \
                                                                                lstm_split, unsigned*);                \
    template __global__ void lstm_backward_resident<T, RESIDENT, EXCHANGE<T, 4>>(lstm_backward_operands<T>,            \
                                                                                 lstm_shape, lstm_split, unsigned*);
TG_LSTM_RESIDENT(float, 4, grid_exchange)
TG_LSTM_RESIDENT(float, 8, grid_exchange)
TG_LSTM_RESIDENT(float, 4, cluster_exchange)
TG_LSTM_RESIDENT(float, 8, cluster_exchange)
TG_LSTM_RESIDENT(double, 2, grid_exchange)
TG_LSTM_RESIDENT(double, 4, grid_exchange)
TG_LSTM_RESIDENT(double, 2, cluster_exchange)
TG_LSTM_RESIDENT(double, 4, cluster_exchange)
#undef TG_LSTM_RESIDENT

#define TG_LSTM_STEP(T, TILE)                                                                                          \
    template __global__ void step_gemm<lstm_forward_step<T>, lstm_detail::TILE>(lstm_forward_step<T>);                 \
    template __global__ void step_gemm<lstm_backward_step<T>, lstm_detail::TILE>(lstm_backward_step<T>);
TG_LSTM_STEP(float, lstm_small_tile)
TG_LSTM_STEP(float, lstm_large_tile)
TG_LSTM_STEP(double, lstm_small_tile)
TG_LSTM_STEP(double, lstm_large_tile)
#undef TG_LSTM_STEP

template __global__ void copy_lstm_rows<float>(lstm_copy<float>, lstm_shape);
template __global__ void copy_lstm_rows<double>(lstm_copy<double>, lstm_shape);

} // namespace tapegraph::cuda::kernels
