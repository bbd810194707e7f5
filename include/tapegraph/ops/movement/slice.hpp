#pragma once

#include <tapegraph/expr/indexable.hpp>
#include <tapegraph/ops/movement/layout.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>

#include <array>
#include <cstddef>
#include <limits>
#include <utility>

/// slice, take, reverse, split, unstack: parts of a tensor by begin, end and step; embed, the
/// reverse.

namespace tapegraph {

/// Used as a slice's begin, to count from the end of an axis whose extent may be known only at run time. With a positive step,
/// at_the_end + k is a slice that ends k elements before the end; with a negative step, one that begins k elements before the
/// last.
inline constexpr std::int64_t at_the_end = std::numeric_limits<std::int64_t>::min();
/// Whether the beginning of a range is meant from the end of a symbolic axis.
constexpr bool counted_from_the_end(std::int64_t begin) { return begin < at_the_end + (std::int64_t{1} << 40); }

struct slice_op {
    static constexpr std::string_view name = "slice";
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_nothing;
    static constexpr bool takes_storage_types = true;
    static constexpr linearity linear = linearity::joint;
    static constexpr int arity = 1;
    struct attributes {
        std::int64_t begin[max_rank]{};
        std::int64_t step[max_rank]{};
        double fill = 0; ///< for embed: the value of elements outside the operand
    };
    /// In begin: an error in a range, found when the attributes were built.
    enum problem : std::int64_t {
        none = 0,
        undecided = -1,
        indivisible = -2,
        wrong_sum = -3,
        axis_outside = -4,
        wrong_count = -5,
        no_matrix = -6,
        two_ellipses = -7,
        malformed = -8
    };

    /// The position of the first of `count` elements on an axis of `size`.
    static constexpr std::int64_t first(std::int64_t begin, std::int64_t step, std::int64_t size, std::int64_t count) {
        if (!counted_from_the_end(begin)) return begin;
        const std::int64_t back = begin - at_the_end;
        return step > 0 ? size - back - (step * (count - 1) + 1) : size - 1 - back;
    }
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = io.in[0].type;
        io.result = *io.target;
        if (steps_fit(a, io, "slice: more ranges than axes", "slice: a step is zero"))
            require_inside(a, io, io.in[0].dims, io.result, "slice", "slice: range outside the tensor");
    }
    /// Axes beyond the operand's rank have step 1 unless a range was given for them.
    static constexpr bool steps_fit(const attributes& a, inference& io, const char* too_many, const char* none) {
        for (int i = 0; i < max_rank; ++i) {
            if (a.begin[i] < 0 && !counted_from_the_end(a.begin[i])) return io.fail(text_of(a.begin[i]));
            if (!io.require(i < io.in[0].dims.rank() ? a.step[i] != 0 : a.step[i] == 1,
                            i < io.in[0].dims.rank() ? none : too_many))
                return false;
        }
        return true;
    }
    /// What is wrong with a range, as text.
    static constexpr const char* text_of(std::int64_t problem) {
        switch (problem) {
        case undecided: return "slice: a range of a symbolic axis runs from one end and is bounded from the other";
        case indivisible: return "split: the extent does not divide into equal parts";
        case wrong_sum: return "split: the sizes do not add up to the extent";
        case axis_outside: return "slice, take, split: axis outside the rank";
        case no_matrix: return "diag, diag_part: the axes must exist and have extents that are numbers";
        case wrong_count: return "unstack: the number of parts is not the extent";
        case two_ellipses: return "slice: tg::ellipsis may stand for axes only once";
        case malformed: return "slice: a range is a begin, an end and a step at most";
        default: return "pad: amounts are negative";
        }
    }
    /// Whether the elements of `smaller` are inside `larger`; conditions on symbols become
    /// requirements.
    static constexpr void require_inside(const attributes& a, inference& io, const shape& larger, const shape& smaller,
                                      const char* operation, const char* outside) {
        for (int i = 0; i < larger.rank(); ++i) {
            const extent size = larger[i], count = smaller[i];
            if (!count.known() || count.value == 0) continue;
            const std::int64_t span = a.step[i] * (count.value - 1); // from the first to the last
            std::int64_t least = 0;                                  // elements the axis must have
            if (counted_from_the_end(a.begin[i]))
                least = a.begin[i] - at_the_end + (span < 0 ? -span : span) + 1;
            else if (a.begin[i] + span >= 0)
                least = (span < 0 ? a.begin[i] : a.begin[i] + span) + 1;
            else
                io.fail(outside);
            io.require(at_least_or_required(size, least, operation), outside);
        }
    }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto);
};

