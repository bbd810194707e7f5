#pragma once

#include <tapegraph/model/layer_scope.hpp>
#include <tapegraph/nn/layers/keeps_mask.hpp>
#include <tapegraph/nn/layers/normalization.hpp>
#include <tapegraph/ops/reduction/norm.hpp>
#include <tapegraph/ops/reduction/normalization.hpp>

/// Normalizations of single records: group_normalization, rms_normalization, unit_normalization;
/// layer_normalization is in sequence.hpp. Not part of tapegraph.hpp: programs without them do not
/// compile them.

namespace tapegraph {

/// Defaults as in Keras.
struct group_normalization_options {
    std::int64_t groups =
        32; ///< must divide the channels; 1: layer normalization over everything, -1: each channel separately
    double epsilon = 1e-3;
    bool center = true, scale = true;
    initializer beta_initializer = init::zeros{};
    initializer gamma_initializer = init::ones{};
    regularizer beta_regularizer{}, gamma_regularizer{};
    constraint beta_constraint{}, gamma_constraint{};
};

/// Defaults as in Keras.
struct rms_normalization_options {
    double epsilon = 1e-6;
    initializer scale_initializer = init::ones{};
    regularizer scale_regularizer{};
    constraint scale_constraint{};
};

/// (x - mean) / sqrt(variance + epsilon) gamma + beta, with mean and (population) variance over
/// each record's groups of neighbouring channels (Wu and He 2018). x is [batch, ..., channels] with
/// at least one axis in between; "gamma" and "beta" are [channels].
template <layer_scope Scope, tensor_like X>
constexpr auto group_normalization(const Scope& scope, const X& x, const group_normalization_options& o = {},
                                   std::source_location where = std::source_location::current()) {
    if constexpr (requires { scope.float_scope(); }) // in mixed precision
        return scope.rounded(group_normalization(scope.float_scope(), x, o, where), where);
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const shape dims = shape_of(input);
    const int rank = dims.rank();
    if (!scope.require(rank >= 2 && rank < max_rank && dims[rank - 1].known(),
                       "group_normalization: input must be [batch, ..., channels], channels known"))
        return scope.leave("group_normalization", mark, input);
    const std::int64_t channels = dims[rank - 1].value, groups = o.groups == -1 ? channels : o.groups;
    if (!scope.require(groups > 0 && channels % groups == 0, "group_normalization: groups must divide the channels"))
        return scope.leave("group_normalization", mark, input);
    const auto gamma =
        o.scale ? scope.variable_like(input, "gamma", {channels}, detail::gamma_options(o)) : decltype(input){};
    const auto beta =
        o.center ? scope.variable_like(input, "beta", {channels}, detail::beta_options(o)) : decltype(input){};
    const normalization_attributes parts{.first = 1, .last = rank - 1, .groups = groups, .epsilon = o.epsilon};
    return scope.leave("group_normalization", mark,
                       detail::normalized(input, parts, o.scale, gamma, o.center, beta, where));
}
template <layer_scope Scope>
no_such_option_in<group_normalization_options> group_normalization(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing group_normalization(any_argument, ...) TG_MISTAKE;
TG_KEEPS_MASK(group_normalization, group_normalization_options)

/// x / sqrt(mean x^2 + epsilon) scale, the mean over the last axis (Zhang and Sennrich 2019): "scale" [features].
template <layer_scope Scope, tensor_like X>
constexpr auto rms_normalization(const Scope& scope, const X& x, const rms_normalization_options& o = {},
                                 std::source_location where = std::source_location::current()) {
    if constexpr (requires { scope.float_scope(); }) // in mixed precision
        return scope.rounded(rms_normalization(scope.float_scope(), x, o, where), where);
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const std::int64_t features =
        detail::features_of(scope, shape_of(input), "rms_normalization: input needs an axis of features");
    const auto scale = scope.variable_like(
        input, "scale", {features},
        {.initializer = o.scale_initializer, .regularizer = o.scale_regularizer, .constraint = o.scale_constraint});
    const int last = shape_of(input).rank() - 1;
    const normalization_attributes parts{.first = last, .last = last, .centered = 0, .epsilon = o.epsilon};
    return scope.leave("rms_normalization", mark, detail::normalized(input, parts, true, scale, false, scale, where));
}
template <layer_scope Scope>
no_such_option_in<rms_normalization_options> rms_normalization(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing rms_normalization(any_argument, ...) TG_MISTAKE;
TG_KEEPS_MASK(rms_normalization, rms_normalization_options)

/// x / |x|, with the Euclidean norm along axes; a norm below 1e-12 is replaced by 1e-12 (Keras's
/// UnitNormalization). It has no variables and no scope.
template <tensor_like X>
constexpr auto unit_normalization(const X& x, axes along = -1,
                                  std::source_location where = std::source_location::current()) {
    return detail::unit_vectors(x, along.bits(shape_of(x).rank()), 1e-12, where);
}

} // namespace tapegraph
