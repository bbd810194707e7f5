#pragma once

#include <tapegraph/core/convolution_algorithm.hpp>
#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/operation.hpp>

#include <cstdint>

/// conv1d [batch, width, channels] and conv2d [batch, height, width, channels]; kernels [(height,) width, in, out].

namespace tapegraph {

struct convolution_geometry;

/// How many zeros surround an image: none, as many as keep its size at stride 1, given numbers, or those of `same` all
/// in front.
enum class padding_mode : std::int64_t { valid, same, explicit_amounts, causal };

/// Window geometry shared by convolution and pooling. Axis 0 is height, 1 width (conv1d uses width only).
struct window_attributes {
    std::int64_t stride[2]{1, 1};
    std::int64_t dilation[2]{1, 1};
    std::int64_t before[2]{}, after[2]{};
    std::int64_t mode = 0; ///< a padding_mode
    std::int64_t groups = 1;
    std::int64_t count_padding = 0; ///< averages divide by the whole window, padding included
    std::int64_t window[2]{};       ///< pooling only
    std::int64_t algorithm = 0;     ///< a convolution_algorithm; convolutions only

    /// The output extent along spatial axis i (0 height, 1 width) for a kernel of `size` taps, as
    /// defined by TensorFlow: valid ceil((in - effective + 1) / stride), same and causal ceil(in /
    /// stride).
    constexpr extent output(int i, extent in, std::int64_t size) const {
        const std::int64_t effective = (size - 1) * dilation[i] + 1;
        if (is(padding_mode::same) || is(padding_mode::causal)) return (in + (stride[i] - 1)) / stride[i];
        return (in + (before[i] + after[i] - effective)) / stride[i] + 1;
    }
    /// Whether a window of `size` taps fits: the output extent is positive, or zero for an empty
    /// input. For a symbolic extent this is checked when it is bound, in the operation's name.
    constexpr bool window_fits(int i, extent in, std::int64_t size, const char* operation) const {
        const extent out = output(i, in, size);
        if (out.known()) return out.value > 0 || (out.value == 0 && in.value == 0);
        const bool always = output(i, extent(1), size).value > 0; // then the output for an empty input is empty, too
        return always || at_least_or_required(out, 1, operation);
    }
    /// Whether groups, strides and dilations are positive.
    constexpr bool sensible() const {
        return groups > 0 && stride[0] > 0 && stride[1] > 0 && dilation[0] > 0 && dilation[1] > 0;
    }
    /// Whether an amount of padding is negative.
    constexpr bool negative_padding() const { return before[0] < 0 || before[1] < 0 || after[0] < 0 || after[1] < 0; }
    /// Whether the padding is of that kind.
    constexpr bool is(padding_mode which) const { return mode == static_cast<std::int64_t>(which); }
    /// Zeros before spatial axis i. "same" puts the odd one after it, as TensorFlow does.
    constexpr std::int64_t leading(int i, std::int64_t in, std::int64_t out, std::int64_t size) const {
        if (is(padding_mode::causal)) return (size - 1) * dilation[i];
        if (!is(padding_mode::same)) return before[i];
        const std::int64_t total = (out - 1) * stride[i] + (size - 1) * dilation[i] + 1 - in;
        return total > 0 ? total / 2 : 0;
    }
};

namespace detail {
struct convolution_operation {
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    using attributes = window_attributes;
    /// 2 per multiply-add: an element of the convolution's image sums over a filter without its
    /// last axis.
    static double flops_of(const buffer_view& image, const buffer_view& filter) {
        const std::int64_t last = filter.extents[filter.rank - 1];
        return last == 0 ? 0
                         : 2 * static_cast<double>(image.elements()) * static_cast<double>(filter.elements() / last);
    }
    /// The name of the CPU's algorithm for a call of Op, where it is not direct sums, or that of a
    /// GPU; empty otherwise.
    template <class Op>
    static std::string_view method_of(const convolution_geometry& g, const buffer_view& to);
};
/// A GPU backend's name for its algorithm for a call of Op on floats, beyond the math_mode; null
/// without one.
template <class Op>
inline std::string_view (*method_on_device)(const convolution_geometry& g, const buffer_view& to) = nullptr;
} // namespace detail

struct convolution_op : detail::convolution_operation {
    static constexpr std::string_view name = "convolution";
    static constexpr linearity linear = linearity::each;
    static constexpr int arity = 2;
    static constexpr void infer(const attributes& a, inference& io) {
        const shape &x = io.in[0].dims, &w = io.in[1].dims;
        const int spatial = x.rank() - 2;
        io.type = io.in[0].type;
        if (!io.require(io.in[0].type == io.in[1].type, "convolution: element types differ") ||
            !io.require(spatial == 1 || spatial == 2, "convolution: input must be NWC or NHWC") ||
            !io.require(w.rank() == x.rank(), "convolution: kernel rank must equal input rank") ||
            !io.require(w.known(), "convolution: kernel extents must be numbers") ||
            !io.require(w[0].value > 0 && (spatial == 1 || w[1].value > 0), "convolution: the kernel has no taps") ||
            !io.require(a.sensible(), "convolution: strides, dilations and groups are positive") ||
            !io.require(!a.negative_padding(), "convolution: padding is negative") ||
            !io.require(spatial == 1 || !a.is(padding_mode::causal), "conv2d: causal padding is for conv1d"))
            return;
        const extent channels = x[spatial + 1];
        const std::int64_t out = w[spatial + 1].value;
        if (!io.require(equal_or_required(channels, w[spatial] * a.groups), "convolution: channels differ") ||
            !io.require(out % a.groups == 0, "convolution: groups do not divide the filters"))
            return;
        io.result.push_back(x[0]);
        for (int i = 0; i < spatial; ++i) {
            const int axis = i + 2 - spatial;
            if (!io.require(a.window_fits(axis, x[i + 1], w[i].value, "convolution"),
                            "convolution: kernel larger than padded input"))
                return;
            io.result.push_back(a.output(axis, x[i + 1], w[i].value));
        }
        io.result.push_back(out);
    }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto w, auto);
    static double flops(const kernel_call& c) { return flops_of(c.out[0], c.in[1]); }
    static std::string_view method(const kernel_call& c);
};

