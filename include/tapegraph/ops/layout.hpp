#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/operation.hpp>
#include <tapegraph/ops/reduction.hpp>
#include <tapegraph/ops/view.hpp>

#include <limits>

/// transpose, slice, broadcast_to, concat: elements moved.

namespace tapegraph {

struct transpose_op {
    static constexpr std::string_view name = "transpose";
    static constexpr operation_kind kind = operation_kind::layout;
    static constexpr int arity = 1;
    struct attributes {
        std::int64_t permutation[max_rank]{}; ///< axis i of the result is axis permutation[i] of the operand
        std::int64_t rank = 0;
    };
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = io.in[0].type;
        if (!io.require(a.rank == io.in[0].dims.rank(), "transpose: permutation and rank differ")) return;
        std::int64_t seen = 0;
        for (int i = 0; i < a.rank; ++i) {
            if (!io.require(a.permutation[i] >= 0 && a.permutation[i] < a.rank, "transpose: axis outside the rank"))
                return;
            seen |= std::int64_t{1} << a.permutation[i];
            io.result.push_back(io.in[0].dims[static_cast<int>(a.permutation[i])]);
        }
        io.require(seen == (std::int64_t{1} << a.rank) - 1, "transpose: an axis is named twice");
    }
    static constexpr attributes inverse(const attributes& a) {
        attributes back;
        back.rank = a.rank;
        for (int i = 0; i < a.rank; ++i) back.permutation[a.permutation[i]] = i;
        return back;
    }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto, auto) {
        return invoke<transpose_op>(inverse(a), nullptr, std::source_location::current(), dy);
    }
};

/// Axes in another order; without `order` they are reversed, as in NumPy.
template <tensor_like A>
constexpr auto transpose(const A& x, std::initializer_list<int> order = {},
                         std::source_location where = std::source_location::current()) {
    transpose_op::attributes a;
    const int rank = shape_of(x).rank();
    if (order.size() == 0) {
        a.rank = rank;
        for (int i = 0; i < rank; ++i) a.permutation[i] = rank - 1 - i;
    } else {
        for (int axis : order)
            if (a.rank < max_rank) a.permutation[a.rank++] = normalized_axis(axis, rank);
    }
    return invoke<transpose_op>(a, nullptr, where, x);
}

/// Repeats axes of extent 1 and adds leading ones. Elementwise, so it fuses into what reads it; like every elementwise
/// operation its adjoint is summed back to the operand's shape by whoever differentiates.
struct broadcast_op : map_op<1> {
    static constexpr std::string_view name = "broadcast_to";
    static constexpr void infer(const attributes&, inference& io) {
        io.type = io.in[0].type;
        bool ok = true;
        io.result = broadcast(io.in[0].dims, *io.target, ok);
        io.require(ok && io.result == *io.target, "broadcast_to: the shape does not broadcast to the target");
    }
    template <class V>
    TG_HD static constexpr V value(V x) {
        return x;
    }
    static constexpr auto vjp(auto dy, auto, auto) { return dy; }
};

template <tensor_like A>
constexpr auto broadcast_to(const A& x, shape target, std::source_location where = std::source_location::current()) {
    target.attach(shape_of(x).table());
    return invoke<broadcast_op>({}, &target, where, x);
}

/// Sums a tensor down to a shape that broadcasts to its own: the adjoint of broadcasting.
template <tensor_like A>
constexpr auto sum_to(const A& x, const shape& target, std::source_location where = std::source_location::current()) {
    const shape from = shape_of(x);
    if (from == target) return eval(x, where);
    const int extra = from.rank() - target.rank();
    std::int64_t mask = 0;
    for (int i = 0; i < from.rank(); ++i)
        if (i < extra || (target[i - extra].value == 1 && from[i].value != 1)) mask |= std::int64_t{1} << i;
    return invoke<reshape_op>({}, &target, where, reduce<sum_op>({mask, 0}, where, x));
}

