#pragma once

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
        io.require(a.axis >= 0 && a.axis < io.result.rank(), "cumulative_sum, cumulative_product: axis outside the rank");
        io.require(io.type != dtype::boolean, "cumulative_sum, cumulative_product: the elements are bool; cast<...> first");
    }
    // Element i of the sum depends on the elements up to i, so the adjoint sums from the other end.
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto, auto) {
        return invoke<cumulative_sum_op>({a.axis, !a.reverse, a.exclusive}, nullptr, std::source_location::current(), dy);
    }
    static double flops(const kernel_call& c) { return static_cast<double>(c.out[0].elements()); }
};

struct cumulative_product_op : cumulative_sum_op {
    static constexpr std::string_view name = "cumulative_product";
    static constexpr linearity linear = linearity::none;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    // Beside zeros the product cannot be divided by the element. So q has ones in place of the zeros, y is the running
    // product of q, times s1 from the first zero on, times s2 from the second, times 0 from the third: s1 and s2 are 0 but
    // carry the derivative by those elements. An element receives what follows from it, without its own factor, which is
    // q, s1 or s2; the third zero and later ones have another two beside them and receive nothing. Exact for second
    // derivatives, too.
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto) {
        const auto here = std::source_location::current();
        const std::int64_t axis = std::int64_t{1} << a.axis;
        const auto running = [&](const auto& of, std::int64_t exclusive) {
            return invoke<cumulative_sum_op>({a.axis, a.reverse, exclusive}, nullptr, here, of);
        };
        const auto q = eval(where(x == 0, 1, x), here);
        const auto zero = eval(apply<detail::indicator_op>(x, 0), here);
        const auto rank = running(zero, 0); // of a zero among the zeros, counted from 1
        const auto before = a.exclusive != 0 ? eval(rank - zero, here) : rank; // zeros in the product
        const auto nth = [&](double n) { return where(x == 0, where(rank == n, x, 0), 0); };
        const auto s1 = detail::reduce_over<sum_op>(nth(1), axis, true, here);
        const auto s2 = detail::reduce_over<sum_op>(nth(2), axis, true, here);
        const auto weighted = eval(where(before > 2, 0, dy * invoke<cumulative_product_op>(a, nullptr, here, q)), here);
        const auto first = eval(where(before > 0, s1, 1), here), second = eval(where(before > 1, s2, 1), here);
        // Adjoints sum from the other end.
        const auto behind = [&](const auto& of) {
            return invoke<cumulative_sum_op>({a.axis, !a.reverse, a.exclusive}, nullptr, here, of);
        };
        const auto by_first = behind(weighted * second), by_second = behind(weighted * first);
        const auto by_others = behind(weighted * first * second);
        const auto by_zero = where(rank == 1, by_first, where(rank == 2, by_second, 0));
        return eval(where(x == 0, by_zero, by_others) / q, here);
    }
};

struct cumulative_options {
    bool reverse = false, exclusive = false;
};

/// Sums of the elements up to each along an axis; `exclusive` leaves the element itself out, `reverse` runs from the end.
template <tensor_like A>
constexpr auto cumulative_sum(const A& x, int axis = -1, cumulative_options options = {},
                              std::source_location where = std::source_location::current()) {
    return invoke<cumulative_sum_op>({normalized_axis(axis, shape_of(x).rank()), options.reverse, options.exclusive},
                                     nullptr, where, x);
}
/// Products of the elements up to each along an axis. Derivatives are right beside zeros.
template <tensor_like A>
constexpr auto cumulative_product(const A& x, int axis = -1, cumulative_options options = {},
                                  std::source_location where = std::source_location::current()) {
    return invoke<cumulative_product_op>({normalized_axis(axis, shape_of(x).rank()), options.reverse, options.exclusive},
                                         nullptr, where, x);
}

} // namespace tapegraph
