#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/operation.hpp>
#include <tapegraph/ops/movement/view.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>

/// transpose, swap_axes, move_axis, broadcast_to: permute and repeat axes.

namespace tapegraph {

struct transpose_op {
    static constexpr std::string_view name = "transpose";
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_nothing;
    static constexpr bool takes_storage_types = true;
    static constexpr linearity linear = linearity::joint;
    static constexpr int arity = 1;
    struct attributes {
        std::int64_t permutation[max_rank]{}; ///< axis i of the result is axis permutation[i] of the operand
        std::int64_t rank = 0;
    };
    static constexpr void infer(const attributes& a, inference& io) {
        io.type = io.in[0].type;
        if (!io.require(a.permutation[0] >= 0, "transpose: an axis outside the rank") ||
            !io.require(a.rank == io.in[0].dims.rank(), "transpose: permutation and rank differ"))
            return;
        std::int64_t seen = 0;
        for (int i = 0; i < a.rank; ++i) {
            if (!io.require(a.permutation[i] >= 0 && a.permutation[i] < a.rank, "transpose: an axis outside the rank"))
                return;
            seen |= std::int64_t{1} << a.permutation[i];
            io.result.push_back(io.in[0].dims[static_cast<int>(a.permutation[i])]);
        }
        io.require(seen == (std::int64_t{1} << a.rank) - 1, "transpose: an axis is named twice");
    }
    /// The permutation that takes this one back.
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

/// Permutes axes; without `order` they are reversed, as in NumPy.
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

/// Exchanges two axes.
template <tensor_like A>
constexpr auto swap_axes(const A& x, int first, int second,
                         std::source_location where = std::source_location::current()) {
    transpose_op::attributes a;
    const int rank = shape_of(x).rank();
    a.rank = rank;
    for (int i = 0; i < rank; ++i) a.permutation[i] = i;
    const int i = normalized_axis(first, rank), k = normalized_axis(second, rank);
    if (i < 0 || k < 0) {
        a.permutation[0] = -1; // refused by the shape rule
        a.rank = rank > 0 ? rank : 1;
    } else {
        a.permutation[i] = k;
        a.permutation[k] = i;
    }
    return invoke<transpose_op>(a, nullptr, where, x);
}

/// Moves axes `from` to positions `to` of the result; the others keep their order (numpy.moveaxis).
template <tensor_like A>
constexpr auto move_axis(const A& x, axes from, axes to, std::source_location where = std::source_location::current()) {
    transpose_op::attributes a;
    const int rank = shape_of(x).rank();
    a.rank = rank;
    const bool valid = !from.all && !to.all && from.count == to.count && detail::distinct_axes(from, rank) &&
                       detail::distinct_axes(to, rank);
    const std::int64_t moved = valid ? from.bits(rank) : 0, taken = valid ? to.bits(rank) : 0;
    for (int k = 0; valid && k < from.count; ++k)
        a.permutation[normalized_axis(to.index[k], rank)] = normalized_axis(from.index[k], rank);
    for (int i = 0, next = 0; i < rank; ++i) {
        if ((taken >> i & 1) != 0) continue;
        while ((moved >> next & 1) != 0) ++next;
        a.permutation[i] = next++;
    }
    if (!valid) {
        a.permutation[0] = -1; // refused by the shape rule
        a.rank = rank > 0 ? rank : 1;
    }
    return invoke<transpose_op>(a, nullptr, where, x);
}

/// Repeats axes of extent 1 and adds leading ones. It is elementwise, so it fuses with its readers;
/// as for every elementwise operation, differentiation sums its adjoint back to the operand's
/// shape.
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

/// x repeated along axes of extent 1 and new leading axes; shape_error if the shapes do not fit.
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

} // namespace tapegraph
