#pragma once

#include <tapegraph/model/layer_scope.hpp>
#include <tapegraph/nn/layers/convolution.hpp>
#include <tapegraph/ops/convolution/convolution_transpose.hpp>

/// Depthwise and separable convolution layers. Not part of tapegraph.hpp: programs without them do
/// not compile them.

namespace tapegraph {

/// A kernel's extents are 3 by default; all other defaults are those of Keras.
template <class Size>
struct basic_depthwise_layer_options {
    Size kernel_size = 3;
    Size stride = 1;
    tapegraph::padding padding{};
    Size dilation = 1;
    std::int64_t depth_multiplier = 1; ///< filters per channel
    bool use_bias = true;
    initializer depthwise_initializer = init::glorot_uniform{};
    initializer bias_initializer = init::zeros{};
    regularizer depthwise_regularizer{}, bias_regularizer{};
    constraint depthwise_constraint{}, bias_constraint{};
};
using depthwise_conv2d_layer_options = basic_depthwise_layer_options<height_width>;
using depthwise_conv1d_layer_options = basic_depthwise_layer_options<std::int64_t>;

/// The same options and `filters`, the output channels.
template <class Size>
struct basic_separable_layer_options {
    std::int64_t filters = 1;
    Size kernel_size = 3;
    Size stride = 1;
    tapegraph::padding padding{};
    Size dilation = 1;
    std::int64_t depth_multiplier = 1;
    bool use_bias = true;
    initializer depthwise_initializer = init::glorot_uniform{};
    initializer pointwise_initializer = init::glorot_uniform{};
    initializer bias_initializer = init::zeros{};
    regularizer depthwise_regularizer{}, pointwise_regularizer{}, bias_regularizer{};
    constraint depthwise_constraint{}, pointwise_constraint{}, bias_constraint{};
};
using separable_conv2d_layer_options = basic_separable_layer_options<height_width>;
using separable_conv1d_layer_options = basic_separable_layer_options<std::int64_t>;

namespace detail {

template <class Options>
constexpr variable_options depthwise_options(const Options& o) {
    return {.initializer = o.depthwise_initializer,
            .regularizer = o.depthwise_regularizer,
            .constraint = o.depthwise_constraint};
}

/// Converts a layer's options to an operation's window.
template <class Window, class Options>
constexpr Window window_of(const Options& o) {
    return {.stride = o.stride, .padding = o.padding, .dilation = o.dilation, .groups = 1};
}

template <class Scope>
constexpr std::int64_t positive_multiplier(const Scope& scope, std::int64_t multiplier) {
    return scope.require(multiplier > 0, "convolution: depth_multiplier must be positive") ? multiplier : 1;
}

/// f(input, kernel), plus the bias.
template <class Scope, tensor_like X, class Options, class F>
constexpr auto depthwise_layer(const Scope& scope, std::string_view type, const X& x, const Options& o,
                               std::source_location where, const F& f) {
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const std::int64_t channels = group_channels(scope, shape_of(input), 1);
    const std::int64_t each = positive_multiplier(scope, o.depth_multiplier);
    const auto kernel =
        scope.variable_like(input, "kernel", kernel_shape(o.kernel_size, channels, each), depthwise_options(o));
    return scope.leave(type, mark, with_bias(scope, f(input, kernel), channels * each, o, where));
}

} // namespace detail

/// Convolves each channel of x [batch, height, width, channels] with `depth_multiplier` filters of
/// its own: "kernel" [height, width, channels, depth_multiplier], "bias" [channels
/// depth_multiplier].
template <layer_scope Scope, tensor_like X>
constexpr auto depthwise_conv2d(const Scope& scope, const X& x, const depthwise_conv2d_layer_options& o,
                                std::source_location where = std::source_location::current()) {
    return detail::depthwise_layer(scope, "depthwise_conv2d", x, o, where, [&](const auto& image, const auto& kernel) {
        return depthwise_conv2d(image, kernel, detail::window_of<conv2d_options>(o), where);
    });
}
template <layer_scope Scope>
no_such_option_in<depthwise_conv2d_layer_options> depthwise_conv2d(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing depthwise_conv2d(any_argument, ...) TG_MISTAKE;
template <detail::scope_name Name>
detail::scope_missing depthwise_conv2d(const Name&, any_argument, ...) TG_MISTAKE;

/// The same for x [batch, width, channels]: "kernel" [width, channels, depth_multiplier].
template <layer_scope Scope, tensor_like X>
constexpr auto depthwise_conv1d(const Scope& scope, const X& x, const depthwise_conv1d_layer_options& o,
                                std::source_location where = std::source_location::current()) {
    return detail::depthwise_layer(scope, "depthwise_conv1d", x, o, where, [&](const auto& line, const auto& kernel) {
        return depthwise_conv1d(line, kernel, detail::window_of<conv1d_options>(o), where);
    });
}
template <layer_scope Scope>
no_such_option_in<depthwise_conv1d_layer_options> depthwise_conv1d(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing depthwise_conv1d(any_argument, ...) TG_MISTAKE;
template <detail::scope_name Name>
detail::scope_missing depthwise_conv1d(const Name&, any_argument, ...) TG_MISTAKE;

namespace detail {
/// f(input, depthwise kernel, pointwise kernel), plus the bias.
template <class Scope, handle H, class Options, class F>
constexpr H separable(const Scope& scope, const H& input, const Options& o, std::source_location where, const F& f) {
    const std::int64_t channels = group_channels(scope, shape_of(input), 1);
    const std::int64_t each = positive_multiplier(scope, o.depth_multiplier);
    const std::int64_t filters = positive_filters(scope, o.filters);
    decltype(o.kernel_size) one = 1;
    const H first = scope.variable_like(input, "depthwise_kernel", kernel_shape(o.kernel_size, channels, each),
                                        depthwise_options(o));
    const H second = scope.variable_like(input, "pointwise_kernel", kernel_shape(one, channels * each, filters),
                                         {.initializer = o.pointwise_initializer,
                                          .regularizer = o.pointwise_regularizer,
                                          .constraint = o.pointwise_constraint});
    return with_bias(scope, H(f(input, first, second)), filters, o, where);
}
} // namespace detail

/// A depthwise convolution followed by one across channels: "depthwise_kernel" [height, width,
/// channels, depth_multiplier], "pointwise_kernel" [1, 1, channels depth_multiplier, filters],
/// "bias" [filters].
template <layer_scope Scope, tensor_like X>
constexpr auto separable_conv2d(const Scope& scope, const X& x, const separable_conv2d_layer_options& o,
                                std::source_location where = std::source_location::current()) {
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const auto run = [&](const auto& image, const auto& first, const auto& second) {
        return separable_conv2d(image, first, second, detail::window_of<conv2d_options>(o), where);
    };
    return scope.leave("separable_conv2d", mark, detail::separable(scope, input, o, where, run));
}
template <layer_scope Scope>
no_such_option_in<separable_conv2d_layer_options> separable_conv2d(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing separable_conv2d(any_argument, ...) TG_MISTAKE;
template <detail::scope_name Name>
detail::scope_missing separable_conv2d(const Name&, any_argument, ...) TG_MISTAKE;

/// The same for x [batch, width, channels], with kernels without a height.
template <layer_scope Scope, tensor_like X>
constexpr auto separable_conv1d(const Scope& scope, const X& x, const separable_conv1d_layer_options& o,
                                std::source_location where = std::source_location::current()) {
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const auto run = [&](const auto& line, const auto& first, const auto& second) {
        return separable_conv1d(line, first, second, detail::window_of<conv1d_options>(o), where);
    };
    return scope.leave("separable_conv1d", mark, detail::separable(scope, input, o, where, run));
}
template <layer_scope Scope>
no_such_option_in<separable_conv1d_layer_options> separable_conv1d(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing separable_conv1d(any_argument, ...) TG_MISTAKE;
template <detail::scope_name Name>
detail::scope_missing separable_conv1d(const Name&, any_argument, ...) TG_MISTAKE;

} // namespace tapegraph
