#pragma once

#include <tapegraph/ops/convolution/convolution.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>
#include <tapegraph/ops/refusal.hpp>

#include <algorithm>

/// max and average pooling over [batch, width, channels] and [batch, height, width, channels].

namespace tapegraph {

namespace detail {
constexpr void infer_pool(const window_attributes& a, inference& io) {
    const shape& x = io.in[0].dims;
    const int spatial = x.rank() - 2;
    io.type = io.in[0].type;
    if (!io.require(spatial == 1 || spatial == 2, "pooling: input must be NWC or NHWC") ||
        !io.require(a.window[0] > 0 && a.window[1] > 0 && a.sensible(),
                    "pooling: windows, strides and dilations are positive") ||
        !io.require(!a.negative_padding(), "pooling: padding is negative") ||
        !io.require(!a.is(padding_mode::causal), "pooling: causal padding is for conv1d"))
        return;
    io.result.push_back(x[0]);
    for (int i = 2 - spatial; i < 2; ++i) {
        const std::int64_t span = (a.window[i] - 1) * a.dilation[i] + 1;
        const extent from = x[i + spatial - 1];
        if (!io.require(a.before[i] < span && a.after[i] < span, "pooling: padding as large as the window") ||
            !io.require(a.window_fits(i, from, a.window[i], "pooling"), "pooling: window larger than padded input"))
            return;
        io.result.push_back(a.output(i, from, a.window[i]));
    }
    io.result.push_back(x[spatial + 1]);
}

struct pool_operation {
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    using attributes = window_attributes;
    /// One window per element of the pooled image, the smallest of the images involved.
    static double flops(const kernel_call& c) {
        std::int64_t pooled = c.out[0].elements();
        for (int k = 0; k < c.inputs; ++k) pooled = std::min(pooled, c.in[k].elements());
        const auto a = attributes_from_words<pool_operation>(c.attributes);
        return static_cast<double>(pooled * a.window[0] * a.window[1]);
    }
};
} // namespace detail

struct max_pool_op : detail::pool_operation {
    static constexpr std::string_view name = "max_pool";
    static constexpr std::string_view layer_name = "max_pooling*";
    static constexpr batching batched = batching::images;
    static constexpr std::uint32_t saved_for_vjp = saved_operands | saved_value;
    static constexpr int arity = 1;
    static constexpr void infer(const attributes& a, inference& io) { detail::infer_pool(a, io); }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto y);
};

/// Maps (dy, x, y) to dx: each window's derivative goes to its first maximum.
struct max_pool_gradient_op : detail::pool_operation {
    static constexpr std::string_view name = "max_pool_gradient";
    static constexpr int arity = 3;
    static constexpr void infer(const attributes&, inference& io) {
        io.type = io.in[0].type;
        io.result = io.in[1].dims;
    }
    template <int I>
        requires(I == 0)
    static constexpr auto vjp(const attributes& a, auto d, auto dy, auto x, auto y, auto);
};

/// Maps (d, x, y) to the value of d at each window's first maximum: the adjoint of
/// max_pool_gradient.
struct max_pool_select_op : detail::pool_operation {
    static constexpr std::string_view name = "max_pool_select";
    static constexpr int arity = 3;
    static constexpr void infer(const attributes&, inference& io) {
        io.type = io.in[0].type;
        io.result = io.in[2].dims;
    }
    template <int I>
        requires(I == 0)
    static constexpr auto vjp(const attributes& a, auto d, auto, auto x, auto y, auto) {
        return invoke<max_pool_gradient_op>(a, nullptr, std::source_location::current(), d, x, y);
    }
};

template <int I>
constexpr auto max_pool_op::vjp(const attributes& a, auto dy, auto x, auto y) {
    return invoke<max_pool_gradient_op>(a, nullptr, std::source_location::current(), dy, x, y);
}
template <int I>
    requires(I == 0)
constexpr auto max_pool_gradient_op::vjp(const attributes& a, auto d, auto, auto x, auto y, auto) {
    return invoke<max_pool_select_op>(a, nullptr, std::source_location::current(), d, x, y);
}

