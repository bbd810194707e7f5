#pragma once

#include <tapegraph/ops/convolution/convolution.hpp>
#include <tapegraph/ops/movement/view.hpp>
#include <tapegraph/ops/refusal.hpp>

/// Transposed, depthwise and separable convolution with Keras's kernel shapes.

namespace tapegraph {

/// Selects the longest possible output, as Keras does by default.
inline constexpr std::int64_t default_output = -1;

/// Options of `conv2d_transpose` on tensors.
struct conv2d_transpose_options {
    height_width stride = 1;
    tapegraph::padding padding{};
    height_width output_padding = default_output;
    height_width dilation = 1;
    std::int64_t groups = 1;
    convolution_algorithm algorithm = convolution_algorithm::automatic; ///< as for convolutions
};
/// Options of `conv1d_transpose` on tensors.
struct conv1d_transpose_options {
    std::int64_t stride = 1;
    tapegraph::padding padding{};
    std::int64_t output_padding = default_output;
    std::int64_t dilation = 1;
    std::int64_t groups = 1;
    convolution_algorithm algorithm = convolution_algorithm::automatic; ///< as for convolutions
};

namespace detail {

struct convolution_texts {
    enum reason : std::int64_t {
        rank1,
        rank2,
        causal,
        output_padding,
        nothing,
        no_pixels,
        depthwise_rank,
        depthwise_channels
    };
    static constexpr const char* text(std::int64_t what) {
        switch (what) {
        case rank1:
            return "conv1d_transpose: input must be [batch, width, in], the kernel [width, out, in] of known extents";
        case rank2:
            return "conv2d_transpose: input must be [batch, height, width, in], the kernel [height, width, out, in] of "
                   "known "
                   "extents";
        case causal: return "conv_transpose: causal padding is for conv1d";
        case output_padding: return "conv_transpose: output_padding does not fit stride and padding";
        case nothing: return "conv_transpose: padding leaves no output";
        case no_pixels: return "conv_transpose: an axis of the image is empty, which only same padding allows";
        case depthwise_rank:
            return "depthwise_conv: the kernel must have the input's rank, [(height,) width, in, multiplier], of known "
                   "extents";
        default: return "depthwise_conv: channels differ";
        }
    }
};

/// The length whose convolution has `in` outputs: Keras's deconv_output_length for valid and same;
/// with explicit amounts (in - 1) * stride + span - before - after + output_padding, as in PyTorch.
/// Clears `padding_valid` if no convolution of that length gives `in`.
constexpr extent transposed_length(const window_attributes& a, int i, extent in, std::int64_t taps,
                                   std::int64_t output_padding, bool& padding_valid) {
    const std::int64_t stride = a.stride[i], span = (taps - 1) * a.dilation[i] + 1;
    const bool same = a.is(padding_mode::same);
    const bool valid = a.is(padding_mode::valid);
    if (output_padding == default_output) {
        if (same) return in * stride;
        if (valid) return in * stride + (span > stride ? span - stride : 0);
        output_padding = 0;
    }
    // The length after the first (in - 1) * stride positions.
    const std::int64_t rest = same ? span % 2 + output_padding : span + output_padding - a.before[i] - a.after[i];
    padding_valid =
        padding_valid && output_padding >= 0 && (same ? rest >= 1 && rest <= stride : output_padding < stride);
    return (in - 1) * stride + rest;
}

template <tensor_like X, tensor_like W>
constexpr auto transposed_convolution(const X& x, const W& w, const window_attributes& a, int spatial,
                                      const height_width& output_padding, std::source_location where) {
    const auto input = eval(x, where);
    const auto kernel = eval(w, where);
    const shape from = shape_of(input), taps = shape_of(kernel);
    if (from.rank() != spatial + 2 || taps.rank() != spatial + 2 || !taps.known())
        return refuse<convolution_texts>(spatial == 1 ? convolution_texts::rank1 : convolution_texts::rank2, where,
                                         input, kernel);
    if (a.is(padding_mode::causal)) return refuse<convolution_texts>(convolution_texts::causal, where, input, kernel);
    shape target;
    target.attach(from.table());
    target.push_back(from[0]);
    bool padding_valid = true, not_empty = true, has_pixels = true;
    for (int i = 0; i < spatial; ++i) {
        const int axis = i + 2 - spatial;
        const extent size = transposed_length(a, axis, from[i + 1], taps[i].value, output_padding[axis], padding_valid);
        not_empty = not_empty && (!size.known() || size.value >= 0) && taps[i].value > 0;
        // No convolution gives 0 outputs, so there would be no derivative.
        has_pixels = has_pixels && (!from[i + 1].known() || from[i + 1].value > 0 || a.is(padding_mode::same));
        target.push_back(size);
    }
    target.push_back(taps[spatial] * a.groups);
    if (!padding_valid) return refuse<convolution_texts>(convolution_texts::output_padding, where, input, kernel);
    if (!has_pixels) return refuse<convolution_texts>(convolution_texts::no_pixels, where, input, kernel);
    if (!not_empty) return refuse<convolution_texts>(convolution_texts::nothing, where, input, kernel);
    return invoke<convolution_input_gradient_op>(a, &target, where, input, kernel);
}

template <class Convolution, tensor_like X, tensor_like W, class Options>
constexpr auto depthwise(const Convolution& convolve, const X& x, const W& w, Options options,
                         std::source_location where) {
    const auto input = eval(x, where);
    const auto kernel = eval(w, where);
    const shape from = shape_of(input), taps = shape_of(kernel);
    const int last = taps.rank() - 1;
    if (from.rank() != taps.rank() || last < 2 || !taps.known())
        return refuse<convolution_texts>(convolution_texts::depthwise_rank, where, input, kernel);
    if (!equal_or_required(from[last], taps[last - 1]))
        return refuse<convolution_texts>(convolution_texts::depthwise_channels, where, input, kernel);
    shape grouped = taps; // [..., in, multiplier] to [..., 1, in * multiplier]
    grouped.set(last - 1, 1);
    grouped.set(last, taps[last - 1] * taps[last]);
    options.groups = taps[last - 1].value;
    return convolve(input, invoke<reshape_op>({}, &grouped, where, kernel), options);
}

} // namespace detail

/// Keras's Conv2DTranspose: the adjoint of conv2d. x [batch, height, width, in], w [kernel height,
/// kernel width, out, in] (out of one group). The output is as long as in Keras: in * stride +
/// max(span - stride, 0) for valid padding, in * stride for same.
template <tensor_like X, tensor_like W>
constexpr auto conv2d_transpose(const X& x, const W& w, const conv2d_transpose_options& options = {},
                                std::source_location where = std::source_location::current()) {
    window_attributes a;
    for (int i = 0; i < 2; ++i) a.stride[i] = options.stride[i], a.dilation[i] = options.dilation[i];
    a.groups = options.groups;
    detail::set_padding(a, options.padding);
    a.algorithm = static_cast<std::int64_t>(options.algorithm);
    return detail::transposed_convolution(x, w, a, 2, options.output_padding, where);
}
no_such_option_in<conv2d_transpose_options> conv2d_transpose(any_argument, any_argument, ...) TG_MISTAKE;

/// Keras's Conv1DTranspose. x [batch, width, in], w [kernel, out, in].
template <tensor_like X, tensor_like W>
constexpr auto conv1d_transpose(const X& x, const W& w, const conv1d_transpose_options& options = {},
                                std::source_location where = std::source_location::current()) {
    window_attributes a;
    a.stride[1] = options.stride, a.dilation[1] = options.dilation;
    a.groups = options.groups;
    detail::set_padding(a, options.padding);
    a.algorithm = static_cast<std::int64_t>(options.algorithm);
    return detail::transposed_convolution(x, w, a, 1, {default_output, options.output_padding}, where);
}
no_such_option_in<conv1d_transpose_options> conv1d_transpose(any_argument, any_argument, ...) TG_MISTAKE;

/// Convolves each channel with filters of its own. x [batch, height, width, in], w [kernel height,
/// kernel width, in, multiplier]; channel c gives channels c * multiplier ... of the result.
/// `options.groups` is ignored.
template <tensor_like X, tensor_like W>
constexpr auto depthwise_conv2d(const X& x, const W& w, const conv2d_options& options = {},
                                std::source_location where = std::source_location::current()) {
    return detail::depthwise(
        [&](const auto& image, const auto& kernel, const auto& o) { return conv2d(image, kernel, o, where); }, x, w,
        options, where);
}
no_such_option_in<conv2d_options> depthwise_conv2d(any_argument, any_argument, ...) TG_MISTAKE;
/// x [batch, width, in], w [kernel, in, multiplier].
template <tensor_like X, tensor_like W>
constexpr auto depthwise_conv1d(const X& x, const W& w, const conv1d_options& options = {},
                                std::source_location where = std::source_location::current()) {
    return detail::depthwise(
        [&](const auto& image, const auto& kernel, const auto& o) { return conv1d(image, kernel, o, where); }, x, w,
        options, where);
}
no_such_option_in<conv1d_options> depthwise_conv1d(any_argument, any_argument, ...) TG_MISTAKE;

/// A depthwise convolution followed by a 1 by 1 convolution across channels: `pointwise` is [1, 1,
/// in * multiplier, out].
template <tensor_like X, tensor_like W, tensor_like P>
constexpr auto separable_conv2d(const X& x, const W& w, const P& pointwise, const conv2d_options& options = {},
                                std::source_location where = std::source_location::current()) {
    return conv2d(depthwise_conv2d(x, w, options, where), pointwise, {}, where);
}
no_such_option_in<conv2d_options> separable_conv2d(any_argument, any_argument, any_argument, ...) TG_MISTAKE;
/// `pointwise` is [1, in * multiplier, out].
template <tensor_like X, tensor_like W, tensor_like P>
constexpr auto separable_conv1d(const X& x, const W& w, const P& pointwise, const conv1d_options& options = {},
                                std::source_location where = std::source_location::current()) {
    return conv1d(depthwise_conv1d(x, w, options, where), pointwise, {}, where);
}
no_such_option_in<conv1d_options> separable_conv1d(any_argument, any_argument, any_argument, ...) TG_MISTAKE;

} // namespace tapegraph
