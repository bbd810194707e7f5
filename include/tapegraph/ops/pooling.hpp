#pragma once

#include <tapegraph/ops/convolution.hpp>

/// max and average pooling over [batch, height, width, channels].

namespace tapegraph {

namespace detail {
constexpr void infer_pool(const window_attributes& a, inference& io) {
    const shape& x = io.in[0].dims;
    io.type = io.in[0].type;
    if (!io.require(x.rank() == 4, "pooling: input must be NHWC") ||
        !io.require(a.window[0] > 0 && a.window[1] > 0 && a.stride[0] > 0 && a.stride[1] > 0,
                    "pooling: windows and strides are positive"))
        return;
    io.result.push_back(x[0]);
    for (int i = 0; i < 2; ++i) {
        const extent size = a.output(i, x[i + 1], a.window[i]);
        if (!io.require(!size.known() || size.value > 0, "pooling: window larger than padded input")) return;
        io.result.push_back(size);
    }
    io.result.push_back(x[3]);
}
} // namespace detail

struct max_pool_op {
    static constexpr std::string_view name = "max_pool";
    static constexpr bool needs_output = true; // its derivative looks at the value
    static constexpr operation_kind kind = operation_kind::pool;
    static constexpr int arity = 1;
    using attributes = window_attributes;
    static constexpr void infer(const attributes& a, inference& io) { detail::infer_pool(a, io); }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto y);
};

/// (dy, x, y) to dx: each window's derivative goes to its first maximum.
struct max_pool_gradient_op {
    static constexpr std::string_view name = "max_pool_gradient";
    static constexpr operation_kind kind = operation_kind::pool;
    static constexpr int arity = 3;
    using attributes = window_attributes;
    static constexpr void infer(const attributes&, inference& io) {
        io.type = io.in[0].type;
        io.result = io.in[1].dims;
    }
    template <int I>
        requires(I == 0)
    static constexpr auto vjp(const attributes& a, auto d, auto dy, auto x, auto y, auto);
};

/// (d, x, y) to the value of d at each window's first maximum: the adjoint of max_pool_gradient.
struct max_pool_select_op {
    static constexpr std::string_view name = "max_pool_select";
    static constexpr operation_kind kind = operation_kind::pool;
    static constexpr int arity = 3;
    using attributes = window_attributes;
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
struct average_pool_op {
    static constexpr std::string_view name = "average_pool";
    static constexpr operation_kind kind = operation_kind::pool;
    static constexpr linearity linear = linearity::joint;
    static constexpr int arity = 1;
    using attributes = window_attributes;
    static constexpr void infer(const attributes& a, inference& io) { detail::infer_pool(a, io); }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto);
};

struct average_pool_gradient_op {
    static constexpr std::string_view name = "average_pool_gradient";
    static constexpr operation_kind kind = operation_kind::pool;
    static constexpr linearity linear = linearity::joint;
    static constexpr int arity = 1;
    using attributes = window_attributes;
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

/// `stride` 0 means the window's own size.
struct pool2d_options {
    std::int64_t pool[2]{2, 2};
    std::int64_t stride[2]{0, 0};
    tapegraph::padding padding{};
};

namespace detail {
constexpr window_attributes pool_attributes(const pool2d_options& options) {
    window_attributes a;
    for (int i = 0; i < 2; ++i) {
        a.window[i] = options.pool[i];
        a.stride[i] = options.stride[i] != 0 ? options.stride[i] : options.pool[i];
    }
    set_padding(a, options.padding);
    return a;
}
} // namespace detail

template <tensor_like X>
constexpr auto max_pooling2d(const X& x, const pool2d_options& options = {},
                             std::source_location where = std::source_location::current()) {
    return invoke<max_pool_op>(detail::pool_attributes(options), nullptr, where, x);
}

template <tensor_like X>
constexpr auto average_pooling2d(const X& x, const pool2d_options& options = {},
                                 std::source_location where = std::source_location::current()) {
    return invoke<average_pool_op>(detail::pool_attributes(options), nullptr, where, x);
}

} // namespace tapegraph
