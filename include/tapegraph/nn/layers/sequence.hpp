#pragma once

#include <tapegraph/model/layer_scope.hpp>
#include <tapegraph/nn/layers/keeps_mask.hpp>
#include <tapegraph/nn/layers/normalization.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/ops/elementwise/power.hpp>
#include <tapegraph/ops/movement/concat.hpp>
#include <tapegraph/ops/reduction/moments.hpp>
#include <tapegraph/ops/reduction/normalization.hpp>

#include <tuple>

/// Layers of sequence models: bidirectional, time_distributed, layer_normalization. Not part of
/// tapegraph.hpp, so that programs without them do not compile them.

namespace tapegraph {

/// How the outputs of both directions are combined: concatenated along the last axis, or element by
/// element.
enum class merge_mode { concat, sum, multiply, average };

/// The result of `bidirectional_outputs`.
template <class H>
struct bidirectional_values {
    H forward, backward;
};

namespace detail {

template <class T>
concept recurrent_mask = recurrent_extra<T>
== 1;

template <class Scope, handle H, recurrent_layer_options O, class... E>
constexpr bidirectional_values<H> both_directions(const Scope& scope, const H& x, const O& o,
                                                  std::source_location where, const E&... extras) {
    using kind = recurrent_layer_kind<O>;
    O back = o;
    back.go_backwards = !o.go_backwards;
    const H forward = kind::layer(scope / kind::forward, x, o, extras...);
    const H backward = kind::layer(scope / kind::backward, x, back, extras...);
    scope.enter(); // the following operations belong to this layer again
    if (!o.return_sequences || shape_of(backward).rank() != 3) return {forward, backward};
    return {forward, reverse(backward, 1, where)};
}

template <handle H>
constexpr H merged(merge_mode mode, const H& forward, const H& backward, std::source_location where) {
    switch (mode) {
    case merge_mode::sum: return eval(forward + backward, where);
    case merge_mode::multiply: return eval(forward * backward, where);
    case merge_mode::average: return eval((forward + backward) / 2, where);
    default: return concat({forward, backward}, -1, where);
    }
}

} // namespace detail

/// Two LSTMs over x [batch, time, features], "forward_lstm" and "backward_lstm" (see lstm), of
/// which the second reads the steps from the last to the first. With `return_sequences` its outputs
/// are at the steps they belong to. Returns [batch, units] or [batch, time, units], with 2 units if
/// they are concatenated. A `step_mask{...}` may follow; Keras then gives 0 at masked steps, which
/// `zero_output_for_mask` selects here. Options of another recurrent layer make two of those:
/// `gru_layer_options{.units = 64}`.
template <layer_scope Scope, tensor_like X, detail::recurrent_layer_options O = lstm_layer_options,
          detail::recurrent_mask... E>
constexpr auto bidirectional(const Scope& scope, const X& x, const O& o, merge_mode mode = merge_mode::concat,
                             const E&... extras) {
    const auto where = std::source_location::current();
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const auto values = detail::both_directions(scope, input, o, where, extras...);
    return scope.leave("bidirectional", mark, detail::merged(mode, values.forward, values.backward, where));
}
template <layer_scope Scope>
no_such_option_in<lstm_layer_options> bidirectional(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing bidirectional(any_argument, ...) TG_MISTAKE;

/// Like `bidirectional`, but returns both outputs instead of merging them (Keras's merge_mode=None):
/// `const auto [forward, backward] = ...`.
template <layer_scope Scope, tensor_like X, detail::recurrent_layer_options O = lstm_layer_options,
          detail::recurrent_mask... E>
constexpr auto bidirectional_outputs(const Scope& scope, const X& x, const O& o, const E&... extras) {
    const auto where = std::source_location::current();
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const auto values = detail::both_directions(scope, input, o, where, extras...);
    scope.leave("bidirectional", mark, values.backward);
    return values;
}
template <layer_scope Scope>
no_such_option_in<lstm_layer_options> bidirectional_outputs(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing bidirectional_outputs(any_argument, ...) TG_MISTAKE;

/// Recurrent layers on top of one another, "0", "1", ...: `stacked(scope, x,
/// std::tuple{lstm_layer_options{.units = 64}, ...})`. All but the last return sequences, the last
/// follows its options (Keras's RNN over stacked cells). A `step_mask{...}` may follow and applies
/// to all of them.
template <layer_scope Scope, tensor_like X, detail::recurrent_layer_options... O, detail::recurrent_mask... E>
    requires(sizeof...(O) > 0)
constexpr auto stacked(const Scope& scope, const X& x, const std::tuple<O...>& layers, const E&... extras) {
    const auto where = std::source_location::current();
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    auto h = input;
    int i = 0;
    std::apply(
        [&](auto... o) {
            ((o.return_sequences = o.return_sequences || i + 1 < static_cast<int>(sizeof...(O)),
              h = detail::recurrent_layer_kind<decltype(o)>::layer(scope / i, h, o, extras...), ++i),
             ...);
        },
        layers);
    scope.enter(); // the following operations belong to this layer again
    return scope.leave("stacked", mark, h);
}
template <class = void>
detail::scope_missing stacked(any_argument, ...) TG_MISTAKE;

/// Calls `f(scope, steps)` on all steps of x [batch, time, rest...] at once, as on a batch [batch
/// time, rest...]; its result [batch time, other...] becomes [batch, time, other...]. f builds the
/// layers; `scope` is this one's.
template <layer_scope Scope, tensor_like X, class F>
constexpr auto time_distributed(const Scope& scope, const X& x, const F& f,
                                std::source_location where = std::source_location::current()) {
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const shape dims = shape_of(input);
    const bool sensible = scope.require(dims.rank() >= 2, "time_distributed: input must be [batch, time, ...]");
    shape folded = detail::no_axes(dims);
    folded.push_back(sensible ? dims[0] * dims[1] : extent(1));
    for (int i = 2; i < dims.rank(); ++i) folded.push_back(dims[i]);
    const auto values = eval(f(scope, sensible ? eval(reshape(input, folded, where), where) : input), where);
    scope.enter(); // the following operations belong to this layer again
    const shape made = shape_of(values);
    if (!sensible || !scope.require(made.rank() >= 1 && made[0] == folded[0],
                                    "time_distributed: the function must keep the first axis, batch times time"))
        return scope.leave("time_distributed", mark, values);
    shape unfolded = detail::no_axes(dims);
    unfolded.push_back(dims[0]);
    unfolded.push_back(dims[1]);
    for (int i = 1; i < made.rank(); ++i) unfolded.push_back(made[i]);
    return scope.leave("time_distributed", mark, eval(reshape(values, unfolded, where), where));
}
template <class = void>
detail::scope_missing time_distributed(any_argument, ...) TG_MISTAKE;

/// Defaults as in Keras.
struct layer_normalization_options {
    axes axis = -1; ///< the axes whose elements are normalized together
    double epsilon = 1e-3;
    bool center = true, scale = true;
    initializer beta_initializer = init::zeros{};
    initializer gamma_initializer = init::ones{};
    regularizer beta_regularizer{}, gamma_regularizer{};
    constraint beta_constraint{}, gamma_constraint{};
};

/// (x - mean) / sqrt(variance + epsilon) gamma + beta with mean and (population) variance over each
/// record's own elements (Ba, Kiros and Hinton 2016). "gamma" and "beta" have the extents of the
/// axes, in the order of x.
template <layer_scope Scope, tensor_like X>
constexpr auto layer_normalization(const Scope& scope, const X& x, const layer_normalization_options& o = {},
                                   std::source_location where = std::source_location::current()) {
    if constexpr (requires { scope.float_scope(); }) // in mixed precision
        return scope.rounded(layer_normalization(scope.float_scope(), x, o, where), where);
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const shape dims = shape_of(input);
    const int rank = dims.rank();
    if (!scope.require(!o.axis.all && o.axis.count > 0 && detail::distinct_axes(o.axis, rank),
                       "layer_normalization: axes must be given, inside the rank and different"))
        return scope.leave("layer_normalization", mark, input);
    const std::int64_t chosen = o.axis.bits(rank);
    shape extents, beside_x; // of the parameters alone, and from the first of the axes to the last axis of x
    for (int i = 0; i < rank; ++i) {
        const bool among = (chosen >> i & 1) != 0;
        if (among) extents.push_back(dims[i]);
        if (among || extents.rank() > 0) beside_x.push_back(among ? dims[i] : extent(1));
    }
    if (extents.rank() == beside_x.rank()) { // the last axes, in which each record's elements are neighbours
        const int first = rank - extents.rank();
        const auto gamma =
            o.scale ? scope.variable_like(input, "gamma", extents, detail::gamma_options(o)) : decltype(input){};
        const auto beta =
            o.center ? scope.variable_like(input, "beta", extents, detail::beta_options(o)) : decltype(input){};
        const normalization_attributes parts{.first = first, .last = first, .epsilon = o.epsilon};
        return scope.leave("layer_normalization", mark,
                           detail::normalized(input, parts, o.scale, gamma, o.center, beta, where));
    }
    const auto parameter = [&](std::string_view name, const variable_options& options) {
        const auto v = scope.variable_like(input, name, extents, options);
        return eval(reshape(v, beside_x, where), where);
    };
    const auto values = moments(input, o.axis, {.keepdims = true}, where);
    const auto inverse = eval(rsqrt(values.variance + o.epsilon), where);
    const auto factor = o.scale ? eval(inverse * parameter("gamma", detail::gamma_options(o)), where) : inverse;
    const auto centered = (input - values.mean) * factor;
    return scope.leave("layer_normalization", mark,
                       o.center ? eval(centered + parameter("beta", detail::beta_options(o)), where)
                                : eval(centered, where));
}
template <layer_scope Scope>
no_such_option_in<layer_normalization_options> layer_normalization(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing layer_normalization(any_argument, ...) TG_MISTAKE;
TG_KEEPS_MASK(layer_normalization, layer_normalization_options)

} // namespace tapegraph
