#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/operation.hpp>
#include <tapegraph/ops/reduction/axes.hpp>

#include <array>
#include <initializer_list>

/// reshape, flatten, ravel, expand_dims, squeeze: another shape over the same elements, without a copy.

namespace tapegraph {

struct reshape_op {
    static constexpr std::string_view name = "reshape";
    static constexpr std::string_view layer_name = "flatten";
    static constexpr operation_kind kind = operation_kind::view;
    static constexpr linearity linear = linearity::joint;
    static constexpr int arity = 1;
    /// An error in the requested shape, found when it was built; there is then no target.
    enum problem : std::int64_t { none, axis_outside, two_open, open_beside_zero, open_unknown, negative, not_one };
    struct attributes {
        std::int64_t problem = none;
    };
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = io.in[0].type;
        switch (a.problem) {
        case axis_outside:
            io.fail("expand_dims, squeeze: an axis outside the rank, named twice, or a rank above 8");
            return;
        case two_open: io.fail("reshape: -1 stands for one extent only"); return;
        case open_beside_zero: io.fail("reshape: beside an extent of 0, -1 can be anything"); return;
        case open_unknown: io.fail("reshape: what -1 stands for cannot be derived from symbolic extents"); return;
        case negative: io.fail("reshape: an extent is negative"); return;
        case not_one: io.fail("squeeze: the extent of the axis is not 1"); return;
        default: break;
        }
        if (!io.require(io.target != nullptr, "reshape: no shape was given")) return;
        io.result = *io.target;
        // -1 marks an open extent whose symbols are not divisible by the others.
        for (int i = 0; i < io.result.rank(); ++i)
            if (!io.require(is_symbolic(io.result[i].value) || io.result[i].value >= 0,
                            "reshape: the elements do not fill the extents that are given"))
                return;
        io.require(!io.result.overflow(), "reshape: rank above 8");
        const extent before = io.in[0].dims.size();
        io.require(equal_or_required(before, io.result.size()), "reshape: number of elements differs");
    }
    template <int I>
    static constexpr auto vjp(const attributes&, auto dy, auto x, auto) {
        const shape target = shape_of(x);
        return invoke<reshape_op>({}, &target, std::source_location::current(), dy);
    }
};

namespace detail {
/// The result of a reshape whose shape may be invalid.
template <handle H>
constexpr auto reshaped(const H& x, const shape& target, std::int64_t problem, std::source_location where) {
    return invoke<reshape_op>({problem}, problem == reshape_op::none ? &target : nullptr, where, x);
}
/// A shape without axes, with the symbols of another.
constexpr shape no_axes(const shape& like) {
    shape s;
    s.attach(like.table());
    return s;
}
/// Whether axes are within a rank and distinct.
constexpr bool distinct_axes(const axes& a, int rank) {
    std::int64_t seen = 0;
    for (int i = 0; !a.all && i < a.count; ++i) {
        const int axis = normalized_axis(a.index[i], rank);
        if (axis < 0 || (seen >> axis & 1) != 0) return false;
        seen |= std::int64_t{1} << axis;
    }
    return true;
}
} // namespace detail

/// The same elements in another shape. One extent may be -1 and is inferred.
template <tensor_like A>
constexpr auto reshape(const A& x, shape target, std::source_location where = std::source_location::current()) {
    const auto sealed = eval(x, where);
    const shape from = shape_of(sealed);
    target.attach(from.table());
    int open = -1;
    std::int64_t problem = reshape_op::none;
    extent rest{1, from.table()};
    for (int i = 0; i < target.rank(); ++i) {
        if (target[i].value == -1) {
            if (open >= 0) problem = reshape_op::two_open;
            open = i;
        } else {
            if (target[i].known() && target[i].value < 0) problem = reshape_op::negative;
            rest = rest * target[i];
        }
    }
    if (problem == reshape_op::none && open >= 0) {
        const extent size = from.size();
        if (rest.known() && rest.value == 0) {
            problem = reshape_op::open_beside_zero;
        } else if (rest.known()) { // if this does not divide, the shape rule finds that the sizes differ
            target.set(open, size / rest.value);
        } else {
            const std::int64_t left = rest.table->divide_exactly(size.value, rest.value);
            if (left == -1) problem = reshape_op::open_unknown;
            target.set(open, {left, rest.table});
        }
    }
    return detail::reshaped(sealed, target, problem, where);
}

/// Flattens [n, ...] to [n, product of the other extents].
template <tensor_like A>
constexpr auto flatten(const A& x, std::source_location where = std::source_location::current()) {
    const auto sealed = eval(x, where);
    const shape from = shape_of(sealed);
    shape target = detail::no_axes(from);
    target.push_back(from.rank() > 0 ? from[0] : extent(1));
    target.push_back(from.size(from.rank() > 0 ? 1 : 0, from.rank()));
    return invoke<reshape_op>({}, &target, where, sealed);
}

/// Flattens all axes to one, in row-major order.
template <tensor_like A>
constexpr auto ravel(const A& x, std::source_location where = std::source_location::current()) {
    const auto sealed = eval(x, where);
    const shape from = shape_of(sealed);
    shape target = detail::no_axes(from);
    target.push_back(from.size());
    return invoke<reshape_op>({}, &target, where, sealed);
}

/// Inserts axes of extent 1 at these positions of the result (negative: counted from its end).
template <tensor_like A>
constexpr auto expand_dims(const A& x, axes at, std::source_location where = std::source_location::current()) {
    const auto sealed = eval(x, where);
    const shape from = shape_of(sealed);
    const int rank = from.rank() + at.count;
    const bool valid = !at.all && rank <= max_rank && detail::distinct_axes(at, rank);
    const std::int64_t inserted = valid ? at.bits(rank) : 0;
    shape target = detail::no_axes(from);
    for (int i = 0, next = 0; valid && i < rank; ++i) {
        if ((inserted >> i & 1) != 0)
            target.push_back(1);
        else
            target.push_back(from[next++]);
    }
    return detail::reshaped(sealed, target, valid ? reshape_op::none : reshape_op::axis_outside, where);
}

/// Drops axes, whose extents must be 1; without `which`, every axis that is known to have extent 1
/// (never a symbolic one, so that the rank does not depend on the data).
template <tensor_like A>
constexpr auto squeeze(const A& x, axes which = {}, std::source_location where = std::source_location::current()) {
    const auto sealed = eval(x, where);
    const shape from = shape_of(sealed);
    const bool valid = detail::distinct_axes(which, from.rank());
    std::int64_t problem = valid ? reshape_op::none : reshape_op::axis_outside;
    const std::int64_t dropped = valid ? which.bits(from.rank()) : 0;
    shape target = detail::no_axes(from);
    for (int i = 0; i < from.rank(); ++i) {
        const bool one = from[i].value == 1;
        if ((dropped >> i & 1) == 0 || (which.all && !one))
            target.push_back(from[i]);
        else if (!one && !equal_or_required(from[i], 1))
            problem = reshape_op::not_one;
    }
    return detail::reshaped(sealed, target, problem, where);
}

} // namespace tapegraph
