#pragma once

#include <tapegraph/model/layer_scope.hpp>
#include <tapegraph/nn/layers/recurrent_layer.hpp>
#include <tapegraph/ops/recurrent/simple_rnn.hpp>
#ifdef TG_CUDA
#include <tapegraph/cuda/ops/recurrent/recurrent.cuh>
#endif

/// The fully connected recurrent layer and its operation. Not part of tapegraph.hpp: programs
/// without it do not compile it.

namespace tapegraph {

/// Defaults as in Keras.
struct simple_rnn_layer_options {
    std::int64_t units = 1;
    cell_activation activation = cell_activation::tanh;
    bool return_sequences = false;
    bool go_backwards = false;
    bool use_bias = true;
    double dropout = 0;           ///< rate for features, the same ones in all steps, in training
    double recurrent_dropout = 0; ///< rate for h, the same units in all steps, in training
    initializer kernel_initializer = init::glorot_uniform{};
    initializer recurrent_initializer = init::orthogonal{};
    initializer bias_initializer = init::zeros{};
    regularizer kernel_regularizer{}, recurrent_regularizer{}, bias_regularizer{};
    constraint kernel_constraint{}, recurrent_constraint{}, bias_constraint{};
    bool zero_output_for_mask = false; ///< a sequence is 0 at masked steps instead of repeating the previous output
    bool recompute = false; ///< see simple_rnn_options; evaluation and prediction keep nothing anyway
};

namespace detail {

template <>
struct recurrent_layer_kind<simple_rnn_layer_options> {
    static constexpr std::string_view name = "simple_rnn", forward = "forward_simple_rnn",
                                      backward = "backward_simple_rnn";
    static constexpr int gates = 1;
    static constexpr simple_rnn_options operation(const simple_rnn_layer_options&) { return {}; }
    static constexpr shape bias_shape(const simple_rnn_layer_options&, std::int64_t units) { return {units}; }
    static constexpr initializer bias_initializer(const auto&, const simple_rnn_layer_options& o) {
        return o.bias_initializer;
    }
    template <class... Args>
    static constexpr auto layer(const Args&... args) {
        return simple_rnn(args...);
    }
};

} // namespace detail

/// A recurrent layer over x [batch, time, features] with "kernel" [features, units],
/// "recurrent_kernel" [units, units] and "bias" [units]; see simple_rnn
/// (ops/recurrent/simple_rnn.hpp), also for arguments that may follow the options:
/// `step_mask{...}`, `initial_state{h}`.
template <layer_scope Scope, tensor_like X, class... E>
constexpr auto simple_rnn(const Scope& scope, const X& x, const simple_rnn_layer_options& o, const E&... extras) {
    const auto run = [](const auto&... operands) { return simple_rnn(operands...); };
    return detail::recurrent_layer(scope, x, o, std::source_location::current(), run, extras...);
}
template <layer_scope Scope>
no_such_option_in<simple_rnn_layer_options> simple_rnn(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing simple_rnn(any_argument, ...) TG_MISTAKE;

/// Like `simple_rnn`, but also returns the state after the last step: {output, hidden}.
template <layer_scope Scope, tensor_like X, class... E>
constexpr auto simple_rnn_with_state(const Scope& scope, const X& x, const simple_rnn_layer_options& o,
                                     const E&... extras) {
    const auto run = [](const auto&... operands) { return simple_rnn_with_state(operands...); };
    return detail::recurrent_layer(scope, x, o, std::source_location::current(), run, extras...);
}
template <layer_scope Scope>
no_such_option_in<simple_rnn_layer_options> simple_rnn_with_state(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing simple_rnn_with_state(any_argument, ...) TG_MISTAKE;

} // namespace tapegraph
