#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/ir/gradient.hpp>
#include <tapegraph/ops/scan/scan.hpp>

/// One step of a scan as a trace of its own: the cell, the cell with the values that its derivative
/// will read, or the derivative. A builder's `build(trace&, operands, attributes, step)` traces one
/// of them. Builders are types, because a scan's kernel is compiled for its builder; what is done with
/// one takes it as a value (step_builder), so that it is compiled once for all of them.

namespace tapegraph::ir {

/// Every derivative of a scan is a scan of another type, so their number must be limited. A forward
/// derivative of a gradient is the third: it transposes the second.
inline constexpr int most_scan_derivatives = 3;

/// Operands are, in this order: `carries` initial states, `sequences` (xs, a mask), `constants`;
/// for each derivative also the values of the forward pass and the adjoint of its result.
struct scan_attributes {
    std::int64_t carries = 0, sequences = 0, constants = 0;
    std::int64_t symbols = 0; ///< bit i: symbol i (an atom of the extent table) is in their shapes
    std::int64_t axis = 0;    ///< the time axis
    std::int64_t recompute = 0;
    std::int64_t cell = 0; ///< which recorded cell it is (graph/scan_cells.hpp); 0 for a type without members
    /// The number of the first draw (an extent, -1: it draws none), and how many draws a step has.
    std::int64_t ordinal = -1, draws = 0;
    std::int64_t
        /// Operands whose derivative is requested, for the first derivative, the second, ...
        wanted[most_scan_derivatives]{};

