#pragma once

#include <tapegraph/ops/recurrent/layers_kernel.hpp>
#include <tapegraph/ops/recurrent/recurrent.hpp>

/// simple_rnn: a fully connected recurrent layer over [batch, time, features] (Elman 1990; shapes and defaults as in Keras).

namespace tapegraph {

/// Options of `simple_rnn` on tensors.
struct simple_rnn_options {
    cell_activation activation = cell_activation::tanh;
    bool return_sequences = false; ///< return the output of every step instead of the last one's
    bool go_backwards = false;     ///< run from the last step to the first, with outputs in that order
    /// As in lstm_options. Between the passes x W + b is kept, which is as large as the states that
    /// are kept otherwise.
    bool recompute = false;
};

namespace detail {

struct simple_rnn_layer_cell : plain_bias {
    static constexpr fixed_string name = "simple_rnn";
    static constexpr fixed_string width = "units";
    static constexpr fixed_string bias_shape = "[units]";
    static constexpr int gates = 1, states = 1;
    static constexpr bool last_apart = false;
    static constexpr int columns(const recurrent_attributes&) { return 1; }
    static constexpr int planes(const recurrent_attributes&) { return 1; }
    static constexpr int given(const recurrent_attributes&) { return 1; }
};

} // namespace detail

/// h' = tanh(x_t W + h R + b) over x [batch, time, features]: kernel W [features, units], recurrent
/// kernel R [units, units], bias b [units] (or `no_bias`). Returns h of the last step [batch,
/// units], or of every step [batch, time, units]. The options may be followed by the same arguments
/// as those of gru.
template <tensor_like X, tensor_like W, tensor_like R, detail::bias_like B, detail::recurrent_argument... E>
constexpr auto simple_rnn(const X& x, const W& kernel, const R& recurrent, const B& bias,
                          const simple_rnn_options& options = {}, const E&... extras) {
    const auto where = std::source_location::current();
    const auto rows = detail::recurrent_rows<detail::simple_rnn_layer_cell>(
        detail::recurrent_attributes_of(options), options, where, x, kernel, recurrent, bias, extras...);
    return detail::recurrent_output(rows, options.return_sequences, where);
}
no_such_option_in<simple_rnn_options> simple_rnn(any_argument, any_argument, any_argument, any_argument, ...) TG_MISTAKE;

/// Like `simple_rnn`, but also returns the state after the last step: `const auto [y, h] = tg::simple_rnn_with_state(...)`.
template <tensor_like X, tensor_like W, tensor_like R, detail::bias_like B, detail::recurrent_argument... E>
constexpr auto simple_rnn_with_state(const X& x, const W& kernel, const R& recurrent, const B& bias,
                                     const simple_rnn_options& options = {}, const E&... extras) {
    const auto where = std::source_location::current();
    const auto rows = detail::recurrent_rows<detail::simple_rnn_layer_cell>(
        detail::recurrent_attributes_of(options), options, where, x, kernel, recurrent, bias, extras...);
    return detail::recurrent_output_and_state(rows, options.return_sequences, where);
}
no_such_option_in<simple_rnn_options> simple_rnn_with_state(any_argument, any_argument, any_argument, any_argument, ...) TG_MISTAKE;

TG_COMPILED_LAYER(tapegraph::detail::simple_rnn_layer_cell)

} // namespace tapegraph
