#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/cuda/ops/recurrent/recurrence.cuh>

/// Lists the recurrences that the component (cuda/component.cuh) holds, those of the library's
/// cells. The cells are declared here, so that a program of LSTMs does not include GRUs. The
/// component's own source includes ops/recurrent/layers_kernel.hpp first.

#ifdef TG_CUDA_COMPONENT
namespace tapegraph::cpu {
struct lstm_cell;
template <bool ResetAfter>
struct gru_cell;
struct simple_rnn_cell;
} // namespace tapegraph::cpu

namespace tapegraph::cuda {

#if TG_CUDA_COMPONENT == 2 && TG_IF(TG_IS_PART(TG_CUDA_PART, recurrent), 1, 0)
#define TG_HELD_RECURRENCE template
#else
#define TG_HELD_RECURRENCE extern template
#endif
#define TG_RECURRENCE_ON_DEVICE(T, ...)                                                                                \
    TG_HELD_RECURRENCE void recurrent_forward<__VA_ARGS__, T>(driver::stream, const char*,                             \
                                                              const driver::device_properties&,                        \
                                                              const recurrent_geometry&,                               \
                                                              const recurrent_forward_operands<T>&, void*);            \
    TG_HELD_RECURRENCE void recurrent_backward<__VA_ARGS__, T>(driver::stream, const char*,                            \
                                                               const driver::device_properties&,                       \
                                                               const recurrent_geometry&,                              \
                                                               const recurrent_backward_operands<T>&, void*);
TG_RECURRENCE_ON_DEVICE(float, cpu::lstm_cell)
TG_RECURRENCE_ON_DEVICE(float, cpu::gru_cell<true>)
TG_RECURRENCE_ON_DEVICE(float, cpu::gru_cell<false>)
TG_RECURRENCE_ON_DEVICE(float, cpu::simple_rnn_cell)
TG_RECURRENCE_ON_DEVICE(double, cpu::lstm_cell)
TG_RECURRENCE_ON_DEVICE(double, cpu::gru_cell<true>)
TG_RECURRENCE_ON_DEVICE(double, cpu::gru_cell<false>)
TG_RECURRENCE_ON_DEVICE(double, cpu::simple_rnn_cell)
#undef TG_RECURRENCE_ON_DEVICE
#undef TG_HELD_RECURRENCE

} // namespace tapegraph::cuda
#endif