    constexpr int given() const { return static_cast<int>(carries + sequences + constants); }
};

enum class scan_role : int { carry, sequence, constant };

/// One input of a step. Inputs from the same operand of the scan are stored in it one after
/// another.
struct scan_input {
    scan_role role;
    int node;
    int operand; // -1: zeros, for a carry
    int axis;    // the time axis
    int next;    // for a carry: its new value
};
/// One output of a step: an element along time, or the last value of carry `node`.
struct scan_output {
    scan_role role;
    int node;
    int operand; // the operand whose derivative it is
    int axis;
};
struct scan_step {
    list<scan_input> inputs;
    list<scan_output> outputs;
    std::source_location where{};
};

/// A builder as a value.
struct step_builder {
    void (*build)(trace&, const operand_info*, const scan_attributes&, scan_step&);
    int depth; ///< number of derivatives taken
};
template <class Builder>
inline constexpr step_builder builder_of{&Builder::build, Builder::depth};

// What the component runs (core/component.hpp).
void keep_at_run_time(const step_builder& base, trace& t, const operand_info* in, const scan_attributes& a,
                      scan_step& step);
void differentiate_step_at_run_time(const step_builder& base, trace& t, const operand_info* in,
                                    const scan_attributes& a, scan_step& step);

namespace detail {

/// Turns an error in a step's trace into an error of the trace that contains the scan.
constexpr void adopt_failure(trace& t, const trace& inner) {
    const failure& e = inner.error;
    if (e.what == nullptr || t.error.what != nullptr) return;
    const auto operand = [&](const operand_info& o) {
        return operand_info{o.type, shape(o.dims.rank(), o.dims.data(), &t.extents)};
    };
    t.fail(e.what);
    t.error.operation = e.operation;
    t.error.operands = e.operands;
    t.error.first = operand(e.first);
    t.error.second = operand(e.second);
    if (e.line > 0) t.error.line = t.lines.push_back(inner.lines[e.line]);
}

constexpr shape without_time(const shape& dims, int axis) {
    shape result;
    result.attach(dims.table());
    for (int i = 0; i < dims.rank(); ++i)
        if (i != axis) result.push_back(dims[i]);
    return result;
}

constexpr void refuse_step(trace& t, const char* what, int first, int second) {
    const operand_info in[2]{t.info(first), t.info(second)};
    t.fail(what, in, 2);
}

constexpr void check_cell(trace& t, const node* given, const node* value, int carries, bool masked, int constants,
                          int axis, int first_node) {
    const int first_constant = carries + (masked ? 2 : 1);
    for (int k = 0; k < carries; ++k) {
        const shape before = given[k].shape(), after = value[k].shape();
        bool same = given[k].type() == value[k].type() && before.rank() == after.rank();
        for (int i = 0; same && i < before.rank(); ++i) same = equal_or_required(before[i], after[i]);
        if (!same)
            return refuse_step(t, "scan: the cell's new state has another shape or type than the state", value[k].id(),
                               given[k].id());
    }
    const dtype type = given[0].type();
    const auto valid = [&](const node& n) { return !is_floating(n.type()) || n.type() == type; };
    bool one_type = is_floating(type) && value[carries].type() == type;
    for (int k = 0; k < first_constant + constants; ++k) one_type = one_type && valid(given[k]);
    if (!one_type)
        return refuse_step(t, "scan: state, output and floating-point operands must have one element type",
                           given[0].id(), value[carries].id());
    if (value[carries].rank() < axis)
        return refuse_step(t, "scan: the cell's output has too few axes to have time at its axis", value[carries].id(),
                           given[carries].id());
    for (int k = 0; masked && k <= carries; ++k)
        if (value[k].rank() < given[carries + 1].rank())
            return refuse_step(t, "scan: a state or output has fewer axes than the mask", value[k].id(),
                               given[carries + 1].id());
    for (int i = first_node; i < t.nodes.size(); ++i) {
        if (t.nodes[i].op->kind != operation_kind::effect) continue;
        t.line = t.nodes[i].line;
        return t.fail("scan: in graph mode a cell prints and checks nothing: return what is to be seen as its output");
    }
}

/// Traces a cell. States: the number of tensors in its state's tuple; 0 for a single tensor.
/// `input(type, dims)` appends an input; the nodes of the cell begin at first_node.
template <int States, int Constants, bool Masked, class Cell, class Input>
constexpr void trace_cell(trace& t, const Cell& cell, const operand_info* in, const scan_attributes& a, scan_step& step,
                          int first_node, const Input& input) {
    constexpr int carries = States == 0 ? 1 : States, first_constant = carries + (Masked ? 2 : 1);
    const int axis = static_cast<int>(a.axis);
    node given[first_constant + Constants];
    for (int k = 0; k < first_constant + Constants; ++k) {
        const scan_role role = k < carries          ? scan_role::carry
                               : k < first_constant ? scan_role::sequence
                                                    : scan_role::constant;
        const shape dims = role == scan_role::sequence ? without_time(in[k].dims, axis) : in[k].dims;
        given[k] = {&t, input(in[k].type, dims)};
        step.inputs.push_back({role, given[k].id(), k, axis, -1});
    }
    const auto results = [&]<std::size_t... S, std::size_t... W>(std::index_sequence<S...>, std::index_sequence<W...>) {
        if constexpr (States == 0)
            return tapegraph::detail::sealed_step<node>(
                cell(given[0], given[carries], given[first_constant + static_cast<int>(W)]...), step.where);
        else
            return tapegraph::detail::sealed_step<std::tuple<decltype(given[S])...>>(
                cell(std::tuple(given[S]...), given[carries], given[first_constant + static_cast<int>(W)]...),
                step.where);
    }
    (std::make_index_sequence<carries>{}, std::make_index_sequence<Constants>{});
    node value[carries + 1];
    [&]<std::size_t... I>(std::index_sequence<I...>) { ((value[I] = std::get<I>(results)), ...); }
    (std::make_index_sequence<carries + 1>{});
    check_cell(t, given, value, carries, Masked, Constants, axis, first_node);
    if (t.error.what != nullptr) return;
    if constexpr (Masked) {
        for (int k = 0; k < carries; ++k)
            value[k] = tapegraph::detail::where_counted(given[carries + 1], value[k], given[k], step.where);
        // The previous output is part of the state, because masked steps repeat it.
        const node before(&t, input(value[carries].type(), value[carries].shape()));
        value[carries] = tapegraph::detail::where_counted(given[carries + 1], value[carries], before, step.where);
        step.inputs.push_back({scan_role::carry, before.id(), -1, 0, value[carries].id()});
    }
    step.outputs.push_back({scan_role::sequence, value[carries].id(), -1, axis});
    for (int k = 0; k < carries; ++k) {
        step.inputs[k].next = value[k].id();
        step.outputs.push_back({scan_role::carry, k, -1, 0});
    }
}

} // namespace detail

/// The user's cell, a type without members.
template <class Cell, int States, int Constants, bool Masked>
struct scan_cell {
    static constexpr int depth = 0; // number of derivatives taken

