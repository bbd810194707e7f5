#pragma once

#include <tapegraph/ops/movement/slice.hpp>
#include <tapegraph/ops/movement/view.hpp>

/// x[i] and x(tg::all, {0, 4}) of every handle (expr/indexable.hpp).

namespace tapegraph {

/// Implements NumPy's x[parts[0], parts[1], ...], which x[i] and x(tg::all, {0, 4}) call, by slice
/// and take.
template <handle H>
constexpr H take_parts(const H& x, const part* parts, int count, std::source_location where) {
    using kind = part::kind;
    while (count > 0 && parts[count - 1].what == kind::all) --count;
    const shape from = shape_of(x);
    int rest = from.rank(), ellipses = 0; // axes that an ellipsis, or the end of the list, stands for
    for (int i = 0; i < count; ++i) {
        if (parts[i].what == kind::other_axes)
            ++ellipses;
        else if (parts[i].what != kind::new_axis)
            --rest;
    }
    slice_op::attributes a = detail::whole_slice();
    shape cut = from, target = detail::no_axes(from);
    bool cuts = false, reshapes = false;
    int axis = 0;
    for (int i = 0; i < count; ++i) {
        const part& p = parts[i];
        if (p.what == kind::new_axis) {
            target.push_back(1);
            reshapes = true;
        } else if (p.what == kind::other_axes) {
            for (int k = 0; k < rest; ++k) target.push_back(from[axis++]);
        } else if (p.what == kind::index && axis < from.rank()) {
            refuse_index(x, p.bounds.begin, axis);
            a.begin[axis] = p.bounds.begin < 0 ? at_the_end - p.bounds.begin - 1 : p.bounds.begin;
            cut.set(axis++, 1);
            cuts = reshapes = true;
        } else {
            detail::slice_axis(p.bounds, from, a, cut, axis);
            cuts = cuts || p.what != kind::all;
            if (axis < from.rank()) target.push_back(cut[axis]);
            ++axis;
        }
        if (p.what == kind::malformed) a.begin[0] = slice_op::malformed;
    }
    for (; axis < from.rank(); ++axis) target.push_back(from[axis]);
    if (ellipses > 1) a.begin[0] = slice_op::two_ellipses;
    if (rest < 0 && from.rank() == max_rank) a.begin[0] = slice_op::axis_outside;
    const H kept = cuts || ellipses > 1 || rest < 0 ? invoke<slice_op>(a, &cut, where, x) : x;
    return reshapes ? invoke<reshape_op>({}, &target, where, kept) : kept;
}

} // namespace tapegraph
