#pragma once

#include <tapegraph/model/outputs.hpp>
#include <tapegraph/train/traces.hpp>

#include <string_view>
#include <type_traits>

/// A training step in two programs: one computes a shard's contribution to the step, the other
/// takes the sums over all shards and updates the variables.

namespace tapegraph::ir {

/// The values that shards add up. In the shard's program each is the new value of a variable that
/// nothing reads, so that its kernel writes into the memory where shards are added; these variables
/// follow all others, in this order.
namespace folded {
inline constexpr std::string_view measured =
    "shard_measured"; ///< the loss, followed by accuracy if there is one: shares of means
inline constexpr std::string_view metric = "shard_metric";     ///< accumulators of metrics: sums
inline constexpr std::string_view gradient = "shard_gradient"; ///< shares of the mean's gradient
/// Values assigned by layers, moving averages: shares of the mean.
inline constexpr std::string_view state = "shard_state";
inline constexpr std::string_view rows = "shard_rows"; ///< outputs: rows of a gradient, followed by their indices
} // namespace folded

/// A loss times a shard's fraction of the batch's records, an input of the program.
constexpr graph_node shared_loss(model_trace& t, const graph_node& loss, const graph_node& share) {
    if (loss.type() != dtype::f32 && loss.type() != dtype::f64) {
        const operand_info given = t.info(loss.id());
        t.fail("shards: the loss must be float or double (cast the model's outputs, as tg::mixed does)", &given, 1);
        return loss;
    }
    return eval(loss * tapegraph::detail::as_type_of(loss, share));
}

/// The model with its loss, where the mean over the steps that count extends over all shards.
template <class Model, class Spec, class Loss>
struct masked_shard_trace {
    static constexpr void build(model_trace& t) {
        t.in_shards = true;
        forward_trace<Model, Spec, Loss>::build(t);
    }
};

/// The model on a shard and the gradients of its share of the loss. Weights of shards are made for
/// means over records: the sum of n_v / n times the mean over n_v records is the mean over all n.
template <class Model, class Spec, class Loss, bool Scaled>
struct shard_gradient_trace {
    static constexpr bool masked =
        tapegraph::detail::has_masks<decltype(trace_model<Model, Spec>(std::declval<model_trace&>()))>;
    using previous =
        std::conditional_t<masked, masked_shard_trace<Model, Spec, Loss>, forward_trace<Model, Spec, Loss>>;
    static constexpr void build(model_trace& t) {
        t.scope = 0;
        const graph_node share(&t, t.input("share", dtype::f64, {}, true));
        const graph_node loss = shared_loss(t, graph_node(&t, t.outputs[0].node), share);
        gradient_trace<Model, Spec, Loss, Scaled>::differentiate(t, loss.id());
    }
};

/// The shard's program.
template <class Model, class Spec, class Loss, bool Scaled>
struct shard_trace {
    using previous = shard_gradient_trace<Model, Spec, Loss, Scaled>;
    static constexpr void build(model_trace& t) {
        t.scope = 0;
        graph_node share;
        for (const input_entry& input : t.inputs)
            if (input.scalar_parameter && input.name == "share") share = graph_node(&t, input.node);
        const list<assignment_entry> assigned = t.assignments;
        t.assignments.clear();
        for (const output_entry& output : t.outputs)
            fold(t, folded::measured, -1, eval(cast<double>(graph_node(&t, output.node)) * share));
        t.outputs.clear();
        for (const assignment_entry& a : assigned)
            if (is_metric_state(t, a.variable)) fold(t, folded::metric, a.variable, graph_node(&t, a.node));
        for (const gradient_entry& g : t.gradients) {
            if (g.indices >=
                0) { // for rows the individual ones, in their order: equal ones are added over all shards at once
                t.outputs.push_back({folded::rows, t.argument(g.node, 0), output_role::result, g.variable});
                t.outputs.push_back({folded::rows, g.indices, output_role::result, g.variable});
            } else {
                fold(t, folded::gradient, g.variable, graph_node(&t, g.node));
            }
        }
        for (const assignment_entry& a : assigned) {
            if (is_metric_state(t, a.variable)) continue;
            const graph_node value(&t, a.node);
            fold(t, folded::state, a.variable, eval(value * tapegraph::detail::as_type_of(value, share)));
        }
        t.gradients.clear();
    }

private:
    static constexpr void fold(model_trace& t, std::string_view name, int of, const graph_node& value) {
        const int number = t.variables.size();
        const int made = t.append(descriptor_of<variable_op>, value.type(), value.shape().rank(),
                                  t.store(value.shape()), nullptr, 0, t.words.push_back(number));
        t.define({0, name, made, false, 0, of + 1}, {}); // in no scope's list
        t.assignments.push_back({number, value.id()});
    }
};

/// Turns gradients by rows into sums over all shards' rows, which are inputs.
constexpr void shard_row_inputs(model_trace& t) {
    for (gradient_entry& g : t.gradients) {
        if (g.indices < 0) continue;
        const shape table = t.dims(t.variables[g.variable].node);
        shape picks, all;
        picks.attach(&t.extents);
        all.attach(&t.extents);
        picks.push_back({t.extents.symbol(""), &t.extents});
        all.push_back(picks[0]);
        for (int i = 1; i < table.rank(); ++i) all.push_back(table[i]);
        const graph_node rows(&t, t.input(folded::rows, t.nodes[g.node].type, all));
        const graph_node where(&t, t.input(folded::rows, t.nodes[g.indices].type, picks));
        g.node = graph_node(sum_of_equal_rows(rows, where)).id();
        g.indices = where.id();
    }
}

/// The update's program. The step's own inputs, which nothing reads, are followed by the sums over
/// shards, in the order of the variables of the shard's program, and for each gradient by rows all
/// shards' rows and their indices.
template <class Model, class Spec, class Loss, class Optimizer>
struct shard_update_trace {
    using previous = gradient_trace<Model, Spec, Loss, tapegraph::detail::scales_loss<Optimizer>()>;
    static constexpr void build(model_trace& t) {
        t.scope = 0;
        t.outputs.clear();
        for (gradient_entry& g : t.gradients)
            if (g.indices < 0) g.node = t.input(folded::gradient, t.nodes[g.node].type, t.dims(g.node));
        list<assignment_entry> assigned;
        for (const assignment_entry& a : t.assignments)
            if (!is_metric_state(t, a.variable))
                assigned.push_back({a.variable, t.input(folded::state, t.nodes[a.node].type, t.dims(a.node))});
        t.assignments = assigned;
        shard_row_inputs(t);
        trace_updates<Optimizer>(t, graph_gradients(&t, t.gradients));
        t.gradients.clear();
        apply_constraints<Model>(t);
    }
};

} // namespace tapegraph::ir
