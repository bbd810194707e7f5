#pragma once

#include <tapegraph/ops/elementwise/comparison.hpp>
#include <tapegraph/ops/elementwise/in_float.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>
#include <tapegraph/ops/pooling/pooling.hpp>

/// Power-average pooling, whose extremes are sum and maximum: y = (sum of |x|^p over a
/// window)^(1/p).

namespace tapegraph {

struct lp_pool_op : detail::pool_operation {
    static constexpr std::string_view name = "lp_pool";
    static constexpr std::string_view layer_name = "lp_pooling*";
    static constexpr std::uint32_t saved_for_vjp = saved_operands | saved_value;
    static constexpr batching batched = batching::images;
    static constexpr int arity = 1;
    struct attributes {
        window_attributes window;
        double norm = 2;
    };
    static constexpr void infer(const attributes& a, inference& io) {
        if (io.require(a.norm >= 1 && a.norm < 1e9, "lp_pooling: the norm is a number from 1 on"))
            detail::infer_pool(a.window, io);
    }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto y);
};

namespace detail {

/// The slopes f(r) = |r|^exponent, times the sign of r if `odd`, of the quotients r = x / y of an element
/// and its window's value. At r = 0 every power but the zeroth is 0, even with a negative exponent, and
/// all slopes of a window with y = 0 are 0, which is a subgradient of a norm at its origin. Powers of
/// quotients, unlike those of x and y, leave the range of numbers only where the slope does.
struct lp_slopes {
    window_attributes window;
    double exponent = 1;
    std::int64_t odd = 1;
    constexpr lp_slopes derivative() const { return {window, exponent - 1, odd == 0}; } ///< divided by the exponent
};
struct lp_slope_operation : pool_operation {
    using attributes = lp_slopes;
    static constexpr int arity = 3;
    /// v / y, where y is not 0.
    static constexpr auto by_value(const auto& v, const auto& y) {
        return eval(where(y == 0, 0, v / where(y == 0, 1, y)));
    }
};

/// (dy, x, y) to the sum over the windows that hold an element of x of dy f(x / y).
struct lp_pool_gradient_op : lp_slope_operation {
    static constexpr std::string_view name = "lp_pool_gradient";
    static constexpr void infer(const attributes&, inference& io) {
        io.type = io.in[1].type;
        io.result = io.in[1].dims;
    }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto u, auto dy, auto x, auto y, auto);
};
/// (u, x, y) to the sum over a window's elements of u f(x / y): the adjoint by dy.
struct lp_pool_slope_op : lp_slope_operation {
    static constexpr std::string_view name = "lp_pool_slope";
    static constexpr std::uint32_t saved_for_vjp = saved_operands | saved_value;
    static constexpr void infer(const attributes&, inference& io) {
        io.type = io.in[2].type;
        io.result = io.in[2].dims;
    }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto v, auto u, auto x, auto y, auto value) {
        const auto here = std::source_location::current();
        if constexpr (I == 0)
            return invoke<lp_pool_gradient_op>(a, nullptr, here, v, x, y);
        else if constexpr (I == 1)
            return by_element(a, u, by_value(v, y), x, y);
        else
            return eval(-a.exponent * by_value(v, y) * value);
    }
    /// u times the derivatives by x of v f(x / y) y, summed over windows.
    static constexpr auto by_element(const attributes& a, const auto& u, const auto& v, const auto& x, const auto& y) {
        if (a.exponent == 0) return eval(u * 0); // steps
        const auto here = std::source_location::current();
        return eval(u * (a.exponent * invoke<lp_pool_gradient_op>(a.derivative(), nullptr, here, v, x, y)));
    }
};
template <int I>
constexpr auto lp_pool_gradient_op::vjp(const attributes& a, auto u, auto dy, auto x, auto y, auto) {
    const auto here = std::source_location::current();
    if constexpr (I == 0)
        return invoke<lp_pool_slope_op>(a, nullptr, here, u, x, y);
    else if constexpr (I == 1)
        return lp_pool_slope_op::by_element(a, u, by_value(dy, y), x, y);
    else
        return eval(-a.exponent * by_value(dy, y) * invoke<lp_pool_slope_op>(a, nullptr, here, u, x, y));
}

} // namespace detail

/// dy (|x| / y)^(p - 1) sign(x)
template <int I>
constexpr auto lp_pool_op::vjp(const attributes& a, auto dy, auto x, auto y) {
    return invoke<detail::lp_pool_gradient_op>({a.window, a.norm - 1, 1}, nullptr, std::source_location::current(), dy,
                                               x, y);
}

/// (sum of |x|^norm over each window of x [batch, height, width, channels])^(1 / norm); padding
/// counts as zeros. `norm` is at least 1: 1 sums magnitudes, 2 gives their Euclidean length, and
/// large ones approach the maximum. Numbers are scaled by the largest of their window before they
/// are raised to the power.
template <tensor_like X>
constexpr auto lp_pooling2d(const X& x, double norm, const pool2d_options& options = {},
                            std::source_location where = std::source_location::current()) {
    return detail::in_float(x, where, [&](const auto& images) { // because powers leave the range of 16-bit types
        return detail::pool<lp_pool_op>(images, {detail::pool_attributes(options), norm}, 4, where);
    });
}
no_such_option_in<pool2d_options> lp_pooling2d(any_argument, any_argument, ...) TG_MISTAKE;
/// The same for x [batch, width, channels].
template <tensor_like X>
constexpr auto lp_pooling1d(const X& x, double norm, const pool1d_options& options = {},
                            std::source_location where = std::source_location::current()) {
    return detail::in_float(x, where, [&](const auto& lines) {
        return detail::pool<lp_pool_op>(lines, {detail::pool_attributes(options), norm}, 3, where);
    });
}
no_such_option_in<pool1d_options> lp_pooling1d(any_argument, any_argument, ...) TG_MISTAKE;

} // namespace tapegraph