    static constexpr void build(trace& t, const operand_info* in, const scan_attributes& a, scan_step& step) {
        detail::trace_cell<States, Constants, Masked>(
            t, Cell{}, in, a, step, 0, [&](dtype type, const shape& dims) { return t.input("", type, dims); });
    }
};

namespace detail {

/// A step's derivative, traced after the step.
struct scan_pullback {
    list<scan_input> adjoints; // adjoints of outputs, and of carries whose last value is not an output
    list<int> of_carry;        // per input: its adjoint, a carry in reverse time
    list<int> flows;           // per input: its derivative, -1 where there is none
    list<int> kept;            // nodes of the step that the derivative reads and the forward pass keeps
};

/// The nodes that the forward pass keeps for the derivative: the states, and the sealed values that
/// the derivative reads, unless they are to be recomputed.
constexpr list<int> values_to_keep(const trace& t, const scan_step& step, const list<int>& flows, int boundary,
                                   bool recompute) {
    const dtype type = t.nodes[step.inputs[0].node].type;
    list<int> state(boundary, 0), seen(t.nodes.size(), 0), open, kept;
    for (const scan_input& input : step.inputs)
        if (input.role == scan_role::carry) state[input.node] = 1;
    for (const int flow : flows)
        if (flow >= 0) open.push_back(flow);
    while (!open.empty()) {
        const int id = open.back();
        open.pop_back();
        if (seen[id] != 0) continue;
        seen[id] = 1;
        const entry& e = t.nodes[id];
        const bool moved = e.op->kind == operation_kind::leaf || e.op->kind == operation_kind::view || e.op->identity;
        if (id < boundary && (state[id] != 0 || (!recompute && !moved && e.sealed && e.type == type)))
            seen[id] = 2;
        else
            for (int k = 0; k < e.arguments; ++k) open.push_back(t.argument(id, k));
    }
    for (int id = 0; id < boundary; ++id)
        if (seen[id] == 2) kept.push_back(id);
    return kept;
}

/// `from`: the operand that holds the adjoints of the step's outputs.
constexpr scan_pullback pull_back(trace& t, const scan_step& step, bool recompute, int from) {
    const int boundary = t.nodes.size();
    scan_pullback back;
    back.of_carry.resize(step.inputs.size(), -1);
    list<int> ys, seeds, sources, source_of(step.inputs.size(), -1);
    const auto adjoint = [&](scan_role role, int like, int operand, int axis) {
        const shape dims = t.dims(like);
        const int id = t.input("", t.nodes[like].type, dims);
        seeds.push_back(id);
        return back.adjoints.push_back({role, id, operand, axis, -1});
    };
    const auto of_carry = [&](int k, int operand) {
        ys.push_back(step.inputs[k].next);
        back.of_carry[k] = adjoint(scan_role::carry, step.inputs[k].node, operand, 0);
    };
    for (const scan_output& output : step.outputs) {
        if (output.role == scan_role::carry) {
            of_carry(output.node, from);
        } else {
            ys.push_back(output.node);
            adjoint(scan_role::sequence, output.node, from, output.axis);
        }
    }
    for (int k = 0; k < step.inputs.size(); ++k) {
        const scan_input input = step.inputs[k];
        if (input.role == scan_role::carry && back.of_carry[k] < 0) of_carry(k, -1);
        if (is_floating(t.nodes[input.node].type)) source_of[k] = sources.push_back(input.node);
    }
    const list<int> found = pullback(t, ys, seeds, sources);
    back.flows.resize(step.inputs.size(), -1);
    for (int k = 0; k < step.inputs.size(); ++k)
        if (source_of[k] >= 0) back.flows[k] = found[source_of[k]];
    back.kept = values_to_keep(t, step, back.flows, boundary, recompute);
    return back;
}

constexpr void traced_keeping(const step_builder& base, trace& t, const operand_info* in, const scan_attributes& a,
                              scan_step& step) {
    list<int> kept;
    {
        trace scratch;
        scratch.extents = t.extents;
        scan_step inner;
        inner.where = step.where;
        base.build(scratch, in, a, inner);
        if (scratch.error.what == nullptr) kept = pull_back(scratch, inner, a.recompute != 0, 0).kept;
        adopt_failure(t, scratch);
    }
    if (t.error.what != nullptr) return;
    scan_step inner;
    inner.where = step.where;
    base.build(t, in, a, inner);
    step.inputs = inner.inputs;
    for (const int id : kept) step.outputs.push_back({scan_role::sequence, id, -1, 0});
    for (const scan_output& output : inner.outputs) step.outputs.push_back(output);
}

constexpr void traced_derivative(const step_builder& builder, trace& t, const operand_info* in,
                                 const scan_attributes& a, scan_step& step) {
    const int record = a.given() + 2 * builder.depth;
    const auto wanted = [&](int operand) {
        return operand >= 0 && (operand >= 64 || (a.wanted[builder.depth] >> operand & 1) != 0);
    };
    scan_step base;
    base.where = step.where;
    builder.build(t, in, a, base);
    if (t.error.what != nullptr) return;
    const scan_pullback back = pull_back(t, base, a.recompute != 0, record + 1);
    if (t.error.what != nullptr) return;
    step.inputs = back.adjoints;
    for (const int id : back.kept) {
        // Reads kept values instead of recomputing them.
        entry& e = t.nodes[id];
        e.op = &descriptor_of<input_op>;
        e.arguments = 0;
        e.words = t.words.push_back(0);
        step.inputs.push_back({scan_role::sequence, id, record, 0, -1});
    }
    for (const scan_input& input : base.inputs)
        if (input.role != scan_role::carry) step.inputs.push_back(input);
    for (int k = 0; k < base.inputs.size(); ++k) {
        const scan_input of = base.inputs[k];
        if (!is_floating(t.nodes[of.node].type)) continue;
        const int flow = back.flows[k] >= 0 ? back.flows[k] : zeros_like(t, of.node);
        if (of.role == scan_role::carry) {
            step.inputs[back.of_carry[k]].next = flow;
            if (wanted(of.operand)) step.outputs.push_back({scan_role::carry, back.of_carry[k], of.operand, 0});
        } else if (wanted(of.operand) && of.role == scan_role::sequence) {
            step.outputs.push_back({scan_role::sequence, flow, of.operand, of.axis});
        } else if (wanted(of.operand)) {
            const shape dims = t.dims(of.node);
            const int sum = t.input("", t.nodes[of.node].type, dims), terms[2]{sum, flow};
            const int next = t.map(descriptor_of<add_op>, terms, 2);
            step.outputs.push_back(
                {scan_role::carry, step.inputs.push_back({scan_role::carry, sum, -1, 0, next}), of.operand, 0});
        }
    }
}

} // namespace detail

/// A step that also returns, before its results, the values that its derivative reads.
template <class Base>
struct scan_keeping {
    static constexpr int depth = Base::depth;