/// A tensor of the target's shape, filled with one number, in which the operand is placed from
/// begin on, in steps: the adjoint of slice, and constant padding.
struct pad_op : slice_op {
    static constexpr std::string_view name = "pad";
    static constexpr linearity linear = linearity::none; // affine, because the number does not depend on the operand
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = io.in[0].type;
        io.result = *io.target;
        if (steps_fit(a, io, "pad: more amounts than axes", "pad: a step is zero"))
            require_inside(a, io, io.result, io.in[0].dims, "pad", "pad: amounts are negative");
    }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto) {
        const shape target = shape_of(x);
        attributes back = a;
        back.fill = 0;
        return invoke<slice_op>(back, &target, std::source_location::current(), dy);
    }
};

template <int I>
constexpr auto slice_op::vjp(const attributes& a, auto dy, auto x, auto) {
    const shape target = shape_of(x);
    return invoke<pad_op>(a, &target, std::source_location::current(), dy);
}

/// `all` keeps an axis; as a function, tg::all(mask) tests whether all elements of a bool tensor
/// are true.
struct whole_axis : range {
    /// Whether all elements of x along the axes are true: `tg::all(x)` beside `tg::all`, the range.
    template <tensor_like A>
    constexpr auto operator()(const A& x, axes over = {}, reduce_options options = {},
                              std::source_location where = std::source_location::current()) const {
        return all_of(x, over, options, where);
    }
};
inline constexpr whole_axis all{};

namespace detail {

constexpr slice_op::attributes whole_slice() {
    slice_op::attributes a;
    for (std::int64_t& step : a.step) step = 1;
    return a;
}

constexpr void slice_known_axis(const range& r, std::int64_t size, slice_op::attributes& a, shape& target, int axis) {
    const auto clip = [](std::int64_t v, std::int64_t low, std::int64_t high) {
        return v < low ? low : v > high ? high : v;
    };
    const std::int64_t low = r.step > 0 ? 0 : -1, high = r.step > 0 ? size : size - 1;
    const std::int64_t begin = clip(r.begin < 0 ? r.begin + size : r.begin, low, high);
    const bool open = r.end == all.end;
    const std::int64_t end = open ? (r.step > 0 ? size : -1) : clip(r.end < 0 ? r.end + size : r.end, low, high);
    const std::int64_t count = r.step == 0  ? 0
                               : r.step > 0 ? (end - begin + r.step - 1) / r.step
                                            : (begin - end - r.step - 1) / -r.step;
    a.begin[axis] = begin < 0 || count <= 0 ? 0 : begin; // an empty range may begin anywhere
    a.step[axis] = r.step;
    target.set(axis, count < 0 ? 0 : count);
}

// Bounds cannot be clipped to an unknown extent, so the axis is required to contain them.
constexpr void slice_symbolic_axis(const range& r, extent size, slice_op::attributes& a, shape& target, int axis) {
    a.step[axis] = r.step;
    if (r.step == 0) return;
    const bool forwards = r.step > 0, open = r.end == all.end;
    const std::int64_t stride = forwards ? r.step : -r.step;
    const bool begins_at_end = r.begin < 0, ends_at_end = open ? forwards : r.end < 0;
    // Distances from the end that the range names; `end` is one past the last selected element.
    const std::int64_t begin = begins_at_end ? -r.begin : r.begin;
    const std::int64_t end = open ? (forwards ? 0 : -1) : ends_at_end ? -r.end : r.end;
    extent count;
    std::int64_t least = 0;
    if (begins_at_end == ends_at_end) {
        const std::int64_t length = forwards == begins_at_end ? begin - end : end - begin;
        count = length <= 0 ? 0 : (length + stride - 1) / stride;
        least = begins_at_end ? (forwards ? begin : end - 1) : (forwards ? end : begin + 1);
        if (length <= 0) least = 0;
    } else if (forwards == ends_at_end) { // forwards from the front, or backwards from the back
        least = begin + end;
        count = (size - least + (stride - 1)) / stride;
    } else {
        a.begin[axis] = slice_op::undecided;
        return;
    }
    at_least_or_required(size, least, "slice");
    target.set(axis, count);
    if (!begins_at_end)
        a.begin[axis] = begin;
    else if (forwards)
        a.begin[axis] = at_the_end + (count.value == 0 ? 0 : begin - stride * (count.value - 1) - 1);
    else
        a.begin[axis] = at_the_end + begin - 1;
}

} // namespace detail

