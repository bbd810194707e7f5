#pragma once

#include <tapegraph/io/onnx/graph.hpp>
#include <tapegraph/io/onnx/reduction.hpp>
#include <tapegraph/ops/reduction/normalization.hpp>

namespace tapegraph::onnx::detail {

/// Normalization of records: one node over the last axes; otherwise what it is made of, on
/// [records, rows, groups, channels of a group], because opset 17 has nothing else for channels last.
template <class G>
void write_normalization(G& g, int node) {
    const auto a = g.template attributes_of<normalization_op>(node);
    const int x = g.t.argument(node, 0), gamma = g.t.argument(node, 1), beta = g.t.argument(node, 2);
    if (a.own != 0) return g.refuse(node, "with parameters per example");
    const dtype type = g.at(node).type;
    const int rank = g.rank(x), first = static_cast<int>(a.first), last = static_cast<int>(a.last);
    if (a.centered != 0 && first == last && a.groups == 1 && first < rank) {
        order axes = g.get(x).axes;
        for (int i = first; i < rank && !axes.empty(); ++i)
            if (axes[static_cast<std::size_t>(i)] != i) axes.clear();
        const attributes settings = attributes().set("axis", first).set("epsilon", a.epsilon);
        return g.define(
            node, g.emit("LayerNormalization", {g.in_order(x, axes), g.plain(gamma), g.plain(beta)}, settings), axes);
    }
    const std::vector<std::int64_t> dims = g.dims(x);
    const auto product = [&](int from, int to) {
        std::int64_t count = 1;
        for (int i = from; i < to; ++i) {
            const std::int64_t e = dims[static_cast<std::size_t>(i)];
            count = is_symbolic(e) || is_symbolic(count) ? g.t.extents.multiply(count, e) : count * e;
        }
        return count;
    };
    const std::int64_t channels = product(last, rank);
    if (is_symbolic(channels)) return g.refuse(node, "with channels whose number is not known");
    const std::int64_t each = channels / a.groups;
    const std::vector<std::int64_t> parts{product(0, first), product(first, last), a.groups, each};
    const auto mean = [&](const std::string& of) { return emit_reduction(g, "ReduceMean", of, {1, 3}, true); };
    std::string v = g.reshape(g.plain(x), dims, parts);
    if (a.centered != 0) v = g.emit("Sub", {v, mean(v)});
    const std::string power = mean(g.emit("Mul", {v, v}));
    v = g.emit("Div", {v, g.emit("Sqrt", {g.emit("Add", {power, g.constant(a.epsilon, type)})})});
    const auto parameter = [&](int p) { return g.reshape(g.plain(p), g.dims(p), {a.groups, each}); };
    v = g.emit("Add", {g.emit("Mul", {v, parameter(gamma)}), parameter(beta)});
    g.define(node, g.reshape(v, parts, dims));
}

} // namespace tapegraph::onnx::detail
