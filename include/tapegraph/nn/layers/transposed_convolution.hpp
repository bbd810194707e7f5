#pragma once

#include <tapegraph/model/layer_scope.hpp>
#include <tapegraph/nn/layers/convolution.hpp>
#include <tapegraph/ops/convolution/convolution_transpose.hpp>

/// Transposed convolution layers. Not part of tapegraph.hpp: programs without them do not compile
/// them.

namespace tapegraph {

/// A kernel's extents are 3 by default; all other defaults are those of Keras.
template <class Size>
struct basic_conv_transpose_layer_options {
    std::int64_t filters = 1; ///< output channels, positive
    Size kernel_size = 3;
    Size stride = 1;
    tapegraph::padding padding{};
    Size output_padding = default_output; ///< see ops/convolution/convolution_transpose.hpp
    Size dilation = 1;
    bool use_bias = true;
    initializer kernel_initializer = init::glorot_uniform{};
    initializer bias_initializer = init::zeros{};
    regularizer kernel_regularizer{}, bias_regularizer{};
    constraint kernel_constraint{}, bias_constraint{};
    convolution_algorithm algorithm = convolution_algorithm::automatic; ///< on the CPU (fast_convolution.hpp)
};
using conv2d_transpose_layer_options = basic_conv_transpose_layer_options<height_width>;
using conv1d_transpose_layer_options = basic_conv_transpose_layer_options<std::int64_t>;

namespace detail {
/// f(input, kernel, window), plus the bias.
template <class Window, class Scope, tensor_like X, class Options, class F>
constexpr auto transposed_layer(const Scope& scope, std::string_view type, const X& x, const Options& o,
                                std::source_location where, const F& f) {
    const auto input = scope.operand(x, where);
    const auto mark = scope.enter();
    const std::int64_t channels = group_channels(scope, shape_of(input), 1);
    const std::int64_t filters = positive_filters(scope, o.filters);
    const auto kernel =
        scope.variable_like(input, "kernel", kernel_shape(o.kernel_size, filters, channels), kernel_options(o));
    const Window window{.stride = o.stride,
                        .padding = o.padding,
                        .output_padding = o.output_padding,
                        .dilation = o.dilation,
                        .groups = 1,
                        .algorithm = o.algorithm};
    return scope.leave(type, mark, with_bias(scope, f(input, kernel, window), filters, o, where));
}
} // namespace detail

/// Transposed convolution of x [batch, height, width, channels] with "kernel" [height, width, filters, channels], plus "bias"
/// [filters]. Extents of the result: ops/convolution/convolution_transpose.hpp.
template <layer_scope Scope, tensor_like X>
constexpr auto conv2d_transpose(const Scope& scope, const X& x, const conv2d_transpose_layer_options& o,
                                std::source_location where = std::source_location::current()) {
    const auto run = [&](const auto&... operands) { return conv2d_transpose(operands..., where); };
    return detail::transposed_layer<conv2d_transpose_options>(scope, "conv2d_transpose", x, o, where, run);
}
template <layer_scope Scope>
no_such_option_in<conv2d_transpose_layer_options> conv2d_transpose(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing conv2d_transpose(any_argument, ...) TG_MISTAKE;
template <detail::scope_name Name>
detail::scope_missing conv2d_transpose(const Name&, any_argument, ...) TG_MISTAKE;

/// The same for x [batch, width, channels] with "kernel" [width, filters, channels].
template <layer_scope Scope, tensor_like X>
constexpr auto conv1d_transpose(const Scope& scope, const X& x, const conv1d_transpose_layer_options& o,
                                std::source_location where = std::source_location::current()) {
    const auto run = [&](const auto&... operands) { return conv1d_transpose(operands..., where); };
    return detail::transposed_layer<conv1d_transpose_options>(scope, "conv1d_transpose", x, o, where, run);
}
template <layer_scope Scope>
no_such_option_in<conv1d_transpose_layer_options> conv1d_transpose(const Scope&, any_argument, ...) TG_MISTAKE;
template <class = void>
detail::scope_missing conv1d_transpose(any_argument, ...) TG_MISTAKE;
template <detail::scope_name Name>
detail::scope_missing conv1d_transpose(const Name&, any_argument, ...) TG_MISTAKE;

} // namespace tapegraph
