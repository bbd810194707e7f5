#pragma once

#include <tapegraph/model/initializer.hpp>
#include <tapegraph/model/layer_scope.hpp>
#include <tapegraph/ops/convolution/convolution.hpp>
#include <tapegraph/ops/elementwise/arithmetic.hpp>

namespace tapegraph {

/// A kernel's extents are 3 by default; all other defaults are those of Keras.
struct conv2d_layer_options {
    std::int64_t filters = 1; ///< output channels, positive
    height_width kernel_size = 3;
    height_width stride = 1;
    tapegraph::padding padding{}; ///< valid(), same() or amounts(...)
    height_width dilation = 1;
    std::int64_t groups = 1; ///< divides channels and filters
    bool use_bias = true;
    initializer kernel_initializer = init::glorot_uniform{};
    initializer bias_initializer = init::zeros{};
    regularizer kernel_regularizer{}, bias_regularizer{};
    constraint kernel_constraint{}, bias_constraint{};
    convolution_algorithm algorithm = convolution_algorithm::automatic; ///< on the CPU (fast_convolution.hpp)
};

/// A kernel's extent is 3 by default; all other defaults are those of Keras.
struct conv1d_layer_options {
    std::int64_t filters = 1; ///< output channels, positive
    std::int64_t kernel_size = 3;
    std::int64_t stride = 1;
    tapegraph::padding padding{}; ///< valid(), same(), causal() or amounts(...)
    std::int64_t dilation = 1;
    std::int64_t groups = 1; ///< divides channels and filters
    bool use_bias = true;
    initializer kernel_initializer = init::glorot_uniform{};
    initializer bias_initializer = init::zeros{};
    regularizer kernel_regularizer{}, bias_regularizer{};
    constraint kernel_constraint{}, bias_constraint{};
    convolution_algorithm algorithm = convolution_algorithm::automatic; ///< on the CPU (fast_convolution.hpp)
};

namespace detail {
// The number of input channels of one group.
template <class Scope>
constexpr std::int64_t group_channels(const Scope& scope, const shape& dims, std::int64_t groups) {
    const std::int64_t channels = features_of(scope, dims, "convolution: input needs an axis of channels");
    return scope.require(groups > 0, "convolution: groups must be positive") ? channels / groups : channels;
}

template <class Scope>
constexpr std::int64_t positive_filters(const Scope& scope, std::int64_t filters) {
    return scope.require(filters > 0, "convolution: filters must be positive") ? filters : 1;
}

/// The extents of a kernel: those of the window, and two more.
constexpr shape kernel_shape(const height_width& size, std::int64_t in, std::int64_t out) {
    return {size[0], size[1], in, out};
}
constexpr shape kernel_shape(std::int64_t size, std::int64_t in, std::int64_t out) { return {size, in, out}; }

template <class Scope, class Handle, class Options>
constexpr auto with_bias(const Scope& scope, const Handle& y, std::int64_t filters, const Options& o,
                         std::source_location where) {
    if (!o.use_bias) return y;
    return eval(y + scope.variable_like(y, "bias", {filters}, bias_options(o)), where);
}
} // namespace detail

/// Convolution of x [batch, height, width, channels] with "kernel" [height, width, channels / groups, filters], plus "bias"
/// [filters]. Extents of the result: ops/convolution/convolution.hpp.
template <layer_scope Scope, tensor_like X>
constexpr auto conv2d(const Scope& scope, const X& x, const conv2d_layer_options& o,
                      std::source_location where = std::source_location::current()) {
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const shape dims = shape_of(input);
    const std::int64_t channels = detail::group_channels(scope, dims, o.groups);
    const std::int64_t filters = detail::positive_filters(scope, o.filters);
    const auto kernel = scope.variable_like(input, "kernel", {o.kernel_size[0], o.kernel_size[1], channels, filters},
                                            detail::kernel_options(o));
    const conv2d_options window{o.stride, o.padding, o.dilation, o.groups, o.algorithm};
    return scope.leave("conv2d", mark,
                       detail::with_bias(scope, conv2d(input, kernel, window, where), filters, o, where));
}
template <layer_scope Scope>
no_such_option_in<conv2d_layer_options> conv2d(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing conv2d(any_argument, ...) TG_MISTAKE;
template <detail::scope_name Name>
detail::scope_missing conv2d(const Name&, any_argument, ...) TG_MISTAKE;

/// Convolution of x [batch, width, channels] with "kernel" [width, channels / groups, filters], plus "bias" [filters].
template <layer_scope Scope, tensor_like X>
constexpr auto conv1d(const Scope& scope, const X& x, const conv1d_layer_options& o,
                      std::source_location where = std::source_location::current()) {
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const shape dims = shape_of(input);
    const std::int64_t channels = detail::group_channels(scope, dims, o.groups);
    const std::int64_t filters = detail::positive_filters(scope, o.filters);
    const auto kernel =
        scope.variable_like(input, "kernel", {o.kernel_size, channels, filters}, detail::kernel_options(o));
    const conv1d_options window{o.stride, o.padding, o.dilation, o.groups, o.algorithm};
    return scope.leave("conv1d", mark,
                       detail::with_bias(scope, conv1d(input, kernel, window, where), filters, o, where));
}
template <layer_scope Scope>
no_such_option_in<conv1d_layer_options> conv1d(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing conv1d(any_argument, ...) TG_MISTAKE;
template <detail::scope_name Name>
detail::scope_missing conv1d(const Name&, any_argument, ...) TG_MISTAKE;

} // namespace tapegraph
