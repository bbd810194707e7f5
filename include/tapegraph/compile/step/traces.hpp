#pragma once

#include <tapegraph/compile/step/scopes.hpp>
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/nn/optimizers/graph_updates.hpp>

#include <string_view>
#include <tuple>
#include <utility>

/// The traces of a custom step: its computation, the gradients of its losses, the updates.

namespace tapegraph::ir {

/// The computation of a step, without its updates.
template <class Step, class Spec>
struct step_trace {
    static constexpr auto call(model_trace& t) {
        const auto x = tapegraph::detail::input_pack<Spec>::map([&](auto spec, std::string_view name) {
            using T = typename decltype(spec)::element_type;
            return graph_node(&t, t.input(name, dtype_of<T>, spec.dims(t.extents)));
        });
        return std::apply(
            [&](const auto&... each) { return tapegraph::detail::sealed_result(Step::get()(graph_step(&t), each...)); },
            x);
    }
    using result = decltype(call(std::declval<model_trace&>()));
    static constexpr void build(model_trace& t) {
        t.training = true;
        const auto y = call(t);
        using pack = tapegraph::detail::output_pack<result>;
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            (t.outputs.push_back({pack::names[I], pack::template get<I>(y).id()}), ...);
        }
        (std::make_index_sequence<pack::count>{});
        t.scope = 0;
        if (t.added_losses.size() > 0)
            t.fail("add_loss: in a step a loss must include it: step.with_added_losses(loss)");
        if (t.minimizations.size() == 0) t.fail("a step minimizes nothing: step.minimize(loss, \"variables\")");
    }
};

/// The scope of the loss scale of a step's optimizer: a step with one optimizer has it where a
/// model has it.
constexpr int step_scale_scope(model_trace& t, int optimizer) {
    return optimizer == 0 ? 0 : optimizer_scope(t, optimizer);
}

/// The gradient of each loss by the variables that it names. `Scaled`: a bit for each optimizer
/// that scales its losses.
template <class Step, class Spec, std::uint64_t Scaled>
struct step_gradients {
    using previous = step_trace<Step, Spec>;
    static constexpr void build(model_trace& t) {
        if (t.row_uses.size() > 0) return t.fail("embeddings with sparse gradients are not supported in custom steps");
        list<int> taken(t.variables.size(), 0);
        int number = 0;
        for (const minimization_entry& m : t.minimizations) {
            t.line = m.line;
            t.scope = 0;
            list<int> nodes, indices;
            for (int i = 0; i < t.variables.size(); ++i) {
                if (!t.variables[i].trainable) continue;
                const list<char> path = detail::path_text(t, i);
                if (!tapegraph::detail::path_matches(m.variables,
                                                     {path.begin(), static_cast<std::size_t>(path.size())}))
                    continue;
                nodes.push_back(t.variables[i].node);
                indices.push_back(i);
            }
            if (nodes.size() == 0) return t.fail("minimize: no trainable variable has a path of this pattern");
            const auto scaled = [&](int loss) {
                if ((Scaled >> m.optimizer & 1) == 0) return loss;
                using T = typename tapegraph::detail::value_type_of<Spec>::type;
                const graph_scope own(&t, step_scale_scope(t, m.optimizer));
                return scaled_loss<T>(t, graph_node(&t, loss), own, m.optimizer + 1).id();
            };
            list<int> found = gradient(t, scaled(m.node), nodes);
            if (t.regularizers.size() > 0) { // penalties are added to the loss that updates the variable
                list<int> changed(t.variables.size(), 0);
                for (int k = 0; k < found.size(); ++k)
                    if (found[k] >= 0) changed[indices[k]] = 1;
                const int penalized = with_penalties<Step>(t, m.node, changed);
                if (penalized != m.node) found = gradient(t, scaled(penalized), nodes);
            }
            for (int k = 0; k < found.size(); ++k) {
                if (found[k] < 0) continue; // the loss does not depend on it
                if (taken[indices[k]] != 0) return t.fail("minimize: two losses of one step change the same variable");
                taken[indices[k]] = 1;
                t.gradients.push_back({indices[k], found[k], -1, m.optimizer, 0, false, number});
            }
            ++number;
        }
        t.minimizations.clear();
    }
};

/// The optimizers' updates.
template <class Step, class Spec, class Optimizers>
struct step_updates;
template <class Step, class Spec, class... Each>
struct step_updates<Step, Spec, optimizers<Each...>> {
    using previous = step_gradients<Step, Spec, optimizers<Each...>::scaled>;
    static constexpr void build(model_trace& t) {
        for (const gradient_entry& g : t.gradients)
            if (g.optimizer < 0 || g.optimizer >= static_cast<int>(sizeof...(Each)))
                return t.fail("minimize: the step has no optimizer of this number");
        int number = 0;
        (update<Each>(t, number++), ...);
        t.gradients.clear();
        apply_constraints<Step>(t);
    }

private:
    template <class Optimizer>
    static constexpr void update(model_trace& t, int number) {
        list<gradient_entry> own;
        for (const gradient_entry& g : t.gradients)
            if (g.optimizer == number) own.push_back(g);
        const bool scales = tapegraph::detail::scales_loss<Optimizer>();
        trace_updates<Optimizer>(t, graph_gradients(&t, own, scales ? step_scale_scope(t, number) : 0));
    }
};

} // namespace tapegraph::ir
