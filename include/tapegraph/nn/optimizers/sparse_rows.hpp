#pragma once

#include <tapegraph/model/path_matches.hpp>
#include <tapegraph/model/scope.hpp>
#include <tapegraph/model/shared_terms.hpp>
#include <tapegraph/ops/gather/rows.hpp>
#include <tapegraph/ops/movement/fill.hpp>

/// An optimizer's view of a variable in graph mode: all of it, or the rows that a step has
/// gathered. Other rows keep their weights and their optimizer state.

namespace tapegraph::ir {

namespace detail {
/// The path of a variable as text, to match patterns.
constexpr list<char> path_text(const model_trace& t, int variable) {
    list<std::string_view> names;
    list<int> indices;
    names.push_back(t.variables[variable].name);
    indices.push_back(-1);
    for (int s = t.variables[variable].scope; s > 0; s = t.scopes[s].parent) {
        names.push_back(t.scopes[s].name);
        indices.push_back(t.scopes[s].index);
    }
    list<char> text;
    for (int i = names.size() - 1; i >= 0; --i) {
        char digits[12]{};
        int count = 0;
        for (int k = indices[i]; k > 0 || (k == 0 && count == 0); k /= 10)
            digits[count++] = static_cast<char>('0' + k % 10);
        for (const char c : names[i]) text.push_back(c);
        if (count > 0 && !names[i].empty()) text.push_back('_');
        while (count > 0) text.push_back(digits[--count]);
        if (i > 0) text.push_back('/');
    }
    return text;
}
} // namespace detail

/// The state of an optimizer for one variable, as graph nodes.
class graph_slots {
public:
    /// In a session's model `optimizer` is its index, and `number` its index among those that
    /// update the variable.
    constexpr graph_slots(graph_scope scope, int variable, int optimizer = 0, int number = 0)
        : scope_(scope), variable_(variable), optimizer_(optimizer), number_(number) {}
    /// Returns the same node when it is requested again.
    constexpr graph_node state(const graph_node& w, std::string_view name) const {
        model_trace& t = scope_.owner();
        const variable_entry v = t.variables[variable_];
        const graph_scope first = graph_scope(&t, v.scope) / v.name, own = number_ > 0 ? first / number_ : first;
        for (int i = t.members[own.index()].last_variable; i > 0; i = t.definitions[i - 1].previous)
            if (t.variables[i - 1].name == name) return {&t, t.variables[i - 1].node};
        const graph_node made = own.variable_like(w, name, w.shape(), {init::zeros{}, false});
        t.definitions.back().state_of = optimizer_ + 1;
        return made;
    }
    constexpr void assign(const graph_node& target, const auto& value) const { scope_.assign(target, value); }
    /// Whether the variable's path matches a pattern, as in variable_list::set_trainable.
    constexpr bool matches(std::string_view pattern) const {
        const list<char> text = detail::path_text(scope_.owner(), variable_);
        return tapegraph::detail::path_matches(pattern, {text.begin(), static_cast<std::size_t>(text.size())});
    }

private:
    graph_scope scope_;
    int variable_, optimizer_, number_;
};

/// An optimizer's view of some rows of one variable: state is gathered by the same indices, and assignments write rows.
class graph_row_slots {
public:
    static constexpr bool sparse = true;
    constexpr graph_row_slots(const graph_slots& slots, const graph_node& table, const graph_node& indices)
        : slots_(slots), table_(table), indices_(indices) {}

    constexpr graph_node state(const graph_node&, std::string_view name) const {
        return rows_of(slots_.state(table_, name));
    }
    /// `target`: the gathered rows of the variable or of its state.
    constexpr void assign(const graph_node& target, const auto& value) const {
        trace& t = target.owner();
        const graph_node whole(&t, t.argument(target.id(), 0));
        slots_.assign(whole, assign_rows(whole, indices_, eval(value)));
    }
    constexpr graph_node rows_of(const graph_node& table) const { return gather(table, indices_, 0, 0); }
    /// Expands a derivative by these rows to one by the whole variable.
    constexpr graph_node whole(const graph_node& rows) const {
        return eval(assign_rows(zeros_like(table_), indices_, rows));
    }
    constexpr bool matches(std::string_view pattern) const { return slots_.matches(pattern); }

private:
    graph_slots slots_;
    graph_node table_, indices_;
};

namespace detail {

/// Whether only the gathers in t.row_uses read their variables; otherwise fails the trace.
constexpr bool gathered_only(model_trace& t) {
    list<int> noted(t.nodes.size(), 0);
    for (const row_use_entry& use : t.row_uses) noted[use.node] = noted[t.variables[use.variable].node] = 1;
    for (int i = 0; i < t.nodes.size(); ++i)
        for (int k = 0; noted[i] == 0 && k < t.nodes[i].arguments; ++k) {
            const int table = t.argument(i, k);
            if (!t.is(table, descriptor_of<variable_op>) || noted[table] == 0) continue;
            const operand_info in = t.info(table);
            t.scope = t.variables[static_cast<int>(t.words_of(table)[0])].scope;
            t.line = t.nodes[i].line;
            t.fail("a variable with sparse gradients is read otherwise than by gather_rows", &in, 1);
            return false;
        }
    return true;
}

/// Combines dL/d(rows) of each use of a variable to dL/d(rows of the variable) and their indices.
/// `first`: the index of the variable's uses in `found`, which holds dL/d(rows) of t.row_uses, -1
/// where the loss does not depend on them. The result has node -1 if it depends on none.
constexpr gradient_entry row_gradient(model_trace& t, int variable, const list<int>& found, int first) {
    bool any = false;
    for (int k = 0; k < t.row_uses.size(); ++k)
        any = any || (t.row_uses[k].variable == variable && found[first + k] >= 0);
    if (!any) return {variable, -1, -1};
    list<graph_node> rows, indices;
    for (int k = 0; k < t.row_uses.size(); ++k) {
        const row_use_entry use = t.row_uses[k];
        if (use.variable != variable) continue;
        const int flow = found[first + k];
        rows.push_back({&t, flow >= 0 ? flow : zeros_like(t, use.node)});
        indices.push_back({&t, t.argument(use.node, 1)});
        if (indices.back().type() != indices[0].type())
            t.fail("gather_rows: indices into one variable must be of one type");
    }
    const int rest_axes = t.nodes[t.variables[variable].node].rank - 1;
    const graph_node where = tapegraph::detail::rows_together(indices.begin(), indices.size(), 0);
    const graph_node all = tapegraph::detail::rows_together(rows.begin(), rows.size(), rest_axes);
    return {variable, graph_node(sum_of_equal_rows(all, where)).id(), where.id()};
}

} // namespace detail

} // namespace tapegraph::ir
