#pragma once

#include <tapegraph/io/onnx/reduction.hpp>

/// Recognizes layers that are several operations in a trace and one in ONNX: batch and layer
/// normalization.

namespace tapegraph::onnx::detail {

/// Whether a node is op(a, b); then gets the operands, in the order in which `match(a)` holds.
template <class G, class Match>
bool is_pair(G& g, int node, std::string_view op, const Match& match, int& first, int& second) {
    if (!g.is(node, op)) return false;
    for (int k = 0; k < 2; ++k) {
        first = g.t.argument(node, k), second = g.t.argument(node, 1 - k);
        if (match(first)) return true;
    }
    return false;
}

/// 1 / sqrt(spread + epsilon), times gamma if there is one.
template <class G>
bool is_factor(G& g, int node, int& spread, int& gamma, double& epsilon) {
    strided_view v;
    const auto known = [&](int n) { return g.backed(n, v); };
    int inverse = node, other = -1;
    gamma = -1;
    if (is_pair(g, node, "multiply", known, gamma, other))
        inverse = other;
    else
        gamma = -1;
    if (!g.is(inverse, "rsqrt")) return false;
    const auto number = [&](int n) { return g.number(n, epsilon); };
    return is_pair(g, g.t.argument(inverse, 0), "add", number, other, spread);
}

/// (x - centre) factor + beta.
struct normalization {
    int x = -1, centre = -1, spread = -1, gamma = -1, beta = -1;
    double epsilon = 0;
};
template <class G>
bool is_normalization(G& g, int node, normalization& n) {
    strided_view v;
    int product = node, other = -1, factor = -1;
    const auto known = [&](int k) { return g.backed(k, v); };
    if (g.is(node, "add")) {
        if (!is_pair(g, node, "add", known, n.beta, product)) return false;
    }
    const auto distance = [&](int k) { return g.is(k, "subtract"); };
    if (!is_pair(g, product, "multiply", distance, other, factor)) return false;
    n.x = g.t.argument(other, 0);
    n.centre = g.t.argument(other, 1);
    return is_factor(g, factor, n.spread, n.gamma, n.epsilon);
}

template <class G>
std::string filled(G& g, double value, dtype type, const std::vector<std::int64_t>& dims) {
    std::string bytes;
    std::int64_t count = 1;
    for (const std::int64_t d : dims) count *= d;
    const auto narrow = static_cast<float>(value);
    for (std::int64_t i = 0; i < count; ++i)
        type == dtype::f64 ? bytes.append(reinterpret_cast<const char*>(&value), 8)
                           : bytes.append(reinterpret_cast<const char*>(&narrow), 4);
    return g.constants(std::move(bytes), type, dims);
}

/// Normalization by moving averages.
template <class G>
bool write_batch_normalization(G& g, int node) {
    normalization n;
    strided_view v;
    if (!is_normalization(g, node, n)) return false;
    const int rank = g.rank(n.x);
    const dtype type = g.at(node).type;
    if (rank < 2 || rank != g.rank(node) || (type != dtype::f32 && type != dtype::f64)) return false;
    for (const int each : {n.centre, n.spread, n.gamma, n.beta})
        if (each >= 0 &&
            (g.rank(each) != 1 || !g.backed(each, v) || g.extent_of(each, 0) != g.extent_of(n.x, rank - 1)))
            return false;
    const std::vector<std::int64_t> channels = g.dims(n.centre);
    const std::string scale = n.gamma >= 0 ? g.plain(n.gamma) : filled(g, 1, type, channels);
    const std::string shift = n.beta >= 0 ? g.plain(n.beta) : filled(g, 0, type, channels);
    const order axes = rank > 2 ? G::channels_first(rank) : order{};
    g.define(node,
             g.emit("BatchNormalization", {g.in_order(n.x, axes), scale, shift, g.plain(n.centre), g.plain(n.spread)},
                    attributes().set("epsilon", n.epsilon)),
             axes);
    return true;
}

/// Normalization by the mean and variance over each record's last axes.
template <class G>
bool write_layer_normalization(G& g, int node) {
    normalization n;
    int sum = -1, squares = -1;
    if (!is_normalization(g, node, n) || !is_mean(g, n.centre, sum) || !is_mean(g, n.spread, squares)) return false;
    const int square = g.t.argument(squares, 0), rank = g.rank(n.x);
    if (g.t.argument(sum, 0) != n.x || !g.is(square, "square")) return false;
    const int distance = g.t.argument(square, 0);
    if (!g.is(distance, "subtract") || g.t.argument(distance, 0) != n.x || g.t.argument(distance, 1) != n.centre)
        return false;
    const auto a = g.template attributes_of<sum_op>(sum), b = g.template attributes_of<sum_op>(squares);
    int first = 0;
    while (first < rank && (a.axes >> first & 1) == 0) ++first;
    if (a.axes != b.axes || a.axes != ((std::int64_t{1} << rank) - (std::int64_t{1} << first)) || (a.keepdims & 1) == 0)
        return false;
    std::vector<std::int64_t> extents;
    for (int i = first; i < rank; ++i) extents.push_back(g.extent_of(n.x, i));
    for (const int each : {n.gamma, n.beta})
        if (each >= 0 && g.dims(each) != extents) return false;
    if (std::any_of(extents.begin(), extents.end(), is_symbolic)) return false;
    order axes = g.get(n.x).axes;
    for (int i = first; i < rank && !axes.empty(); ++i)
        if (axes[static_cast<std::size_t>(i)] != i) axes.clear();
    const dtype type = g.at(node).type;
    std::vector<std::string> operands{g.in_order(n.x, axes),
                                      n.gamma >= 0 ? g.plain(n.gamma) : filled(g, 1, type, extents)};
    if (n.beta >= 0) operands.push_back(g.plain(n.beta));
    g.define(node, g.emit("LayerNormalization", operands, attributes().set("axis", first).set("epsilon", n.epsilon)),
             axes);
    return true;
}

} // namespace tapegraph::onnx::detail