/// dL/dx from (dy, w); the target is x's shape. It is linear in both operands, so its own
/// derivatives are convolutions.
struct convolution_input_gradient_op : detail::convolution_operation {
    static constexpr std::string_view name = "convolution_input_gradient";
    static constexpr linearity linear = linearity::each;
    static constexpr int arity = 2;
    // This operation also implements conv_transpose. A gradient always fits, so errors are worded
    // for conv_transpose.
    static constexpr void infer(const attributes& a, inference& io) {
        const shape &y = io.in[0].dims, &w = io.in[1].dims;
        io.type = io.in[0].type;
        io.result = *io.target;
        io.require(io.in[0].type == io.in[1].type, "conv_transpose: element types differ");
        io.require(a.sensible(), "conv_transpose: strides, dilations and groups are positive");
        io.require(!a.negative_padding(), "conv_transpose: padding is negative");
        if (y.rank() != w.rank() || w.rank() < 3) return;
        const std::int64_t filters = w[w.rank() - 1].value;
        io.require(equal_or_required(y[y.rank() - 1], filters), "conv_transpose: channels differ");
        io.require(a.groups <= 0 || filters % a.groups == 0, "conv_transpose: groups do not divide the channels");
    }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto d, auto dy, auto w, auto);
    static double flops(const kernel_call& c) { return flops_of(c.in[0], c.in[1]); }
    static std::string_view method(const kernel_call& c);
};

/// dL/dw from (x, dy); the target is w's shape.
struct convolution_filter_gradient_op : detail::convolution_operation {
    static constexpr std::string_view name = "convolution_filter_gradient";
    static constexpr linearity linear = linearity::each;
    static constexpr int arity = 2;
    static constexpr void infer(const attributes&, inference& io) {
        io.type = io.in[0].type;
        io.result = *io.target;
    }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto d, auto x, auto dy, auto);
    static double flops(const kernel_call& c) { return flops_of(c.in[1], c.out[0]); }
    static std::string_view method(const kernel_call& c);
};

/// Convolution plus bias, then relu if Relu, fused by a pass. Never differentiated.
template <bool Relu>
struct convolution_bias_op : detail::convolution_operation {
    static constexpr std::string_view name = Relu ? "convolution_bias_relu" : "convolution_bias";
    static constexpr bool takes_storage_types = true;
    static constexpr int arity = 3;
    static constexpr void infer(const attributes& a, inference& io) { convolution_op::infer(a, io); }
    static double flops(const kernel_call& c) { return flops_of(c.out[0], c.in[1]); }
    static std::string_view method(const kernel_call& c);
};

namespace detail {
// The result's type is named, not deduced, because these derivatives refer to one another in a
// circle.
template <class Op, class Handle>
constexpr Handle convolve(const window_attributes& a, const Handle& like, const auto& first, const auto& second) {
    const shape target = shape_of(like);
    return invoke<Op>(a, &target, std::source_location::current(), first, second);
}
} // namespace detail

