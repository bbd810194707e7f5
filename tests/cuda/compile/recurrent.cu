#include <tapegraph/cuda/ops/recurrent/recurrent.cuh>

#include <tapegraph/ops/recurrent/cpu_gru_cell.hpp>
#include <tapegraph/ops/recurrent/cpu_lstm_cell.hpp>
#include <tapegraph/ops/recurrent/cpu_simple_rnn_cell.hpp>

/// Instantiates recurrent layers: every way of running them, and the kernels that copy their rows.
/// No kernel here may spill registers. Of those for double CI has the LSTM's alone,
/// which take the most registers.

namespace tapegraph::cuda::kernels {

#define TG_RESIDENT(CELL, T, RESIDENT, EXCHANGE)                                                                       \
    template __global__ void recurrent_forward_resident<CELL, T, RESIDENT, EXCHANGE<T, 1>>(                            \
        recurrent_forward_operands<T>, recurrent_shape, recurrent_split, unsigned*);                                   \
    template __global__ void recurrent_backward_resident<CELL, T, RESIDENT, EXCHANGE<T, CELL::columns>>(               \
        recurrent_backward_operands<T>, recurrent_shape, recurrent_split, unsigned*);
#define TG_RESIDENT_EXCHANGES(CELL, T, FEW, MANY)                                                                      \
    TG_RESIDENT(CELL, T, FEW, grid_exchange)                                                                           \
    TG_RESIDENT(CELL, T, MANY, grid_exchange)                                                                          \
    TG_RESIDENT(CELL, T, FEW, cluster_exchange)                                                                        \
    TG_RESIDENT(CELL, T, MANY, cluster_exchange)
TG_RESIDENT_EXCHANGES(cpu::lstm_cell, float, 4, 8)
TG_RESIDENT_EXCHANGES(cpu::gru_cell<true>, float, 4, 8)
TG_RESIDENT_EXCHANGES(cpu::simple_rnn_cell, float, 4, 8)
TG_RESIDENT_EXCHANGES(cpu::lstm_cell, double, 2, 4)
#ifdef TG_EVERY_KERNEL
TG_RESIDENT_EXCHANGES(cpu::gru_cell<true>, double, 2, 4)
TG_RESIDENT_EXCHANGES(cpu::simple_rnn_cell, double, 2, 4)
#endif

#define TG_STEP(CELL, T, PHASE, LARGE)                                                                                 \
    template __global__ void step_gemm<recurrent_forward_step<CELL, T, PHASE>,                                         \
                                       recurrent_detail::step_tile_of<phase_gates<CELL, PHASE>::count, LARGE>>(        \
        recurrent_forward_step<CELL, T, PHASE>);                                                                       \
    template __global__ void                                                                                           \
        step_gemm<recurrent_backward_step<CELL, T, PHASE>, recurrent_detail::step_tile_of<1, LARGE>>(                  \
            recurrent_backward_step<CELL, T, PHASE>);
#define TG_STEPS(CELL, T, PHASE)                                                                                       \
    TG_STEP(CELL, T, PHASE, false)                                                                                     \
    TG_STEP(CELL, T, PHASE, true)
#define TG_STEPS_OF_CELLS(T)                                                                                           \
    TG_STEPS(cpu::gru_cell<true>, T, 0)                                                                                \
    TG_STEPS(cpu::gru_cell<false>, T, 0)                                                                               \
    TG_STEPS(cpu::gru_cell<false>, T, 1)                                                                               \
    TG_STEPS(cpu::simple_rnn_cell, T, 0)
TG_STEPS(cpu::lstm_cell, float, 0)
TG_STEPS(cpu::lstm_cell, double, 0)
TG_STEPS_OF_CELLS(float)
#ifdef TG_EVERY_KERNEL
TG_STEPS_OF_CELLS(double)
#endif

#define TG_TENSOR_STEP(CELL, PASS, PHASE, LARGE, PRECISION)                                                            \
    template __global__ void tensor_step<                                                                              \
        recurrent_detail::tensor_problem<CELL, recurrent_pass::PASS, PHASE>,                                           \
        recurrent_detail::tensor_step_tile_of<CELL, recurrent_pass::PASS, PHASE, LARGE>, tensor_precision::PRECISION>( \
        recurrent_detail::tensor_problem<CELL, recurrent_pass::PASS, PHASE>);
#define TG_TENSOR_STEPS(CELL, PHASE)                                                                                   \
    TG_TENSOR_STEP(CELL, forward, PHASE, false, tf32)                                                                  \
    TG_TENSOR_STEP(CELL, forward, PHASE, true, tf32)                                                                   \
    TG_TENSOR_STEP(CELL, forward, PHASE, false, tf32x3)                                                                \
    TG_TENSOR_STEP(CELL, backward, PHASE, false, tf32)                                                                 \
    TG_TENSOR_STEP(CELL, backward, PHASE, true, tf32)                                                                  \
    TG_TENSOR_STEP(CELL, backward, PHASE, false, tf32x3)
TG_TENSOR_STEPS(cpu::lstm_cell, 0)
TG_TENSOR_STEPS(cpu::gru_cell<true>, 0)
TG_TENSOR_STEPS(cpu::gru_cell<false>, 0)
TG_TENSOR_STEPS(cpu::gru_cell<false>, 1)
TG_TENSOR_STEPS(cpu::simple_rnn_cell, 0)

template __global__ void begin_tensor_steps<float>(recurrent_shape, const float*, const float*, tensor_operands,
                                                   std::int64_t);
template __global__ void pad_units<float>(const float*, float*, std::int64_t, int, int);

template __global__ void copy_recurrent_rows<float>(recurrent_copy<float>, recurrent_shape);
template __global__ void copy_recurrent_rows<double>(recurrent_copy<double>, recurrent_shape);

} // namespace tapegraph::cuda::kernels
