#pragma once

#include <tapegraph/ops/recurrent/cpu_gru_cell.hpp>
#include <tapegraph/ops/recurrent/cpu_lstm_cell.hpp>
#include <tapegraph/ops/recurrent/cpu_simple_rnn_cell.hpp>
#include <tapegraph/ops/recurrent/kernel.hpp>

/// Maps each recurrent layer to the CPU's cell that computes it. The layers' headers include it, so
/// that they suffice: no header that every program reads includes it.

namespace tapegraph::detail {
struct lstm_layer_cell;
struct gru_layer_cell;
struct simple_rnn_layer_cell;
} // namespace tapegraph::detail

namespace tapegraph::runtime::detail {

template <>
struct cpu_cells<tapegraph::detail::lstm_layer_cell> {
    template <class F>
    static auto call(const recurrent_attributes&, const F& f) {
        return f(cpu::lstm_cell{});
    }
};
template <>
struct cpu_cells<tapegraph::detail::gru_layer_cell> {
    template <class F>
    static auto call(const recurrent_attributes& a, const F& f) {
        return a.reset_after != 0 ? f(cpu::gru_cell<true>{}) : f(cpu::gru_cell<false>{});
    }
};
template <>
struct cpu_cells<tapegraph::detail::simple_rnn_layer_cell> {
    template <class F>
    static auto call(const recurrent_attributes&, const F& f) {
        return f(cpu::simple_rnn_cell{});
    }
};

} // namespace tapegraph::runtime::detail

namespace tapegraph::cpu {

#define TG_COMPILED_CELL(T, ...)                                                                                       \
    TG_COMPILED(recurrent,                                                                                             \
                std::size_t recurrent_workspace_bytes<__VA_ARGS__, T>(const recurrent_shape<T>&, bool, int))           \
    TG_COMPILED(recurrent, int recurrent_row_vectors<__VA_ARGS__, T>(const recurrent_shape<T>&))                       \
    TG_COMPILED(recurrent, void pack_recurrent_matrix<__VA_ARGS__, T>(const recurrent_shape<T>&, int, T*))             \
    TG_COMPILED(recurrent, void recurrent_forward<__VA_ARGS__, T>(const recurrent_shape<T>&, step_rows<const T>,       \
                                                                  const recurrent_results<T>&, void*))                 \
    TG_COMPILED(recurrent, void recurrent_backward<__VA_ARGS__, T>(const recurrent_shape<T>&,                          \
                                                                   const recurrent_gradients<T>&, void*))              \
    TG_COMPILED(recurrent,                                                                                             \
                std::size_t recurrent_second_workspace_bytes<__VA_ARGS__, T>(const recurrent_shape<T>&, int))          \
    TG_COMPILED(recurrent, void recurrent_second<__VA_ARGS__, T>(const recurrent_shape<T>&,                            \
                                                                 const recurrent_second_arguments<T>&, void*))
TG_COMPILED_CELL(float, lstm_cell)
TG_COMPILED_CELL(float, gru_cell<true>)
TG_COMPILED_CELL(float, gru_cell<false>)
TG_COMPILED_CELL(float, simple_rnn_cell)
TG_COMPILED_CELL(double, lstm_cell)
TG_COMPILED_CELL(double, gru_cell<true>)
TG_COMPILED_CELL(double, gru_cell<false>)
TG_COMPILED_CELL(double, simple_rnn_cell)
#undef TG_COMPILED_CELL

} // namespace tapegraph::cpu

/// The kernels of a layer's cell, for the end of the header that defines it.
#define TG_COMPILED_LAYER_OF(T, ...)                                                                                   \
    TG_COMPILED(recurrent, std::size_t recurrent_pass_bytes<__VA_ARGS__, T>(const kernel_call&, int, int, int, bool))  \
    TG_COMPILED(recurrent, std::size_t recurrent_second_bytes<__VA_ARGS__, T>(const kernel_call&, int, int, int))      \
    TG_COMPILED(recurrent, void run_recurrent_states<__VA_ARGS__, T>(const kernel_call&, int))                         \
    TG_COMPILED(recurrent, void run_recurrent_result<__VA_ARGS__, T>(const kernel_call&, int))                         \
    TG_COMPILED(recurrent, void run_recurrent<__VA_ARGS__, T>(const kernel_call&, int))                                \
    TG_COMPILED(recurrent, void run_recurrent_gradient<__VA_ARGS__, T>(const kernel_call&, int))                       \
    TG_COMPILED(recurrent, void run_recurrent_tangent<__VA_ARGS__, T>(const kernel_call&, int))                        \
    TG_COMPILED(recurrent, void run_recurrent_second<__VA_ARGS__, T>(const kernel_call&, int))
#define TG_COMPILED_LAYER(...)                                                                                         \
    namespace runtime::detail {                                                                                        \
    TG_COMPILED_LAYER_OF(float, __VA_ARGS__)                                                                           \
    TG_COMPILED_LAYER_OF(double, __VA_ARGS__)                                                                          \
    }
