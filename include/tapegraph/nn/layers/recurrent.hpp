#pragma once

#include <tapegraph/nn/initializer.hpp>
#include <tapegraph/ops/fill.hpp>
#include <tapegraph/ops/lstm.hpp>
#include <tapegraph/runtime/recurrent.hpp>
#ifdef TG_CUDA
#include <tapegraph/cuda/recurrent.cuh>
#endif

/// Recurrent layers and the operations behind them. Not part of tapegraph.hpp: programs without them do not compile them.

namespace tapegraph {

/// Defaults as in Keras.
struct lstm_layer_options {
    std::int64_t units = 1;
    cell_activation activation = cell_activation::tanh;
    gate_activation recurrent_activation = gate_activation::sigmoid;
    bool return_sequences = false;
    bool go_backwards = false;
    bool use_bias = true;
    bool unit_forget_bias = true; ///< the forget gate's biases begin as 1; the other ones must be a constant then
    double dropout = 0;           ///< of features, the same ones in all steps, in training
    double recurrent_dropout = 0; ///< of the h that the gates see, the same units in all steps, in training
    initializer kernel_initializer = init::glorot_uniform{};
    initializer recurrent_initializer = init::orthogonal{};
    initializer bias_initializer = init::zeros{};
    bool recompute = false; ///< see lstm_options; in evaluation and prediction nothing is kept anyway
};

namespace detail {

/// Factors of a dropout in training: 0 with probability `rate`, otherwise 1 / (1 - rate).
template <class Scope, handle H>
constexpr H dropout_factors(const Scope& scope, const H& like, double rate, std::source_location where) {
    const H drawn = scope.uniform_like(like);
    return eval(tapegraph::where(drawn >= rate, full_like(like, 1 / (1 - rate)), 0), where);
}

/// x with features dropped, the same ones in all steps.
template <class Scope, handle H>
constexpr H with_dropped_features(const Scope& scope, const H& x, double rate, std::source_location where) {
    if (!scope.training() || rate == 0) return x;
    const H factors = dropout_factors(scope, H(take(x, 0, 1, where)), rate, where);
    return eval(x * expand_dims(factors, 1, where), where);
}

/// A handle of shape [batch, units], whose values do not matter.
template <handle H>
constexpr H state_like(const H& x, const H& recurrent, std::source_location where) {
    const shape from = shape_of(x), to = shape_of(recurrent);
    shape dims = no_axes(from);
    dims.push_back(from[0]);
    dims.push_back(to[0]);
    const H row = part_of(H(take(recurrent, 0, 0, where)), 0, extent(0, to.table()), to[0], where);
    return broadcast_to(row, dims, where);
}

template <class Scope>
constexpr bool sensible_recurrent(const Scope& scope, const shape& dims, std::int64_t units, double dropout,
                                  double recurrent) {
    return scope.require(dims.rank() == 3, "recurrent layer: input must be [batch, time, features]") &&
           scope.require(dims[2].known(), "recurrent layer: the number of features must be known") &&
           scope.require(units > 0, "recurrent layer: units must be positive") &&
           scope.require(dropout >= 0 && dropout < 1 && recurrent >= 0 && recurrent < 1,
                         "recurrent layer: dropout must lie in [0, 1)");
}

/// Asks for the variables of an LSTM and hands them to f with the options of the operation.
template <class Scope, handle H, class F, class... E>
constexpr auto lstm_layer(const Scope& scope, const H& input, const lstm_layer_options& o, std::source_location where,
                          const F& f, const E&... extras) {
    const shape dims = shape_of(input);
    const bool sensible = sensible_recurrent(scope, dims, o.units, o.dropout, o.recurrent_dropout);
    const std::int64_t features = sensible ? dims[2].value : 1, units = sensible ? o.units : 1;
    const auto variable = [&](std::string_view name, const shape& of, const initializer& first) -> H {
        return scope.variable_like(input, name, of, {.initializer = first});
    };
    const bool constant = o.bias_initializer.kind == initializer_kind::constant;
    scope.require(!o.use_bias || !o.unit_forget_bias || constant,
                  "lstm: unit_forget_bias needs a constant bias_initializer");
    const H kernel = variable("kernel", {features, 4 * units}, o.kernel_initializer);
    const H recurrent = variable("recurrent_kernel", {units, 4 * units}, o.recurrent_initializer);
    const lstm_options options{.activation = o.activation,
                               .recurrent_activation = o.recurrent_activation,
                               .return_sequences = o.return_sequences,
                               .go_backwards = o.go_backwards,
                               .recompute = o.recompute || !scope.training()};
    const auto with_bias = [&](const H& x, const auto&... given) {
        if (!o.use_bias) return f(x, kernel, recurrent, no_bias, options, given...);
        const initializer first =
            o.unit_forget_bias ? initializer(init::forget_gate{o.bias_initializer.a}) : o.bias_initializer;
        return f(x, kernel, recurrent, variable("bias", {4 * units}, first), options, given...);
    };
    const H x = sensible ? with_dropped_features(scope, input, o.dropout, where) : input;
    if (!scope.training() || o.recurrent_dropout == 0) return with_bias(x, extras...);
    const H factors = dropout_factors(scope, state_like(x, recurrent, where), o.recurrent_dropout, where);
    return with_bias(x, extras..., recurrent_dropout<H>{factors});
}

} // namespace detail

/// An LSTM over x [batch, time, features] with "kernel" [features, 4 units], "recurrent_kernel" [units, 4 units] and "bias" [4
/// units]; see lstm (ops/lstm.hpp), also for what may follow the options: `step_mask{...}`, `initial_state{...}`.
template <class Scope, tensor_like X, class... E>
    requires(!tensor_like<Scope>)
constexpr auto lstm(const Scope& scope, const X& x, const lstm_layer_options& o, const E&... extras) {
    const auto where = std::source_location::current();
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const auto run = [](const auto&... operands) { return lstm(operands...); };
    return scope.leave("lstm", mark, detail::lstm_layer(scope, input, o, where, run, extras...));
}

/// The same with the state after the last step: output, hidden and cell.
template <class Scope, tensor_like X, class... E>
    requires(!tensor_like<Scope>)
constexpr auto lstm_with_state(const Scope& scope, const X& x, const lstm_layer_options& o, const E&... extras) {
    const auto where = std::source_location::current();
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const auto run = [](const auto&... operands) { return lstm_with_state(operands...); };
    const auto values = detail::lstm_layer(scope, input, o, where, run, extras...);
    scope.leave("lstm", mark, values.output);
    return values;
}

} // namespace tapegraph
