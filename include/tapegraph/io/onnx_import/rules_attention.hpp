#pragma once

#include <tapegraph/io/onnx_import/rules_control.hpp>

/// Attention and rotary positions (onnx.ai/onnx/operators/onnx__Attention.html,
/// onnx__RotaryEmbedding.html).

namespace tapegraph::io::onnx_import {

namespace rules {

/// Returns an operand [batch, heads, length, size], or [batch, length, heads size], as [batch,
/// heads, length, size].
inline node in_heads(call& c, int i, std::int64_t heads) {
    const node x = c.plain(i);
    if (x.rank() == 4) return x;
    if (x.rank() != 3 || heads < 1)
        refuse("operands of rank " + std::to_string(x.rank()) + " without a number of heads");
    const shape s = x.shape();
    return c.on.transposed(reshape(x, shape_of_items(c, {s[0].value, s[1].value, heads, (s[2] / heads).value})),
                           {0, 2, 1, 3});
}
/// Repeats the heads of keys or values for each head of the queries.
inline node repeated_heads(const node& x, std::int64_t heads) {
    const std::int64_t own = known_extent(x.shape()[1], "heads");
    if (own == heads) return x;
    if (own < 1 || heads % own != 0) refuse("heads that do not divide one another");
    return repeat(x, heads / own, 1);
}
inline void attention_rule(call& c) {
    const std::int64_t q_heads = c.integer("q_num_heads", 0), kv_heads = c.integer("kv_num_heads", 0);
    const attribute* const scale_given = c.find("scale");
    const bool causal = c.integer("is_causal", 0) != 0;
    const double softcap = c.number("softcap", 0);
    const std::int64_t shown = c.integer("qk_matmul_output_mode", 0), precision = c.integer("softmax_precision", 0);
    const std::int64_t left = c.integer("left_window_size", -1), right = c.integer("right_window_size", -1);
    const dtype type = c.type(0);
    if (!is_floating(type)) refuse(std::string("of ") + name_of(type));
    const auto softmax_type = precision == 0 ? std::optional<dtype>(type == dtype::f64 ? type : dtype::f32)
                                             : element_type(static_cast<int>(precision));
    if (!softmax_type || !is_floating(*softmax_type)) refuse("softmax_precision = " + std::to_string(precision));
    const dtype inner = type == dtype::f64 ? dtype::f64 : dtype::f32;
    const bool flat = c.rank(0) == 3;
    const node q = in_heads(c, 0, q_heads);
    node k = in_heads(c, 1, kv_heads), v = in_heads(c, 2, kv_heads);
    extent past(0, &c.on.trace().extents);
    if (c.has(4)) {
        past = c.dims(4)[2];
        k = tapegraph::concat(std::vector<node>{c.plain(4), k}, 2);
        v = tapegraph::concat(std::vector<node>{c.plain(5), v}, 2);
    }
    c.give(1, k, c.type(1));
    c.give(2, v, c.type(2));
    const std::int64_t heads = known_extent(q.shape()[1], "heads"), size = known_extent(q.shape()[3], "heads' size");
    const double scale =
        scale_given != nullptr ? static_cast<double>(scale_given->f) : 1 / std::sqrt(static_cast<double>(size));
    const node keys = converted(repeated_heads(k, heads), k.type(), inner),
               values = converted(repeated_heads(v, heads), v.type(), inner);
    const double root = std::sqrt(scale);
    const node query = converted(q, type, inner);
    const extent rows = q.shape()[2], columns = k.shape()[2];
    node scores = matmul(eval(query * root), eval(keys * root), {.transpose_b = true});
    if (shown == 0) c.give(3, converted(scores, inner, type), type);
    // The positions that each row may attend to, as a bias.
    constexpr double never = -std::numeric_limits<double>::infinity();
    node bias;
    bool biased = false;
    const auto add = [&](const node& more) {
        bias = biased ? eval(bias + more) : more;
        biased = true;
    };
    const node example = c.on.example();
    if (c.has(3)) {
        node mask = c.plain(3);
        if (!(mask.shape()[mask.rank() - 1].value == columns.value)) { // shorter masks exclude the rest
            pad_op::attributes box = tapegraph::detail::whole_slice();
            shape target = mask.shape();
            target.set(mask.rank() - 1, columns);
            box.fill = c.type(3) == dtype::boolean ? 0 : never;
            mask = graph::invoke<pad_op>(box, &target, std::source_location::current(), mask);
        }
        const node zeros = eval(broadcast_to(c.on.number(0, inner), mask.shape()));
        add(c.type(3) == dtype::boolean ? node(eval(where(mask, zeros, never))) : converted(mask, c.type(3), inner));
    }
    const node column = arange<std::int64_t>(example, columns), row = with_axis(arange<std::int64_t>(example, rows), 1);
    const auto allowed = [&](const node& where_true) {
        const node zeros = eval(broadcast_to(c.on.number(0, inner), where_true.shape()));
        return node(eval(where(where_true, zeros, never)));
    };
    // The position of the first query among the keys.
    node offset = graph::extent_number(row, past);
    if (c.has(6)) {
        const node counts =
            reshape(converted(c.plain(6), c.type(6), dtype::i64), shape_of_items(c, {c.dims(6)[0].value, 1, 1, 1}));
        add(allowed(eval(column < counts)));
        offset = eval(counts - graph::extent_number(counts, rows));
    }
    if (causal) add(allowed(eval(column <= row + offset)));
    if (left >= 0) add(allowed(eval(column >= row + offset - static_cast<double>(left))));
    if (right >= 0) add(allowed(eval(column <= row + offset + static_cast<double>(right))));
    if (softcap != 0) scores = eval(softcap * tanh(scores / softcap));
    if (shown == 1) c.give(3, converted(scores, inner, type), type);
    if (biased) scores = eval(scores + bias);
    if (shown == 2) c.give(3, converted(scores, inner, type), type);
    // A row that may attend to nothing gives zeros.
    node weights =
        converted(softmax(converted(scores, inner, *softmax_type == dtype::f64 ? dtype::f64 : dtype::f32), -1),
                  *softmax_type == dtype::f64 ? dtype::f64 : dtype::f32, inner);
    if (biased) weights = eval(where(is_nan(weights), 0, weights));
    if (shown == 3) c.give(3, converted(weights, inner, type), type);
    if (shown < 0 || shown > 3) refuse("qk_matmul_output_mode = " + std::to_string(shown));
    node y = matmul(weights, values);
    if (flat) {
        y = c.on.transposed(y, {0, 2, 1, 3});
        const shape s = y.shape();
        y = reshape(y, shape_of_items(c, {s[0].value, s[1].value, (s[2] * s[3]).value}));
    }
    c.give(0, converted(y, inner, type), type);
}

/// Attention whose scores and probabilities go through graphs of the file.
inline void flex_attention(call& c) {
    const attribute *const score_graph = c.find("score_mod"), *const probability_graph = c.find("prob_mod"),
                           *const scale_given = c.find("scale");
    const dtype type = c.type(0);
    const std::int64_t precision = c.integer("softmax_precision", 0);
    const auto inner = precision == 0 ? std::optional<dtype>(type == dtype::f64 ? type : dtype::f32)
                                      : element_type(static_cast<int>(precision));
    if (!is_floating(type) || !inner || (*inner != dtype::f32 && *inner != dtype::f64))
        refuse(std::string("of ") + name_of(type) + " with softmax_precision = " + std::to_string(precision));
    for (const int i : {0, 1, 2})
        if (c.rank(i) != 4) refuse("operands of rank " + std::to_string(c.rank(i)));
    const auto operand = [&](int i) { return converted(c.plain(i), c.type(i), *inner); };
    const auto modified = [&](const attribute* a, const node& x) {
        if (a == nullptr) return x;
        if (!a->g) refuse("attribute " + a->name + " is no graph");
        const auto results = run_body(c, *a->g, {c.on.make(x, *inner)});
        if (results.size() != 1 || results[0]->type != *inner) refuse("attribute " + a->name + " with other results");
        return c.on.plain(*results[0]);
    };
    const node q = operand(0);
    const std::int64_t heads = known_extent(q.shape()[1], "heads"), size = known_extent(q.shape()[3], "heads' size");
    const double scale =
        scale_given != nullptr ? static_cast<double>(scale_given->f) : 1 / std::sqrt(static_cast<double>(size));
    const node scores = eval(scale * matmul(q, repeated_heads(operand(1), heads), {.transpose_b = true}));
    const node weights = modified(probability_graph, softmax(modified(score_graph, scores), -1));
    c.give(0, converted(matmul(weights, repeated_heads(operand(2), heads)), *inner, type), type);
}

/// Turns the first elements of each head of x [batch, heads, length, size] by angles, whose cosines and sines are
/// [batch or 1, 1, length, half of what is turned].
inline node turned(const node& x, const node& cosine, const node& sine, bool interleaved, std::int64_t count) {
    const std::int64_t size = known_extent(x.shape()[3], "heads' size"), half_size = count / 2;
    const node in = part(x, 3, 0, count);
    node first, second;
    if (interleaved) {
        std::vector<range> ranges(4, all);
        ranges[3] = {0, all.end, 2};
        first = sliced(in, ranges);
        ranges[3] = {1, all.end, 2};
        second = sliced(in, ranges);
    } else {
        first = part(in, 3, 0, half_size), second = part(in, 3, half_size, half_size);
    }
    const node real = eval(cosine * first - sine * second), imaginary = eval(sine * first + cosine * second);
    node y;
    if (interleaved) {
        const shape s = in.shape();
        y = reshape(tapegraph::concat(std::vector<node>{with_axis(real, 4), with_axis(imaginary, 4)}, 4), s);
    } else {
        y = tapegraph::concat(std::vector<node>{real, imaginary}, 3);
    }
    return count < size ? tapegraph::concat(std::vector<node>{y, part(x, 3, count, size - count)}, 3) : y;
}
inline void rotary_embedding(call& c) {
    const std::int64_t heads = c.integer("num_heads", 0);
    const bool interleaved = c.integer("interleaved", 0) != 0, flat = c.rank(0) == 3;
    const dtype type = c.type(0);
    const node x = in_heads(c, 0, heads); // [batch, heads, length, size]
    const std::int64_t given = c.integer("rotary_embedding_dim", 0);
    const auto angle = [&](int i) { // [batch, 1, length, half]
        const node table = c.plain(i);
        const node rows = c.has(3) ? gather(table, converted(c.plain(3), c.type(3), dtype::i64), 0) : table;
        return with_axis(rows.rank() == 2 ? with_axis(rows, 0) : rows, 1);
    };
    const std::int64_t count = given == 0 ? known_extent(x.shape()[3], "heads' size") : given;
    node y = turned(x, angle(1), angle(2), interleaved, count);
    if (flat) y = reshape(c.on.transposed(y, {0, 2, 1, 3}), c.dims(0));
    c.give(0, y, type);
}

/// Of the domain ai.onnx.preview.
inline std::span<const operator_rule> previews() {
    static constexpr auto table = std::to_array<operator_rule>({{"FlexAttention", &flex_attention}});
    return table;
}
inline std::span<const operator_rule> attentions() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"Attention", &attention_rule},
        {"RotaryEmbedding", &rotary_embedding},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
