#pragma once

#include <tapegraph/ops/movement/slice.hpp>

/// Operations that graph passes substitute for slices and their adjoints (graph/passes/slices.hpp).
/// They are not for users.

namespace tapegraph {

/// A slice whose elements are contiguous in its operand: a view from its first element on.
struct slice_view_op : slice_op {
    static constexpr operation_kind kind = operation_kind::view;
    // Not inherited: clang would be deducing slice_op's when pad_op's asks whether slice_op has one.
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto) {
        const shape target = shape_of(x);
        return invoke<pad_op>(a, &target, std::source_location::current(), dy);
    }
};

/// The sum of tensors, each of which is placed along an axis of the result and is zero elsewhere.
/// Gradients of a tensor's parts add up to it.
struct placed_sum_op {
    static constexpr std::string_view name = "placed_sum";
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_nothing;
    static constexpr linearity linear = linearity::joint;
    static constexpr int arity = any_arity;
    static constexpr int most = 16; ///< maximum number of operands
    struct attributes {
        std::int64_t axis = 0;
        std::int64_t begin[most]{}; ///< of each operand, possibly counted from the end
    };
    static constexpr void infer(const attributes& a, inference& io) {
        const auto axis = static_cast<int>(a.axis);
        io.type = io.in[0].type;
        io.result = *io.target;
        if (!io.require(io.count <= most, "placed_sum: too many operands") ||
            !io.require(axis >= 0 && axis < io.result.rank(), "placed_sum: axis outside the rank"))
            return;
        for (int k = 0; k < io.count && io.error == nullptr; ++k) {
            const shape& x = io.in[k].dims;
            io.culprit = k;
            if (!io.require(io.in[k].type == io.type, "placed_sum: element types differ") ||
                !io.require(x.rank() == io.result.rank(), "placed_sum: ranks differ"))
                return;
            slice_op::attributes place = detail::whole_slice();
            place.begin[axis] = a.begin[k];
            slice_op::require_inside(place, io, io.result, x, "placed_sum",
                                  "placed_sum: an operand lies outside the result");
            for (int i = 0; i < x.rank(); ++i)
                if (i != axis)
                    io.require(equal_or_required(x[i], io.result[i]), "placed_sum: extents differ off the axis");
        }
    }
    /// The adjoint of operand `which`: its part of dy.
    template <handle H>
    static constexpr H vjp(const attributes& a, const H& dy, const shape* shapes, int, int which) {
        slice_op::attributes place = detail::whole_slice();
        place.begin[a.axis] = a.begin[which];
        return invoke<slice_op>(place, &shapes[which], std::source_location::current(), dy);
    }
    static double flops(const kernel_call& call) {
        double adds = 0;
        for (int k = 0; k < call.inputs; ++k) adds += static_cast<double>(call.in[k].elements());
        return adds;
    }
};

} // namespace tapegraph
