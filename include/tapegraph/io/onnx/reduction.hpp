#pragma once

#include <tapegraph/io/onnx/call.hpp>
#include <tapegraph/ops/cumulative/cumulative.hpp>
#include <tapegraph/ops/ordering/ordering.hpp>
#include <tapegraph/ops/product/matmul.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>

/// Reductions and matrix products.

namespace tapegraph::onnx::detail {

/// The layout of a reduced value, without the reduced axes.
inline order after_reduction(const order& axes, int rank, std::int64_t mask, bool keepdims) {
    if (keepdims || axes.empty()) return axes;
    order left;
    for (const int axis : axes) {
        if ((mask >> axis & 1) != 0) continue;
        int now = 0;
        for (int i = 0; i < axis; ++i) now += (mask >> i & 1) == 0 ? 1 : 0;
        left.push_back(now);
    }
    (void)rank;
    return left;
}

/// A reduction of a value over some axes, which are an input of sums, from opset 18 on of the others, too.
template <class G>
std::string emit_reduction(G& g, std::string_view op, const std::string& x, const std::vector<std::int64_t>& axes,
                           bool keep) {
    attributes settings;
    settings.set("keepdims", keep ? 1 : 0);
    if (op == "ReduceSum" || g.opset >= 18) return g.emit(op, {x, g.integers(axes)}, settings);
    return g.emit(op, {x}, settings.set("axes", axes));
}

/// Writes `op` over the axes that node `reduction` reduces, for `node`.
template <class G>
void write_reduced(G& g, int node, int reduction, std::string_view op) {
    const auto a = g.template attributes_of<sum_op>(reduction);
    const int from = g.t.argument(reduction, 0);
    const bool keep = (a.keepdims & 1) != 0, logical = g.at(from).type == dtype::boolean;
    const placed x = g.get(from).flat.empty() ? g.get(from) : placed{g.plain(from), {}, {}, {}};
    std::vector<std::int64_t> axes;
    for (int p = 0; p < g.rank(from); ++p)
        if ((a.axes >> G::whole(x.axes, g.rank(from))[static_cast<std::size_t>(p)] & 1) != 0) axes.push_back(p);
    const order left = after_reduction(x.axes, g.rank(from), a.axes, keep);
    if (axes.empty()) return g.define(node, x);
    // Over all spatial positions of an image, which runtimes have as a layer.
    const bool spatial = !x.axes.empty() && x.axes == G::channels_first(g.rank(from)) &&
                         a.axes == ((std::int64_t{1} << (g.rank(from) - 1)) - 2);
    if (spatial && (op == "ReduceMean" || op == "ReduceMax")) {
        const std::string pooled = g.emit(op == "ReduceMean" ? "GlobalAveragePool" : "GlobalMaxPool", {x.name});
        return g.define(node, keep ? pooled : g.emit("Flatten", {pooled}, attributes().set("axis", 1)), left);
    }
    const std::string y = emit_reduction(g, op, logical ? g.cast(x.name, dtype::i32) : x.name, axes, keep);
    g.define(node, logical ? g.cast(y, dtype::boolean) : y, left);
}

/// sum / number of elements, which is two nodes in the trace.
template <class G>
bool is_mean(G& g, int node, int& sum) {
    if (!g.is(node, "divide") || !g.is(g.t.argument(node, 0), "sum")) return false;
    sum = g.t.argument(node, 0);
    const int by = g.t.argument(node, 1), from = g.t.argument(sum, 0);
    const auto a = g.template attributes_of<sum_op>(sum);
    std::int64_t count = 1;
    for (int i = 0; i < g.rank(from); ++i) {
        if ((a.axes >> i & 1) == 0) continue;
        const std::int64_t e = g.extent_of(from, i);
        count = is_symbolic(e) || is_symbolic(count) ? g.t.extents.multiply(count, e) : count * e;
    }
    double number = 0;
    if (g.is(by, "extent")) return g.t.words_of(by)[0] == count;
    return g.number(by, number) && !is_symbolic(count) && number == static_cast<double>(count);
}

template <class G>
void write_arg_reduce(G& g, int node) {
    const auto a = g.template attributes_of<arg_reduce_op>(node);
    const std::string y = g.emit(a.maximum != 0 ? "ArgMax" : "ArgMin", {g.plain(g.t.argument(node, 0))},
                                 attributes().set("axis", a.axis).set("keepdims", a.keepdims != 0 ? 1 : 0));
    g.define(node, g.cast(y, dtype::i32));
}
template <class G>
void write_cumulative_sum(G& g, int node) {
    const auto a = g.template attributes_of<cumulative_sum_op>(node);
    const int from = g.t.argument(node, 0);
    const placed x = g.get(from).flat.empty() ? g.get(from) : placed{g.plain(from), {}, {}, {}};
    const std::string axis = g.integers({G::position(x.axes, static_cast<int>(a.axis))}, true);
    g.define(node,
             g.emit("CumSum", {x.name, axis}, attributes().set("exclusive", a.exclusive).set("reverse", a.reverse)),
             x.axes);
}

template <fixed_string Name, class G>
void write_softmax(G& g, int node) {
    const int from = g.t.argument(node, 0);
    const placed x = g.get(from).flat.empty() ? g.get(from) : placed{g.plain(from), {}, {}, {}};
    const int axis = G::position(x.axes, static_cast<int>(g.template attributes_of<softmax_op>(node).axis));
    g.define(node, g.emit(Name.view(), {x.name}, attributes().set("axis", axis)), x.axes);
}

/// Of [rows, classes] and [rows], since ONNX has the classes along axis 1.
template <class G>
void write_sparse_cross_entropy(G& g, int node) {
    const int x = g.t.argument(node, 0), labels = g.t.argument(node, 1);
    std::vector<std::int64_t> of_x = g.dims(x), of_rows = g.dims(node);
    std::int64_t rows = 1;
    for (const std::int64_t e : of_rows)
        rows = is_symbolic(e) || is_symbolic(rows) ? g.t.extents.multiply(rows, e) : rows * e;
    const std::string loss =
        g.emit("SoftmaxCrossEntropyLoss",
               {g.reshape(g.plain(x), of_x, {rows, of_x.back()}), g.reshape(g.plain(labels), of_rows, {rows})},
               attributes().set("reduction", "none"));
    g.define(node, g.reshape(loss, {rows}, of_rows));
}

/// The second factor, if the first one's features are in another order: rows of a variable in that
/// order.
template <class G>
std::string reordered_rows(G& g, const placed& x, int factor) {
    strided_view v;
    if (x.flat.empty() || g.rank(factor) != 2 || !g.backed(factor, v)) return {};
    const std::int64_t columns = v.dims[1];
    const std::int64_t row = v.strides[0], column = v.strides[1];
    const auto inner = strided_view::contiguous(x.flat);
    strided_view moved{v.source, {}, {}};
    for (const int axis : x.flat_axes) {
        moved.dims.push_back(x.flat[static_cast<std::size_t>(axis)]);
        moved.strides.push_back(inner[static_cast<std::size_t>(axis)] * row);
    }
    moved.dims.push_back(columns);
    moved.strides.push_back(column);
    return g.initializer(moved, v.dims);
}

/// a b, plus a bias per row if `bias` is a node.
template <class G>
void write_product(G& g, int node, int product, int bias) {
    const auto t = g.template attributes_of<matmul_op>(product);
    const int a = g.t.argument(product, 0), b = g.t.argument(product, 1);
    const bool matrices = g.rank(a) == 2 && g.rank(b) == 2;
    const placed x = g.get(a);
    std::string left, right = t.transpose_a == 0 && t.transpose_b == 0 ? reordered_rows(g, x, b) : std::string();
    order axes;
    if (!right.empty()) {
        left = x.name;
    } else if (!matrices && t.transpose_a == 0 && g.rank(b) == 2 && x.flat.empty() && !x.axes.empty() &&
               x.axes.back() == g.rank(a) - 1) {
        left = x.name; // rows in any order
        axes = x.axes;
    } else {
        order swapped = G::whole({}, g.rank(a));
        if (t.transpose_a != 0 && !matrices) std::swap(swapped.end()[-1], swapped.end()[-2]);
        left = g.in_order(a, swapped);
    }
    if (right.empty()) {
        order swapped = G::whole({}, g.rank(b));
        if (t.transpose_b != 0 && !matrices) std::swap(swapped.end()[-1], swapped.end()[-2]);
        right = g.in_order(b, swapped);
    }
    std::string y;
    if (matrices && (bias >= 0 || t.transpose_a != 0 || t.transpose_b != 0)) {
        std::vector<std::string> operands{left, right};
        if (bias >= 0) operands.push_back(g.plain(bias));
        attributes settings;
        if (t.transpose_a != 0) settings.set("transA", 1);
        if (t.transpose_b != 0) settings.set("transB", 1);
        y = g.emit("Gemm", operands, settings);
    } else {
        y = g.emit("MatMul", {left, right});
        if (bias >= 0) y = g.emit("Add", {y, g.plain(bias)});
    }
    g.define(node, y, axes);
}

} // namespace tapegraph::onnx::detail
