#pragma once

#include <tapegraph/compile/verdict.hpp>
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/graph/passes/effects.hpp>
#include <tapegraph/session/optimizer_table.hpp>
#include <tapegraph/train/traces.hpp>

#include <array>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>

/// The trace of a session's model for one set of fetches: the model, then gradients, then steps of
/// optimizers, each stage as far as the fetches need it.

namespace tapegraph::detail {

/// Whether a scope followed by a name reads as `path`.
constexpr bool reads_as(const ir::model_trace& t, int scope, std::string_view name, std::string_view path) {
    ir::detail::text_builder text;
    ir::detail::scope_path(text, t.scopes, scope);
    if (text.size > 0) text.put('/');
    text.put(name);
    return text.view() == path;
}

/// Finishes the last stage: the last outputs are nodes whose values are given. They become inputs,
/// and nodes that only they needed are no longer computed.
constexpr void finish_session(ir::model_trace& t, int given) {
    const int first = t.outputs.size() - given;
    for (int k = first; k < t.outputs.size(); ++k) {
        const ir::output_entry each = t.outputs[k];
        ir::entry& e = t.nodes[each.node];
        if (e.is(ir::descriptor_of<ir::input_op>)) continue;
        e.op = &ir::descriptor_of<ir::input_op>;
        e.arguments = 0;
        e.sealed = true;
        e.words = t.words.push_back(t.inputs.size());
        t.inputs.push_back({each.name, each.node});
    }
    t.outputs.resize(first);
    ir::drop_unneeded_effects(t);
}

/// Traces the model; output k is the k-th fetch with a value, followed by the nodes whose values
/// are given.
template <class Model, class Fetches, class Given, bool Last>
struct fetch_trace {
    static constexpr void build(ir::model_trace& t) {
        t.wanted_trainings = wanted_trainings<Model, Fetches>();
        t.training = t.wanted_trainings != 0;
        const auto result = Model{}(graph_scope(&t, 0));
        list<ir::assignment_entry> of_layers = t.assignments;
        t.assignments.clear();
        for (const std::string_view name : Fetches::all) {
            bool found = false;
            std::apply(
                [&](const auto&... item) { ((item.name == name ? void((keep(t, item), found = true)) : void()), ...); },
                result.items);
            for (const ir::named_entry& v : t.named)
                if (!found && reads_as(t, v.scope, v.name, name)) {
                    t.outputs.push_back({name, v.node});
                    found = true;
                }
            if (!found) t.fail("session: the model has no fetch of this name");
        }
        for (const std::string_view name : Given::all) {
            const int node = node_called(t, name, result);
            if (node < 0)
                t.fail("session: nothing of the model that could be given has this name");
            else if (t.is(node, ir::descriptor_of<ir::variable_op>))
                t.fail("session: a variable is not given: assign to it");
            else
                t.outputs.push_back({name, node});
        }
        t.scope = 0;
        if (has_optimizers<Model> && !t.added_losses.empty())
            t.fail("add_loss: in a session a loss must include it: scope.with_added_losses(loss)");
        if (t.error.what != nullptr) return;
        if (t.training) keep_updates_of_layers(t, of_layers);
        if constexpr (Last) finish_session(t, Given::count);
    }

private:
    template <class T>
    static constexpr void keep(ir::model_trace& t, const fetch<T>& item) {
        if constexpr (is_operation<T>)
            for (const ir::assignment_entry& update : item.value.updates) add_update(t, update);
        if constexpr (std::is_same_v<T, graph_assignment>)
            t.outputs.push_back(ir::output_entry{item.name, item.value.value.id()});
        else if constexpr (!is_operation<T>)
            t.outputs.push_back(ir::output_entry{item.name, eval(item.value).id()});
    }
    static constexpr void add_update(ir::model_trace& t, const ir::assignment_entry& update) {
        for (const ir::assignment_entry& known : t.assignments) {
            if (known.variable != update.variable) continue;
            if (known.node != update.node) t.fail("session: two operations of one run assign one variable");
            return;
        }
        t.assignments.push_back(update);
    }

