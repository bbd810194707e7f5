#pragma once

#include <tapegraph/model/layer_scope.hpp>
#include <tapegraph/nn/layers/recurrent_layer.hpp>
#include <tapegraph/ops/recurrent/gru.hpp>
#ifdef TG_CUDA
#include <tapegraph/cuda/ops/recurrent/recurrent.cuh>
#endif

/// The GRU layer and its operation. Not part of tapegraph.hpp: programs without it do not compile
/// it.

namespace tapegraph {

/// Defaults as in Keras.
struct gru_layer_options {
    std::int64_t units = 1;
    cell_activation activation = cell_activation::tanh;
    gate_activation recurrent_activation = gate_activation::sigmoid;
    bool reset_after = true; ///< see gru_options; if false, "bias" is [3 units]
    bool return_sequences = false;
    bool go_backwards = false;
    bool use_bias = true;
    double dropout = 0;           ///< rate for features, the same ones in all steps, in training
    double recurrent_dropout = 0; ///< rate for the h that is multiplied, the same units in all steps, in training
    initializer kernel_initializer = init::glorot_uniform{};
    initializer recurrent_initializer = init::orthogonal{};
    initializer bias_initializer = init::zeros{};
    regularizer kernel_regularizer{}, recurrent_regularizer{}, bias_regularizer{};
    constraint kernel_constraint{}, recurrent_constraint{}, bias_constraint{};
    bool zero_output_for_mask = false; ///< a sequence is 0 at masked steps instead of repeating the previous output
    bool recompute = false; ///< see gru_options; evaluation and prediction keep nothing anyway
};

namespace detail {

template <>
struct recurrent_layer_kind<gru_layer_options> {
    static constexpr std::string_view name = "gru", forward = "forward_gru", backward = "backward_gru";
    static constexpr int gates = 3;
    static constexpr gru_options operation(const gru_layer_options& o) {
        return {.recurrent_activation = o.recurrent_activation, .reset_after = o.reset_after};
    }
    static constexpr shape bias_shape(const gru_layer_options& o, std::int64_t units) {
        return o.reset_after ? shape{2, 3 * units} : shape{3 * units};
    }
    static constexpr initializer bias_initializer(const auto&, const gru_layer_options& o) {
        return o.bias_initializer;
    }
    template <class... Args>
    static constexpr auto layer(const Args&... args) {
        return gru(args...);
    }
};

} // namespace detail

/// A GRU over x [batch, time, features] with "kernel" [features, 3 units], "recurrent_kernel"
/// [units, 3 units] and "bias" [2, 3 units]; see gru (ops/recurrent/gru.hpp), also for arguments
/// that may follow the options: `step_mask{...}`, `initial_state{h}`.
template <layer_scope Scope, tensor_like X, class... E>
constexpr auto gru(const Scope& scope, const X& x, const gru_layer_options& o, const E&... extras) {
    const auto run = [](const auto&... operands) { return gru(operands...); };
    return detail::recurrent_layer(scope, x, o, std::source_location::current(), run, extras...);
}
template <layer_scope Scope>
no_such_option_in<gru_layer_options> gru(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing gru(any_argument, ...) TG_MISTAKE;

/// Like `gru`, but also returns the state after the last step: {output, hidden}.
template <layer_scope Scope, tensor_like X, class... E>
constexpr auto gru_with_state(const Scope& scope, const X& x, const gru_layer_options& o, const E&... extras) {
    const auto run = [](const auto&... operands) { return gru_with_state(operands...); };
    return detail::recurrent_layer(scope, x, o, std::source_location::current(), run, extras...);
}
template <layer_scope Scope>
no_such_option_in<gru_layer_options> gru_with_state(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing gru_with_state(any_argument, ...) TG_MISTAKE;

} // namespace tapegraph
