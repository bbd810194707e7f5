#pragma once

#include <tapegraph/io/onnx/patterns.hpp>
#include <tapegraph/io/onnx/recurrent.hpp>
#include <tapegraph/io/onnx/window.hpp>

/// From an operation's name to what writes it.

namespace tapegraph::onnx {

namespace detail {

inline void write_extent(graph& g, int node) {
    const std::int64_t extent = g.t.words_of(node)[0];
    const dtype type = g.at(node).type;
    if (!is_symbolic(extent)) return g.define(node, g.constant(static_cast<double>(extent), type));
    g.define(node, g.cast(g.squeeze(g.extent_tensor(extent), {0}), type));
}
inline void hand_through(graph& g, int node) { g.define(node, g.get(g.t.argument(node, 0))); }
template <fixed_string Op>
void write_reduction(graph& g, int node) {
    write_reduced(g, node, node, Op.view());
}
/// sum(min or max of bool as 0 and 1) is `all` and `any`.
inline void write_sum_or_mean(graph& g, int node) { write_reduced(g, node, node, "ReduceSum"); }

struct node_rule {
    std::string_view name;
    void (*write)(graph&, int node);
};

inline constexpr node_rule node_rules[] = {
    {"input",
     [](graph& g, int node) { g.define(node, std::string(g.t.inputs[static_cast<int>(g.t.words_of(node)[0])].name)); }},
    {"variable", nullptr},
    {"constant",
     [](graph& g, int node) {
         g.define(node, g.constant(std::bit_cast<double>(g.t.words_of(node)[0]), g.at(node).type));
     }},
    {"extent", &write_extent},
    // What is there for training, or for people, is left out.
    {"stop_gradient", &hand_through},
    {"checkpoint", &hand_through},
    {"recompute", &hand_through},
    {"custom_gradient", &hand_through},
    {"print", &hand_through},
    {"check_finite", &hand_through},
    {"check", &hand_through},
    {"transpose", &write_transpose},
    {"reshape", &write_reshape},
    {"broadcast_to", &write_broadcast},
    {"concat", &write_concat},
    {"slice", &write_slice},
    {"pad", &write_pad},
    {"index_map", &write_index_map},
    {"gather", &write_gather},
    {"gather_nd", &write_gather_nd},
    {"take_along", &write_take_along},
    {"one_hot", &write_one_hot},
    {"arange", &write_arange},
    {"argsort", &write_argsort},
    {"arg_reduce", &write_arg_reduce},
    {"cumulative_sum", &write_cumulative_sum},
    {"sum", &write_sum_or_mean},
    {"prod", &write_reduction<"ReduceProd">},
    {"max", &write_reduction<"ReduceMax">},
    {"min", &write_reduction<"ReduceMin">},
    {"any", &write_reduction<"ReduceMax">},
    {"all", &write_reduction<"ReduceMin">},
    {"matmul", [](graph& g, int node) { write_product(g, node, node, -1); }},
    {"convolution", [](graph& g, int node) { write_convolution(g, node, node, -1); }},
    {"convolution_input_gradient", &write_transposed_convolution},
    {"max_pool", &write_pool},
    {"average_pool", &write_pool},
    {"lp_pool", &write_pool},
    {"lstm", &write_recurrent},
    {"lstm_result", &write_recurrent},
    {"lstm_states", nullptr},
    {"gru", &write_recurrent},
    {"gru_result", &write_recurrent},
    {"gru_states", nullptr},
    {"simple_rnn", &write_recurrent},
    {"simple_rnn_result", &write_recurrent},
    {"simple_rnn_states", nullptr},
};

constexpr const node_rule* node_rule_of(std::string_view name) {
    for (const node_rule& each : node_rules)
        if (each.name == name) return &each;
    return nullptr;
}

/// Layers that are several operations of the trace. False: it is none.
inline bool write_pattern(graph& g, int node) {
    if (g.is(node, "add") || g.is(node, "multiply")) {
        if (write_batch_normalization(g, node) || write_layer_normalization(g, node)) return true;
        strided_view v;
        int bias = -1, product = -1;
        const auto row = [&](int k) { return g.rank(k) == 1 && g.backed(k, v); };
        if (is_pair(g, node, "add", row, bias, product) &&
            g.extent_of(bias, 0) == g.extent_of(product, g.rank(product) - 1)) {
            if (g.is(product, "convolution")) return write_convolution(g, node, product, bias), true;
            if (g.is(product, "matmul")) return write_product(g, node, product, bias), true;
        }
        return false;
    }
    if (int sum = -1; is_mean(g, node, sum)) return write_reduced(g, node, sum, "ReduceMean"), true;
    return (g.is(node, "divide") || g.is(node, "subtract")) && write_softmax(g, node);
}

} // namespace detail

/// Whether this library knows how ONNX says an operation of that name.
constexpr bool known_operation(std::string_view name) {
    return detail::node_rule_of(name) != nullptr || detail::elementwise_rule_of(name) != nullptr;
}

inline void graph::write(int node) {
    for (const user_rule& each : rules_)
        if (ir::same_operation(each.op, at(node).op)) return each.write(*this, node);
    if (detail::write_pattern(*this, node)) return;
    const std::string_view name = at(node).op->name;
    if (const auto* rule = detail::elementwise_rule_of(name))
        return detail::write_elementwise(*this, node, [&](call& c) {
            return rule->write != nullptr ? rule->write(c) : c.emit(rule->onnx, c.operands());
        });
    const auto* const rule = detail::node_rule_of(name);
    if (rule == nullptr || rule->write == nullptr) return refuse(node);
    rule->write(*this, node);
}

} // namespace tapegraph::onnx
