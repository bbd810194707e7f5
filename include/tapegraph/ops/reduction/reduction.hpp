#pragma once

#include <tapegraph/ops/cumulative/product_terms.hpp>
#include <tapegraph/ops/elementwise/arithmetic.hpp>
#include <tapegraph/ops/elementwise/cast.hpp>
#include <tapegraph/ops/elementwise/in_float.hpp>
#include <tapegraph/ops/elementwise/power.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>
#include <tapegraph/ops/movement/view.hpp>
#include <tapegraph/ops/reduction/axes.hpp>

#include <initializer_list>

/// sum, mean, prod, max, min, any, all, count_nonzero over axes. Operands may be formulas, which
/// are fused into the reduction. ops/reduction/moments.hpp, norm.hpp and softmax.hpp build on
/// these. The element type is kept, except where stated.

namespace tapegraph {

/// Options of reductions.
struct reduce_options {
    bool keepdims = false;
};

namespace detail {
constexpr bool axes_inside(const reduce_op::attributes& a, inference& io) {
    return io.require(a.axes >> io.in[0].dims.rank() == 0, "reduction: axis outside the rank");
}
template <class Op, tensor_like A>
constexpr auto reduce_over(const A& x, std::int64_t mask, bool keepdims, std::source_location where) {
    if constexpr (whole_reduction<Op>)
        return invoke<Op>({mask, keepdims}, nullptr, where, x);
    else
        return reduce<Op>({mask, keepdims}, where, x);
}
template <class Op, tensor_like A>
constexpr auto reduce_over(const A& x, const axes& over, reduce_options options, std::source_location where) {
    return reduce_over<Op>(x, over.bits(shape_of(x).rank()), options.keepdims, where);
}
/// The number of elements that are reduced to one.
template <tensor_like A>
constexpr extent reduced_size(const A& x, const axes& over) {
    const shape dims = shape_of(x);
    const std::int64_t mask = over.bits(dims.rank());
    extent product{1, dims.table()};
    for (int i = 0; i < dims.rank(); ++i)
        if ((mask >> i & 1) != 0) product = product * dims[i];
    return product;
}

/// A reduction's result with axes of extent 1 where it reduced `from`, so that it broadcasts over it.
template <handle A>
constexpr auto with_kept_axes(const A& reduced, const shape& from, std::int64_t mask, std::source_location where) {
    if (shape_of(reduced).rank() == from.rank()) return reduced;
    shape target;
    target.attach(from.table());
    for (int i = 0; i < from.rank(); ++i) target.push_back((mask >> i & 1) != 0 ? extent(1) : from[i]);
    return invoke<reshape_op>({}, &target, where, reduced);
}
/// Drops the reduced axes of a result that kept them, unless `keepdims`.
template <handle A>
constexpr auto without_kept_axes(const A& kept, std::int64_t mask, bool keepdims, std::source_location where) {
    const shape from = shape_of(kept);
    if (keepdims || mask == 0 || mask >> from.rank() != 0) return kept;
    shape target;
    target.attach(from.table());
    for (int i = 0; i < from.rank(); ++i)
        if ((mask >> i & 1) == 0) target.push_back(from[i]);
    return invoke<reshape_op>({}, &target, where, kept);
}

/// 1 where the operands are equal and 0 elsewhere, in their element type. Constant for derivatives.
struct indicator_op : map_op<2> {
    static constexpr std::string_view name = "indicator";
    template <class V>
    TG_HD static constexpr V value(V x, V y) {
        return choose(x == y, V(1), V(0));
    }
};
} // namespace detail

// In a vjp without attributes, dy and y are broadcast to x.
struct sum_op : reduce_op {
    static constexpr std::string_view name = "sum";
    static constexpr std::string_view layer_name = "global_average_pooling*";
    static constexpr void infer(const attributes& a, inference& io) {
        const dtype type = io.in[0].type;
        if (detail::axes_inside(a, io) &&
            io.require(type != dtype::boolean, "sum, prod: the elements are bool; count_nonzero counts them") &&
            io.require(is_floating(type) || (a.keepdims & 2) == 0,
                       "mean: the elements are integers; cast<float>(x) first"))
            reduce_op::infer(a, io);
    }
    static constexpr auto vjp(auto dy, auto, auto) { return dy; }
};

struct prod_op : sum_op {
    static constexpr std::string_view name = "prod";
    static constexpr std::string_view layer_name = "";
    static constexpr reduction combines = reduction::product;
    static constexpr bool whole_vjp = true;
    // The product of the other elements, without a division.
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto) {
        const auto here = std::source_location::current();
        const auto kept = detail::with_kept_axes(dy, shape_of(x), a.axes, here);
        return invoke<detail::product_gradient_op<0>>({a.axes, 1, 0, 0}, nullptr, here, kept, x);
    }
};