template <int I>
constexpr auto convolution_op::vjp(const attributes& a, auto dy, auto x, auto w, auto) {
    if constexpr (I == 0)
        return detail::convolve<convolution_input_gradient_op>(a, x, dy, w);
    else
        return detail::convolve<convolution_filter_gradient_op>(a, w, x, dy);
}
template <int I>
constexpr auto convolution_input_gradient_op::vjp(const attributes& a, auto d, auto dy, auto w, auto) {
    if constexpr (I == 0)
        return invoke<convolution_op>(a, nullptr, std::source_location::current(), d, w);
    else
        return detail::convolve<convolution_filter_gradient_op>(a, w, d, dy);
}
template <int I>
constexpr auto convolution_filter_gradient_op::vjp(const attributes& a, auto d, auto x, auto dy, auto) {
    if constexpr (I == 0)
        return detail::convolve<convolution_input_gradient_op>(a, x, dy, d);
    else
        return invoke<convolution_op>(a, nullptr, std::source_location::current(), x, d);
}

/// Padding of a window: `valid`, `same` as TensorFlow defines it, amounts per side, or, in conv1d,
/// `causal`.
struct padding {
    padding_mode mode = padding_mode::valid;
    std::int64_t top = 0, bottom = 0, left = 0, right = 0;

    /// No padding: the kernel stays within the image.
    static constexpr padding valid() { return {}; }
    /// ceil(extent / stride) results along each axis, as in TensorFlow; an odd row or column is added after.
    static constexpr padding same() { return {padding_mode::same, 0, 0, 0, 0}; }
    /// Rows and columns of zeros on each side.
    static constexpr padding amounts(std::int64_t top, std::int64_t bottom, std::int64_t left, std::int64_t right) {
        return {padding_mode::explicit_amounts, top, bottom, left, right};
    }
    /// (kernel - 1) * dilation zeros before the input and none after it: output t sees inputs up to
    /// t * stride (van den Oord et al. 2016; Keras's "causal").
    static constexpr padding causal() { return {padding_mode::causal, 0, 0, 0, 0}; }
};

/// A value for height and one for width; a single number sets both.
struct height_width {
    std::int64_t extents[2];

    constexpr height_width(std::int64_t both) : extents{both, both} {}
    constexpr height_width(std::int64_t height, std::int64_t width) : extents{height, width} {}
    /// The height (0) or the width (1).
    constexpr std::int64_t& operator[](int i) { return extents[i]; }
    constexpr std::int64_t operator[](int i) const { return extents[i]; }
};

/// Options of `conv2d` on tensors; those of the layer are `conv2d_layer_options`.
struct conv2d_options {
    height_width stride = 1;
    tapegraph::padding padding{};
    height_width dilation = 1;
    std::int64_t groups = 1;
    convolution_algorithm algorithm = convolution_algorithm::automatic; ///< on the CPU; direct where it does not apply
};
/// Options of `conv1d` on tensors.
struct conv1d_options {
    std::int64_t stride = 1;
    tapegraph::padding padding{};
    std::int64_t dilation = 1;
    std::int64_t groups = 1;
    convolution_algorithm algorithm = convolution_algorithm::automatic; ///< on the CPU; direct where it does not apply
};

namespace detail {
constexpr void set_padding(window_attributes& a, const padding& p) {
    a.mode = static_cast<std::int64_t>(p.mode);
    a.before[0] = p.top, a.after[0] = p.bottom, a.before[1] = p.left, a.after[1] = p.right;
}
} // namespace detail

/// Cross-correlation of x [batch, height, width, in] with w [kernel height, kernel width, in / groups, out].
template <tensor_like X, tensor_like W>
constexpr auto conv2d(const X& x, const W& w, const conv2d_options& options = {},
                      std::source_location where = std::source_location::current()) {
    window_attributes a;
    for (int i = 0; i < 2; ++i) a.stride[i] = options.stride[i], a.dilation[i] = options.dilation[i];
    a.groups = options.groups;
    detail::set_padding(a, options.padding);
    a.algorithm = static_cast<std::int64_t>(options.algorithm);
    return invoke<convolution_op>(a, nullptr, where, x, w);
}
no_such_option_in<conv2d_options> conv2d(any_argument, any_argument, ...) TG_MISTAKE;

/// Cross-correlation of x [batch, width, in] with w [kernel, in / groups, out].
template <tensor_like X, tensor_like W>
constexpr auto conv1d(const X& x, const W& w, const conv1d_options& options = {},
                      std::source_location where = std::source_location::current()) {
    window_attributes a;
    a.stride[1] = options.stride, a.dilation[1] = options.dilation;
    a.groups = options.groups;
    detail::set_padding(a, options.padding);
    a.algorithm = static_cast<std::int64_t>(options.algorithm);
    return invoke<convolution_op>(a, nullptr, where, x, w);
}
no_such_option_in<conv1d_options> conv1d(any_argument, any_argument, ...) TG_MISTAKE;

} // namespace tapegraph
