#pragma once

#include <tapegraph/io/onnx_import/gates.hpp>
#include <tapegraph/io/onnx_import/recurrent_steps.hpp>
#include <tapegraph/io/onnx_import/rules_microsoft_attention.hpp>
#include <tapegraph/io/onnx_import/rules_microsoft_quantize.hpp>
#include <tapegraph/io/onnx_import/rules_normalization.hpp>

#include <algorithm>
#include <array>
#include <cctype>

/// What onnxruntime's optimizer fuses, of its own domain com.microsoft, and that domain's other operators.

namespace tapegraph::io::onnx_import {

namespace rules {

/// x with its first axis before the last one, which is what transBatchA and transBatchB ask for.
inline value_pointer with_batch_last(call& c, value_pointer x) {
    const int rank = x->rank();
    if (rank < 3) return x;
    std::vector<std::int64_t> order;
    for (int k = 1; k < rank - 1; ++k) order.push_back(k);
    order.push_back(0), order.push_back(rank - 1);
    return result_of(c, "Transpose", {std::move(x)}, {with("perm", std::move(order))});
}
inline void fused_matmul(call& c) {
    const double alpha = c.number("alpha", 1);
    const bool a_turned = c.integer("transA", 0) != 0, b_turned = c.integer("transB", 0) != 0;
    value_pointer a = c.pointer(0), b = c.pointer(1);
    if (c.integer("transBatchA", 0) != 0) a = with_batch_last(c, a);
    if (c.integer("transBatchB", 0) != 0) b = with_batch_last(c, b);
    const node x = c.on.plain(*a), y = c.on.plain(*b);
    // Vectors are not transposed.
    const node product =
        matmul(x, y, {.transpose_a = a_turned && x.rank() > 1, .transpose_b = b_turned && y.rank() > 1});
    c.give(0, alpha == 1 ? product : node(eval(alpha * product)), c.type(0));
}

/// What follows in a fused operator, with up to three numbers for it.
inline node fused_activation(const node& x, std::string name, std::vector<float> numbers) {
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char k) { return std::tolower(k); });
    if (name.empty()) return x;
    if (name == "clip") {
        if (numbers.size() != 2) refuse("Clip without its limits");
        return eval(minimum(maximum(x, static_cast<double>(numbers[0])), static_cast<double>(numbers[1])));
    }
    std::vector<float> alphas, betas;
    if (!numbers.empty()) alphas.push_back(numbers[0]);
    if (numbers.size() > 1) betas.push_back(numbers[1]);
    return activated(x, gate_function_of(name, alphas, betas));
}
inline void fused_conv(call& c) {
    const std::string name = c.text("activation", "");
    const std::vector<float> numbers = c.numbers("activation_params");
    const int rank = c.rank(0);
    std::vector<value_pointer> in{c.pointer(0), c.pointer(1), c.optional(2)};
    value_pointer y = result_of(c, "Conv", std::move(in), window_attributes(c));
    if (c.has(3)) y = result_of(c, "Add", {y, c.pointer(3)});
    c.give_laid(0, fused_activation(c.on.arranged(*y, channels_last(rank)), name, numbers), c.type(0),
                channels_last(rank));
}
inline void fused_gemm(call& c) {
    const std::string name = c.text("activation", "");
    std::vector<float> numbers;
    for (const char* const each : {"activation_alpha", "activation_beta", "activation_gamma"})
        if (const attribute* const a = c.find(each)) numbers.push_back(a->f);
    std::vector<attribute> own;
    for (const char* const each : {"alpha", "beta", "transA", "transB"})
        if (const attribute* const a = c.find(each)) own.push_back(*a);
    const value_pointer y = result_of(c, "Gemm", {c.pointer(0), c.pointer(1), c.optional(2)}, std::move(own));
    c.give(0, fused_activation(c.on.plain(*y), name, numbers), c.type(0));
}

/// A function of the first operand, to which the second one is added where there is one, in f32 for elements of 16 bits.
template <class F>
void of_sum(call& c, const F& f) {
    value_pointer x = c.pointer(0);
    if (c.has(1)) x = result_of(c, "Add", {x, c.pointer(1)});
    c.give(0, in_float(c.on.plain(*x), f), c.type(0));
}
inline node fast_gelu(const node& x) { return eval(gelu(x, approximate)); }
inline void quick_gelu(call& c) {
    const double alpha = c.number("alpha", 1.702);
    of_sum(c, [&](const node& x) { return swished(x, alpha); });
}
inline void skip_normalization(call& c, bool centered) {
    const double epsilon = c.number("epsilon", 1e-12);
    const int bias = centered ? 4 : 3;
    if (c.wants(1) || c.wants(2)) refuse("with outputs of training");
    value_pointer x = result_of(c, "Add", {c.pointer(0), c.pointer(1)});
    if (c.has(bias)) x = result_of(c, "Add", {x, c.pointer(bias)});
    c.give(3, x);
    const auto stable = with("epsilon", static_cast<float>(epsilon));
    c.give(0, centered ? result_of(c, "LayerNormalization", {x, c.pointer(2), c.optional(3)}, {stable})
                       : computed(c, {"RMSNormalization", {x, c.pointer(2)}, {stable}, 23}));
}