/// Mean over each window's elements inside the image.
struct average_pool_op : detail::pool_operation {
    static constexpr std::string_view name = "average_pool";
    static constexpr std::string_view layer_name = "average_pooling*";
    static constexpr batching batched = batching::images;
    static constexpr linearity linear = linearity::joint;
    static constexpr int arity = 1;
    static constexpr void infer(const attributes& a, inference& io) { detail::infer_pool(a, io); }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto);
};

struct average_pool_gradient_op : detail::pool_operation {
    static constexpr std::string_view name = "average_pool_gradient";
    static constexpr linearity linear = linearity::joint;
    static constexpr int arity = 1;
    static constexpr void infer(const attributes&, inference& io) {
        io.type = io.in[0].type;
        io.result = *io.target;
    }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto d, auto, auto) {
        return invoke<average_pool_op>(a, nullptr, std::source_location::current(), d);
    }
};

template <int I>
constexpr auto average_pool_op::vjp(const attributes& a, auto dy, auto x, auto) {
    const shape target = shape_of(x);
    return invoke<average_pool_gradient_op>(a, &target, std::source_location::current(), dy);
}

/// max_pool of 2 by 2 pixels with stride 2, unpadded, of convolution_bias_op. A pass fuses them
/// where nothing else reads the convolution, which is then never written to memory. The attributes
/// are the convolution's. Never differentiated.
template <bool Relu>
struct convolution_bias_pool_op : detail::convolution_operation {
    static constexpr std::string_view name = Relu ? "convolution_bias_relu_pool" : "convolution_bias_pool";
    static constexpr int arity = 3;
    static constexpr void infer(const attributes& a, inference& io) {
        convolution_op::infer(a, io);
        if (!io.require(io.result.rank() == 4, "pooling: input must be NHWC")) return;
        operand_info convolved{io.type, io.result};
        window_attributes halves;
        halves.stride[0] = halves.stride[1] = halves.window[0] = halves.window[1] = 2;
        inference pooled;
        pooled.in = &convolved, pooled.count = 1;
        pooled.result.attach(convolved.dims.table());
        detail::infer_pool(halves, pooled);
        io.result = pooled.result;
        if (pooled.error != nullptr) io.fail(pooled.error);
    }
    static std::string_view method(const kernel_call& c);
    static double flops(const kernel_call& c) { return 4 * flops_of(c.out[0], c.in[1]); } // four pixels per element
};

/// `stride` 0 means the window's own size.
struct pool2d_options {
    height_width pool_size = 2;
    height_width stride = 0;
    tapegraph::padding padding{};
    height_width dilation = 1;
    bool count_include_pad = false; ///< for averages: padding counts as zeros, as in PyTorch
};
/// Options of pooling along one axis.
struct pool1d_options {
    std::int64_t pool_size = 2;
    std::int64_t stride = 0;
    tapegraph::padding padding{}; ///< left and right
    std::int64_t dilation = 1;
    bool count_include_pad = false;
};

namespace detail {
constexpr window_attributes pool_attributes(const pool2d_options& options) {
    window_attributes a;
    for (int i = 0; i < 2; ++i) {
        a.window[i] = options.pool_size[i];
        a.stride[i] = options.stride[i] != 0 ? options.stride[i] : options.pool_size[i];
        a.dilation[i] = options.dilation[i];
    }
    a.count_padding = options.count_include_pad;
    set_padding(a, options.padding);
    return a;
}
constexpr window_attributes pool_attributes(const pool1d_options& options) {
    return pool_attributes(pool2d_options{{1, options.pool_size},
                                          {1, options.stride},
                                          options.padding,
                                          {1, options.dilation},
                                          options.count_include_pad});
}

struct pooling_texts {
    static constexpr const char* text(std::int64_t rank) {
        return rank == 4 ? "pooling: input must be NHWC" : "pooling: input must be NWC";
    }
};
template <class Op, tensor_like X>
constexpr auto pool(const X& x, const typename Op::attributes& a, int rank, std::source_location where) {
    const auto input = eval(x, where);
    if (shape_of(input).rank() != rank) return refuse<pooling_texts>(rank, where, input);
    return invoke<Op>(a, nullptr, where, input);
}
} // namespace detail