/// As a slice's begin: what is taken ends where the axis ends. It says where the second part of a concat lies without the
/// extent of the first, which may be known only at run time.
inline constexpr std::int64_t at_the_end = std::numeric_limits<std::int64_t>::min();

struct slice_op {
    static constexpr std::string_view name = "slice";
    static constexpr operation_kind kind = operation_kind::layout;
    static constexpr int arity = 1;
    struct attributes {
        std::int64_t begin[max_rank]{};
        std::int64_t step[max_rank]{};
    };
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = io.in[0].type;
        io.result = *io.target;
        const shape& from = io.in[0].dims;
        if (!steps_fit(a, io, "slice: more ranges than axes", "slice: a step is zero")) return;
        for (int i = 0; i < from.rank(); ++i) {
            const extent count = io.result[i];
            io.require(a.begin[i] != unknown_begin, "slice: an axis known only at run time is kept whole");
            if (!from[i].known() || !count.known() || count.value == 0 || a.begin[i] == at_the_end) continue;
            const std::int64_t last = a.begin[i] + a.step[i] * (count.value - 1);
            io.require(a.begin[i] >= 0 && a.begin[i] < from[i].value && last >= 0 && last < from[i].value,
                       "slice: range outside the tensor");
        }
    }
    static constexpr std::int64_t unknown_begin = at_the_end + 1;
    /// Axes behind the operand's rank have step 1 unless something was said of them.
    static constexpr bool steps_fit(const attributes& a, inference& io, const char* too_many, const char* none) {
        for (int i = 0; i < max_rank; ++i)
            if (!io.require(i < io.in[0].dims.rank() ? a.step[i] != 0 : a.step[i] == 1,
                            i < io.in[0].dims.rank() ? none : too_many))
                return false;
        return true;
    }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto);
};

/// Zeros of the target's shape with the operand placed at begin, in steps: the adjoint of slice, and zero padding.
struct embed_op : slice_op {
    static constexpr std::string_view name = "embed";
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = io.in[0].type;
        io.result = *io.target;
        const shape& from = io.in[0].dims;
        if (!steps_fit(a, io, "pad: more amounts than axes", "pad: a step is zero")) return;
        for (int i = 0; i < from.rank(); ++i) {
            const extent size = io.result[i];
            if (!from[i].known() || !size.known() || from[i].value == 0 || a.begin[i] == at_the_end) continue;
            const std::int64_t last = a.begin[i] + a.step[i] * (from[i].value - 1);
            io.require(a.begin[i] >= 0 && a.begin[i] < size.value && last >= 0 && last < size.value,
                       "pad: amounts are negative");
        }
    }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto) {
        const shape target = shape_of(x);
        return invoke<slice_op>(a, &target, std::source_location::current(), dy);
    }
};

template <int I>
constexpr auto slice_op::vjp(const attributes& a, auto dy, auto x, auto) {
    const shape target = shape_of(x);
    return invoke<embed_op>(a, &target, std::source_location::current(), dy);
}

/// One axis of a slice, as Python's begin:end:step. `all` keeps the axis.
struct range {
    std::int64_t begin = 0;
    std::int64_t end = std::numeric_limits<std::int64_t>::max();
    std::int64_t step = 1;
};
/// `all` keeps an axis; as a function, tg::all(mask), it says whether all elements of a bool tensor are true.
struct whole_axis : range {
    template <tensor_like A>
    constexpr auto operator()(const A& x, axes over = {}, reduce_options options = {},
                              std::source_location where = std::source_location::current()) const {
        return all_of(x, over, options, where);
    }
};
inline constexpr whole_axis all{};

