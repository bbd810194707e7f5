#pragma once

#include <tapegraph/io/onnx_import/gates.hpp>
#include <tapegraph/io/onnx_import/rules_attention.hpp>
#include <tapegraph/io/onnx_import/rules_indexing.hpp>

#include <cmath>

/// Operators with a state that callers carry from step to step: LinearAttention, CausalConvWithState,
/// TensorScatter.

namespace tapegraph::io::onnx_import {

namespace rules {

/// A matrix state for each head that decays, is corrected by what it already answers for a key, and takes
/// the outer product of key and value; queries read it. Steps are unrolled.
inline void linear_attention(call& c) {
    const std::int64_t q_heads = c.integer("q_num_heads", 0), heads = c.integer("kv_num_heads", 0);
    const std::string rule = c.text("update_rule", "gated_delta");
    const double given_scale = c.number("scale", 0);
    c.ignore("chunk_size"); // of an implementation by chunks
    const bool gated = rule == "gated" || rule == "gated_delta", corrected = rule == "delta" || rule == "gated_delta";
    if (!gated && !corrected && rule != "linear") refuse("update_rule = '" + rule + "'");
    if (heads < 1 || q_heads < 1 || q_heads % heads != 0) refuse("heads that do not divide one another");
    if (gated != c.has(4) || corrected != c.has(5)) refuse("update_rule = '" + rule + "' with other operands");
    const dtype type = c.type(0), inner = type == dtype::f64 ? type : dtype::f32;
    if (!is_floating(type)) refuse(std::string("of ") + name_of(type));
    const auto heads_of = [&](int i, std::int64_t count) { // [batch, heads, steps, size]
        if (c.rank(i) != 3) refuse("operand " + std::to_string(i) + " of rank " + std::to_string(c.rank(i)));
        return converted(in_heads(c, i, count), c.type(i), inner);
    };
    const node q = heads_of(0, q_heads), k = heads_of(1, heads), v = heads_of(2, heads);
    const std::int64_t steps = known_extent(q.shape()[2], "steps"), keys = known_extent(k.shape()[3], "keys"),
                       values = known_extent(v.shape()[3], "values");
    if (steps > 4096) refuse(std::to_string(steps) + " steps; at most 4096 are unrolled");
    const double scale = given_scale != 0 ? given_scale : 1 / std::sqrt(static_cast<double>(keys));
    const node decay = gated ? heads_of(4, heads) : q;
    const node beta =
        corrected ? heads_of(5, known_extent(c.dims(5)[2], "update rates")) : q; // for each head, or for all
    const extent batch = q.shape()[0];
    node state =
        c.has(3)
            ? converted(c.plain(3), c.type(3), inner)
            : node(eval(broadcast_to(c.on.number(0, inner), shape_of_items(c, {batch.value, heads, keys, values}))));
    std::vector<node> read;
    for (std::int64_t t = 0; t < steps; ++t) {
        const auto step = [&](const node& x) { return take(x, t, 2); }; // [batch, heads, size]
        if (gated) state = eval(state * with_axis(eval(exp(step(decay))), 3));
        const node key = step(k);
        node value = step(v);
        if (corrected) value = eval(step(beta) * (value - squeeze(matmul(with_axis(key, 2), state), axes_of({2}))));
        state = eval(state + with_axis(key, 3) * with_axis(value, 2));
        const node query = eval(scale * step(q));
        read.push_back(matmul(with_axis(query, 2), repeated_heads(state, q_heads))); // [batch, heads, 1, values]
    }
    if (read.empty()) refuse("without steps");
    const node y = c.on.transposed(tapegraph::concat(read, 2), {0, 2, 1, 3});
    c.give(0, converted(reshape(y, shape_of_items(c, {batch.value, steps, q_heads * values})), inner, type), type);
    const dtype state_type = c.has(3) ? c.type(3) : type;
    c.give(1, converted(state, inner, state_type), state_type);
}

inline void causal_convolution(call& c) {
    const std::string activation_name = c.text("activation", "none");
    const dtype type = c.type(0), inner = type == dtype::f64 ? type : dtype::f32;
    if (activation_name != "none" && activation_name != "silu" && activation_name != "swish")
        refuse("activation = '" + activation_name + "'");
    if (!is_floating(type) || c.rank(0) != 3 || c.rank(1) != 3)
        refuse(std::string("of ") + name_of(type) + " of rank " + std::to_string(c.rank(0)));
    const node x = c.plain(0);
    const std::int64_t kernel_size = known_extent(c.dims(1)[2], "a kernel");
    node whole = x;
    if (kernel_size > 1) {
        const shape s = x.shape();
        const node before =
            c.has(3) ? c.plain(3)
                     : node(eval(broadcast_to(c.on.number(0, type),
                                              shape_of_items(c, {s[0].value, s[1].value, kernel_size - 1}))));
        whole = tapegraph::concat(std::vector<node>{before, x}, 2);
    }
    const node wide = converted(whole, type, inner), filter = converted(c.plain(1), c.type(1), inner);
    node y;
    for (std::int64_t t = 0; t < kernel_size; ++t) {
        const node one = eval(part(wide, 2, t, x.shape()[2]) * take(filter, t, 2)); // weights [channels, 1]
        y = t == 0 ? one : node(eval(y + one));
    }
    if (kernel_size < 1) refuse("a kernel without elements");
    if (c.has(2)) y = eval(y + with_axis(converted(c.plain(2), c.type(2), inner), 1));
    if (activation_name != "none") {
        const node rounded = converted(converted(y, inner, type), type, inner);
        y = swished(rounded);
    }
    c.give(0, converted(y, inner, type), type);
    c.give(1, part(whole, 2, x.shape()[2], kernel_size - 1), type);
}

/// Replaces the elements of a cache from the index of each record on.
inline void tensor_scatter(call& c) {
    const std::string mode = c.text("mode", "linear");
    const int rank = c.rank(0), axis = c.axis(c.integer("axis", -2), rank);
    if (mode != "linear" && mode != "circular") refuse("mode = '" + mode + "'");
    if (axis == 0 || c.rank(1) != rank || c.type(1) != c.type(0)) refuse("axis = 0, or of several ranks or types");
    const node cache = c.plain(0), update = c.plain(1);
    const extent size = cache.shape()[axis], length = update.shape()[axis];
    node first = c.on.number(0, dtype::i64);
    if (c.has(2)) first = with_axis(converted(c.plain(2), c.type(2), dtype::i64), 1); // [batch, 1]
    // The element of the update that each place of the cache takes, if it is one: [batch or 1, places].
    const node place = with_axis(arange<std::int64_t>(cache, size), 0);
    node from = eval(place - first);
    if (mode == "circular") from = eval(from % graph::extent_number(from, size));
    const node last = graph::extent_number(from, length);
    const node taken = eval(logical_and(from >= 0, from < last)), safe = eval(maximum(minimum(from, last - 1), 0));
    std::vector<int> order; // the axis behind the batch
    for (int i = 0; i < rank; ++i) order.push_back(i);
    std::swap(order[1], order[static_cast<std::size_t>(axis)]);
    const node old = c.on.transposed(cache, order), fresh = c.on.transposed(update, order);
    const shape pick = shape_of_items(c, {old.shape()[0].value, size.value});
    const node chosen = gather(fresh, eval(broadcast_to(safe, pick)), 1, 1);
    std::vector<std::int64_t> along{pick[0].value, size.value};
    along.resize(static_cast<std::size_t>(rank), 1);
    const node mask = reshape(eval(broadcast_to(taken, pick)), shape_of_items(c, along));
    c.give(0, c.on.transposed(eval(where(mask, chosen, old)), order), c.type(0));
}

inline std::span<const operator_rule> states() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"LinearAttention", &linear_attention},
        {"CausalConvWithState", &causal_convolution},
        {"TensorScatter", &tensor_scatter},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