    static constexpr void build(trace& t, const operand_info* in, const scan_attributes& a, scan_step& step) {
        TG_RUNS_HERE ? detail::traced_keeping(builder_of<Base>, t, in, a, step)
                     : keep_at_run_time(builder_of<Base>, t, in, a, step);
    }
};

/// The derivative of a step, run from the last to the first: its carries are the adjoints of the
/// step's carries, and the accumulated adjoints of its constants.
template <class Base>
struct scan_vjp {
    static constexpr int depth = Base::depth + 1;

    static constexpr void build(trace& t, const operand_info* in, const scan_attributes& a, scan_step& step) {
        TG_RUNS_HERE ? detail::traced_derivative(builder_of<Base>, t, in, a, step)
                     : differentiate_step_at_run_time(builder_of<Base>, t, in, a, step);
    }
};

#if TG_DEFINES(graph)
TG_DEFINITION void keep_at_run_time(const step_builder& base, trace& t, const operand_info* in,
                                    const scan_attributes& a, scan_step& step) {
    detail::traced_keeping(base, t, in, a, step);
}
TG_DEFINITION void differentiate_step_at_run_time(const step_builder& base, trace& t, const operand_info* in,
                                                  const scan_attributes& a, scan_step& step) {
    detail::traced_derivative(base, t, in, a, step);
}
#endif

} // namespace tapegraph::ir
