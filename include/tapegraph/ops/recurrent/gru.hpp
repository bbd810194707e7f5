#pragma once

#include <tapegraph/ops/movement/fill.hpp>
#include <tapegraph/ops/recurrent/layers_kernel.hpp>
#include <tapegraph/ops/recurrent/recurrent.hpp>

/// gru: a gated recurrent unit over [batch, time, features] (Cho et al. 2014; gates, shapes and defaults as in Keras).

namespace tapegraph {

/// Options of `gru` on tensors.
struct gru_options {
    cell_activation activation = cell_activation::tanh;
    gate_activation recurrent_activation = gate_activation::sigmoid;
    /// Whether the reset gate multiplies the candidate's product (also cuDNN's and PyTorch's form),
    /// or h before the product (the paper's first form).
    bool reset_after = true;
    bool return_sequences = false; ///< return the output of every step instead of the last one's
    bool go_backwards = false;     ///< run from the last step to the first, with outputs in that order
    /// As in lstm_options. Between the passes x W + b is kept, 3 units a step, instead of 5 (4
    /// without reset_after).
    bool recompute = false;
};

namespace detail {

struct gru_layer_cell {
    static constexpr fixed_string name = "gru";
    static constexpr fixed_string width = "3 units";
    static constexpr fixed_string bias_shape = "[2, 3 units] with reset_after, [3 units] without";
    static constexpr int gates = 3, states = 1;
    static constexpr bool last_apart = true;
    static constexpr int columns(const recurrent_attributes& a) { return a.reset_after != 0 ? 4 : 3; }
    static constexpr int planes(const recurrent_attributes& a) { return columns(a) + 1; }
    static constexpr int given(const recurrent_attributes& a) { return a.reset_after != 0 ? 1 : 2; }

    static constexpr bool bias_fits(const recurrent_attributes& a, const shape& b, extent columns_wanted) {
        if (a.reset_after == 0) return b.rank() == 1 && equal_or_required(b[0], columns_wanted);
        return b.rank() == 2 && equal_or_required(b[0], extent(2, b.table())) &&
               equal_or_required(b[1], columns_wanted);
    }
    /// The biases of z and r after the product with R may as well be added to x W, so only the bias
    /// of the candidate's product remains. Where the reset gate comes before the product, that is
    /// the whole bias of the candidate.
    template <handle H>
    static constexpr bias_parts<H, H> biases(const recurrent_attributes& a, const H& b, extent units,
                                             std::source_location where) {
        const auto part = [&](const H& row, extent from, extent count) { return part_of(row, 0, from, count, where); };
        const extent none(0, units.table);
        const H of_product = a.reset_after != 0 ? H(take(b, 1, 0, where)) : b;
        const H of_gates = part(of_product, none, units * 2), candidate = part(of_product, units * 2, units);
        const H widened = concat({of_gates, H(zeros_like(candidate))}, 0, where);
        return {a.reset_after != 0 ? H(eval(take(b, 0, 0, where) + widened, where)) : widened, candidate};
    }
};

} // namespace detail

/// A GRU over x [batch, time, features]: kernel W [features, 3 units], recurrent kernel R [units, 3 units], bias [2, 3 units]
/// (of x W and of h R), gates in Keras's order z, r, h:
///
///     z, r = sigmoid(x_t W + b + h R + d),  g = tanh(x_t W_h + b_h + r (h R_h + d_h)),  h' = z h + (1 - z) g
///
/// or, without reset_after, with one bias [3 units], g = tanh(x_t W_h + b_h + (r h) R_h). `no_bias`
/// may replace either. Returns h of the last step [batch, units], or of every step [batch, time,
/// units]. The options may be followed, in any order, by `initial_state{h}`, `step_mask{bool}` and
/// `recurrent_dropout{factors}` (of the h that is multiplied by R); without the first, the state
/// starts at zero. First and second derivatives flow to all floating operands except the dropout's
/// factors; a third one is refused.
template <tensor_like X, tensor_like W, tensor_like R, detail::bias_like B, detail::recurrent_argument... E>
constexpr auto gru(const X& x, const W& kernel, const R& recurrent, const B& bias, const gru_options& options = {},
                   const E&... extras) {
    const auto where = std::source_location::current();
    const auto rows = detail::recurrent_rows<detail::gru_layer_cell>(detail::recurrent_attributes_of(options), options,
                                                                     where, x, kernel, recurrent, bias, extras...);
    return detail::recurrent_output(rows, options.return_sequences, where);
}
no_such_option_in<gru_options> gru(any_argument, any_argument, any_argument, any_argument, ...) TG_MISTAKE;

/// Like `gru`, but also returns the state after the last step: `const auto [y, h] = tg::gru_with_state(...)`.
template <tensor_like X, tensor_like W, tensor_like R, detail::bias_like B, detail::recurrent_argument... E>
constexpr auto gru_with_state(const X& x, const W& kernel, const R& recurrent, const B& bias,
                              const gru_options& options = {}, const E&... extras) {
    const auto where = std::source_location::current();
    const auto rows = detail::recurrent_rows<detail::gru_layer_cell>(detail::recurrent_attributes_of(options), options,
                                                                     where, x, kernel, recurrent, bias, extras...);
    return detail::recurrent_output_and_state(rows, options.return_sequences, where);
}
no_such_option_in<gru_options> gru_with_state(any_argument, any_argument, any_argument, any_argument, ...) TG_MISTAKE;

TG_COMPILED_LAYER(tapegraph::detail::gru_layer_cell)

} // namespace tapegraph
