#pragma once

#include <tapegraph/ops/elementwise/in_float.hpp>
#include <tapegraph/ops/elementwise/power.hpp>
#include <tapegraph/ops/movement/fill.hpp>
#include <tapegraph/ops/movement/view.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>

/// Normalization of records by their own mean and variance, with a factor and an offset per channel:
/// layer, group, instance and root mean square normalization (nn/layers/).

namespace tapegraph {

/// How the elements of x are divided: axes before `first` count records, those before `last` the rows
/// of a record, and the others its channels, which form `groups` of neighbours. Each group of each
/// record has a mean and a variance over all rows.
struct normalization_attributes {
    std::int64_t first = 0, last = 0, groups = 1;
    std::int64_t centered = 1; ///< 0: without a mean, so that the variance is the mean square
    /// Leading axes of x over which derivatives by the parameters are not added up (vmap).
    std::int64_t examples = 0;
    std::int64_t own = 0; ///< the first of these axes, which parameters have, too
    double epsilon = 0;
};

namespace detail {

/// [examples..., channels...] of x, with the first `count` of the examples' axes.
constexpr shape normalization_parameters(const normalization_attributes& a, const shape& x, std::int64_t count) {
    shape dims;
    dims.attach(x.table());
    for (int i = 0; i < count; ++i) dims.push_back(x[i]);
    for (int i = static_cast<int>(a.last); i < x.rank(); ++i) dims.push_back(x[i]);
    return dims;
}

/// Whether operand x, the operands of its shape and those that have a number per channel fit.
constexpr bool normalization_fits(const normalization_attributes& a, inference& io, int x, int parameter,
                                  int parameters) {
    io.type = io.in[x].type;
    const shape& dims = io.in[x].dims;
    if (!io.require(is_floating(io.type), "normalization: the elements are not floating; cast<float>(x) first") ||
        !io.require(0 <= a.own && a.own <= a.examples && a.examples <= a.first && a.first <= a.last &&
                        a.last <= dims.rank(),
                    "normalization: axes outside the rank"))
        return false;
    const extent channels = dims.size(static_cast<int>(a.last), dims.rank());
    if (!io.require(a.groups > 0 && (!channels.known() || channels.value % a.groups == 0),
                    "normalization: groups must divide the channels"))
        return false;
    const shape wanted = normalization_parameters(a, dims, a.own);
    for (int i = 0; i < io.count; ++i) {
        if (i > x && (i < parameter || i >= parameter + parameters)) continue; // statistics
        const shape& given = io.in[i].dims;
        const shape& target = i <= x ? dims : wanted;
        io.culprit = i;
        bool same = io.in[i].type == io.type && given.rank() == target.rank();
        for (int k = 0; same && k < target.rank(); ++k) same = equal_or_required(given[k], target[k]);
        if (!io.require(same, i <= x ? "normalization: shapes differ"
                                     : "normalization: gamma and beta have the channels' extents and x's type"))
            return false;
    }
    return true;
}

} // namespace detail

/// (dy, x, gamma) to what the derivatives are made of, [examples..., 2 channels + 4 groups]: sums over
/// records and rows of dy times the normalized x, and of dy, for each channel; then for each record's
/// groups, one after the other, the mean of x, the factor s = 1 / sqrt(variance + epsilon), and the
/// means of dy gamma and of dy gamma times the normalized x. x is read once. Derivatives flow
/// through the sums alone; what reads the rest also receives the operands it was computed from.
struct normalization_sums_op {
    static constexpr std::string_view name = "normalization_sums";
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = 3;
    static constexpr int arity = 3;
    using attributes = normalization_attributes;
    static constexpr void infer(const attributes& a, inference& io) {
        if (!detail::normalization_fits(a, io, 1, 2, 1)) return;
        const shape& x = io.in[1].dims;
        const int examples = static_cast<int>(a.examples), first = static_cast<int>(a.first);
        for (int i = 0; i < examples; ++i) io.result.push_back(x[i]);
        io.result.push_back(x.size(static_cast<int>(a.last), x.rank()) * 2 + x.size(examples, first) * (4 * a.groups));
    }
    template <int I>
        requires(I < 2)
    static constexpr auto vjp(const attributes& a, auto w, auto dy, auto x, auto gamma, auto);
    static double flops(const kernel_call& c) { return 9 * static_cast<double>(c.in[0].elements()); }
};

namespace detail {
/// The sums over dy times the normalized x (0) or over dy (1), in the shape of a parameter.
template <handle H>
constexpr H normalization_parameter(const normalization_attributes& a, const H& sums, const shape& x, int which,
                                    std::int64_t own) {
    const auto here = std::source_location::current();
    const int examples = static_cast<int>(a.examples);
    const extent channels = x.size(static_cast<int>(a.last), x.rank());
    const H part = part_of(sums, examples, channels * which, channels, here);
    const shape each = normalization_parameters(a, x, examples);
    const H parameters = invoke<reshape_op>({}, &each, here, part);
    axes common;
    common.all = false;
    for (auto i = own; i < examples; ++i) common.index[common.count++] = static_cast<std::int8_t>(i);
    return common.count == 0 ? parameters : H(sum(parameters, common, {}, here));
}
} // namespace detail

/// (dy, x, gamma, sums) to the derivative by x, s (g - mean(g) - n mean(g n)) with g = dy gamma and n the
/// normalized x (Ioffe and Szegedy 2015, section 3).
struct normalization_gradient_op {
    static constexpr std::string_view name = "normalization_gradient";
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = 7 | saved_value;
    static constexpr int arity = 4;
    using attributes = normalization_attributes;
    static constexpr void infer(const attributes& a, inference& io) {
        if (detail::normalization_fits(a, io, 1, 2, 1)) io.result = io.in[1].dims;
    }
    /// The same with u in the place of dy, and gamma 1: the derivative is linear in g and symmetric.
    static constexpr auto shared(const attributes& a, const auto& u, const auto&, const auto& x, const auto&,
                                 const auto&, const auto&);
    template <int I>
        requires(I < 3)
    static constexpr auto flow(const attributes& a, const auto& mapped, const auto& u, const auto& dy, const auto& x,
                               const auto& gamma, const auto&, const auto& dx);
    template <int I>
        requires(I < 3)
    static constexpr auto vjp(const attributes& a, auto u, auto... rest) {
        return flow<I>(a, shared(a, u, rest...), u, rest...);
    }
    static double flops(const kernel_call& c) { return 6 * static_cast<double>(c.in[0].elements()); }
};

/// (x - mean) / sqrt(variance + epsilon) gamma + beta, for (x, gamma, beta): parameters have the
/// extents of the channels.
struct normalization_op {
    static constexpr std::string_view name = "normalization";
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = 3;
    static constexpr int arity = 3;
    using attributes = normalization_attributes;
    static constexpr void infer(const attributes& a, inference& io) {
        if (detail::normalization_fits(a, io, 0, 1, 2)) io.result = io.in[0].dims;
    }
    static constexpr auto shared(const attributes& a, const auto& dy, const auto& x, const auto& gamma, const auto&,
                                 const auto&) {
        return invoke<normalization_sums_op>(a, nullptr, std::source_location::current(), dy, x, gamma);
    }
    template <int I>
        requires(I < 3)
    static constexpr auto flow(const attributes& a, const auto& sums, const auto& dy, const auto& x, const auto& gamma,
                               const auto&, const auto&) {
        if constexpr (I == 0)
            return invoke<normalization_gradient_op>(a, nullptr, std::source_location::current(), dy, x, gamma, sums);
        else
            return detail::normalization_parameter(a, sums, shape_of(x), I - 1, a.own);
    }
    template <int I>
        requires(I < 3)
    static constexpr auto vjp(const attributes& a, auto dy, auto... rest) {
        return flow<I>(a, shared(a, dy, rest...), dy, rest...);
    }
    static double flops(const kernel_call& c) { return 7 * static_cast<double>(c.in[0].elements()); }
};

namespace detail {

template <handle H>
constexpr H normalization_derivative(const normalization_attributes& a, const H& dy, const H& x, const H& gamma) {
    const auto here = std::source_location::current();
    const H sums = invoke<normalization_sums_op>(a, nullptr, here, dy, x, gamma);
    return invoke<normalization_gradient_op>(a, nullptr, here, dy, x, gamma, sums);
}
/// With parameters that are the same for all examples.
constexpr normalization_attributes without_own(normalization_attributes a) {
    a.own = 0;
    return a;
}

/// A parameter that broadcasts over x.
template <handle H>
constexpr H beside_rows(const normalization_attributes& a, const H& parameter, const shape& x) {
    if (a.own == 0) return parameter;
    shape target;
    target.attach(x.table());
    for (int i = 0; i < x.rank(); ++i) target.push_back(i < a.own || i >= a.last ? x[i] : extent(1));
    return invoke<reshape_op>({}, &target, std::source_location::current(), parameter);
}

/// The derivative by x of <u, dx>, where dx = s P(g), P(v) = v - mean(v) - n mean(v n): it is
/// -s (mean(u dx) n + mean(g n) s P(u) + mean(u n) dx), because s has the derivative -s^2 n / N by x,
/// for N elements, and n the derivative s P.
template <handle H>
constexpr H normalization_second(const normalization_attributes& a, const H& mapped, const H& u, const H& dy,
                                 const H& x, const H& gamma, const H& dx) {
    const auto here = std::source_location::current();
    const shape dims = shape_of(x);
    const int first = static_cast<int>(a.first), last = static_cast<int>(a.last);
    shape split;
    split.attach(dims.table());
    split.push_back(dims.size(0, first));
    split.push_back(dims.size(first, last));
    split.push_back(a.groups);
    split.push_back(dims.size(last, dims.rank()) / a.groups);
    const auto parts = [&](const H& v) -> H { return invoke<reshape_op>({}, &split, here, v); };
    const auto average = [&](const auto& v) -> H { return mean(v, {1, 3}, {.keepdims = true}, here); };
    const shape channels = normalization_parameters(a, dims, 0);
    // Named, because what seals must come in one order, in the compiler and when the program runs.
    const H one = filled_like(x, channels, 1, here), zero = filled_like(x, channels, 0, here);
    const H normal = parts(invoke<normalization_op>(without_own(a), nullptr, here, x, one, zero));
    const H parameter = beside_rows(a, gamma, dims);
    const H g = parts(eval(dy * parameter, here));
    const H of_x = parts(x), of_u = parts(u), of_dx = parts(dx), of_mapped = parts(mapped);
    const H un = average(of_u * normal), gn = average(g * normal), udx = average(of_u * of_dx);
    H power;
    if (a.centered != 0) {
        const H centre = average(of_x);
        power = average(square(of_x - centre));
    } else {
        power = average(square(of_x));
    }
    const H result = eval(-(rsqrt(power + a.epsilon) * (udx * normal + gn * of_mapped + un * of_dx)), here);
    return invoke<reshape_op>({}, &dims, here, result);
}

} // namespace detail

template <int I>
    requires(I < 2)
constexpr auto normalization_sums_op::vjp(const attributes& a, auto w, auto dy, auto x, auto, auto) {
    const shape dims = shape_of(x);
    auto every = a;
    every.own = a.examples;
    const auto factor = detail::normalization_parameter(a, w, dims, 0, a.examples);
    if constexpr (I == 0) {
        const auto offset = detail::normalization_parameter(a, w, dims, 1, a.examples);
        return invoke<normalization_op>(every, nullptr, std::source_location::current(), x, factor, offset);
    } else {
        return detail::normalization_derivative(every, dy, x, factor);
    }
}

constexpr auto normalization_gradient_op::shared(const attributes& a, const auto& u, const auto&, const auto& x,
                                                 const auto&, const auto&, const auto&) {
    using H = std::remove_cvref_t<decltype(x)>;
    const H one =
        detail::filled_like(x, detail::normalization_parameters(a, shape_of(x), 0), 1, std::source_location::current());
    return detail::normalization_derivative<H>(detail::without_own(a), u, x, one);
}
template <int I>
    requires(I < 3)
constexpr auto normalization_gradient_op::flow(const attributes& a, const auto& mapped, const auto& u, const auto& dy,
                                               const auto& x, const auto& gamma, const auto&, const auto& dx) {
    using H = std::remove_cvref_t<decltype(x)>;
    const auto here = std::source_location::current();
    if constexpr (I == 0) {
        const H parameter = detail::beside_rows<H>(a, gamma, shape_of(x));
        return eval(mapped * parameter, here);
    } else if constexpr (I == 1) {
        return detail::normalization_second<H>(a, mapped, u, dy, x, gamma, dx);
    } else {
        axes records;
        records.all = false;
        for (auto i = a.own; i < a.last; ++i) records.index[records.count++] = static_cast<std::int8_t>(i);
        return records.count == 0 ? H(eval(dy * mapped, here)) : H(sum(dy * mapped, records, {}, here));
    }
}

namespace detail {

/// Normalizes x; 16-bit elements in float, rounded once. `parameter(true)` gives the factors,
/// `parameter(false)` the offsets, or handles without a value where there are none.
template <handle X>
constexpr X normalized(const X& x, const normalization_attributes& a, bool scale, const X& gamma, bool center,
                       const X& beta, std::source_location where) {
    const auto wide = as_float(x, where);
    const shape channels = normalization_parameters(a, shape_of(x), a.own);
    using H = std::remove_cvref_t<decltype(wide)>;
    const H factor = scale ? H(as_float(gamma, where)) : H(filled_like(wide, channels, 1, where));
    const H offset = center ? H(as_float(beta, where)) : H(filled_like(wide, channels, 0, where));
    const H y = invoke<normalization_op>(a, nullptr, where, wide, factor, offset);
    return rounded_like(x, y, where);
}

} // namespace detail
} // namespace tapegraph