    template <class... T>
    static constexpr int node_called(ir::model_trace& t, std::string_view name, const fetches<T...>& result) {
        for (const ir::named_entry& v : t.named)
            if (reads_as(t, v.scope, v.name, name)) return v.node;
        for (const ir::input_entry& input : t.inputs)
            if (!input.scalar_parameter && input.name == name) return input.node;
        int node = -1;
        std::apply([&](const auto&... item) { ((item.name == name ? void(node = node_of(item.value)) : void()), ...); },
                   result.items);
        return node;
    }
    static constexpr int node_of(const graph_node& value) { return value.id(); }
    static constexpr int node_of(const graph_assignment& value) { return value.value.id(); }
    template <class T>
    static constexpr int node_of(const T&) {
        return -1; // an operation, or a formula without readers
    }

    // Keeps moving averages of the layers that the run's values pass through.
    static constexpr void keep_updates_of_layers(ir::model_trace& t, const list<ir::assignment_entry>& of_layers) {
        if (of_layers.empty()) return;
        list<int> needed(t.nodes.size(), 0);
        for (const ir::output_entry& output : t.outputs) needed[output.node] = 1;
        for (const ir::assignment_entry& update : t.assignments) needed[update.node] = 1;
        for (const ir::gradient_entry& each : t.gradients) needed[each.node] = 1;
        spread(t, needed);
        for (const ir::assignment_entry& update : of_layers) {
            list<int> own(t.nodes.size(), 0);
            own[update.node] = 1;
            spread(t, own);
            bool shared = false;
            for (int i = 0; i < t.nodes.size(); ++i)
                shared = shared || (own[i] != 0 && needed[i] != 0 && !t.is(i, ir::descriptor_of<ir::variable_op>) &&
                                    !t.is(i, ir::descriptor_of<ir::constant_op>));
            if (shared) add_update(t, update);
        }
    }
    static constexpr void spread(const ir::model_trace& t, list<int>& marks) {
        for (int i = t.nodes.size() - 1; i >= 0; --i)
            for (int k = 0; marks[i] != 0 && k < t.nodes[i].arguments; ++k) marks[t.argument(i, k)] = 1;
    }
};

/// Differentiates the losses, one call of minimize after the other.
template <class Model, class Fetches, class Given>
struct session_gradient_trace {
    using previous = fetch_trace<Model, Fetches, Given, false>;
    static constexpr void build(ir::model_trace& t) {
        if (!ir::detail::gathered_only(t)) return;
        list<ir::gradient_entry> known;
        for (int first = 0; first < t.gradients.size();) {
            int last = first;
            while (last < t.gradients.size() && t.gradients[last].optimizer == t.gradients[first].optimizer) ++last;
            if (t.gradients[first].differentiate)
                differentiate(t, first, last, known);
            else
                for (int i = first; i < last; ++i) known.push_back(t.gradients[i]);
            first = last;
        }
        t.gradients = known;
        t.row_uses.clear();
    }

private:
    static constexpr void differentiate(ir::model_trace& t, int first, int last, list<ir::gradient_entry>& known) {
        int loss = t.gradients[first].node;
        const int before = known.size();
        list<int> nodes, by_rows(t.variables.size(), 0);
        for (const ir::row_use_entry& use : t.row_uses) by_rows[use.variable] = 1;
        for (int i = first; i < last; ++i)
            if (by_rows[t.gradients[i].variable] == 0) nodes.push_back(t.variables[t.gradients[i].variable].node);
        const int first_rows = nodes.size();
        for (const ir::row_use_entry& use : t.row_uses) nodes.push_back(use.node);
        const int number = t.gradients[first].optimizer;
        const auto scaled = [&](int plain) {
            if ((scaled_trainings<Model>() >> number & 1) == 0) return plain;
            const graph_node y(&t, plain);
            const graph_scope own(&t, ir::optimizer_scope(t, number));
            return (y.type() == dtype::f64 ? ir::scaled_loss<double>(t, y, own, number + 1)
                                           : ir::scaled_loss<float>(t, y, own, number + 1))
                .id();
        };
        list<int> found = ir::gradient(t, scaled(loss), nodes);
        if (!t.regularizers.empty()) { // penalties on variables of the loss
            list<int> changed(t.variables.size(), 0);
            for (int i = first, k = 0; i < last; ++i) {
                const int v = t.gradients[i].variable;
                changed[v] = by_rows[v] != 0 || found[k++] >= 0 ? 1 : 0;
            }
            for (const ir::weight_rule& r : t.regularizers)
                if (by_rows[r.variable] != 0)
                    ir::detail::fail_of_variable(t, r.variable, "regularizer: not of a variable with sparse gradients");
            loss = ir::with_penalties<Model>(t, loss, changed);
            if (loss != t.gradients[first].node) found = ir::gradient(t, scaled(loss), nodes);
        }
        int next = 0;
        for (int i = first; i < last; ++i) {
            ir::gradient_entry g = t.gradients[i];
            g.differentiate = false;
            if (by_rows[g.variable] != 0) {
                const ir::gradient_entry rows = ir::detail::row_gradient(t, g.variable, found, first_rows);
                g.node = rows.node, g.indices = rows.indices;
            } else {
                g.node = found[next++];
            }
            if (g.node >= 0) known.push_back(g);
        }
        t.scope = 0;
        if (known.size() == before) t.fail("minimize: the loss depends on no trainable variable");
    }
};

/// Applies the steps of the optimizers.
template <class Model, class Fetches, class Given>
struct session_update_trace {
    using previous = session_gradient_trace<Model, Fetches, Given>;
    static constexpr void build(ir::model_trace& t) {
        list<int> changed(t.variables.size(), 0);
        for (const ir::assignment_entry& update : t.assignments) changed[update.variable] = 1;
        for (const ir::gradient_entry& each : t.gradients)
            if (changed[each.variable]++ != 0 && !std::is_same_v<Fetches, all_operations>) {
                t.scope = t.variables[each.variable].scope;
                t.line = t.nodes[t.variables[each.variable].node].line;
                t.fail("session: two operations of one run assign one variable");
                return;
            }
        const std::uint64_t wanted = wanted_trainings<Model, Fetches>();
        [&]<std::size_t... I>(std::index_sequence<I...>) { (step<I>(t, wanted), ...); }
        (std::make_index_sequence<table_type<Model>::count>{});
        t.gradients.clear();
        ir::apply_constraints<Model>(t);
        if (t.error.what == nullptr) finish_session(t, Given::count);
    }

private:
    template <std::size_t I>
    static constexpr void step(ir::model_trace& t, std::uint64_t wanted) {
        const auto& table = optimizers_of_session<Model>::get();
        if (table.first_of(I) != I || (wanted >> table.trainings[I] & 1) == 0) return;
        using optimizer = std::remove_cvref_t<std::tuple_element_t<I, decltype(table_type<Model>::optimizers)>>;
        list<ir::gradient_entry> own;
        for (const ir::gradient_entry& each : t.gradients)
            if (each.optimizer == table.trainings[I]) own.push_back(each);
        const int common = scales_loss<optimizer>() ? ir::optimizer_scope(t, table.trainings[I]) : 0;
        ir::trace_updates<optimizer>(t, ir::graph_gradients(&t, own, common));
    }
};

template <class Model, class Fetches, class Given>
using session_trace =
    std::conditional_t<wanted_trainings<Model, Fetches>() != 0, session_update_trace<Model, Fetches, Given>,
                       fetch_trace<Model, Fetches, Given, true>>;

/// The error in the trace of a run, as a type.
template <class Trace>
constexpr auto run_verdict() {
#ifdef __CUDACC__
    return std::type_identity<valid>{};
#else
    if constexpr (!can_be_run<Trace>() && !requires { typename Trace::previous; })
        return std::type_identity<ir::advice<ir::detail::unevaluated_text>>{};
    else
        return stage_verdict<ir::traced_stage<Trace>>();
#endif
}

} // namespace tapegraph::detail