struct max_op : sum_op {
    static constexpr std::string_view name = "max";
    static constexpr std::string_view layer_name = "global_max_pooling*";
    static constexpr reduction combines = reduction::maximum;
    static constexpr bool whole_vjp = true;
    static constexpr std::uint32_t saved_for_vjp = saved_operands | saved_value;
    static constexpr void infer(const attributes& a, inference& io) {
        if (!detail::axes_inside(a, io) ||
            !io.require(io.in[0].type != dtype::boolean, "max, min: the elements are bool; use any and all"))
            return;
        reduce_op::infer(a, io);
        bool empty = false, none = false;
        for (int i = 0; i < io.in[0].dims.rank(); ++i)
            if (io.in[0].dims[i].value == 0) ((a.axes >> i & 1) != 0 ? empty : none) = true;
        io.require(!empty || none || (a.keepdims & empty_allowed) != 0, "max, min: a reduced axis has no elements");
    }
    // Elements that attain the value share the derivative evenly.
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto y) {
        const auto here = std::source_location::current();
        const shape from = shape_of(x);
        const auto best = detail::with_kept_axes(y, from, a.axes, here);
        const auto count = detail::reduce_over<sum_op>(apply<detail::indicator_op>(x, best), a.axes, true, here);
        return eval(apply<detail::indicator_op>(x, best) * (detail::with_kept_axes(dy, from, a.axes, here) / count),
                    here);
    }
};

struct min_op : max_op {
    static constexpr std::string_view name = "min";
    static constexpr std::string_view layer_name = "";
    static constexpr reduction combines = reduction::minimum;
};

/// Whether any element of a bool operand is true. It has no derivative.
struct any_op : reduce_op {
    static constexpr std::string_view name = "any";
    static constexpr reduction combines = reduction::maximum; // of bytes that are 0 or 1
    static constexpr bool whole_vjp = true;
    static constexpr void infer(const attributes& a, inference& io) {
        if (detail::axes_inside(a, io) &&
            io.require(io.in[0].type == dtype::boolean,
                       "any, all: the elements must be bool; compare them first (x != 0)"))
            reduce_op::infer(a, io);
    }
};
struct all_op : any_op {
    static constexpr std::string_view name = "all";
    static constexpr reduction combines = reduction::minimum;
};

/// The sum; 0 for no elements. Integers wrap around as in NumPy and TensorFlow.
template <tensor_like A>
constexpr auto sum(const A& x, axes over = {}, reduce_options options = {},
                   std::source_location where = std::source_location::current()) {
    return detail::reduce_over<sum_op>(x, over, options, where);
}
no_such_option_in<reduce_options> sum(any_argument, const axes&, ...) TG_MISTAKE;
/// The product; 1 for no elements. Its derivatives are correct for zeros, too.
template <tensor_like A>
constexpr auto prod(const A& x, axes over = {}, reduce_options options = {},
                    std::source_location where = std::source_location::current()) {
    // A product may leave half's range where its derivatives, which lack one factor, do not.
    return detail::in_float(
        x, where, [&](const auto& operand) { return detail::reduce_over<prod_op>(operand, over, options, where); });
}
no_such_option_in<reduce_options> prod(any_argument, const axes&, ...) TG_MISTAKE;
/// The largest element; NaN if any is. Elements equal to it share the derivative evenly. An error
/// for no elements.
template <tensor_like A>
constexpr auto max(const A& x, axes over = {}, reduce_options options = {},
                   std::source_location where = std::source_location::current()) {
    return detail::reduce_over<max_op>(x, over, options, where);
}
no_such_option_in<reduce_options> max(any_argument, const axes&, ...) TG_MISTAKE;
/// The smallest element; see max.
template <tensor_like A>
constexpr auto min(const A& x, axes over = {}, reduce_options options = {},
                   std::source_location where = std::source_location::current()) {
    return detail::reduce_over<min_op>(x, over, options, where);
}
no_such_option_in<reduce_options> min(any_argument, const axes&, ...) TG_MISTAKE;
/// Whether any element of a bool tensor is true; false for no elements.
template <tensor_like A>
constexpr auto any(const A& x, axes over = {}, reduce_options options = {},
                   std::source_location where = std::source_location::current()) {
    return detail::reduce_over<any_op>(x, over, options, where);
}
no_such_option_in<reduce_options> any(any_argument, const axes&, ...) TG_MISTAKE;
/// Whether all elements of a bool tensor are true; true for no elements.
template <tensor_like A>
constexpr auto all_of(const A& x, axes over = {}, reduce_options options = {},
                      std::source_location where = std::source_location::current()) {
    return detail::reduce_over<all_op>(x, over, options, where);
}
no_such_option_in<reduce_options> all_of(any_argument, const axes&, ...) TG_MISTAKE;
/// The number of nonzero elements as int64 (NaN counts as nonzero).
template <tensor_like A>
constexpr auto count_nonzero(const A& x, axes over = {}, reduce_options options = {},
                             std::source_location where = std::source_location::current()) {
    return sum(cast<std::int64_t>(x != 0), over, options, where);
}
no_such_option_in<reduce_options> count_nonzero(any_argument, const axes&, ...) TG_MISTAKE;

/// The arithmetic mean; NaN for no elements. Not defined for integers: cast them first.
template <tensor_like A>
constexpr auto mean(const A& x, axes over = {}, reduce_options options = {},
                    std::source_location where = std::source_location::current()) {
    return detail::in_float(x, where, [&](const auto& operand) {
        const std::int64_t floating = 2;
        const auto total = reduce<sum_op>(
            {over.bits(shape_of(operand).rank()), floating | std::int64_t{options.keepdims}}, where, operand);
        return eval(total / extent_number(total, detail::reduced_size(operand, over)), where);
    });
}
no_such_option_in<reduce_options> mean(any_argument, const axes&, ...) TG_MISTAKE;

} // namespace tapegraph