/// The sum of embeddings of words, positions and segments, normalized; its tables as values.
struct embeddings {
    value_pointer words, positions, segments, gamma, beta;
    int mask, position_ids;
};
inline void embed(call& c, const embeddings& e) {
    const double epsilon = c.number("epsilon", 1e-12);
    c.ignore("mask_index_type");
    const shape s = c.dims(0);
    value_pointer sum = result_of(c, "Gather", {e.words, c.pointer(0)});
    value_pointer places;
    if (c.has(e.position_ids)) {
        places = c.pointer(e.position_ids);
    } else {
        const node first = arange<std::int64_t>(c.on.example(), s[1]);
        places = c.on.make(with_axis(first, 0), dtype::i64);
    }
    sum = result_of(c, "Add", {sum, result_of(c, "Gather", {e.positions, places})});
    if (c.has(1) && e.segments != nullptr)
        sum = result_of(c, "Add", {sum, result_of(c, "Gather", {e.segments, c.pointer(1)})});
    c.give(2, sum);
    c.give(0,
           result_of(c, "LayerNormalization", {sum, e.gamma, e.beta}, {with("epsilon", static_cast<float>(epsilon))}));
    if (!c.wants(1)) return;
    const dtype i32 = dtype::i32;
    if (c.has(e.mask))
        c.give(1, converted(tapegraph::sum(converted(c.plain(e.mask), c.type(e.mask), dtype::i64), 1), dtype::i64, i32),
               i32);
    else
        c.give(1, node(eval(broadcast_to(c.on.number(0, i32), shape_of_items(c, {s[0].value})))), i32);
}
inline void embed_normalization(call& c) {
    embed(c, {c.pointer(2), c.pointer(3), c.optional(4), c.pointer(5), c.pointer(6), 7, 8});
}
inline void quantised_embed_normalization(call& c) {
    // Scales follow the mask, zero points the scales, in the order of the tables.
    const auto table = [&](int i) -> value_pointer {
        if (!c.has(2 + i)) return nullptr;
        return result_of(c, "DequantizeLinear", {c.pointer(2 + i), c.pointer(8 + i), c.optional(13 + i)});
    };
    embed(c, {table(0), table(1), table(2), table(3), table(4), 7, c.inputs()});
}

inline void pairwise_distance(call& c) {
    const std::string metric = c.text("metric", "sqeuclidean");
    if (metric != "euclidean" && metric != "sqeuclidean") refuse("metric = '" + metric + "'");
    const node a = with_axis(c.plain(0), 1), b = with_axis(c.plain(1), 0);
    const node squares = sum(square(a - b), 2);
    c.give(0, metric == "euclidean" ? node(eval(sqrt(squares))) : squares, c.type(0));
}
inline void expand_dims_rule(call& c) {
    c.give(0, result_of(c, "Unsqueeze",
                        {c.pointer(0),
                         c.on.make_known(array::integers({static_cast<std::int64_t>(c.scalar(1, "an axis"))}))}));
}
inline std::span<const operator_rule> microsoft() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"FusedMatMul", &fused_matmul},
        {"TransposeMatMul", &fused_matmul},
        {"FusedConv", &fused_conv},
        {"FusedGemm", &fused_gemm},
        {"BiasGelu", [](call& c) { of_sum(c, [](const node& x) -> node { return gelu(x); }); }},
        {"FastGelu", [](call& c) { of_sum(c, &fast_gelu); }},
        {"QuickGelu", &quick_gelu},
        {"SkipLayerNormalization", [](call& c) { skip_normalization(c, true); }},
        {"SkipSimplifiedLayerNormalization", [](call& c) { skip_normalization(c, false); }},
        {"EmbedLayerNormalization", &embed_normalization},
        {"QEmbedLayerNormalization", &quantised_embed_normalization},
        {"CDist", &pairwise_distance},
        {"ExpandDims", &expand_dims_rule},
        {"Pad",
         [](call& c) {
             std::vector<attribute> own;
             if (const attribute* const mode = c.find("mode")) own.push_back(*mode);
             c.give(0, result_of(c, "Pad", {c.pointer(0), c.pointer(1), c.optional(2)}, std::move(own)));
         }},
    });
    return table;
}
/// Operators of that domain that are the standard's of the same name.
inline constexpr std::array<std::string_view, 13> as_in_the_standard = {"QuantizeLinear",
                                                                        "DequantizeLinear",
                                                                        "Gelu",
                                                                        "Trilu",
                                                                        "Range",
                                                                        "GatherND",
                                                                        "GridSample",
                                                                        "Unique",
                                                                        "LinearAttention",
                                                                        "CausalConvWithState",
                                                                        "LayerNormalization",
                                                                        "SimplifiedLayerNormalization",
                                                                        "RMSNormalization"};

} // namespace rules

} // namespace tapegraph::io::onnx_import
