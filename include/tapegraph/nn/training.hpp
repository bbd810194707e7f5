#pragma once

#include <tapegraph/nn/losses.hpp>
#include <tapegraph/nn/optimizers.hpp>
#include <tapegraph/nn/scope.hpp>
#include <tapegraph/nn/spec.hpp>

/// What a compiled model's programs trace: training, evaluation, prediction. The same functions run at compile time for
/// graph mode's programs and at run time for variables and the layer table.

namespace tapegraph {

/// No loss or optimizer: the model only predicts.
struct none {};

namespace ir {

/// State of an optimizer for one variable, as graph nodes.
class graph_slots {
public:
    constexpr graph_slots(graph_scope scope) : scope_(scope) {}
    constexpr graph_node state(const graph_node& w, std::string_view name) const {
        trace& t = scope_.owner();
        const variable_entry v = t.variables[static_cast<int>(t.words_of(w.id())[0])];
        return (graph_scope(&t, v.scope) / v.name).variable_like(w, name, w.shape(), {init::zeros{}, false});
    }
    constexpr void assign(const graph_node& target, const auto& value) const { scope_.assign(target, value); }

private:
    graph_scope scope_;
};

template <class Model, class Spec>
constexpr graph_node trace_model(trace& t) {
    const graph_scope root(&t, 0);
    const graph_node x(&t, t.input("input", dtype_of<typename Spec::element_type>, Spec::dims(t.extents)));
    return eval(Model::get()(root, x));
}

template <class Loss>
constexpr void trace_loss(trace& t, const graph_node& output, graph_node& loss) {
    const tensor_spec spec = Loss::labels(output.type(), output.shape());
    const graph_node labels(&t, t.input("labels", spec.type, spec.dims));
    t.scope = 0;
    loss = eval(Loss{}(output, labels));
    t.outputs.push_back({"loss", loss.id()});
    if constexpr (requires { Loss::accuracy(output, labels); })
        t.outputs.push_back({"accuracy", graph_node(eval(Loss::accuracy(output, labels))).id()});
}

/// Forward, loss, gradient by every trainable variable, and the optimizer's update.
template <class Model, class Spec, class Loss, class Optimizer>
struct training_trace {
    static constexpr void build(trace& t) {
        t.training = true;
        const graph_node output = trace_model<Model, Spec>(t);
        graph_node loss;
        trace_loss<Loss>(t, output, loss);
        if (t.error.what != nullptr) return;
        list<int> trainable;
        for (const variable_entry& v : t.variables)
            if (v.trainable) trainable.push_back(v.node);
        const list<int> gradients = gradient(t, loss.id(), trainable);
        const graph_scope root(&t, 0);
        graph_node wide[Optimizer::count]{};
        for (graph_node& n : wide) n = graph_node(&t, t.input("optimizer", dtype::f64, {}, true));
        graph_node narrow[Optimizer::count]{};
        for (int i = 0; i < Optimizer::count; ++i) narrow[i] = eval(cast<float>(wide[i]));
        for (int i = 0; i < trainable.size(); ++i) {
            if (gradients[i] < 0) continue; // the loss does not depend on it
            const graph_node w(&t, trainable[i]), g(&t, gradients[i]);
            t.scope = t.variables[static_cast<int>(t.words_of(w.id())[0])].scope;
            Optimizer::update(graph_slots(root), w, g, w.type() == dtype::f64 ? wide : narrow);
        }
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
