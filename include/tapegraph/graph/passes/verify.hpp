#pragma once

#include <tapegraph/graph/passes/schedule.hpp>
#include <tapegraph/graph/passes/slices.hpp>
#include <tapegraph/ir/node.hpp>
#include <tapegraph/ops/movement/layout.hpp>

/// The verifier: the invariants of traces and schedules that every pass may rely on and must
/// preserve. Tests run it between passes, at run time and in static_assert; other programs do not
/// pay for it.

namespace tapegraph::ir {

/// Null, or the problem and its place: a node, or a step of the schedule.
struct finding {
    const char* what = nullptr;
    int at = -1;

    constexpr bool ok() const { return what == nullptr; }
};

namespace detail {

constexpr bool within(int first, int count, int size) { return first >= 0 && count >= 0 && first + count <= size; }

// Extents are numbers or polynomials in the table.
constexpr bool valid_extents(const trace& t, int i) {
    const entry& e = t.nodes[i];
    for (int axis = 0; axis < e.rank; ++axis) {
        const std::int64_t value = t.pool[e.dims + axis];
        if (is_symbolic(value) ? tapegraph::detail::symbolic_index(value) >= t.extents.polynomials.size() : value < 0)
            return false;
    }
    return true;
}

constexpr const char* leaf_problem(const trace& t, int i) {
    const entry& e = t.nodes[i];
    if (e.arguments != 0) return "a leaf has arguments";
    const std::int64_t word = t.words[e.words];
    if (t.is(i, descriptor_of<input_op>)) {
        if (word < 0 || word >= t.inputs.size()) return "an input's index is outside the table";
        if (t.inputs[static_cast<int>(word)].node != i) return "the table of inputs names another node";
    } else if (t.is(i, descriptor_of<variable_op>)) {
        if (word < 0 || word >= t.variables.size()) return "a variable's index is outside the table";
        if (t.variables[static_cast<int>(word)].node != i) return "the table of variables names another node";
        for (int axis = 0; axis < e.rank; ++axis)
            if (is_symbolic(t.pool[e.dims + axis])) return "a variable's extents are not numbers";
    } else if (t.is(i, descriptor_of<constant_op>)) {
        if (e.rank != 0) return "a constant is not a scalar";
    } else if (t.is(i, descriptor_of<extent_op>)) {
        if (e.rank != 0) return "an extent is not a scalar";
        if (is_symbolic(word) && tapegraph::detail::symbolic_index(word) >= t.extents.polynomials.size())
            return "an extent is unknown to the table";
    } else {
        return "a leaf of unknown kind";
    }
    return nullptr;
}

constexpr const char* map_problem(trace& t, int i) {
    const entry e = t.nodes[i];
    const int first = e.op->conditions < e.arguments ? e.op->conditions : 0;
    const dtype common = t.nodes[t.argument(i, first)].type;
    shape result = t.dims(t.argument(i, 0));
    bool valid = true;
    for (int k = 0; k < e.arguments; ++k) {
        const int argument = t.argument(i, k);
        if (t.nodes[argument].type != (k < e.op->conditions ? dtype::boolean : common))
            return "element types of operands differ";
        result = broadcast(result, t.dims(argument), valid);
    }
    if (!valid) return "shapes do not broadcast";
    if (e.type != e.op->result_type(common)) return "the element type is not the operation's";
    if (t.is(i, descriptor_of<broadcast_op>)) result = broadcast(result, t.dims(i), valid);
    return valid && result == t.dims(i) ? nullptr : "the shape is not that of the broadcast operands";
}

// Repeats the shape rule with the node's own shape as the target.
constexpr const char* rule_problem(trace& t, int i) {
    const entry e = t.nodes[i];
    list<operand_info> in(e.arguments);
    for (int k = 0; k < e.arguments; ++k) in[k] = t.info(t.argument(i, k));
    const shape own = t.dims(i);
    inference io{in.begin(), e.arguments, &own, e.arguments > 0 ? in[0].type : e.type, {}, nullptr};
    e.op->infer(t.words_of(i), io);
    if (io.error != nullptr) return io.error;
    if (io.type != e.type) return "the element type is not that of the shape rule";
    return io.result == own ? nullptr : "the shape is not that of the shape rule";
}

constexpr const char* node_problem(trace& t, int i) {
    const entry e = t.nodes[i];
    if (!within(e.first_argument, e.arguments, t.arguments.size())) return "arguments are outside the pool";
    if (e.rank > max_rank || !within(e.dims, e.rank, t.pool.size())) return "extents are outside the pool";
    const bool leaf = e.op->kind == operation_kind::leaf;
    if (!within(e.words, leaf ? 1 : e.op->words, t.words.size()) && (leaf || e.op->words > 0))
        return "attributes are outside the pool";
    if (!within(e.scope, 1, t.scopes.size())) return "the scope is unknown";
    if (!within(e.line, 1, t.lines.size())) return "the source line is unknown";
    if (!within(e.group, 1, t.groups)) return "the group is unknown";
    if (!valid_extents(t, i)) return "an extent is neither a number nor known to the table";
    for (int k = 0; k < e.arguments; ++k)
        if (t.argument(i, k) < 0 || t.argument(i, k) >= i) return "an argument does not precede its user";
    if (leaf) return leaf_problem(t, i);
    if (e.op->arity != any_arity && e.arguments != e.op->arity) return "the number of arguments is not the operation's";
    if (e.op->kind != operation_kind::map && !e.sealed) return "a value that is not elementwise is not sealed";
    if (t.is(i, descriptor_of<slice_view_op>) && !in_one_piece(t, i)) return "a view's elements are not in one piece";
    return e.op->kind == operation_kind::map ? map_problem(t, i) : rule_problem(t, i);
}

constexpr finding table_problem(const trace& t) {
    const int count = t.nodes.size();
    for (const input_entry& input : t.inputs)
        if (!within(input.node, 1, count) || !t.is(input.node, descriptor_of<input_op>))
            return {"an entry of the inputs is not an input", input.node};
    for (const variable_entry& variable : t.variables) {
        if (!within(variable.node, 1, count) || !t.is(variable.node, descriptor_of<variable_op>))
            return {"an entry of the variables is not a variable", variable.node};
        if (!within(variable.scope, 1, t.scopes.size())) return {"a variable's scope is unknown", variable.node};
    }
    for (const output_entry& output : t.outputs)
        if (!within(output.node, 1, count)) return {"an output is not a node", output.node};
    for (int i = 0; i < t.assignments.size(); ++i) {
        const assignment_entry update = t.assignments[i];
        if (!within(update.node, 1, count)) return {"an assigned value is not a node", update.node};
        if (!within(update.variable, 1, t.variables.size())) return {"an assigned variable is unknown", update.node};
        const int target = t.variables[update.variable].node;
        if (!t.same_shape(target, update.node) || t.nodes[target].type != t.nodes[update.node].type)
            return {"an assigned value does not have the variable's shape and type", update.node};
        for (int k = 0; k < i; ++k)
            if (t.assignments[k].variable == update.variable) return {"a variable is assigned twice", update.node};
    }
    for (int i = 1; i < t.scopes.size(); ++i)
        if (t.scopes[i].parent < 0 || t.scopes[i].parent >= i) return {"a scope does not follow its parent", -1};
    return {};
}

} // namespace detail

/// Checks a trace: arguments precede users, arities, pools, shapes and types (by repeating every
/// shape rule), and the tables of inputs, variables, outputs and assignments. The trace is
/// unchanged afterwards.
constexpr finding verify(trace& t) {
    const extent_table symbols = t.extents; // rules may record requirements a second time
    finding result;
    for (int i = 0; result.ok() && i < t.nodes.size(); ++i) result = {detail::node_problem(t, i), i};
    if (result.ok()) result = detail::table_problem(t);
    t.extents = symbols;
    return result;
}

namespace detail {

constexpr finding step_problem(const trace& t, const schedule& s, int at, list<int>& ready) {
    const step_entry step = s.steps[at];
    const int count = t.nodes.size();
    if (!within(step.kernel, 1, s.kernels.size())) return {"a step's kernel is unknown", at};
    if (!within(step.first_value, step.inputs + step.outputs, s.values.size()))
        return {"values are outside the pool", at};
    if (step.outputs < 1) return {"a step has no result", at};
    for (int k = 0; k < step.inputs + step.outputs; ++k)
        if (!within(s.values[step.first_value + k], 1, count)) return {"a value of a step is not a node", at};
    for (int k = 0; k < step.inputs; ++k)
        if (ready[s.alias[s.values[step.first_value + k]]] == 0) return {"a step reads what has not been computed", at};
    if (!within(step.node, 1, count) || s.values[step.first_value + step.inputs] != step.node)
        return {"a step's node is not its first result", at};
    if (!within(step.domain, 1, count)) return {"a step's domain is not a node", at};
    const kernel_entry kernel = s.kernels[step.kernel];
    if (!within(kernel.first_word, kernel.words, s.kernel_words.size())) return {"a region is outside the pool", at};
    if (kernel.kind != static_cast<int>(kernel_kind::region) && s.ops[kernel.op] != t.nodes[step.node].op)
        return {"a step's kernel is another operation's", at};
    if (kernel.kind != static_cast<int>(kernel_kind::operation)) {
        const region_view region{&s.kernel_words[kernel.first_word]};
        if (region.slots() != step.inputs) return {"a region has another number of slots", at};
        for (int k = 0; k < step.inputs; ++k)
            if (region.slot_type(k) != t.nodes[s.values[step.first_value + k]].type)
                return {"a region's slot has another element type", at};
        if (region.results() != step.outputs) return {"a region has another number of results", at};
    }
    for (int k = step.inputs; k < step.inputs + step.outputs; ++k) {
        int& mark = ready[s.values[step.first_value + k]];
        if (mark != 0) return {"a value is computed twice", at};
        mark = 1;
    }
    return {};
}

} // namespace detail

/// Checks a schedule of a trace: aliases lead to the buffer they view, every step reads only
/// results of earlier steps or feeds, nothing is computed twice, and all requested values are
/// computed.
constexpr finding verify(const trace& t, const schedule& s) {
    const int count = t.nodes.size();
    if (s.alias.size() != count) return {"aliases and nodes differ in number", -1};
    list<int> ready(count, 0);
    for (int i = 0; i < count; ++i) {
        const int root = s.alias[i];
        if (root < 0 || root > i) return {"an alias does not precede its view", i};
        if (s.alias[root] != root) return {"an alias is itself a view", i};
        if (root != i && t.nodes[i].op->kind != operation_kind::view) return {"only views share a buffer", i};
        if (t.nodes[i].op->kind == operation_kind::leaf) ready[i] = 1;
    }
    for (int at = 0; at < s.steps.size(); ++at)
        if (const finding f = detail::step_problem(t, s, at, ready); !f.ok()) return f;
    for (const output_entry& output : t.outputs)
        if (ready[s.alias[output.node]] == 0) return {"an output is not computed", output.node};
    for (const assignment_entry& update : t.assignments)
        if (ready[s.alias[update.node]] == 0) return {"an assigned value is not computed", update.node};
    return {};
}

} // namespace tapegraph::ir
