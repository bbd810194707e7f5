#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/fixed_string.hpp>
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/model/spec.hpp>
#include <tapegraph/nn/metrics/metric_state.hpp>
#include <tapegraph/nn/optimizers/basic.hpp>
#include <tapegraph/nn/optimizers/graph_updates.hpp>
#include <tapegraph/train/measured.hpp>

#include <array>
#include <string_view>

/// The traces of a compiled model's programs: at compile time for graph mode's programs, at run
/// time for variables and the layer table.

namespace tapegraph {

namespace ir {

template <class Model, class Spec>
constexpr auto trace_model(model_trace& t) {
    const graph_scope root(&t, 0);
    const auto x = tapegraph::detail::input_pack<Spec>::map([&](auto spec, std::string_view name) {
        using T = typename decltype(spec)::element_type;
        return graph_node(&t, t.input(name, dtype_of<T>, spec.dims(t.extents)));
    });
    return std::apply(
        [&](const auto&... each) { return tapegraph::detail::sealed_output(Model::get()(root, each...)); }, x);
}

/// "mean_squared_error", as the compiler spells the type, without its namespaces.
template <class T>
constexpr std::string_view type_name() {
    std::string_view name = __PRETTY_FUNCTION__;
    name.remove_prefix(name.find("T = ") + 4);
    name = name.substr(0, name.find_first_of(";]"));
    const std::size_t qualifier = name.substr(0, name.find('<')).rfind("::");
    return qualifier == std::string_view::npos ? name : name.substr(qualifier + 2);
}
template <class Loss>
struct loss_text {
    static constexpr std::string_view name = type_name<Loss>();
};
template <class Loss>
struct loss_text<weighted<Loss>> : loss_text<Loss> {};
template <class Loss, class... Metrics>
struct loss_text<measured<Loss, Metrics...>> : loss_text<Loss> {};
struct labels_prefix {
    static constexpr std::string_view name = "labels of ";
};
/// The name of a column of labels in messages.
template <class Loss>
constexpr std::string_view labels_name(int column) {
    const std::string_view name = tapegraph::detail::objective<Loss>::column_names[static_cast<std::size_t>(column)];
    return name.empty() ? tapegraph::detail::joined<labels_prefix, loss_text<Loss>>::name : name;
}

namespace detail {
constexpr void fail_of_variable(model_trace& t, int variable, const char* what) {
    t.scope = t.variables[variable].scope;
    t.fail(what);
}
} // namespace detail

/// Adds the penalties of regularizers to the model's loss. A program that has one includes
/// nn/regularizer.hpp before its model, so the definition is looked up by the model's type.
template <class Model>
constexpr void add_penalties(model_trace& t) {
    if constexpr (requires { sizeof(tapegraph::detail::penalties<Model>); })
        tapegraph::detail::penalties<Model>::add(t);
    else if (!t.regularizers.empty())
        detail::fail_of_variable(t, t.regularizers[0].variable,
                                 "regularizer: needs #include <tapegraph/nn/regularizer.hpp>");
}

/// A loss plus the penalties of some variables: those for which wanted[variable] != 0.
template <class Model>
constexpr int with_penalties(model_trace& t, int loss, const list<int>& wanted) {
    int refused = -1;
    for (const weight_rule& r : t.regularizers)
        if (wanted[r.variable] != 0) refused = r.variable;
    if (refused < 0) return loss;
    if constexpr (requires { sizeof(tapegraph::detail::penalties<Model>); })
        return tapegraph::detail::penalties<Model>::added_to(t, loss, wanted);
    detail::fail_of_variable(t, refused, "regularizer: needs #include <tapegraph/nn/regularizer.hpp>");
    return loss;
}

/// Projects the new values of variables to what their constraints allow.
template <class Model>
constexpr void apply_constraints(model_trace& t) {
    if constexpr (requires { sizeof(tapegraph::detail::projections<Model>); })
        tapegraph::detail::projections<Model>::apply(t);
    else if (!t.constraints.empty())
        detail::fail_of_variable(t, t.constraints[0].variable,
                                 "constraint: needs #include <tapegraph/nn/constraint.hpp>");
}

/// Element types and shapes of what a model returns.
template <class Y>
constexpr auto output_specs(const Y& y) {
    using pack = tapegraph::detail::output_pack<Y>;
    std::array<tensor_spec, pack::count> specs{};
    [&]<std::size_t... I>(std::index_sequence<I...>) {
        ((specs[I] = {pack::template get<I>(y).type(), pack::template get<I>(y).shape()}), ...);
    }
    (std::make_index_sequence<pack::count>{});
    return specs;
}

/// Traces labels, the loss (output 0), accuracy if there is one, and metrics, for what a model
/// returns.
template <class Loss, class Y>
constexpr void trace_objective(model_trace& t, const Y& y) {
    using objective = tapegraph::detail::objective<Loss>;
    const auto specs = output_specs(y);
    const auto z = [&]<std::size_t... I>(std::index_sequence<I...>) {
        [[maybe_unused]] const auto labels = [&](int k) {
            const tensor_spec spec = objective::template column<Y>(k, specs.data());
            return graph_node(&t, t.input(labels_name<Loss>(k), spec.type, spec.dims));
        };
        return std::tuple{labels(static_cast<int>(I))...}; // braces evaluate in order
    }
    (std::make_index_sequence<static_cast<std::size_t>(objective::columns)>{});
    t.scope = 0;
    const traced_numbers<static_cast<std::size_t>(objective::count)> numbers(t, "loss");
    const auto& n = numbers.of(specs[0].type);
    graph_node loss;
    const auto add_up = [&](const auto& total) {
        loss = total;
        for (const int each : t.added_losses) loss = eval(loss + graph_node(&t, each));
        const operand_info given = t.info(loss.id());
        for (int i = 0; i < given.dims.rank(); ++i)
            if (given.dims[i].value != 1) t.fail("a loss must be a scalar (reduce it, say with mean)", &given, 1);
        t.outputs.push_back({"loss", loss.id()});
    };
    if constexpr (objective::added_only) {
        if (t.added_losses.empty()) t.fail("added_losses: the model adds none (scope.add_loss)");
        add_up(graph_node(&t, t.constant(0, specs[0].type)));
    } else {
        const auto value = objective::value(y, z, n);
        add_up(value.total);
        const auto accuracy = objective::accuracy(y, z);
        if constexpr (!std::is_same_v<std::remove_cv_t<decltype(accuracy)>, none>)
            t.outputs.push_back({"accuracy", graph_node(accuracy).id()});
        objective::measure(tapegraph::detail::graph_metrics(graph_scope(&t, 0)), y, z, value, n);
        t.scope = 0;
    }
}

/// Models of graphs that are made at run time (compile/traced_model.hpp). What follows the model is
/// compiled once for each loss and each optimizer; the component has the usual ones
/// (train/compiled_traces.hpp).
template <class Model>
concept traced_at_run_time = requires {
    Model::is_traced_at_run_time;
};
template <class Loss, class Y>
void objective_at_run_time(model_trace& t, const Y& y) {
    trace_objective<Loss>(t, y);
}
template <class Optimizer>
void updates_at_run_time(model_trace& t) {
    trace_updates<Optimizer>(t, graph_gradients(&t, t.gradients));
}
template <class Model, class Loss, class Y>
constexpr void trace_objective_of(model_trace& t, const Y& y) {
    if constexpr (traced_at_run_time<Model>)
        objective_at_run_time<Loss, Y>(t, y);
    else
        trace_objective<Loss>(t, y);
}

// Training is traced in three stages, each of which continues the one before: one constant
// evaluation of all would exceed the compilers' limits.

/// The model in training and its loss, output 0.
template <class Model, class Spec, class Loss>
struct forward_trace {
    static constexpr void build(model_trace& t) {
        t.training = true;
        const auto output = trace_model<Model, Spec>(t);
        add_penalties<Model>(t);
        trace_objective_of<Model, Loss>(t, output);
    }
};

/// Whether the gradient of some variable consists of gathered rows.
template <class Model, class Spec, class Loss>
inline constexpr bool gathers_rows = traced_stage<forward_trace<Model, Spec, Loss>>::value.used.row_uses > 0;

/// The loss times a scale, which is a variable of the optimizer in its scope.
template <class T>
constexpr graph_node scaled_loss(model_trace& t, const graph_node& loss, const graph_scope& own, int state_of = 0) {
    if (loss.type() != dtype::f32 && loss.type() != dtype::f64) {
        const operand_info given = t.info(loss.id());
        t.fail("loss_scaling: the loss must be float or double (cast the model's outputs, as tg::mixed does)", &given,
               1);
        return loss;
    }
    const variable_options options{.initializer = init::zeros{}, .trainable = false};
    int made = t.variables.size();
    const graph_node scale = own.reuse().template variable<T>(tapegraph::detail::loss_scale_name, {}, options);
    own.reuse().template variable<T>(tapegraph::detail::good_steps_name, {}, options);
    while (made < t.variables.size()) t.definitions[made++].state_of = state_of;
    return eval(loss * tapegraph::detail::as_type_of(loss, scale));
}

// Implements differentiate_by_variables at run time.
void differentiate_at_run_time(model_trace& t, int loss);

namespace detail {
constexpr void trace_derivatives(model_trace& t, int loss) {
    list<int> nodes, indices, by_rows(t.variables.size(), 0);
    for (const row_use_entry& use : t.row_uses) by_rows[use.variable] = 1;
    for (int i = 0; i < t.variables.size(); ++i) {
        if (!t.variables[i].trainable) continue;
        if (by_rows[i] == 0) nodes.push_back(t.variables[i].node);
        indices.push_back(i);
    }
    const int first_rows = nodes.size();
    for (const row_use_entry& use : t.row_uses) nodes.push_back(use.node);
    const list<int> found = gradient(t, loss, nodes);
    int next = 0;
    for (const int i : indices) {
        const gradient_entry g =
            by_rows[i] != 0 ? detail::row_gradient(t, i, found, first_rows) : gradient_entry{i, found[next++], -1};
        if (g.node >= 0) t.gradients.push_back(g); // without one, the loss does not depend on the variable
    }
    t.row_uses.clear();
}
} // namespace detail

/// Differentiates `loss`, a scalar, by every trainable variable. If a variable is read only by
/// gathered rows, its gradient consists of these rows.
constexpr void differentiate_by_variables(model_trace& t, int loss) {
    TG_RUNS_HERE ? detail::trace_derivatives(t, loss) : differentiate_at_run_time(t, loss);
}
#if TG_DEFINES(nn)
TG_DEFINITION void differentiate_at_run_time(model_trace& t, int loss) { detail::trace_derivatives(t, loss); }
#endif

/// Differentiates the loss by every trainable variable; `Scaled` if an optimizer scales it.
template <class Model, class Spec, class Loss, bool Scaled = false>
struct gradient_trace {
    using previous = forward_trace<Model, Spec, Loss>;
    static constexpr void build(model_trace& t) { differentiate(t, t.outputs[0].node); }
    /// The same for `loss`, a scalar.
    static constexpr void differentiate(model_trace& t, int loss) {
        if (!detail::gathered_only(t)) return;
        if constexpr (Scaled)
            loss = scaled_loss<typename tapegraph::detail::value_type_of<Spec>::type>(t, graph_node(&t, loss),
                                                                                      graph_scope(&t, 0))
                       .id();
        differentiate_by_variables(t, loss);
    }
};

/// Whether metrics accumulate in a variable.
constexpr bool is_metric_state(const model_trace& t, int variable) {
    const std::string_view above = tapegraph::detail::metrics_scope;
    for (int s = t.variables[variable].scope; s > 0; s = t.scopes[s].parent)
        if (t.scopes[s].parent == 0 && t.scopes[s].name == above) return true;
    return false;
}

/// The loss (output 0), accuracy if there is one, the gradients, and what a step would assign;
/// nothing is updated.
template <class Model, class Spec, class Loss>
struct gradient_output_trace {
    using previous = gradient_trace<Model, Spec, Loss>;
    static constexpr void build(model_trace& t) {
        const list<assignment_entry> assigned = t.assignments;
        t.assignments.clear();
        int next = 0;
        graph_gradients(&t, t.gradients).each([&](const auto& slots, const graph_node&, const graph_node& g) {
            int flow = g.id();
            if constexpr (requires { slots.sparse; }) flow = slots.whole(g).id();
            t.outputs.push_back({"gradient", flow, output_role::result, 1 + t.gradients[next++].variable});
        });
        for (const assignment_entry& a : assigned)
            if (!is_metric_state(t, a.variable))
                t.outputs.push_back({"assigned", a.node, output_role::result, 1 + a.variable});
        t.gradients.clear();
    }
};

/// The optimizer's update of every variable that has a gradient.
template <class Model, class Spec, class Loss, class Optimizer>
struct training_trace {
    using previous = gradient_trace<Model, Spec, Loss, tapegraph::detail::scales_loss<Optimizer>()>;
    static constexpr void build(model_trace& t) {
        if constexpr (traced_at_run_time<Model>)
            updates_at_run_time<Optimizer>(t);
        else
            trace_updates<Optimizer>(t, graph_gradients(&t, t.gradients));
        t.gradients.clear();
        apply_constraints<Model>(t);
    }
};

template <class Model, class Spec, class Loss>
struct evaluation_trace {
    static constexpr void build(model_trace& t) {
        t.training = false;
        const auto output = trace_model<Model, Spec>(t);
        t.assignments.clear(); // except those of metrics
        add_penalties<Model>(t);
        trace_objective_of<Model, Loss>(t, output);
    }
};

/// Traces a prediction. `Training`: as in training, for the layer table; `Assigns`: with the assignments
/// of layers.
template <class Model, class Spec, bool Training = false, bool Assigns = false>
struct prediction_trace {
    static constexpr void build(model_trace& t) {
        t.training = Training;
        const auto output = trace_model<Model, Spec>(t);
        using pack = tapegraph::detail::output_pack<std::remove_cv_t<decltype(output)>>;
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            (t.outputs.push_back(
                 {pack::names[I].empty() ? "output" : pack::names[I], pack::template get<I>(output).id()}),
             ...);
        }
        (std::make_index_sequence<pack::count>{});
        if constexpr (!Assigns) t.assignments.clear();
    }
};

} // namespace ir

namespace detail {

/// The element type in which a trace computes: that of its floating inputs; if all inputs are
/// integers, double if it has variables of doubles.
template <class Spec, class Trace>
constexpr auto model_value_type() {
    using of_inputs = value_type_of<Spec>;
    if constexpr (of_inputs::has_floating) {
        return std::type_identity<typename of_inputs::type>{};
    } else {
        using stage = ir::traced_stage<Trace>;
        constexpr bool doubles = [] {
            for (int i = 0; i < stage::value.used.variables; ++i)
                if (stage::value.nodes[stage::value.variables[i].node].type == dtype::f64) return true;
            return false;
        }();
        return std::type_identity<std::conditional_t<doubles, double, float>>{};
    }
}

} // namespace detail
} // namespace tapegraph
