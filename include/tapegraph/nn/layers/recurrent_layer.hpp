#pragma once

#include <tapegraph/model/initializer.hpp>
#include <tapegraph/ops/movement/fill.hpp>
#include <tapegraph/ops/recurrent/recurrent.hpp>

/// Shared by recurrent layers: their variables, and dropout. Each layer has a header next to this
/// one.

namespace tapegraph::detail {

/// Each recurrent layer specialises this for its options, with its name, the names of its two
/// halves in `bidirectional`, `gates`, the options of its operation, the shape and initial values
/// of its bias, and `layer(scope, x, options, extras...)`.
template <class Options>
struct recurrent_layer_kind;

template <class T>
concept recurrent_layer_options = requires {
    recurrent_layer_kind<T>::name;
};

/// Factors of a dropout in training: 0 with probability `rate`, otherwise 1 / (1 - rate).
template <class Scope, handle H>
constexpr H dropout_factors(const Scope& scope, const H& like, double rate, std::source_location where) {
    const auto drawn = scope.uniform_like(like);
    return eval(tapegraph::where(drawn >= rate, full_like(like, 1 / (1 - rate)), 0), where);
}

/// x with features dropped, the same ones in all steps.
template <class Scope, handle H>
constexpr H with_dropped_features(const Scope& scope, const H& x, double rate, std::source_location where) {
    if (!scope.training() || rate == 0) return x;
    const H factors = dropout_factors(scope, H(take(x, 0, 1, where)), rate, where);
    return eval(x * expand_dims(factors, 1, where), where);
}

/// A handle of shape [batch, units], whose values are ignored.
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

/// Requests the variables of a layer and passes them to f with the options of the operation.
template <class Options, class Scope, handle H, class F, class... E>
constexpr auto call_recurrent(const Scope& scope, const H& input, const Options& o, std::source_location where,
                              const F& f, const E&... extras) {
    using kind = recurrent_layer_kind<Options>;
    const shape dims = shape_of(input);
    const bool sensible = sensible_recurrent(scope, dims, o.units, o.dropout, o.recurrent_dropout);
    const std::int64_t features = sensible ? dims[2].value : 1, units = sensible ? o.units : 1;
    variable_options bias = bias_options(o);
    bias.initializer = kind::bias_initializer(scope, o);
    const H kernel = scope.variable_like(input, "kernel", {features, kind::gates * units}, kernel_options(o));
    const H recurrent = scope.variable_like(input, "recurrent_kernel", {units, kind::gates * units},
                                            {.initializer = o.recurrent_initializer,
                                             .regularizer = o.recurrent_regularizer,
                                             .constraint = o.recurrent_constraint});
    auto options = kind::operation(o);
    options.activation = o.activation;
    options.return_sequences = o.return_sequences;
    options.go_backwards = o.go_backwards;
    options.recompute = o.recompute || !scope.training();
    const auto with_bias = [&](const H& x, const auto&... given) {
        if (!o.use_bias) return f(x, kernel, recurrent, no_bias, options, given...);
        const H b = scope.variable_like(input, "bias", kind::bias_shape(o, units), bias);
        return f(x, kernel, recurrent, b, options, given...);
    };
    const H x = sensible ? with_dropped_features(scope, input, o.dropout, where) : input;
    if (!scope.training() || o.recurrent_dropout == 0) return with_bias(x, extras...);
    const H factors = dropout_factors(scope, state_like(x, recurrent, where), o.recurrent_dropout, where);
    return with_bias(x, extras..., recurrent_dropout<H>{factors});
}

/// A sequence of outputs, set to 0 at masked steps if the layer's options say so.
template <class Options, handle H, class... E>
constexpr H without_masked_outputs(const H& y, const Options& o, std::source_location where, const E&... extras) {
    if constexpr (has_extra<1, E...>) {
        if (!o.zero_output_for_mask || !o.return_sequences || shape_of(y).rank() != 3) return y;
        const auto mask = recurrent_order(extra_of<1>(extras...), o.go_backwards, where);
        return eval(tapegraph::where(expand_dims(mask.steps, -1, where), y, 0), where);
    } else {
        return y;
    }
}

/// The layer: f is its operation, with or without the state.
template <class Options, class Scope, tensor_like X, class F, class... E>
constexpr auto recurrent_layer(const Scope& scope, const X& x, const Options& o, std::source_location where, const F& f,
                               const E&... extras) {
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    auto values = call_recurrent(scope, input, o, where, f, extras...);
    if constexpr (requires { values.output; }) {
        values.output = without_masked_outputs(values.output, o, where, extras...);
        scope.leave(recurrent_layer_kind<Options>::name, mark, values.output);
        return values;
    } else {
        return scope.leave(recurrent_layer_kind<Options>::name, mark,
                           without_masked_outputs(values, o, where, extras...));
    }
}

} // namespace tapegraph::detail