namespace detail {
/// The part of an axis that a range selects; for an axis that x does not have, an error for the
/// shape rule to report.
constexpr void slice_axis(const range& r, const shape& from, slice_op::attributes& a, shape& target, int axis) {
    if (axis < from.rank() && from[axis].known())
        slice_known_axis(r, from[axis].value, a, target, axis);
    else if (axis < from.rank() && (r.begin != all.begin || r.end != all.end || r.step != all.step))
        slice_symbolic_axis(r, from[axis], a, target, axis);
    else if (axis >= from.rank() && axis < max_rank)
        a.step[axis] = 0;
}
} // namespace detail

/// x[ranges...]: bounds are clipped and negative ones count from the end, as in Python; a negative step needs a begin.
/// Axes not named are kept whole. Bounds of a symbolic axis are not clipped: the extent is required to contain them, and a
/// range that is named from both ends must run from the front to the back ({1, -1}) or, with a negative step, backwards.
template <tensor_like A>
constexpr auto slice(const A& x, std::initializer_list<range> ranges,
                     std::source_location where = std::source_location::current()) {
    const shape from = shape_of(x);
    shape target = from;
    slice_op::attributes a = detail::whole_slice();
    int axis = 0;
    for (const range& r : ranges) detail::slice_axis(r, from, a, target, axis++);
    return invoke<slice_op>(a, &target, where, x);
}

/// Element `i` of an axis (negative: from the end); the axis is dropped. x[2] is take(x, 2).
template <tensor_like A>
constexpr auto take(const A& x, std::int64_t i, int axis = 0,
                    std::source_location where = std::source_location::current()) {
    const auto whole = eval(x, where);
    const shape from = shape_of(whole);
    const int at = normalized_axis(axis, from.rank());
    slice_op::attributes a = detail::whole_slice();
    shape cut = from, target = detail::no_axes(from);
    if (at < 0) {
        a.begin[0] = slice_op::axis_outside;
    } else {
        a.begin[at] = i < 0 ? at_the_end - i - 1 : i;
        cut.set(at, 1);
    }
    for (int k = 0; k < from.rank(); ++k)
        if (k != at) target.push_back(from[k]);
    const auto part = invoke<slice_op>(a, &cut, where, whole);
    return invoke<reshape_op>({}, at < 0 ? &cut : &target, where, part);
}

/// Reverses some axes; all axes unless they are named.
template <tensor_like A>
constexpr auto reverse(const A& x, axes over = {}, std::source_location where = std::source_location::current()) {
    const shape target = shape_of(x);
    const bool valid = detail::distinct_axes(over, target.rank());
    const std::int64_t mask = valid ? over.bits(target.rank()) : 0;
    slice_op::attributes a = detail::whole_slice();
    if (!valid) a.begin[0] = slice_op::axis_outside;
    for (int i = 0; i < target.rank(); ++i) {
        if ((mask >> i & 1) == 0) continue;
        a.begin[i] = at_the_end;
        a.step[i] = -1;
    }
    return invoke<slice_op>(a, &target, where, x);
}
/// The same under the name of NumPy and PyTorch.
template <tensor_like A>
constexpr auto flip(const A& x, axes over = {}, std::source_location where = std::source_location::current()) {
    return reverse(x, over, where);
}

