#pragma once

#include <tapegraph/io/onnx/movement.hpp>
#include <tapegraph/ops/ordering/places.hpp>

/// Places in rows (ops/ordering/places.hpp), for which ONNX has no operations: written as sorts,
/// running sums and scatters.

namespace tapegraph::onnx::detail {

/// A number for each element of node `like`.
template <class G>
std::string spread_over(G& g, int like, double number) {
    return g.emit("Expand", {g.constant(number, dtype::i32), g.shape_tensor(g.dims(like))});
}
/// `updates` added to zeros where `at` points, along the last axis of a node with extent `width`;
/// those that point to `width` are dropped.
template <class G>
std::string put_below(G& g, int node, const std::string& at, const std::string& updates, std::int64_t width) {
    auto dims = g.dims(node);
    dims.back() = width + 1;
    const int last = g.rank(node) - 1;
    const std::string zeros = g.emit("Expand", {g.constant(0, dtype::i32), g.shape_tensor(dims)});
    const std::string all =
        g.emit("ScatterElements", {zeros, at, updates}, attributes().set("axis", last).set("reduction", "add"));
    return g.emit("Slice", {all, g.integers({0}), g.integers({width}), g.integers({last})});
}

template <class G>
void write_count_places(G& g, int node) {
    const std::int64_t length = g.template attributes_of<count_places_op>(node).length;
    const int from = g.t.argument(node, 0);
    const std::string x = g.plain(from), end = g.constant(static_cast<double>(length), dtype::i32);
    const std::string inside =
        g.emit("And", {g.emit("GreaterOrEqual", {x, g.constant(0, dtype::i32)}), g.emit("Less", {x, end})});
    g.define(node, put_below(g, node, g.emit("Where", {inside, x, end}), spread_over(g, from, 1), length));
}

template <class G>
void write_marked_places(G& g, int node) {
    const std::int64_t size = g.template attributes_of<marked_places_op>(node).size;
    const int from = g.t.argument(node, 0);
    const std::string marks = g.plain(from), end = g.constant(static_cast<double>(size), dtype::i32);
    const std::string axis = g.integers({g.rank(from) - 1}, true);
    const std::string number = g.emit("CumSum", {g.cast(marks, dtype::i32), axis});
    const std::string kept = g.emit("And", {marks, g.emit("LessOrEqual", {number, end})});
    const std::string at = g.emit("Where", {kept, g.emit("Sub", {number, g.constant(1, dtype::i32)}), end});
    g.define(node, put_below(g, node, at, g.emit("CumSum", {spread_over(g, from, 1), axis}), size));
}

/// Sorts both together, and counts the preceding elements of `sorted`.
template <class G>
void write_searchsorted(G& g, int node) {
    const bool right = g.template attributes_of<searchsorted_op>(node).right != 0;
    const int sorted = g.t.argument(node, 0), values = g.t.argument(node, 1), last = g.rank(node) - 1;
    const std::int64_t n = g.extent_of(sorted, last), m = g.extent_of(values, last);
    const auto along = attributes().set("axis", last);
    const auto joined = [&](const std::string& of_sorted, const std::string& of_values) {
        return right ? g.emit("Concat", {of_sorted, of_values}, along)
                     : g.emit("Concat", {of_values, of_sorted}, along);
    };
    const std::string together = joined(g.plain(sorted), g.plain(values)),
                      counted = joined(spread_over(g, sorted, 1), spread_over(g, values, 0));
    const std::string count = g.extent_tensor(g.t.extents.add(n, m, 1));
    const std::string order =
        g.output_of(g.emit("TopK", {together, count}, attributes().set("axis", last).set("largest", 0), 2), 1);
    const std::string before =
        g.emit("CumSum", {g.emit("GatherElements", {counted, order}, along), g.integers({last}, true)});
    const std::string stood = g.emit("ScatterElements", {counted, order, before}, along); // every position is written
    const std::string first = right ? g.extent_tensor(n) : g.integers({0}), end = right ? count : g.extent_tensor(m);
    g.define(node, g.emit("Slice", {stood, first, end, g.integers({last})}));
}

} // namespace tapegraph::onnx::detail
