#pragma once

#include <tapegraph/ops/elementwise/cast.hpp>
#include <tapegraph/ops/gather/gather.hpp>
#include <tapegraph/ops/movement/layout.hpp>
#include <tapegraph/ops/reduction/softmax.hpp>

/// sparse_softmax_cross_entropy_with_logits, the cross entropy of logits and class numbers.

namespace tapegraph {

namespace detail {
/// Whether operands `logits` and `labels` are [batch..., classes] and [batch...].
constexpr bool labels_fit(inference& io, int logits, int labels) {
    const shape &x = io.in[logits].dims, &z = io.in[labels].dims;
    io.type = io.in[logits].type;
    if (!io.require(is_floating(io.type), "sparse_softmax_cross_entropy_with_logits: the logits are not floating; "
                                          "cast<float>(x) first") ||
        !io.require(index_type(io.in[labels].type),
                    "sparse_softmax_cross_entropy_with_logits: labels must be i32 or i64") ||
        !io.require(x.rank() >= 1, "sparse_softmax_cross_entropy_with_logits: the logits need an axis of classes"))
        return false;
    bool same = z.rank() + 1 == x.rank();
    for (int i = 0; same && i < z.rank(); ++i) same = equal_or_required(x[i], z[i]);
    io.culprit = labels;
    return io.require(same, "sparse_softmax_cross_entropy_with_logits: labels have the logits' shape without its "
                            "last axis");
}
} // namespace detail

/// (dy, logits, labels) to dy (softmax(logits) - 1 at the label), for each row.
struct sparse_softmax_cross_entropy_gradient_op {
    static constexpr std::string_view name = "sparse_softmax_cross_entropy_gradient";
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = 7;
    static constexpr int arity = 3;
    using attributes = no_attributes;
    static constexpr void infer(const attributes&, inference& io) {
        if (!detail::labels_fit(io, 1, 2)) return;
        io.result = io.in[1].dims;
        io.culprit = 0;
        io.require(io.in[0].type == io.type && detail::same_shape_or_required(io.in[0].dims, io.in[2].dims),
                   "sparse_softmax_cross_entropy_gradient: dy has the labels' shape and the logits' type");
    }
    static constexpr auto shared(const attributes&, const auto&, const auto&, const auto& x, const auto&, const auto&) {
        return invoke<softmax_op>({shape_of(x).rank() - 1}, nullptr, std::source_location::current(), x);
    }
    template <int I>
        requires(I < 2)
    static constexpr auto flow(const attributes&, const auto& p, const auto& u, const auto& dy, const auto& x,
                               const auto& labels, const auto&) {
        const auto here = std::source_location::current();
        const std::int64_t axis = shape_of(x).rank() - 1;
        if constexpr (I == 0) {
            // Named, because what seals must come in one order, in the compiler and when the program runs.
            const auto along = detail::reduce_over<sum_op>(u * p, std::int64_t{1} << axis, true, here);
            const auto at = invoke<take_along_op>({axis}, nullptr, here, u, expand_dims(labels, -1));
            const auto result = eval(along - at, here);
            const shape target = shape_of(dy);
            return invoke<reshape_op>({}, &target, here, result);
        } else {
            const auto factor = expand_dims(dy, -1);
            return invoke<softmax_gradient_op>({axis}, nullptr, here, eval(u * factor, here), p);
        }
    }
    template <int I>
        requires(I < 2)
    static constexpr auto vjp(const attributes& a, auto u, auto... rest) {
        return flow<I>(a, shared(a, u, rest...), u, rest...);
    }
    static double flops(const kernel_call& c) { return 5 * static_cast<double>(c.out[0].elements()); }
};

/// -log(softmax(logits)[label]) for each row of (logits, labels). The logits are read once, nothing of
/// their size is written or kept, and the derivative computes the softmax again.
struct sparse_softmax_cross_entropy_op {
    static constexpr std::string_view name = "sparse_softmax_cross_entropy_with_logits";
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr int arity = 2;
    using attributes = no_attributes;
    static constexpr void infer(const attributes&, inference& io) {
        if (detail::labels_fit(io, 0, 1)) io.result = io.in[1].dims;
    }
    template <int I>
        requires(I == 0)
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto labels, auto) {
        return invoke<sparse_softmax_cross_entropy_gradient_op>(a, nullptr, std::source_location::current(), dy, x,
                                                                labels);
    }
    static double flops(const kernel_call& c) { return 4 * static_cast<double>(c.in[0].elements()); }
};

/// -log(softmax(logits)[label]) along the last axis, for logits [batch..., classes] and integer class
/// numbers [batch...]: TensorFlow's function of this name, PyTorch's cross_entropy without a
/// reduction, optax.softmax_cross_entropy_with_integer_labels. Its mean is the loss
/// sparse_softmax_cross_entropy. 16-bit logits are computed in float. A class number outside
/// [0, classes) throws a range_error that names it and its position.
template <tensor_like A, tensor_like B>
constexpr auto sparse_softmax_cross_entropy_with_logits(const A& logits, const B& labels,
                                                        std::source_location where = std::source_location::current()) {
    return detail::in_float(logits, where, [&](const auto& x) {
        return invoke<sparse_softmax_cross_entropy_op>({}, nullptr, where, x, labels);
    });
}

} // namespace tapegraph
