#pragma once

#include <tapegraph/ops/cumulative/product_terms.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>

/// cumulative_sum, cumulative_product.

namespace tapegraph {

struct cumulative_sum_op {
    static constexpr std::string_view name = "cumulative_sum";
    static constexpr batching batched = batching::axis;
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_nothing;
    static constexpr linearity linear = linearity::joint;
    static constexpr int arity = 1;
    struct attributes {
        std::int64_t axis = 0, reverse = 0, exclusive = 0;
    };
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = io.in[0].type;
        io.result = io.in[0].dims;
        io.require(a.axis >= 0 && a.axis < io.result.rank(),
                   "cumulative_sum, cumulative_product: axis outside the rank");
        io.require(io.type != dtype::boolean,
                   "cumulative_sum, cumulative_product: the elements are bool; cast<...> first");
    }
    // Element i of the sum depends on the elements up to i, so the adjoint sums from the other end.
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto, auto) {
        return invoke<cumulative_sum_op>({a.axis, !a.reverse, a.exclusive}, nullptr, std::source_location::current(),
                                         dy);
    }
    static double flops(const kernel_call& c) { return static_cast<double>(c.out[0].elements()); }
};

struct cumulative_product_op : cumulative_sum_op {
    static constexpr std::string_view name = "cumulative_product";
    static constexpr linearity linear = linearity::none;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto) {
        const detail::product_attributes products{std::int64_t{1} << a.axis, 0, a.reverse, a.exclusive};
        return invoke<detail::product_gradient_op<0>>(products, nullptr, std::source_location::current(), dy, x);
    }
};

/// Options of `cumulative_sum` and the like: from the last element on; without the element itself.
struct cumulative_options {
    bool reverse = false, exclusive = false;
};

/// The sum of the elements up to each one along an axis; `exclusive` leaves out the element itself,
/// `reverse` runs from the end.
template <tensor_like A>
constexpr auto cumulative_sum(const A& x, int axis = -1, cumulative_options options = {},
                              std::source_location where = std::source_location::current()) {
    return invoke<cumulative_sum_op>({normalized_axis(axis, shape_of(x).rank()), options.reverse, options.exclusive},
                                     nullptr, where, x);
}
no_such_option_in<cumulative_options> cumulative_sum(any_argument, any_argument, ...) TG_MISTAKE;
/// The product of the elements up to each one along an axis. Derivatives, up to the fourth, use no
/// division: they are exact for zeros, too.
template <tensor_like A>
constexpr auto cumulative_product(const A& x, int axis = -1, cumulative_options options = {},
                                  std::source_location where = std::source_location::current()) {
    return detail::in_float(x, where, [&](const auto& operand) { // like prod
        return invoke<cumulative_product_op>(
            {normalized_axis(axis, shape_of(operand).rank()), options.reverse, options.exclusive}, nullptr, where,
            operand);
    });
}
no_such_option_in<cumulative_options> cumulative_product(any_argument, any_argument, ...) TG_MISTAKE;

} // namespace tapegraph
