#pragma once

#include <tapegraph/ops/recurrent/layers_kernel.hpp>
#include <tapegraph/ops/recurrent/recurrent.hpp>

/// lstm: a long short-term memory over [batch, time, features] (Hochreiter and Schmidhuber 1997; gates, shapes and defaults as
/// in Keras).

namespace tapegraph {

/// Options of `lstm` on tensors.
struct lstm_options {
    cell_activation activation = cell_activation::tanh;
    gate_activation recurrent_activation = gate_activation::sigmoid;
    bool return_sequences = false; ///< return the output of every step instead of the last one's
    bool go_backwards = false;     ///< run from the last step to the first, with outputs in that order
    /// Stores only the result; the derivative recomputes states and gates. Between the passes x W +
    /// b is kept, 4 units a step, instead of 6. Set it also where no derivative will be taken. (In
    /// a `checkpoint` only x is kept.)
    bool recompute = false;
};

/// The result of `lstm_with_state`; hidden and cell are those after the last step.
template <class H>
struct lstm_values {
    H output, hidden, cell;
};

namespace detail {

struct lstm_layer_cell : plain_bias {
    static constexpr fixed_string name = "lstm";
    static constexpr fixed_string width = "4 units";
    static constexpr fixed_string bias_shape = "[4 units]";
    static constexpr int gates = 4, states = 2;
    static constexpr bool last_apart = false;
    static constexpr int columns(const recurrent_attributes&) { return 4; }
    static constexpr int planes(const recurrent_attributes&) { return 6; }
    static constexpr int given(const recurrent_attributes&) { return 1; }
};

} // namespace detail

/// An LSTM over x [batch, time, features]: kernel W [features, 4 units], recurrent kernel R [units, 4 units], bias b [4 units]
/// (or `no_bias`), gates in Keras's order i, f, c, o:
///
///     i, f, o = sigmoid(x_t W + h R + b),  c' = f c + i tanh(x_t W_c + h R_c + b_c),  h' = o tanh(c')
///
/// Returns h of the last step [batch, units], or of every step [batch, time, units]. The options
/// may be followed, in any order, by `initial_state{h, c}`, `step_mask{bool}` and
/// `recurrent_dropout{factors}`; without the first, the state starts at zero. First and second
/// derivatives flow to all floating operands except the dropout's factors; a third one is refused.
template <tensor_like X, tensor_like W, tensor_like R, detail::bias_like B, detail::recurrent_argument... E>
constexpr auto lstm(const X& x, const W& kernel, const R& recurrent, const B& bias, const lstm_options& options = {},
                    const E&... extras) {
    const auto where = std::source_location::current();
    const auto rows = detail::recurrent_rows<detail::lstm_layer_cell>(detail::recurrent_attributes_of(options), options,
                                                                      where, x, kernel, recurrent, bias, extras...);
    return detail::recurrent_output(rows, options.return_sequences, where);
}
no_such_option_in<lstm_options> lstm(any_argument, any_argument, any_argument, any_argument, ...) TG_MISTAKE;

/// Like `lstm`, but also returns the state after the last step: `const auto [y, h, c] = tg::lstm_with_state(...)`.
template <tensor_like X, tensor_like W, tensor_like R, detail::bias_like B, detail::recurrent_argument... E>
constexpr auto lstm_with_state(const X& x, const W& kernel, const R& recurrent, const B& bias,
                               const lstm_options& options = {}, const E&... extras) {
    const auto where = std::source_location::current();
    recurrent_attributes a = detail::recurrent_attributes_of(options);
    a.cell = 1;
    const auto rows =
        detail::recurrent_rows<detail::lstm_layer_cell>(a, options, where, x, kernel, recurrent, bias, extras...);
    using handle_type = std::remove_const_t<decltype(rows)>;
    if (shape_of(rows).rank() != 3) return lstm_values<handle_type>{rows, rows, rows};
    const handle_type cell = take(rows, -1, 1, where), hidden = take(rows, -2, 1, where);
    if (!options.return_sequences) return lstm_values<handle_type>{hidden, hidden, cell};
    const extent steps = shape_of(rows)[1] - 1;
    return lstm_values<handle_type>{detail::part_of(rows, 1, extent(0, steps.table), steps, where), hidden, cell};
}
no_such_option_in<lstm_options> lstm_with_state(any_argument, any_argument, any_argument, any_argument, ...) TG_MISTAKE;

TG_COMPILED_LAYER(tapegraph::detail::lstm_layer_cell)

} // namespace tapegraph