/// The largest element of each window of x [batch, height, width, channels]; NaN if the window
/// contains one. The derivative goes to the first maximum in row-major order.
template <tensor_like X>
constexpr auto max_pooling2d(const X& x, const pool2d_options& options = {},
                             std::source_location where = std::source_location::current()) {
    return detail::pool<max_pool_op>(x, detail::pool_attributes(options), 4, where);
}
no_such_option_in<pool2d_options> max_pooling2d(any_argument, ...) TG_MISTAKE;
/// The mean of the elements of each window.
template <tensor_like X>
constexpr auto average_pooling2d(const X& x, const pool2d_options& options = {},
                                 std::source_location where = std::source_location::current()) {
    return detail::pool<average_pool_op>(x, detail::pool_attributes(options), 4, where);
}
no_such_option_in<pool2d_options> average_pooling2d(any_argument, ...) TG_MISTAKE;
/// The same for x [batch, width, channels].
template <tensor_like X>
constexpr auto max_pooling1d(const X& x, const pool1d_options& options = {},
                             std::source_location where = std::source_location::current()) {
    return detail::pool<max_pool_op>(x, detail::pool_attributes(options), 3, where);
}
no_such_option_in<pool1d_options> max_pooling1d(any_argument, ...) TG_MISTAKE;
/// Means of windows of [batch, time, channels].
template <tensor_like X>
constexpr auto average_pooling1d(const X& x, const pool1d_options& options = {},
                                 std::source_location where = std::source_location::current()) {
    return detail::pool<average_pool_op>(x, detail::pool_attributes(options), 3, where);
}
no_such_option_in<pool1d_options> average_pooling1d(any_argument, ...) TG_MISTAKE;

/// Pools whole images to [batch, channels], or with keepdims to [batch, 1, 1, channels]. These are
/// the reductions `mean` and `max` over the spatial axes: equal maxima each receive the derivative.
template <tensor_like X>
constexpr auto global_average_pooling2d(const X& x, reduce_options options = {},
                                        std::source_location where = std::source_location::current()) {
    const auto input = eval(x, where);
    if (shape_of(input).rank() != 4) return detail::refuse<detail::pooling_texts>(4, where, input);
    return mean(input, {1, 2}, options, where);
}
no_such_option_in<reduce_options> global_average_pooling2d(any_argument, ...) TG_MISTAKE;
/// The maximum of each channel: [batch, height, width, channels] to [batch, channels].
template <tensor_like X>
constexpr auto global_max_pooling2d(const X& x, reduce_options options = {},
                                    std::source_location where = std::source_location::current()) {
    const auto input = eval(x, where);
    if (shape_of(input).rank() != 4) return detail::refuse<detail::pooling_texts>(4, where, input);
    return max(input, {1, 2}, options, where);
}
no_such_option_in<reduce_options> global_max_pooling2d(any_argument, ...) TG_MISTAKE;
/// The same for x [batch, width, channels].
template <tensor_like X>
constexpr auto global_average_pooling1d(const X& x, reduce_options options = {},
                                        std::source_location where = std::source_location::current()) {
    const auto input = eval(x, where);
    if (shape_of(input).rank() != 3) return detail::refuse<detail::pooling_texts>(3, where, input);
    return mean(input, 1, options, where);
}
no_such_option_in<reduce_options> global_average_pooling1d(any_argument, ...) TG_MISTAKE;
template <tensor_like X>
constexpr auto global_max_pooling1d(const X& x, reduce_options options = {},
                                    std::source_location where = std::source_location::current()) {
    const auto input = eval(x, where);
    if (shape_of(input).rank() != 3) return detail::refuse<detail::pooling_texts>(3, where, input);
    return max(input, 1, options, where);
}
no_such_option_in<reduce_options> global_max_pooling1d(any_argument, ...) TG_MISTAKE;

} // namespace tapegraph
