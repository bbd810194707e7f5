#pragma once

#include <tapegraph/core/fixed_string.hpp>
#include <tapegraph/nn/losses.hpp>
#include <tapegraph/nn/optimizers.hpp>
#include <tapegraph/nn/sparse_rows.hpp>
#include <tapegraph/nn/spec.hpp>

#include <array>
#include <string_view>

/// What a compiled model's programs trace: training, evaluation, prediction. The same functions run at compile time for
/// graph mode's programs and at run time for variables and the layer table.

namespace tapegraph {

/// No loss or optimizer: the model only predicts.
struct none {};

namespace ir {

template <class Model, class Spec>
constexpr graph_node trace_model(trace& t) {
    const graph_scope root(&t, 0);
    const graph_node x(&t, t.input("input", dtype_of<typename Spec::element_type>, Spec::dims(t.extents)));
    return eval(Model::get()(root, x));
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
/// What messages call the second input.
template <class Loss>
inline constexpr auto labels_name = [] {
    constexpr std::string_view before = "labels of ", loss = type_name<Loss>();
    fixed_string<before.size() + loss.size() + 1> s;
    std::size_t size = 0;
    for (const char c : before) s.text[size++] = c;
    for (const char c : loss) s.text[size++] = c;
    s.text[size] = 0;
    return s;
}();

template <class Loss>
constexpr void trace_loss(trace& t, const graph_node& output, graph_node& loss) {
    const tensor_spec spec = Loss::labels(output.type(), output.shape());
    const graph_node labels(&t, t.input(labels_name<Loss>.view(), spec.type, spec.dims));
    t.scope = 0;
    loss = eval(Loss{}(output, labels));
    const operand_info given = t.info(loss.id());
    for (int i = 0; i < given.dims.rank(); ++i)
        if (given.dims[i].value != 1) t.fail("a loss must be a scalar (reduce it, say with mean)", &given, 1);
    t.outputs.push_back({"loss", loss.id()});
    if constexpr (requires { Loss::accuracy(output, labels); })
        t.outputs.push_back({"accuracy", graph_node(eval(Loss::accuracy(output, labels))).id()});
}

// Training is traced in three stages, each of which continues the one before: together they would exceed what compilers
// allow one constant evaluation.

/// The model in training and its loss, output 0.
template <class Model, class Spec, class Loss>
struct forward_trace {
    static constexpr void build(trace& t) {
        t.training = true;
        const graph_node output = trace_model<Model, Spec>(t);
        graph_node loss;
        trace_loss<Loss>(t, output, loss);
    }
};

/// The loss differentiated by every trainable variable.
template <class Model, class Spec, class Loss>
struct gradient_trace {
    using previous = forward_trace<Model, Spec, Loss>;
    static constexpr void build(trace& t) {
        if (!detail::gathered_only(t)) return;
        list<int> nodes, indices, by_rows(t.variables.size(), 0);
        for (const row_use_entry& use : t.row_uses) by_rows[use.variable] = 1;
        for (int i = 0; i < t.variables.size(); ++i) {
            if (!t.variables[i].trainable) continue;
            if (by_rows[i] == 0) nodes.push_back(t.variables[i].node);
            indices.push_back(i);
        }
        const int first_rows = nodes.size();
        for (const row_use_entry& use : t.row_uses) nodes.push_back(use.node);
        const list<int> found = gradient(t, t.outputs[0].node, nodes);
        int next = 0;
        for (const int i : indices) {
            const gradient_entry g =
                by_rows[i] != 0 ? detail::row_gradient(t, i, found, first_rows) : gradient_entry{i, found[next++], -1};
            if (g.node >= 0) t.gradients.push_back(g); // without one, the loss does not depend on the variable
        }
        t.row_uses.clear();
    }
};

/// An optimizer's update of variables by their gradients; its numbers become inputs of the program.
template <class Optimizer>
constexpr void trace_updates(trace& t, const list<gradient_entry>& gradients) {
    const graph_scope root(&t, 0);
    std::array<graph_node, Optimizer::count> wide{}, narrow{};
    for (graph_node& n : wide) n = graph_node(&t, t.input("optimizer", dtype::f64, {}, true));
    for (std::size_t i = 0; i < wide.size(); ++i) narrow[i] = eval(cast<float>(wide[i]));
    for (const gradient_entry& each : gradients) {
        const graph_node w(&t, t.variables[each.variable].node), g(&t, each.node);
        t.scope = t.variables[each.variable].scope;
        t.place = t.nodes[w.id()].place;
        const auto& numbers = w.type() == dtype::f64 ? wide : narrow;
        const graph_slots whole(root, each.state);
        if (each.indices >= 0) {
            const graph_row_slots slots(whole, w, graph_node(&t, each.indices));
            Optimizer::update(slots, slots.rows_of(w), g, numbers);
        } else {
            Optimizer::update(whole, w, g, numbers);
        }
    }
    t.place = 0;
}

/// The optimizer's update of every variable that has a gradient.
template <class Model, class Spec, class Loss, class Optimizer>
struct training_trace {
    using previous = gradient_trace<Model, Spec, Loss>;
    static constexpr void build(trace& t) {
        const list<gradient_entry> gradients = static_cast<list<gradient_entry>&&>(t.gradients);
        trace_updates<Optimizer>(t, gradients);
        t.gradients.clear();
    }
};

template <class Model, class Spec, class Loss>
struct evaluation_trace {
    static constexpr void build(trace& t) {
        t.training = false;
        const graph_node output = trace_model<Model, Spec>(t);
        graph_node loss;
        trace_loss<Loss>(t, output, loss);
        t.assignments.clear();
    }
};

/// `Training` traces the model as training sees it, for the layer table.
template <class Model, class Spec, bool Training = false>
struct prediction_trace {
    static constexpr void build(trace& t) {
        t.training = Training;
        t.outputs.push_back({"output", trace_model<Model, Spec>(t).id()});
        t.assignments.clear();
    }
};

} // namespace ir
} // namespace tapegraph
