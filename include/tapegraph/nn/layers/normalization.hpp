#pragma once

#include <tapegraph/model/initializer.hpp>
#include <tapegraph/model/layer_scope.hpp>
#include <tapegraph/ops/elementwise/power.hpp>
#include <tapegraph/ops/reduction/moments.hpp>

namespace tapegraph {

/// Defaults as in Keras.
struct batch_normalization_options {
    double momentum = 0.99; ///< the fraction of a moving average that a step keeps (PyTorch's is 1 minus this)
    double epsilon = 1e-3;  ///< added to the variance
    bool center = true;     ///< add "beta"
    bool scale = true;      ///< multiply by "gamma"
    initializer beta_initializer = init::zeros{};
    initializer gamma_initializer = init::ones{};
    regularizer beta_regularizer{}, gamma_regularizer{};
    constraint beta_constraint{}, gamma_constraint{};
};

namespace detail {
template <class Options>
constexpr variable_options gamma_options(const Options& o) {
    return {.initializer = o.gamma_initializer, .regularizer = o.gamma_regularizer, .constraint = o.gamma_constraint};
}
template <class Options>
constexpr variable_options beta_options(const Options& o) {
    return {.initializer = o.beta_initializer, .regularizer = o.beta_regularizer, .constraint = o.beta_constraint};
}

/// Batch normalization whose statistics are mean(values, input, axes) of the input and of its
/// squared distances from that mean.
template <class Scope, tensor_like X, class Mean>
constexpr auto normalized_batch(const Scope& scope, const X& x, const batch_normalization_options& o,
                                std::source_location where, const Mean& mean_over) {
    if constexpr (requires { scope.float_scope(); }) // in mixed precision
        return scope.rounded(normalized_batch(scope.float_scope(), x, o, where, mean_over), where);
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const shape dims = shape_of(input);
    const shape channels{detail::features_of(scope, dims, "batch_normalization: input needs an axis of channels")};
    const auto parameter = [&](std::string_view name, const variable_options& options) {
        return scope.variable_like(input, name, channels, options);
    };
    const auto gamma = o.scale ? parameter("gamma", detail::gamma_options(o)) : decltype(input){};
    const auto beta = o.center ? parameter("beta", detail::beta_options(o)) : decltype(input){};
    const auto moving_mean = parameter("moving_mean", {.initializer = init::zeros{}, .trainable = false});
    const auto moving_variance = parameter("moving_variance", {.initializer = init::ones{}, .trainable = false});

    axes leading;
    leading.all = false;
    for (int i = 0; i + 1 < dims.rank(); ++i) leading.index[leading.count++] = static_cast<std::int8_t>(i);
    auto average = moving_mean, spread = moving_variance;
    if (scope.training()) {
        // The division of the mean applies the flag, so freezable layers cost others nothing.
        average = scope.unless_frozen(moving_mean, mean_over(input, input, leading), where);
        spread = scope.unless_frozen(moving_variance, mean_over(square(input - average), input, leading), where);
        scope.assign(moving_mean, moving_mean * o.momentum + average * (1 - o.momentum), where);
        scope.assign(moving_variance, moving_variance * o.momentum + spread * (1 - o.momentum), where);
    }
    const auto inverse = eval(rsqrt(spread + o.epsilon), where);
    const auto factor = o.scale ? eval(inverse * gamma, where) : inverse;
    const auto centered = (input - average) * factor;
    return scope.leave("batch_normalization", mark, o.center ? eval(centered + beta, where) : eval(centered, where));
}
} // namespace detail

/// Batch normalization (Ioffe and Szegedy 2015) of x [..., channels] over all axes but the last; the
/// result has x's shape. Training uses the batch's mean and (population) variance and updates the moving
/// averages. Evaluation and prediction use the moving averages, and so does training while they are
/// frozen (`model.variables().set_trainable("norm", false)` for all of scope / "norm"), as Keras does
/// with `layer.trainable = False`. Variables: "gamma", "beta", "moving_mean" and "moving_variance", each
/// [channels]. With a mask (nn/layers/masking.hpp) the statistics are those of the steps that count.
template <layer_scope Scope, tensor_like X>
constexpr auto batch_normalization(const Scope& scope, const X& x, const batch_normalization_options& o = {},
                                   std::source_location where = std::source_location::current()) {
    return detail::normalized_batch(scope, x, o, where,
                                    [&](const auto& values, const auto& input, const axes& leading) {
                                        const auto total = sum(values, leading, {}, where);
                                        return total / extent_number(total, detail::reduced_size(input, leading));
                                    });
}
template <layer_scope Scope>
no_such_option_in<batch_normalization_options> batch_normalization(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing batch_normalization(any_argument, ...) TG_MISTAKE;

} // namespace tapegraph
