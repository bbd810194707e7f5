#pragma once

#include <tapegraph/io/onnx/attention.hpp>
#include <tapegraph/io/onnx/normalization.hpp>
#include <tapegraph/io/onnx/patterns.hpp>
#include <tapegraph/io/onnx/places.hpp>
#include <tapegraph/io/onnx/recurrent.hpp>
#include <tapegraph/io/onnx/window.hpp>

/// Maps an operation's name to the rule that writes it.

namespace tapegraph::onnx {

namespace detail {

template <class G>
void write_extent(G& g, int node) {
    const std::int64_t extent = g.t.words_of(node)[0];
    const dtype type = g.at(node).type;
    if (!is_symbolic(extent)) return g.define(node, g.constant(static_cast<double>(extent), type));
    g.define(node, g.cast(g.squeeze(g.extent_tensor(extent), {0}), type));
}
template <class G>
void hand_through(G& g, int node) {
    g.define(node, g.get(g.t.argument(node, 0)));
}
template <fixed_string Op, class G>
void write_reduction(G& g, int node) {
    write_reduced(g, node, node, Op.view());
}
/// sum(min or max of bool as 0 and 1) is `all` and `any`.
template <class G>
void write_sum_or_mean(G& g, int node) {
    write_reduced(g, node, node, "ReduceSum");
}

template <class G>
struct node_rule {
    std::string_view name;
    void (*write)(G&, int node);
};

template <class G>
inline constexpr node_rule<G> node_rules[] = {
    {"input",
     [](G& g, int node) { g.define(node, std::string(g.t.inputs[static_cast<int>(g.t.words_of(node)[0])].name)); }},
    {"variable", nullptr},
    {"constant",
     [](G& g, int node) { g.define(node, g.constant(std::bit_cast<double>(g.t.words_of(node)[0]), g.at(node).type)); }},
    {"extent", &write_extent<G>},
    // Operations for training, or for display, are left out.
    {"stop_gradient", &hand_through<G>},
    {"checkpoint", &hand_through<G>},
    {"recompute", &hand_through<G>},
    {"custom_gradient", &hand_through<G>},
    {"print", &hand_through<G>},
    {"check_finite", &hand_through<G>},
    {"check", &hand_through<G>},
    {"transpose", &write_transpose<G>},
    {"reshape", &write_reshape<G>},
    {"broadcast_to", &write_broadcast<G>},
    {"concat", &write_concat<G>},
    {"slice", &write_slice<G>},
    {"pad", &write_pad<G>},
    {"index_map", &write_index_map<G>},
    {"gather", &write_gather<G>},
    {"gather_nd", &write_gather_nd<G>},
    {"take_along", &write_take_along<G>},
    {"scatter_add", &write_scatter_add<G>},
    {"gather_scatter_add", &write_gather_scatter_add<G>},
    {"weighted_gather_scatter_add", &write_gather_scatter_add<G>},
    {"scatter_nd", &write_scatter_nd<G>},
    {"put_along", &write_put_along<G>},
    {"one_hot", &write_one_hot<G>},
    {"arange", &write_arange<G>},
    {"argsort", &write_argsort<G>},
    {"arg_reduce", &write_arg_reduce<G>},
    {"searchsorted", &write_searchsorted<G>},
    {"marked_places", &write_marked_places<G>},
    {"bincount", &write_count_places<G>},
    {"cumulative_sum", &write_cumulative_sum<G>},
    {"softmax", &write_softmax<"Softmax", G>},
    {"log_softmax", &write_softmax<"LogSoftmax", G>},
    {"attention", &write_attention<G>},
    {"sparse_softmax_cross_entropy_with_logits", &write_sparse_cross_entropy<G>},
    {"normalization", &write_normalization<G>},
    {"sum", &write_sum_or_mean<G>},
    {"prod", &write_reduction<"ReduceProd", G>},
    {"max", &write_reduction<"ReduceMax", G>},
    {"min", &write_reduction<"ReduceMin", G>},
    {"any", &write_reduction<"ReduceMax", G>},
    {"all", &write_reduction<"ReduceMin", G>},
    {"matmul", [](G& g, int node) { write_product(g, node, node, -1); }},
    {"convolution", [](G& g, int node) { write_convolution(g, node, node, -1); }},
    {"convolution_input_gradient", &write_transposed_convolution<G>},
    {"max_pool", &write_pool<G>},
    {"average_pool", &write_pool<G>},
    {"lp_pool", &write_pool<G>},
    {"lstm", &write_recurrent<G>},
    {"lstm_result", &write_recurrent<G>},
    {"lstm_states", nullptr},
    {"gru", &write_recurrent<G>},
    {"gru_result", &write_recurrent<G>},
    {"gru_states", nullptr},
    {"simple_rnn", &write_recurrent<G>},
    {"simple_rnn_result", &write_recurrent<G>},
    {"simple_rnn_states", nullptr},
};

/// Writes layers that are several operations in the trace. Returns false for other nodes.
template <class G>
bool write_pattern(G& g, int node) {
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
    return false;
}

} // namespace detail

/// Whether there is a rule that writes an operation of that name.
template <class G = graph>
constexpr bool known_operation(std::string_view name) {
    return detail::rule_named(detail::node_rules<G>, name) >= 0 ||
           detail::rule_named(detail::elementwise_rules<basic_call<G>>, name) >= 0;
}

inline void graph::write(int node) {
    for (const user_rule& each : rules_)
        if (ir::same_operation(each.op, at(node).op)) return each.write(*this, node);
    if (detail::write_pattern(*this, node)) return;
    const std::string_view name = at(node).op->name;
    using one_call = basic_call<graph>;
    if (const int found = detail::rule_named(detail::elementwise_rules<one_call>, name); found >= 0)
        return detail::write_elementwise(*this, node, [&](one_call& c) {
            const auto& rule = detail::elementwise_rules<one_call>[found];
            return rule.write != nullptr ? rule.write(c) : c.emit(rule.onnx, c.operands());
        });
    const int found = detail::rule_named(detail::node_rules<graph>, name);
    if (found < 0 || detail::node_rules<graph>[found].write == nullptr) return refuse(node);
    detail::node_rules<graph>[found].write(*this, node);
}

} // namespace tapegraph::onnx
