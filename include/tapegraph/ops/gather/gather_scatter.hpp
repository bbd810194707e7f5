#pragma once

#include <tapegraph/ops/elementwise/arithmetic.hpp>
#include <tapegraph/ops/gather/gather.hpp>
#include <tapegraph/ops/movement/view.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>

/// gather_scatter_add: the sums of a graph network, of messages that are never in memory. Each row
/// of the table is added where its edge ends. Graphs get it from scatter_add of gather by themselves
/// (graph/passes/messages.hpp).

namespace tapegraph {

/// (table, from, to, weights if Weighted) to scatter_add(weights * gather(table, from), to): table
/// [batch..., before..., n, after...], from and to [batch..., picks...] to [batch..., before..., m,
/// after...], where m is the target's extent. Weights have the shape of the indices, and perhaps axes of
/// extent 1 behind it.
template <bool Weighted>
struct gather_scatter_add_op {
    static constexpr std::string_view name = Weighted ? "weighted_gather_scatter_add" : "gather_scatter_add";
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = Weighted ? saved_operands : 6u; // the indices alone
    static constexpr bool takes_storage_types = false;                             // false, because it adds
    static constexpr linearity linear = Weighted ? linearity::each : linearity::joint;
    static constexpr int arity = Weighted ? 4 : 3;
    using attributes = gather_op::attributes;

    static constexpr void infer(const attributes& a, inference& io) {
        io.type = io.in[0].type;
        io.result = *io.target;
        const shape &table = io.in[0].dims, &from = io.in[1].dims;
        shape taken, expected;
        if (!gather_op::gathered(a, table, io.in[1], io, taken)) return;
        io.culprit = 2;
        if (!gather_op::gathered(a, io.result, io.in[2], io, expected) ||
            !io.require(detail::same_shape_or_required(from, io.in[2].dims),
                        "gather_scatter_add: `from` and `to` differ in shape"))
            return;
        io.culprit = 1;
        io.require(detail::same_shape_or_required(taken, expected),
                   "gather_scatter_add: the target differs from the table in more than the axis");
        if constexpr (Weighted) {
            const shape& weights = io.in[3].dims;
            io.culprit = 3;
            bool fits = io.in[3].type == io.type && weights.rank() >= from.rank() &&
                        weights.rank() <= from.rank() + table.rank() - 1 - static_cast<int>(a.axis);
            for (int i = 0; fits && i < weights.rank(); ++i)
                fits = i < from.rank() ? equal_or_required(weights[i], from[i]) : equal_or_required(weights[i], 1);
            io.require(is_floating(io.type), "gather_scatter_add: a weighted table must be floating-point");
            io.require(fits, "gather_scatter_add: weights must have the table's type and the shape of the indices");
        }
    }

    // Of the table: the same with the ends of the edges exchanged.
    template <int I>
        requires(!Weighted && I == 0)
    static constexpr auto vjp(const attributes& a, auto dy, auto table, auto from, auto to, auto) {
        const shape target = shape_of(table);
        return invoke<gather_scatter_add_op>(a, &target, std::source_location::current(), dy, to, from);
    }
    // Of an edge's weight: the product of the two rows that it joins.
    template <int I>
        requires(Weighted && (I == 0 || I == 3))
    static constexpr auto vjp(const attributes& a, auto dy, auto table, auto from, auto to, auto weights, auto) {
        const auto here = std::source_location::current();
        if constexpr (I == 0) {
            const shape target = shape_of(table);
            return invoke<gather_scatter_add_op>(a, &target, here, dy, to, from, weights);
        } else {
            const auto sent = invoke<gather_op>(a, nullptr, here, table, from);
            const auto received = invoke<gather_op>(a, nullptr, here, dy, to);
            const shape messages = shape_of(sent), target = shape_of(weights);
            const int first = static_cast<int>(a.axis), picks = shape_of(from).rank() - static_cast<int>(a.batch);
            std::int64_t others = 0; // the axes that the indices do not have
            for (int i = static_cast<int>(a.batch); i < messages.rank(); ++i)
                if (i < first || i >= first + picks) others |= std::int64_t{1} << i;
            const auto products = detail::reduce_over<sum_op>(sent * received, others, false, here);
            return invoke<reshape_op>({}, &target, here, products);
        }
    }
    /// The table, or a row of it for each edge where these are fewer; the other operands and the result.
    static double bytes(const kernel_call& c) {
        const std::int64_t rows = c.in[0].extents[attributes_from_words<gather_op>(c.attributes).axis];
        const std::int64_t edges = c.in[1].elements();
        double bytes = static_cast<double>(c.out[0].bytes());
        for (int k = 1; k < c.inputs; ++k) bytes += static_cast<double>(c.in[k].bytes());
        const double table = static_cast<double>(c.in[0].bytes());
        return bytes + (edges < rows ? table * static_cast<double>(edges) / static_cast<double>(rows) : table);
    }
};

/// Messages along edges, added where they arrive: the row of the table at from[e] is added to row
/// to[e] of zeros of the target's shape, for every edge e in their order. It has the bits of
/// scatter_add(gather(table, from, axis), to, target, axis), and needs no memory for the messages.
template <tensor_like A, tensor_like B, tensor_like C>
constexpr auto gather_scatter_add(const A& table, const B& from, const C& to, shape target, int axis = after_batch,
                                  int batch_axes = 0, std::source_location where = std::source_location::current()) {
    target.attach(shape_of(table).table());
    return invoke<gather_scatter_add_op<false>>(detail::gather_attributes(axis, batch_axes, target.rank()), &target,
                                                where, table, from, to);
}
/// The same with a factor for every edge: the product of a sparse matrix, of which `to`, `from` and
/// `weights` have the rows, columns and values, and the table (torch_sparse.spmm, tf.sparse.sparse_dense_matmul).
template <tensor_like A, tensor_like B, tensor_like C, tensor_like D>
constexpr auto gather_scatter_add(const A& table, const B& from, const C& to, const D& weights, shape target,
                                  int axis = after_batch, int batch_axes = 0,
                                  std::source_location where = std::source_location::current()) {
    target.attach(shape_of(table).table());
    return invoke<gather_scatter_add_op<true>>(detail::gather_attributes(axis, batch_axes, target.rank()), &target,
                                               where, table, from, to, weights);
}

} // namespace tapegraph
