#pragma once

#include <tapegraph/core/math/root.hpp>
#include <tapegraph/model/layer_scope.hpp>
#include <tapegraph/nn/layers/keeps_mask.hpp>
#include <tapegraph/ops/movement/view.hpp>
#include <tapegraph/ops/random/random.hpp>

/// Noise in training; otherwise these layers return their operand: spatial_dropout, alpha_dropout,
/// gaussian_noise, gaussian_dropout; dropout itself is in dropout.hpp. Not part of tapegraph.hpp:
/// programs without them do not compile them.

namespace tapegraph {

/// Options of spatial_dropout1d and 2d, alpha_dropout and gaussian_dropout; the rate is in [0, 1).
struct noise_rate_options {
    double rate = 0.5;
};
/// Options of `gaussian_noise`.
struct gaussian_noise_options {
    double stddev = 1; ///< not negative
};

namespace detail {

/// A layer that returns its operand outside of training, and if `nothing`.
template <class Scope, tensor_like X, class F>
constexpr auto noise_layer(const Scope& scope, std::string_view type, const X& x, bool nothing, const char* refused,
                           std::source_location where, const F& f) {
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const bool sensible = refused == nullptr || scope.require(false, refused);
    if (!sensible || nothing || !scope.training()) return scope.leave(type, mark, input);
    return scope.leave(type, mark, scope.with_draws([&] { return f(input); }));
}
constexpr bool is_rate(double rate) { return rate >= 0 && rate < 1; }

/// Drops whole channels: [batch, ..., channels], with draws [batch, 1, ..., channels].
template <class Scope, tensor_like X>
constexpr auto spatial_dropout(const Scope& scope, const X& x, double rate, int rank, std::string_view type,
                               const char* refused, std::source_location where) {
    const char* const wrong = !is_rate(rate)               ? "spatial_dropout: rate must lie in [0, 1)"
                              : shape_of(x).rank() != rank ? refused
                                                           : nullptr;
    return noise_layer(scope, type, x, rate == 0, wrong, where, [&](const auto& input) {
        const shape dims = shape_of(input);
        shape drawn = no_axes(dims);
        for (int i = 0; i < dims.rank(); ++i) drawn.push_back(i == 0 || i == dims.rank() - 1 ? dims[i] : extent(1));
        const auto numbers = random::detail::wide_uniform(input, drawn, where);
        return eval(tapegraph::where(numbers >= rate, input * (1 / (1 - rate)), 0), where);
    });
}

} // namespace detail

/// Drops whole features of x [batch, time, features], the same ones for all steps of a record, and scales
/// the others by 1 / (1 - rate).
template <layer_scope Scope, tensor_like X>
constexpr auto spatial_dropout1d(const Scope& scope, const X& x, const noise_rate_options& o = {},
                                 std::source_location where = std::source_location::current()) {
    return detail::spatial_dropout(scope, x, o.rate, 3, "spatial_dropout1d",
                                   "spatial_dropout1d: input must be [batch, time, features]", where);
}
template <layer_scope Scope>
no_such_option_in<noise_rate_options> spatial_dropout1d(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing spatial_dropout1d(any_argument, ...) TG_MISTAKE;
TG_KEEPS_MASK(spatial_dropout1d, noise_rate_options)
/// Drops channels of x [batch, height, width, channels] for all pixels of a record.
template <layer_scope Scope, tensor_like X>
constexpr auto spatial_dropout2d(const Scope& scope, const X& x, const noise_rate_options& o = {},
                                 std::source_location where = std::source_location::current()) {
    return detail::spatial_dropout(scope, x, o.rate, 4, "spatial_dropout2d",
                                   "spatial_dropout2d: input must be [batch, height, width, channels]", where);
}
template <layer_scope Scope>
no_such_option_in<noise_rate_options> spatial_dropout2d(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing spatial_dropout2d(any_argument, ...) TG_MISTAKE;

/// Dropout that keeps mean 0 and variance 1 of the outputs of selu (Klambauer et al. 2017): dropped
/// elements become selu's lowest value, then everything is scaled and shifted.
template <layer_scope Scope, tensor_like X>
constexpr auto alpha_dropout(const Scope& scope, const X& x, const noise_rate_options& o = {},
                             std::source_location where = std::source_location::current()) {
    const char* const wrong = detail::is_rate(o.rate) ? nullptr : "alpha_dropout: rate must lie in [0, 1)";
    return detail::noise_layer(scope, "alpha_dropout", x, o.rate == 0, wrong, where, [&](const auto& input) {
        constexpr double lowest = -1.0507009873554805 * 1.6732632423543772;
        const double factor = 1 / math::sqrt((1 - o.rate) * (1 + o.rate * lowest * lowest));
        const double offset = -factor * lowest * o.rate;
        const auto numbers = random::detail::wide_uniform(input, shape_of(input), where);
        return eval(tapegraph::where(numbers >= o.rate, input * factor + offset, lowest * factor + offset), where);
    });
}
template <layer_scope Scope>
no_such_option_in<noise_rate_options> alpha_dropout(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing alpha_dropout(any_argument, ...) TG_MISTAKE;
TG_KEEPS_MASK(alpha_dropout, noise_rate_options)

/// x plus normal numbers of mean 0.
template <layer_scope Scope, tensor_like X>
constexpr auto gaussian_noise(const Scope& scope, const X& x, const gaussian_noise_options& o,
                              std::source_location where = std::source_location::current()) {
    const char* const wrong =
        o.stddev >= 0 && o.stddev < 1e300 ? nullptr : "gaussian_noise: stddev must not be negative";
    return detail::noise_layer(scope, "gaussian_noise", x, o.stddev == 0, wrong, where, [&](const auto& input) {
        const auto numbers = random::normal_like(input, {0, o.stddev}, where);
        return eval(input + numbers, where);
    });
}
template <layer_scope Scope>
no_such_option_in<gaussian_noise_options> gaussian_noise(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing gaussian_noise(any_argument, ...) TG_MISTAKE;
TG_KEEPS_MASK(gaussian_noise, gaussian_noise_options)

/// x times normal numbers of mean 1 and standard deviation sqrt(rate / (1 - rate)) (Srivastava et
/// al. 2014).
template <layer_scope Scope, tensor_like X>
constexpr auto gaussian_dropout(const Scope& scope, const X& x, const noise_rate_options& o = {},
                                std::source_location where = std::source_location::current()) {
    const char* const wrong = detail::is_rate(o.rate) ? nullptr : "gaussian_dropout: rate must lie in [0, 1)";
    return detail::noise_layer(scope, "gaussian_dropout", x, o.rate == 0, wrong, where, [&](const auto& input) {
        const auto numbers = random::normal_like(input, {1, math::sqrt(o.rate / (1 - o.rate))}, where);
        return eval(input * numbers, where);
    });
}
template <layer_scope Scope>
no_such_option_in<noise_rate_options> gaussian_dropout(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing gaussian_dropout(any_argument, ...) TG_MISTAKE;
TG_KEEPS_MASK(gaussian_dropout, noise_rate_options)

} // namespace tapegraph