namespace detail {

/// `count` elements of an axis after the first `before`.
template <handle H>
constexpr H part_of(const H& whole, int axis, extent before, extent count, std::source_location where) {
    const shape from = shape_of(whole);
    slice_op::attributes a = whole_slice();
    shape target = from;
    target.set(axis, count);
    const extent after = from[axis] - before - count;
    if (before.known()) {
        a.begin[axis] = before.value;
    } else if (after.known()) {
        a.begin[axis] = at_the_end + after.value;
    } else { // both distances are symbolic: cuts the front first, then the back
        shape rest = from;
        rest.set(axis, count + after);
        a.begin[axis] = at_the_end;
        const H tail = invoke<slice_op>(a, &rest, where, whole);
        a.begin[axis] = 0;
        return invoke<slice_op>(a, &target, where, tail);
    }
    return invoke<slice_op>(a, &target, where, whole);
}

/// Parts that cannot be formed: the shape rule reports the reason.
template <handle H>
constexpr H refused_part(const H& whole, std::int64_t problem, std::source_location where) {
    const shape target = shape_of(whole);
    slice_op::attributes a = whole_slice();
    a.begin[0] = problem;
    return invoke<slice_op>(a, &target, where, whole);
}

} // namespace detail

/// N parts of equal extents along an axis, as std::array. A symbolic extent is required to divide.
template <std::size_t N, tensor_like A>
constexpr auto split(const A& x, int axis = 0, std::source_location where = std::source_location::current()) {
    static_assert(N > 0, "split: into no parts");
    const auto whole = eval(x, where);
    const shape from = shape_of(whole);
    const int at = normalized_axis(axis, from.rank());
    constexpr auto parts = static_cast<std::int64_t>(N);
    const extent size = at < 0 ? extent(0) : from[at] / parts;
    const auto problem = at < 0                                      ? slice_op::axis_outside
                         : equal_or_required(size * parts, from[at]) ? slice_op::none
                                                                     : slice_op::indivisible;
    const auto part = [&](std::size_t i) {
        return problem != slice_op::none ? detail::refused_part(whole, problem, where)
                                         : detail::part_of(whole, at, size * static_cast<std::int64_t>(i), size, where);
    };
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return std::array<decltype(eval(x)), N>{part(I)...}; }
    (std::make_index_sequence<N>{});
}

/// Parts of the given sizes along an axis, as std::array: split(x, {2, 3, 5}, 1). The sizes add up
/// to the extent.
template <tensor_like A, std::size_t N>
constexpr auto split(const A& x, const std::int64_t (&sizes)[N], int axis = 0,
                     std::source_location where = std::source_location::current()) {
    const auto whole = eval(x, where);
    const shape from = shape_of(whole);
    const int at = normalized_axis(axis, from.rank());
    std::int64_t sum = 0;
    bool negative = false;
    for (const std::int64_t size : sizes) sum += size, negative = negative || size < 0;
    const auto problem = at < 0                                          ? slice_op::axis_outside
                         : !negative && equal_or_required(from[at], sum) ? slice_op::none
                                                                         : slice_op::wrong_sum;
    const auto part = [&](std::size_t i) {
        if (problem != slice_op::none) return detail::refused_part(whole, problem, where);
        std::int64_t before = 0;
        for (std::size_t k = 0; k < i; ++k) before += sizes[k];
        return detail::part_of(whole, at, before, sizes[i], where);
    };
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return std::array<decltype(eval(x)), N>{part(I)...}; }
    (std::make_index_sequence<N>{});
}

/// The N elements of an axis of extent N, as std::array; the axis is dropped.
template <std::size_t N, tensor_like A>
constexpr auto unstack(const A& x, int axis = 0, std::source_location where = std::source_location::current()) {
    const auto whole = eval(x, where);
    const shape from = shape_of(whole);
    const int at = normalized_axis(axis, from.rank());
    const auto problem = at < 0                                                      ? slice_op::axis_outside
                         : equal_or_required(from[at], static_cast<std::int64_t>(N)) ? slice_op::none
                                                                                     : slice_op::wrong_count;
    const auto part = [&](std::size_t i) {
        return problem != slice_op::none ? detail::refused_part(whole, problem, where)
                                         : take(whole, static_cast<std::int64_t>(i), at, where);
    };
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return std::array<decltype(eval(x)), N>{part(I)...}; }
    (std::make_index_sequence<N>{});
}

} // namespace tapegraph