/// x[ranges...]: bounds are clipped and negative ones count from the end, as in Python; a negative step needs a begin.
/// Axes not named are kept whole. An axis of symbolic extent must be kept whole.
template <tensor_like A>
constexpr auto slice(const A& x, std::initializer_list<range> ranges,
                     std::source_location where = std::source_location::current()) {
    const shape from = shape_of(x);
    shape target = from;
    slice_op::attributes a;
    for (int i = 0; i < max_rank; ++i) a.step[i] = 1;
    int axis = 0;
    for (const range& r : ranges) {
        if (axis < from.rank() && from[axis].known()) {
            const std::int64_t size = from[axis].value;
            const auto clip = [](std::int64_t v, std::int64_t low, std::int64_t high) {
                return v < low ? low : v > high ? high : v;
            };
            const std::int64_t low = r.step > 0 ? 0 : -1, high = r.step > 0 ? size : size - 1;
            const std::int64_t begin = clip(r.begin < 0 ? r.begin + size : r.begin, low, high);
            const bool open = r.end == std::numeric_limits<std::int64_t>::max();
            const std::int64_t end =
                open ? (r.step > 0 ? size : -1) : clip(r.end < 0 ? r.end + size : r.end, low, high);
            const std::int64_t count = r.step == 0  ? 0
                                       : r.step > 0 ? (end - begin + r.step - 1) / r.step
                                                    : (begin - end - r.step - 1) / -r.step;
            a.begin[axis] = begin;
            a.step[axis] = r.step;
            target.set(axis, count < 0 ? 0 : count);
        } else if (axis < from.rank()) {
            if (r.begin != all.begin || r.end != all.end || r.step != all.step) a.begin[axis] = slice_op::unknown_begin;
        } else if (axis < max_rank) {
            a.step[axis] = 0; // refused by the shape rule
        }
        ++axis;
    }
    return invoke<slice_op>(a, &target, where, x);
}

/// Zero padding: `before` and `after` elements on each axis.
struct padding_amount {
    std::int64_t before = 0, after = 0;
};
template <tensor_like A>
constexpr auto pad(const A& x, std::initializer_list<padding_amount> amounts,
                   std::source_location where = std::source_location::current()) {
    shape target = shape_of(x);
    embed_op::attributes a;
    for (int i = 0; i < max_rank; ++i) a.step[i] = 1;
    int axis = 0;
    for (const padding_amount& amount : amounts) {
        if (axis < target.rank()) {
            a.begin[axis] = amount.before;
            target.set(axis, target[axis] + amount.before + amount.after);
        } else if (axis < max_rank) {
            a.step[axis] = 0; // refused by the shape rule
        }
        ++axis;
    }
    return invoke<embed_op>(a, &target, where, x);
}

/// Two tensors behind one another along an axis.
struct concat_op {
    static constexpr std::string_view name = "concat";
    static constexpr operation_kind kind = operation_kind::layout;
    static constexpr int arity = 2;
    struct attributes {
        std::int64_t axis = 0;
    };
    static constexpr void infer(const attributes& a, inference& io) {
        const shape &x = io.in[0].dims, &y = io.in[1].dims;
        io.type = io.in[0].type;
        io.result = x;
        if (!io.require(io.in[1].type == io.type, "concat: element types differ") ||
            !io.require(x.rank() == y.rank(), "concat: ranks differ") ||
            !io.require(a.axis >= 0 && a.axis < x.rank(), "concat: axis outside the rank"))
            return;
        for (int i = 0; i < x.rank(); ++i)
            if (i != a.axis) io.require(equal_or_required(x[i], y[i]), "concat: extents differ off the axis");
        io.result.set(static_cast<int>(a.axis), x[static_cast<int>(a.axis)] + y[static_cast<int>(a.axis)]);
    }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto y, auto) {
        const shape first = shape_of(x), second = shape_of(y);
        slice_op::attributes cut;
        for (int i = 0; i < max_rank; ++i) cut.step[i] = 1;
        if constexpr (I == 1) cut.begin[a.axis] = at_the_end;
        return invoke<slice_op>(cut, I == 0 ? &first : &second, std::source_location::current(), dy);
    }
};

template <tensor_like A, tensor_like B>
constexpr auto concat(const A& x, const B& y, int axis = -1,
                      std::source_location where = std::source_location::current()) {
    return invoke<concat_op>({normalized_axis(axis, shape_of(x).rank())}, nullptr, where, x, y);
}

} // namespace tapegraph
