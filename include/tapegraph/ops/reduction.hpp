#pragma once

#include <tapegraph/ops/arithmetic.hpp>
#include <tapegraph/ops/in_float.hpp>
#include <tapegraph/ops/power.hpp>
#include <tapegraph/ops/selection.hpp>

#include <initializer_list>
#include <limits>

/// sum, prod, max, min, mean, variance, logsumexp over axes. Operands may be formulas: they are fused into the reduction.

namespace tapegraph {

/// Which axes to reduce. None named: all of them. Negative axes count from the end.
struct axes {
    std::int8_t index[max_rank]{};
    std::int8_t count = 0;
    bool all = true;

    constexpr axes() = default;
    // NOLINTNEXTLINE: sum(x, 0) and sum(x, {0, 1}) read well
    constexpr axes(int axis) : count(1), all(false) { index[0] = static_cast<std::int8_t>(axis); }
    constexpr axes(std::initializer_list<int> several) : all(false) {
        for (int axis : several)
            if (count < max_rank) index[count++] = static_cast<std::int8_t>(axis);
    }
    /// Bit i for axis i; bit 62 when an axis lies outside a tensor of this rank.
    constexpr std::int64_t bits(int rank) const {
        if (all) return (std::int64_t{1} << rank) - 1;
        std::int64_t mask = 0;
        for (int i = 0; i < count; ++i) {
            const int axis = normalized_axis(index[i], rank);
            mask |= std::int64_t{1} << (axis < 0 ? 62 : axis);
        }
        return mask;
    }
};

struct reduce_options {
    bool keepdims = false;
};

namespace detail {
constexpr bool axes_inside(const reduce_op::attributes& a, inference& io) {
    return io.require(a.axes >> io.in[0].dims.rank() == 0, "reduction: axis outside the rank");
}
template <class Op, tensor_like A>
constexpr auto reduce_over(const A& x, const axes& over, reduce_options options, std::source_location where) {
    return reduce<Op>({over.bits(shape_of(x).rank()), options.keepdims}, where, x);
}
/// Number of elements that fall together into one.
template <tensor_like A>
constexpr extent reduced_size(const A& x, const axes& over) {
    const shape dims = shape_of(x);
    const std::int64_t mask = over.bits(dims.rank());
    extent product{1, dims.table()};
    for (int i = 0; i < dims.rank(); ++i)
        if ((mask >> i & 1) != 0) product = product * dims[i];
    return product;
}
} // namespace detail

// dy and y come broadcast over x in every vjp of a reduction.
struct sum_op : reduce_op {
    static constexpr std::string_view name = "sum";
    static constexpr void infer(const attributes& a, inference& io) {
        if (detail::axes_inside(a, io)) reduce_op::infer(a, io);
    }
    static constexpr auto vjp(auto dy, auto, auto) { return dy; }
};

struct prod_op : sum_op {
    static constexpr std::string_view name = "prod";
    // The product of the others, from the value: exact away from zero, NaN for an element that is zero.
    static constexpr auto vjp(auto dy, auto x, auto y) { return dy * y / x; }
};

struct max_op : sum_op {
    static constexpr std::string_view name = "max";
    static constexpr auto vjp(auto dy, auto x, auto y) { return where(x == y, dy, 0); }
};

struct min_op : sum_op {
    static constexpr std::string_view name = "min";
    static constexpr auto vjp(auto dy, auto x, auto y) { return where(x == y, dy, 0); }
};

template <tensor_like A>
constexpr auto sum(const A& x, axes over = {}, reduce_options options = {},
                   std::source_location where = std::source_location::current()) {
    return detail::reduce_over<sum_op>(x, over, options, where);
}
/// The product. Its derivative divides by the elements, so it is NaN for an element that is zero.
template <tensor_like A>
constexpr auto prod(const A& x, axes over = {}, reduce_options options = {},
                    std::source_location where = std::source_location::current()) {
    return detail::reduce_over<prod_op>(x, over, options, where);
}
/// The largest element; NaN if any is. Every element that attains it receives the derivative.
template <tensor_like A>
constexpr auto max(const A& x, axes over = {}, reduce_options options = {},
                   std::source_location where = std::source_location::current()) {
    return detail::reduce_over<max_op>(x, over, options, where);
}
template <tensor_like A>
constexpr auto min(const A& x, axes over = {}, reduce_options options = {},
                   std::source_location where = std::source_location::current()) {
    return detail::reduce_over<min_op>(x, over, options, where);
}

template <tensor_like A>
constexpr auto mean(const A& x, axes over = {}, reduce_options options = {},
                    std::source_location where = std::source_location::current()) {
    return detail::in_float(x, where, [&](const auto& operand) {
        const auto total = sum(operand, over, options, where);
        return eval(total / extent_number(total, detail::reduced_size(operand, over)), where);
    });
}

/// Mean of squared distances from the mean (the population's, as NumPy and batch normalization use it).
template <tensor_like A>
constexpr auto variance(const A& x, axes over = {}, reduce_options options = {},
                        std::source_location where = std::source_location::current()) {
    return detail::in_float(x, where, [&](const auto& operand) {
        const auto value = eval(operand, where);
        return mean(square(value - mean(value, over, {.keepdims = true}, where)), over, options, where);
    });
}

/// log(sum(exp(x))), shifted by the maximum so that nothing overflows; an infinite maximum is not shifted by, so that
/// only infinities give infinity and not NaN.
template <tensor_like A>
constexpr auto logsumexp(const A& x, axes over = {}, reduce_options options = {},
                         std::source_location where = std::source_location::current()) {
    return detail::in_float(x, where, [&](const auto& operand) {
        const auto value = eval(operand, where);
        const auto largest = max(value, over, {.keepdims = true}, where);
        const auto infinite = abs(largest) == std::numeric_limits<double>::infinity();
        const auto shift = eval(stop_gradient(tapegraph::where(infinite, 0, largest)), where);
        const auto total = eval(log(sum(exp(value - shift), over, {.keepdims = true}, where)) + shift, where);
        return sum(total, over, options, where); // over axes of extent 1: drops them unless keepdims
    });
}

/// x - logsumexp(x) along the last axis.
template <tensor_like A>
constexpr auto log_softmax(const A& x, int axis = -1, std::source_location where = std::source_location::current()) {
    return detail::in_float(x, where, [&](const auto& operand) {
        const auto value = eval(operand, where);
        return eval(value - logsumexp(value, axis, {.keepdims = true}, where), where);
    });
}

/// exp(x) / sum(exp(x)) along the last axis.
template <tensor_like A>
constexpr auto softmax(const A& x, int axis = -1, std::source_location where = std::source_location::current()) {
    return detail::in_float(x, where, [&](const auto& operand) {
        const auto value = eval(operand, where);
        const auto raised = eval(exp(value - stop_gradient(max(value, axis, {.keepdims = true}, where))), where);
        return eval(raised / sum(raised, axis, {.keepdims = true}, where), where);
    });
}

} // namespace tapegraph
