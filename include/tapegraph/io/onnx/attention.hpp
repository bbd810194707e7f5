#pragma once

#include <tapegraph/io/onnx/graph.hpp>
#include <tapegraph/ops/attention/attention.hpp>

namespace tapegraph::onnx::detail {

/// Attention as what it is made of, on [batch, kv heads, shared, ...]: opset 17 has no operation for it.
/// The result of the operation is flat; the numbers behind it, which derivatives alone read, are left
/// out.
template <class G>
void write_attention(G& g, int node) {
    const auto a = g.template attributes_of<attention_op>(node);
    if (a.drops != 0) return g.refuse(node, "with dropout");
    const int q = g.t.argument(node, 0), k = g.t.argument(node, 1), v = g.t.argument(node, 2),
              mask = g.t.argument(node, 3);
    const dtype type = g.at(node).type;
    const std::vector<std::int64_t> of_q = g.dims(q), of_k = g.dims(k), of_v = g.dims(v);
    const std::int64_t batch = of_q[0], time = of_q[1], heads = of_q[2], steps = of_k[1], kv_heads = of_k[2],
                       shared = kv_heads > 0 ? heads / kv_heads : 1;
    const auto moved = [&](const std::string& x, const std::vector<std::int64_t>& order) {
        return g.emit("Transpose", {x}, attributes().set("perm", order));
    };
    const std::vector<std::int64_t> apart{batch, time, kv_heads, shared, of_q[3]};
    const std::string queries = moved(g.reshape(g.plain(q), of_q, apart), {0, 2, 3, 1, 4});
    const std::string keys = g.unsqueeze(moved(g.plain(k), {0, 2, 3, 1}), {2});
    const std::string values = g.unsqueeze(moved(g.plain(v), {0, 2, 1, 3}), {2});
    const std::string scaled = g.emit("Mul", {queries, g.constant(a.scale, type)});
    std::string scores = g.emit("MatMul", {scaled, keys}), seen;
    if (a.biased != 0) {
        const std::vector<std::int64_t> own = g.dims(mask);
        const bool each = own[1] != 1;
        const std::vector<std::int64_t> split{own[0], each ? kv_heads : 1, each ? shared : 1, own[2], own[3]};
        const std::string bias = g.reshape(g.plain(mask), own, split);
        scores = g.emit("Add", {scores, bias});
        seen = g.emit("Not", {g.emit("Equal", {bias, g.constant(-std::numeric_limits<double>::infinity(), type)})});
    }
    if (a.causal != 0) {
        const auto places = [&](std::int64_t count) {
            return g.emit("Range",
                          {g.integers({0}, true), g.squeeze(g.extent_tensor(count), {0}), g.integers({1}, true)});
        };
        std::string last = g.emit("Add", {g.unsqueeze(places(time), {1}), g.integers({a.offset})});
        if (a.ends != 0) last = g.emit("Add", {last, g.emit("Sub", {g.extent_tensor(steps), g.extent_tensor(time)})});
        const std::string early = g.emit("LessOrEqual", {places(steps), last});
        seen = seen.empty() ? early : g.emit("And", {seen, early});
    }
    if (!seen.empty()) scores = g.emit("Where", {seen, scores, g.constant(-1e30, type)});
    std::string weights = g.emit("Softmax", {scores}, attributes().set("axis", -1));
    if (!seen.empty() && a.equal == 0) weights = g.emit("Where", {seen, weights, g.constant(0, type)});
    const std::string y = moved(g.emit("MatMul", {weights, values}), {0, 3, 1, 2, 4});
    g.define(node, g.emit("Reshape", {y, g.integers({-1})}));
}

} // namespace tapegraph::onnx::detail
