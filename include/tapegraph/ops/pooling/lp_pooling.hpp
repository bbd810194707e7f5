#pragma once

#include <tapegraph/ops/elementwise/comparison.hpp>
#include <tapegraph/ops/elementwise/in_float.hpp>
#include <tapegraph/ops/elementwise/power.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>
#include <tapegraph/ops/pooling/pooling.hpp>
#include <tapegraph/ops/reduction/scaled.hpp>

/// Pooling by a power mean's sum, of which maximum and sum are the extremes: y = (sum of |x|^p over a window)^(1/p).

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
    /// dy y^(1 - p) |x|^(p - 1) sign(x), where y is not 0: there the slope is taken to be 0, as it is at a norm's origin. For even p
    /// that is x^(p - 1), which is smooth at x = 0; for others |x|^(p - 1) has no derivative of every order there, and 0 is taken. x and
    /// y are scaled by the largest y, or powers of tiny and of huge ones would leave the range.
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto y) {
        const auto here = std::source_location::current();
        const shape target = shape_of(x);
        window_attributes sums = a.window;
        sums.count_padding = 1; // the adjoint of an average is that of a sum, divided by all of the window
        const auto taps = static_cast<double>(a.window.window[0] * a.window.window[1]);
        const double n = a.norm - 1;
        const auto power = [n](const auto& base) { return n == 1 ? eval(base * 1) : eval(pow(base, n)); };
        const auto scale = eval(stop_gradient(detail::inverse_scale(y, axes{}.bits(shape_of(y).rank()), here)));
        const auto steep = power(eval(where(y == 0, 1, y * scale)));
        const auto each = eval(where(y == 0, 0, dy * taps / steep));
        const auto spread = invoke<average_pool_gradient_op>(sums, &target, here, each);
        const double half = a.norm / 2;
        if (half == static_cast<double>(static_cast<std::int64_t>(half)))
            return eval(spread * power(eval(x * scale)));
        return eval(spread * where(x == 0, 0, sign(x) * pow(abs(x) * scale, n)));
    }
};

/// (sum of |x|^norm over each window of x [batch, height, width, channels])^(1 / norm); padding counts as zeros. `norm` is at
/// least 1: 1 sums magnitudes, 2 is their Euclidean length, and large ones approach the maximum. Numbers are scaled by the largest of
/// their window before they are raised to the power.
template <tensor_like X>
constexpr auto lp_pooling2d(const X& x, double norm, const pool2d_options& options = {},
                            std::source_location where = std::source_location::current()) {
    return detail::in_float(x, where, [&](const auto& images) { // powers leave half's range, and bfloat16's
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
