#pragma once

#include <tapegraph/model/scope.hpp>
#include <tapegraph/model/shared_terms.hpp>
#include <tapegraph/nn/optimizers/sparse_rows.hpp>
#include <tapegraph/ops/elementwise/cast.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

/// An optimizer's update of variables, traced.

namespace tapegraph::ir {

/// Numbers that the program sets anew in every step, as they are and as floats.
template <std::size_t Count>
struct traced_numbers {
    std::array<graph_node, Count> wide{}, narrow{};

    constexpr traced_numbers(model_trace& t, std::string_view name) {
        for (graph_node& n : wide) n = graph_node(&t, t.input(name, dtype::f64, {}, true));
        std::transform(wide.begin(), wide.end(), narrow.begin(), [](graph_node n) { return eval(cast<float>(n)); });
    }
    constexpr const std::array<graph_node, Count>& of(dtype type) const { return type == dtype::f64 ? wide : narrow; }
};

/// The gradients of a step, in the form that an optimizer's `shared` receives.
class graph_gradients {
public:
    /// The gradients of the variables that `entries` name, which must outlive it. `common`: the
    /// scope of state that belongs to no variable.
    constexpr graph_gradients(model_trace* t, const list<gradient_entry>& entries, int common = 0)
        : t_(t), entries_(&entries), common_(common) {}
    constexpr int size() const { return entries_->size(); }
    constexpr dtype first_type() const { return t_->nodes[(*entries_)[0].node].type; }

    /// Calls f(slots, variable, gradient) for each.
    constexpr void each(const auto& f) const {
        for (const gradient_entry& each : *entries_) {
            const graph_node w(t_, t_->variables[each.variable].node), g(t_, each.node);
            const graph_slots whole(graph_scope(t_, 0), each.variable, each.optimizer, each.state);
            t_->scope = t_->variables[each.variable].scope;
            t_->compute_where(w.id());
            if (each.indices >= 0) {
                const graph_row_slots slots(whole, w, graph_node(t_, each.indices));
                f(slots, slots.rows_of(w), g);
            } else {
                f(whole, w, g);
            }
        }
        t_->compute_anywhere();
    }
    /// The sum of the scalars f(gradient), or f(slots, variable, gradient), over all variables that are
    /// not frozen, in order. Its element type is that of the first.
    constexpr graph_node sum(const auto& f) const {
        return fold(f, [](const auto& a, const auto& b) { return a + b; });
    }
    /// The same combined by a function of two scalars that returns its first operand where the
    /// second is 0.
    constexpr graph_node fold(const auto& f, const auto& join) const {
        graph_node total;
        int next = 0;
        each([&](const auto& slots, const graph_node& w, const graph_node& g) {
            const graph_node part = tapegraph::detail::term_of(f, slots, w, g);
            const graph_node counted = eval(where(frozen((*entries_)[next++].variable), 0, part));
            total = next == 1 ? counted : eval(join(total, tapegraph::detail::as_type_of(total, counted)));
        });
        return next > 0 ? total : graph_node(t_, t_->constant(0, dtype::f32));
    }

    /// A scalar of the optimizer that belongs to no variable.
    constexpr graph_node common(std::string_view name) const {
        for (const variable_entry& v : t_->variables)
            if (v.scope == common_ && v.name == name) return {t_, v.node};
        t_->fail("loss_scaling: it scales the loss of minimize; gradients from elsewhere are not scaled");
        return {t_, t_->constant(1, first_type())};
    }
    constexpr void assign_common(std::string_view, const graph_node& target, const auto& value) const {
        graph_scope(t_, 0).assign(target, value);
    }

private:
    constexpr graph_node frozen(int variable) const {
        int& input = t_->variables[variable].frozen_input;
        if (input == 0) {
            t_->input("frozen", dtype::boolean, {}, true);
            input = t_->inputs.size();
        }
        return {t_, t_->inputs[input - 1].node};
    }

    model_trace* t_;
    const list<gradient_entry>* entries_;
    int common_;
};

/// The scope of an optimizer, one of several, for state that belongs to no variable.
constexpr int optimizer_scope(model_trace& t, int number) {
    return (graph_scope(&t, 0) / "optimizer" / number).index();
}

/// Updates every variable that has a gradient; numbers are inputs of the program.
template <class Optimizer>
constexpr void trace_updates(model_trace& t, const graph_gradients& gradients) {
    t.scope = 0;
    const traced_numbers<static_cast<std::size_t>(Optimizer::count)> numbers(t, "optimizer");
    if (gradients.size() == 0) return;
    if constexpr (requires { Optimizer::shared(gradients, numbers.wide); }) {
        const auto shared = Optimizer::shared(gradients, numbers.of(gradients.first_type()));
        gradients.each([&](const auto& slots, const graph_node& w, const graph_node& g) {
            Optimizer::update(slots, w, g, numbers.of(w.type()), shared);
        });
    } else {
        gradients.each([&](const auto& slots, const graph_node& w, const graph_node& g) {
            Optimizer::update(slots, w, g, numbers.of(w.type()));
        });
    }
}

} // namespace tapegraph::ir
