#pragma once

#include <tapegraph/model/layer_scope.hpp>
#include <tapegraph/nn/layers/recurrent_layer.hpp>
#include <tapegraph/ops/recurrent/lstm.hpp>
#ifdef TG_CUDA
#include <tapegraph/cuda/ops/recurrent/recurrent.cuh>
#endif

/// The LSTM layer and its operation. Not part of tapegraph.hpp: programs without it do not compile
/// it. gru.hpp and simple_rnn.hpp have the other recurrent layers.

namespace tapegraph {

/// Defaults as in Keras.
struct lstm_layer_options {
    std::int64_t units = 1;
    cell_activation activation = cell_activation::tanh;
    gate_activation recurrent_activation = gate_activation::sigmoid;
    bool return_sequences = false;
    bool go_backwards = false;
    bool use_bias = true;
    bool unit_forget_bias = true; ///< the forget gate's biases start as 1; the other ones must then be a constant
    double dropout = 0;           ///< rate for features, the same ones in all steps, in training
    double recurrent_dropout = 0; ///< rate for the h that the gates read, the same units in all steps, in training
    initializer kernel_initializer = init::glorot_uniform{};
    initializer recurrent_initializer = init::orthogonal{};
    initializer bias_initializer = init::zeros{};
    regularizer kernel_regularizer{}, recurrent_regularizer{}, bias_regularizer{};
    constraint kernel_constraint{}, recurrent_constraint{}, bias_constraint{};
    bool zero_output_for_mask = false; ///< a sequence is 0 at masked steps instead of repeating the previous output
    bool recompute = false; ///< see lstm_options; evaluation and prediction keep nothing anyway
};

namespace detail {

template <>
struct recurrent_layer_kind<lstm_layer_options> {
    static constexpr std::string_view name = "lstm", forward = "forward_lstm", backward = "backward_lstm";
    static constexpr int gates = 4;
    static constexpr lstm_options operation(const lstm_layer_options& o) {
        return {.recurrent_activation = o.recurrent_activation};
    }
    static constexpr shape bias_shape(const lstm_layer_options&, std::int64_t units) { return {4 * units}; }
    template <class Scope>
    static constexpr initializer bias_initializer(const Scope& scope, const lstm_layer_options& o) {
        const bool constant = o.bias_initializer.kind == initializer_kind::constant;
        scope.require(!o.use_bias || !o.unit_forget_bias || constant,
                      "lstm: unit_forget_bias needs a constant bias_initializer");
        return o.unit_forget_bias ? initializer(init::forget_gate{o.bias_initializer.a}) : o.bias_initializer;
    }
    template <class... Args>
    static constexpr auto layer(const Args&... args) {
        return lstm(args...);
    }
};

} // namespace detail

/// An LSTM over x [batch, time, features] with "kernel" [features, 4 units], "recurrent_kernel"
/// [units, 4 units] and "bias" [4 units]; see lstm (ops/recurrent/lstm.hpp), also for arguments
/// that may follow the options: `step_mask{...}`, `initial_state{...}`.
template <layer_scope Scope, tensor_like X, class... E>
constexpr auto lstm(const Scope& scope, const X& x, const lstm_layer_options& o, const E&... extras) {
    const auto where = std::source_location::current();
    const auto run = [](const auto&... operands) { return lstm(operands...); };
    return detail::recurrent_layer(scope, x, o, where, run, extras...);
}
template <layer_scope Scope>
no_such_option_in<lstm_layer_options> lstm(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing lstm(any_argument, ...) TG_MISTAKE;

/// Like `lstm`, but also returns the state after the last step: {output, hidden, cell}.
template <layer_scope Scope, tensor_like X, class... E>
constexpr auto lstm_with_state(const Scope& scope, const X& x, const lstm_layer_options& o, const E&... extras) {
    const auto where = std::source_location::current();
    const auto run = [](const auto&... operands) { return lstm_with_state(operands...); };
    return detail::recurrent_layer(scope, x, o, where, run, extras...);
}
template <layer_scope Scope>
no_such_option_in<lstm_layer_options> lstm_with_state(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing lstm_with_state(any_argument, ...) TG_MISTAKE;

} // namespace tapegraph
