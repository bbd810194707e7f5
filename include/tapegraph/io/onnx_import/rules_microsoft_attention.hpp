#pragma once

#include <tapegraph/io/onnx_import/rules_attention.hpp>
#include <tapegraph/io/onnx_import/rules_quantize.hpp>

#include <limits>

/// Attention as onnxruntime's optimizer writes it, of its own domain com.microsoft.

namespace tapegraph::io::onnx_import {

namespace rules {

/// Queries, keys and values [batch, heads, length, size] in f32 or f64, and what is added to the scores.
struct attending {
    node q, k, v;
    std::vector<node> biases;
    double scale = 0, softcap = 0; ///< scale 0: 1 / sqrt(size)
    node sink;                     ///< [heads]: a score of its own in each row, for nothing
    bool has_sink = false;
};
inline node attended(const attending& a, node* shown = nullptr) {
    const std::int64_t heads = known_extent(a.q.shape()[1], "heads"),
                       size = known_extent(a.q.shape()[3], "heads' size");
    const double scale = a.scale != 0 ? a.scale : 1 / std::sqrt(static_cast<double>(size));
    node scores = eval(matmul(a.q, repeated_heads(a.k, heads), {.transpose_b = true}) * scale);
    if (a.softcap != 0) scores = eval(a.softcap * tanh(scores / a.softcap));
    for (const node& bias : a.biases) scores = eval(scores + bias);
    if (shown != nullptr) *shown = scores;
    if (!a.has_sink) return matmul(softmax(scores, -1), repeated_heads(a.v, heads));
    const node own = reshape(a.sink, shape{1, heads, 1, 1});
    const node most = eval(maximum(max(scores, -1, {.keepdims = true}), own)), powers = eval(exp(scores - most));
    const node total = eval(sum(powers, -1, {.keepdims = true}) + exp(own - most));
    return matmul(eval(powers / total), repeated_heads(a.v, heads));
}
/// -inf where a row may not attend to a column, else 0.
inline node only(call& c, const node& where_true, dtype type) {
    const node zeros = eval(broadcast_to(c.on.number(0, type), where_true.shape()));
    return eval(where(where_true, zeros, -std::numeric_limits<double>::infinity()));
}
/// Columns up to the row's own, of which `past` lie in front.
inline node causal(call& c, const extent& rows, const extent& columns, const extent& past, dtype type) {
    const node example = c.on.example();
    const node row = with_axis(arange<std::int64_t>(example, rows), 1), column = arange<std::int64_t>(example, columns);
    return only(c, eval(column <= row + graph::extent_number(row, past)), type);
}
/// [batch, heads, length, size] as [batch, length, heads size].
inline node joined_heads(call& c, const node& y) {
    const node rows = c.on.transposed(y, {0, 2, 1, 3});
    const shape s = rows.shape();
    return reshape(rows, shape_of_items(c, {s[0].value, s[1].value, (s[2] * s[3]).value}));
}
/// [batch, length, heads size] as [batch, heads, length, size].
inline node split_heads(call& c, const node& x, std::int64_t heads) {
    const shape s = x.shape();
    if (x.rank() != 3 || heads < 1 || known_extent(s[2], "heads") % heads != 0)
        refuse("operands of shape " + to_string(s) + " in " + std::to_string(heads) + " heads");
    return c.on.transposed(reshape(x, shape_of_items(c, {s[0].value, s[1].value, heads, s[2].value / heads})),
                           {0, 2, 1, 3});
}
/// What mask_index of Attention says: numbers of columns, or whether each column counts, for all rows or by row.
inline node mask_bias(call& c, int i, const extent& columns, double filter, dtype type) {
    const node mask = converted(c.plain(i), c.type(i), dtype::i64);
    const shape s = mask.shape();
    node counts;
    if (mask.rank() == 1) {
        const node lengths = reshape(mask, shape_of_items(c, {s[0].value, 1, 1, 1}));
        counts = eval(arange<std::int64_t>(c.on.example(), columns) < lengths);
    } else if (mask.rank() == 2) {
        counts = eval(with_axis(with_axis(mask, 1), 1) > 0);
    } else if (mask.rank() == 3) {
        counts = eval(with_axis(mask, 1) > 0);
    } else {
        refuse("a mask of rank " + std::to_string(mask.rank()));
    }
    const node zeros = eval(broadcast_to(c.on.number(0, type), counts.shape()));
    return eval(where(counts, zeros, filter));
}

/// The rest of Attention and QAttention: `all` is [batch, length, queries keys values].
struct packed_attention {
    std::int64_t heads;
    std::vector<std::int64_t> sizes; ///< of queries, keys and values
    int mask, past, bias;            ///< operands, or the number of operands for none
};
inline void attention_of(call& c, const node& projected, const packed_attention& p, dtype given) {
    const double filter = c.number("mask_filter_value", -10000);
    const bool one_way = c.integer("unidirectional", 0) != 0;
    const double scale = c.number("scale", 0);
    if (c.integer("do_rotary", 0) != 0) refuse("do_rotary = 1");
    if (c.integer("past_present_share_buffer", 0) != 0) refuse("past_present_share_buffer = 1");
    c.ignore("rotary_embedding_dim");
    const dtype type = projected.type();
    attending a;
    a.scale = scale;
    a.q = split_heads(c, part(projected, 2, 0, p.sizes[0]), p.heads);
    a.k = split_heads(c, part(projected, 2, p.sizes[0], p.sizes[1]), p.heads);
    a.v = split_heads(c, part(projected, 2, p.sizes[0] + p.sizes[1], p.sizes[2]), p.heads);
    extent past(0, &c.on.trace().extents);
    if (c.has(p.past)) { // [2, batch, heads, length, size]
        const node before = converted(c.plain(p.past), c.type(p.past), type);
        past = before.shape()[3];
        a.k = tapegraph::concat(std::vector<node>{take(before, 0, 0), a.k}, 2);
        a.v = tapegraph::concat(std::vector<node>{take(before, 1, 0), a.v}, 2);
    }
    if (c.wants(1))
        c.give(1, converted(tapegraph::concat(std::vector<node>{with_axis(a.k, 0), with_axis(a.v, 0)}, 0), type, given),
               given);
    const extent rows = a.q.shape()[2], columns = a.k.shape()[2];
    if (c.has(p.mask)) {
        if (c.rank(p.mask) == 1 && c.dims(p.mask)[0].value != projected.shape()[0].value)
            refuse("a mask of first and last columns");
        a.biases.push_back(mask_bias(c, p.mask, columns, filter, type));
    }
    if (one_way) a.biases.push_back(causal(c, rows, columns, past, type));
    if (c.has(p.bias)) a.biases.push_back(converted(c.plain(p.bias), c.type(p.bias), type));
    c.give(0, converted(joined_heads(c, attended(a)), type, given), given);
}
/// The type that attention is computed in.
inline dtype attention_type(dtype type) {
    if (!is_floating(type)) refuse(std::string("of ") + name_of(type));
    return type == dtype::f64 ? dtype::f64 : dtype::f32;
}
inline void attention_microsoft(call& c) {
    const std::int64_t heads = c.integer("num_heads", 0);
    std::vector<std::int64_t> sizes = c.integers("qkv_hidden_sizes");
    const dtype type = attention_type(c.type(0));
    node all = matmul(converted(c.plain(0), c.type(0), type), converted(c.plain(1), c.type(1), type));
    if (c.has(2)) all = eval(all + converted(c.plain(2), c.type(2), type));
    const std::int64_t width = known_extent(all.shape()[2], "queries, keys and values");
    if (sizes.empty()) sizes.assign(3, width / 3);
    if (sizes.size() != 3 || sizes[0] + sizes[1] + sizes[2] != width)
        refuse("qkv_hidden_sizes other than the weights'");
    if (c.has(6)) refuse("with past_sequence_length");
    attention_of(c, all, {heads, sizes, 3, 4, 5}, c.type(0));
}
inline void quantised_attention(call& c) {
    const std::int64_t heads = c.integer("num_heads", 0);
    const shape s = c.dims(0);
    const dtype inner = exact_for(s[s.rank() - 1], most_of(c, 0, 6), most_of(c, 1, 7));
    const node sums = matmul(plain_centred(c, 0, 6, -2, inner), plain_centred(c, 1, 7, -1, inner));
    const auto scale = [&](int i) {
        const node v = as_float(c, i);
        return v.rank() == 1 && v.shape()[0].value == 1 ? reshape(v, shape{}) : v;
    };
    const node all = eval(converted(sums, inner, dtype::f32) * (scale(3) * scale(4)) + as_float(c, 2));
    const std::int64_t width = known_extent(all.shape()[2], "queries, keys and values");
    attention_of(c, all, {heads, {width / 3, width / 3, width / 3}, 5, 8, c.inputs()}, dtype::f32);
}

inline void multi_head_attention(call& c) {
    const std::int64_t heads = c.integer("num_heads", 0);
    const double filter = c.number("mask_filter_value", -10000);
    const bool one_way = c.integer("unidirectional", 0) != 0;
    const dtype given = c.type(0), type = attention_type(given);
    if (c.has(8) || c.has(9)) refuse("with a cache that several steps share");
    attending a;
    a.scale = c.number("scale", 0);
    const auto operand = [&](int i) { return converted(c.plain(i), c.type(i), type); };
    node b; // [queries keys values]
    const bool biased = c.has(3);
    if (biased) b = operand(3);
    extent past(0, &c.on.trace().extents);
    const node query = operand(0);
    if (query.rank() == 5) { // [batch, length, heads, 3, size]
        node all = query;
        if (biased) {
            const shape s = query.shape();
            const node each = reshape(b, shape_of_items(c, {3, heads, s[4].value}));
            all = eval(all + c.on.transposed(each, {1, 0, 2}));
        }
        const auto third = [&](std::int64_t k) { return c.on.transposed(take(all, k, 3), {0, 2, 1, 3}); };
        a.q = third(0), a.k = third(1), a.v = third(2);
    } else if (query.rank() == 3) {
        const std::int64_t width = known_extent(query.shape()[2], "queries");
        const auto with_bias = [&](const node& x, std::int64_t from) {
            return biased ? node(eval(x + part(b, 0, from, x.shape()[2]))) : x;
        };
        a.q = split_heads(c, with_bias(query, 0), heads);
        const node key = operand(1);
        if (key.rank() == 5) { // [batch, length, heads, 2, size]
            if (biased) refuse("packed keys with a bias");
            const auto half_of = [&](std::int64_t k) { return c.on.transposed(take(key, k, 3), {0, 2, 1, 3}); };
            a.k = half_of(0), a.v = half_of(1);
        } else if (key.rank() == 4) { // of an encoder, [batch, heads, length, size]
            a.k = key, a.v = operand(2);
        } else {
            a.k = split_heads(c, with_bias(key, width), heads);
            a.v = split_heads(c, with_bias(operand(2), 2 * width), heads);
        }
    } else {
        refuse("queries of rank " + std::to_string(query.rank()));
    }
    if (c.has(6)) {
        const node before = operand(6);
        past = before.shape()[2];
        a.k = tapegraph::concat(std::vector<node>{before, a.k}, 2);
        a.v = tapegraph::concat(std::vector<node>{operand(7), a.v}, 2);
    }
    if (c.wants(1)) c.give(1, converted(a.k, type, given), given);
    if (c.wants(2)) c.give(2, converted(a.v, type, given), given);
    const extent rows = a.q.shape()[2], columns = a.k.shape()[2];
    if (c.has(4)) {
        if (c.rank(4) == 1 && c.dims(4)[0].value != a.q.shape()[0].value) refuse("a mask of first and last columns");
        a.biases.push_back(mask_bias(c, 4, columns, filter, type));
    }
    if (one_way) a.biases.push_back(causal(c, rows, columns, past, type));
    if (c.has(5)) a.biases.push_back(operand(5));
    node shown;
    const node y = attended(a, &shown);
    if (c.wants(3)) c.give(3, converted(shown, type, given), given);
    c.give(0, converted(joined_heads(c, y), type, given), given);
}

/// Attention of groups of heads, whose queries go on where the cache of each sequence ends.
inline void group_query_attention(call& c) {
    const std::int64_t heads = c.integer("num_heads", 0), shared = c.integer("kv_num_heads", 0),
                       window = c.integer("local_window_size", -1);
    const bool turns = c.integer("do_rotary", 0) != 0, interleaved = c.integer("rotary_interleaved", 0) != 0,
               smooth = c.integer("smooth_softmax", 0) != 0;
    attending a;
    a.scale = c.number("scale", 0), a.softcap = c.number("softcap", 0);
    if (c.integer("qk_output", 0) != 0 || c.outputs() > 3) refuse("with scores as an output");
    for (int i = 12; i < c.inputs(); ++i)
        if (c.has(i)) refuse("with operand " + std::to_string(i));
    if (c.integer("causal", 1) != 1) refuse("causal = 0");
    const std::int64_t bits = c.integer("kv_cache_bit_width", 0);
    if (bits != 0 && bits != 32 && bits != 16) refuse("a cache of " + std::to_string(bits) + " bits");
    if (c.text("k_quant_type", "NONE") != "NONE" || c.text("v_quant_type", "NONE") != "NONE" ||
        c.integer("sliding_window_cache", 0) != 0)
        refuse("a cache of few bits or of a window");
    for (const char* const name : {"qk_norm_epsilon", "q_norm_epsilon", "k_norm_epsilon"}) c.ignore(name);
    if (heads < 1 || shared < 1 || heads % shared != 0) refuse("heads that do not divide one another");
    const dtype given = c.type(0), type = attention_type(given);
    const auto operand = [&](int i) { return converted(c.plain(i), c.type(i), type); };
    const node query = operand(0);
    if (query.rank() != 3) refuse("queries of rank " + std::to_string(query.rank()));
    if (c.has(1)) {
        a.q = split_heads(c, query, heads);
        a.k = split_heads(c, operand(1), shared), a.v = split_heads(c, operand(2), shared);
    } else {
        const std::int64_t size = known_extent(query.shape()[2], "queries") / (heads + 2 * shared);
        a.q = split_heads(c, part(query, 2, 0, heads * size), heads);
        a.k = split_heads(c, part(query, 2, heads * size, shared * size), shared);
        a.v = split_heads(c, part(query, 2, (heads + shared) * size, shared * size), shared);
    }
    const shape s = a.q.shape();
    const std::int64_t length = known_extent(s[2], "a length"),
                       total = static_cast<std::int64_t>(c.scalar(6, "a total length"));
    // [batch, 1]: positions that a sequence has, and those before this call.
    const node counts =
        eval(reshape(converted(c.plain(5), c.type(5), dtype::i64), shape_of_items(c, {s[0].value, 1})) + 1);
    const bool first_call = length == total; // a prompt: shorter ones have what does not count behind
    const node before = first_call ? node(eval(counts * 0)) : node(eval(counts - static_cast<double>(length)));
    const node positions = eval(before + with_axis(arange<std::int64_t>(c.on.example(), s[2]), 0)); // [batch, length]
    if (turns) {
        const node at = c.has(9) ? converted(c.plain(9), c.type(9), dtype::i64) : positions;
        const auto angle = [&](int i) { return with_axis(gather(operand(i), at, 0), 1); };
        const node cosine = angle(7), sine = angle(8);
        const std::int64_t count = 2 * known_extent(cosine.shape()[3], "angles");
        a.q = turned(a.q, cosine, sine, interleaved, count), a.k = turned(a.k, cosine, sine, interleaved, count);
    }
    std::int64_t columns = total;
    if (c.has(3)) {
        const std::int64_t room = known_extent(c.dims(3)[2], "a cache");
        columns = std::max(total, room);
        // Column j is the cache's, or that of this call behind it.
        const node j = with_axis(arange<std::int64_t>(c.on.example(), extent(columns)), 0);
        const node own =
            eval(minimum(maximum(j - before, 0), static_cast<double>(length - 1)) + static_cast<double>(room));
        const node from =
            eval(where(j < before, minimum(j, static_cast<double>(std::max<std::int64_t>(room, 1) - 1)), own));
        const auto placed = [&](int i, const node& fresh) {
            const node both = tapegraph::concat(std::vector<node>{operand(i), fresh}, 2);
            const node rows = gather(c.on.transposed(both, {0, 2, 1, 3}), from, 1, 1);
            const node held = with_axis(with_axis(eval(j < before + static_cast<double>(length)), 2), 3);
            return c.on.transposed(eval(where(held, rows, 0)), {0, 2, 1, 3});
        };
        a.k = placed(3, a.k), a.v = placed(4, a.v);
    }
    if (c.wants(1)) c.give(1, converted(a.k, type, given), given);
    if (c.wants(2)) c.give(2, converted(a.v, type, given), given);
    if (columns > total) a.k = part(a.k, 2, 0, total), a.v = part(a.v, 2, 0, total);
    const node column = arange<std::int64_t>(c.on.example(), extent(total));
    const node row = with_axis(with_axis(positions, 2), 1); // [batch, 1, length, 1]
    node counted = eval(column <= row);
    a.biases.push_back(only(c, counted, type));
    if (window > 0) a.biases.push_back(only(c, eval(column > row - static_cast<double>(window)), type));
    if (c.has(10)) a.biases.push_back(part(operand(10), 3, 0, extent(total)));
    if (c.has(11) || smooth) {
        a.has_sink = true;
        a.sink = c.has(11) ? operand(11) : node(eval(broadcast_to(c.on.number(0, type), shape{heads})));
    }
    c.give(0, converted(joined_heads(c, attended(a)), type, given), given);
}

inline void rotary_embedding_microsoft(call& c) {
    const bool interleaved = c.integer("interleaved", 0) != 0, flat = c.rank(0) == 3;
    std::int64_t heads = c.integer("num_heads", 0), count = c.integer("rotary_embedding_dim", 0);
    if (c.integer("is_packed_batching", 0) != 0) refuse("is_packed_batching = 1");
    if (c.number("scale", 1) != 1) refuse("scale other than 1");
    const dtype given = c.type(0), type = attention_type(given);
    const auto operand = [&](int i) { return converted(c.plain(i), c.type(i), type); };
    const std::int64_t angles = known_extent(c.dims(2)[1], "angles");
    node x = operand(0);
    if (count == 0) count = 2 * angles;
    if (flat && heads == 0) heads = known_extent(x.shape()[2], "heads") / count;
    if (flat) x = split_heads(c, x, heads); // else [batch, heads, length, size]
    node at = converted(c.plain(1), c.type(1), dtype::i64);
    if (at.rank() == 1) // the first position
        at = eval(with_axis(at, 1) + with_axis(arange<std::int64_t>(c.on.example(), x.shape()[2]), 0));
    const auto angle = [&](int i) { return with_axis(gather(operand(i), at, 0), 1); };
    const node y = turned(x, angle(2), angle(3), interleaved, count);
    c.give(0, converted(flat ? joined_heads(c, y) : y, type, given), given);
}

inline std::span<const operator_rule> microsoft_attentions() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"Attention", &attention_microsoft},
        {"QAttention", &quantised_attention},
        {"MultiHeadAttention", &multi_head_attention},
        {"GroupQueryAttention", &group_query_attention},
        {"RotaryEmbedding", &rotary_embedding_microsoft},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
