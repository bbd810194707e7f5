#pragma once

#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/ops/concat.hpp>
#include <tapegraph/ops/moments.hpp>
#include <tapegraph/ops/power.hpp>

/// Layers over sequences [batch, time, ...] made of others. Not part of tapegraph.hpp: programs without them do not compile
/// them.

namespace tapegraph {

/// How the outputs of both directions become one: behind one another on the last axis, or element by element.
enum class merge_mode { concat, sum, multiply, average };

/// What `bidirectional_outputs` gives.
template <class H>
struct bidirectional_values {
    H forward, backward;
};

namespace detail {

template <class T>
concept recurrent_mask = recurrent_extra<T>
== 1;

template <class Scope, handle H, class... E>
constexpr bidirectional_values<H> both_directions(const Scope& scope, const H& x, const lstm_layer_options& o,
                                                  std::source_location where, const E&... extras) {
    lstm_layer_options back = o;
    back.go_backwards = !o.go_backwards;
    const H forward = lstm(scope / "forward_lstm", x, o, extras...);
    const H backward = lstm(scope / "backward_lstm", x, back, extras...);
    scope.enter(); // what follows belongs to this layer again
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

/// Two LSTMs over x [batch, time, features], "forward_lstm" and "backward_lstm" (see lstm), of which the second reads the
/// steps from the last to the first. With `return_sequences` its outputs stand at the steps they are of. Gives
/// [batch, units] or [batch, time, units], 2 units where they are concatenated. A `step_mask{...}` may follow.
template <class Scope, tensor_like X, detail::recurrent_mask... E>
    requires(!tensor_like<Scope>)
constexpr auto bidirectional(const Scope& scope, const X& x, const lstm_layer_options& o,
                             merge_mode mode = merge_mode::concat, const E&... extras) {
    const auto where = std::source_location::current();
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const auto values = detail::both_directions(scope, input, o, where, extras...);
    return scope.leave("bidirectional", mark, detail::merged(mode, values.forward, values.backward, where));
}

/// The same without a merge (Keras's merge_mode None): `const auto [forward, backward] = ...`.
template <class Scope, tensor_like X, detail::recurrent_mask... E>
    requires(!tensor_like<Scope>)
constexpr auto bidirectional_outputs(const Scope& scope, const X& x, const lstm_layer_options& o, const E&... extras) {
    const auto where = std::source_location::current();
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const auto values = detail::both_directions(scope, input, o, where, extras...);
    scope.leave("bidirectional", mark, values.backward);
    return values;
}

} // namespace tapegraph
