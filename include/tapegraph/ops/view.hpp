#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/operation.hpp>

#include <array>
#include <initializer_list>

/// reshape, flatten, expand_dims, squeeze: another shape over the same elements, without a copy.

namespace tapegraph {

struct reshape_op {
    static constexpr std::string_view name = "reshape";
    static constexpr operation_kind kind = operation_kind::view;
    static constexpr int arity = 1;
    using attributes = no_attributes;
    static constexpr void infer(const attributes&, inference& io) {
        io.type = io.in[0].type;
        if (!io.require(io.target != nullptr, "expand_dims, squeeze: axis outside the rank")) return;
        io.result = *io.target;
        // -1 is what is left of an open extent whose symbols do not divide by the others.
        for (int i = 0; i < io.result.rank(); ++i)
            if (!io.require(is_symbolic(io.result[i].value) || io.result[i].value >= 0,
                            "reshape: the elements do not fill the extents that are given"))
                return;
        io.require(equal_or_required(io.in[0].dims.size(), io.result.size()), "reshape: number of elements differs");
    }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto) {
        const shape target = shape_of(x);
        return invoke<reshape_op>(a, &target, std::source_location::current(), dy);
    }
};

/// The same elements in another shape. One extent may be -1: it is what remains.
template <tensor_like A>
constexpr auto reshape(const A& x, shape target, std::source_location where = std::source_location::current()) {
    const auto sealed = eval(x, where);
    const shape from = shape_of(sealed);
    target.attach(from.table());
    int open = -1;
    extent rest{1, from.table()};
    for (int i = 0; i < target.rank(); ++i) {
        if (target[i].value == -1)
            open = i;
        else
            rest = rest * target[i];
    }
    if (open >= 0) {
        const extent size = from.size();
        if (size.known() && rest.known())
            target.set(open, rest.value == 0 ? extent(0) : extent(size.value / rest.value));
        else
            target.set(open, {size.table->divide_exactly(size.value, rest.value), size.table});
    }
    return invoke<reshape_op>({}, &target, where, sealed);
}

/// [n, ...] to [n, everything else]
template <tensor_like A>
constexpr auto flatten(const A& x, std::source_location where = std::source_location::current()) {
    const auto sealed = eval(x, where);
    const shape from = shape_of(sealed);
    shape target;
    target.attach(from.table());
    target.push_back(from.rank() > 0 ? from[0] : extent(1));
    target.push_back(from.size(from.rank() > 0 ? 1 : 0, from.rank()));
    return invoke<reshape_op>({}, &target, where, sealed);
}

/// Inserts an axis of extent 1 at `axis` (negative: counted from the end of the result).
template <tensor_like A>
constexpr auto expand_dims(const A& x, int axis, std::source_location where = std::source_location::current()) {
    const auto sealed = eval(x, where);
    const shape from = shape_of(sealed);
    const int at = axis < 0 ? axis + from.rank() + 1 : axis;
    shape target;
    target.attach(from.table());
    for (int i = 0; i <= from.rank(); ++i) {
        if (i == at) target.push_back(1);
        if (i < from.rank()) target.push_back(from[i]);
    }
    const bool inside = at >= 0 && at <= from.rank() && from.rank() < max_rank;
    return invoke<reshape_op>({}, inside ? &target : nullptr, where, sealed);
}

/// Drops axis `axis`, whose extent must be 1.
template <tensor_like A>
constexpr auto squeeze(const A& x, int axis, std::source_location where = std::source_location::current()) {
    const auto sealed = eval(x, where);
    const shape from = shape_of(sealed);
    const int at = normalized_axis(axis, from.rank());
    shape target;
    target.attach(from.table());
    for (int i = 0; i < from.rank(); ++i)
        if (i != at) target.push_back(from[i]);
    return invoke<reshape_op>({}, at >= 0 ? &target : nullptr, where, sealed);
}

} // namespace tapegraph
