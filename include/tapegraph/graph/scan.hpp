#pragma once

#include <tapegraph/graph/scan_cells.hpp>
#include <tapegraph/graph/scan_kernel.hpp>
#include <tapegraph/ops/movement/slice.hpp>
#include <tapegraph/runtime/row_copies.hpp>

/// Scans in a trace. A scan is one node. Its value is a vector of all results, one after another;
/// the results are slices of it. A builder (graph/scan_step.hpp) traces one step when the node is
/// made, to get its shapes, and again when its kernel is compiled (graph/scan_kernel.hpp).

namespace tapegraph::ir {

/// A result within a scan's value.
struct scan_part {
    int operand; // the operand whose derivative it is
    std::int64_t before, size;
    shape dims;
};
struct scan_layout {
    list<scan_part> parts;
    std::int64_t size = 0;
    std::int64_t draws = 0; // of a step
};

/// The operation of a scan, with its builder.
struct scan_operation {
    step_builder step;
    const operation* op;
};

/// The layout of a scan's results, found by tracing its step.
constexpr scan_layout layout_of_scan(const step_builder& builder, trace& t, const scan_attributes& a,
                                     const list<int>& args, std::source_location where = {}) {
    scan_layout layout;
    list<operand_info> in(args.size());
    for (int k = 0; k < args.size(); ++k) in[k] = t.info(args[k]);
    trace step_trace;
    step_trace.extents = t.extents;
    scan_step step;
    step.where = where;
    builder.build(step_trace, in.begin(), a, step);
    t.extents = step_trace.extents;
    detail::adopt_failure(t, step_trace);
    if (t.error.what != nullptr) return layout;
    const extent time = t.dims(args[static_cast<int>(a.carries)])[static_cast<int>(a.axis)];
    extent size(0, &t.extents);
    for (const scan_output& output : step.outputs) {
        const bool carry = output.role == scan_role::carry;
        const entry e = step_trace.nodes[carry ? step.inputs[output.node].node : output.node];
        scan_part part{output.operand, size.value, 0, {}};
        part.dims.attach(&t.extents);
        for (int i = 0; i <= e.rank; ++i) {
            if (!carry && i == output.axis) part.dims.push_back(time);
            if (i < e.rank) part.dims.push_back({step_trace.pool[e.dims + i], &t.extents});
        }
        part.size = part.dims.size().value;
        size = size + extent(part.size, &t.extents);
        layout.parts.push_back(part);
    }
    layout.size = size.value;
    layout.draws = step_trace.ordinals;
    return layout;
}

namespace detail {

constexpr int append_scan(trace& t, const operation& op, const scan_attributes& a, const list<int>& args,
                          std::int64_t size) {
    shape target;
    target.attach(&t.extents);
    target.push_back({size, &t.extents});
    return t.invoke(op, attributes_to_words<has_scan_attributes>(a).value, &target, args.begin(), args.size());
}

constexpr node scan_slice(trace& t, int flat, std::int64_t before, std::int64_t size) {
    return tapegraph::detail::part_of(node(&t, flat), 0, extent(before, &t.extents), extent(size, &t.extents),
                                      std::source_location{});
}
constexpr node scan_result(trace& t, int flat, const scan_part& part) {
    return reshaped(t, scan_slice(t, flat, part.before, part.size).id(), part.dims);
}

/// A value of the target's shape that starts with `front` and is filled with zeros.
constexpr node padded_with_zeros(trace& t, const node& front, int like) {
    const shape target = t.dims(like);
    if (front.shape() == target) return front;
    return invoke<pad_op>(tapegraph::detail::whole_slice(), &target, std::source_location{}, front);
}

} // namespace detail

/// The base of both operations of a scan. Their value is a vector, whose size is passed as the
/// target.
struct scan_value {
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr int arity = any_arity;
    using attributes = scan_attributes;
    static constexpr void infer(const attributes&, inference& io) {
        io.type = io.in[0].type;
        io.result = *io.target;
    }
};

/// A scan that keeps nothing for a derivative. Order is the number of derivatives between the user's
/// scan and this one.
template <class Builder, int Order>
struct scan_op;

template <class Builder, int Order>
constexpr scan_operation operation_of_scan() {
    static_assert(operation_binding<scan_op<Builder, Order>>::bound);
    return {builder_of<Builder>, &descriptor_of<scan_op<Builder, Order>>};
}

/// The derivatives by all operands of a scan, computed by one scan in reverse time. `args` are the
/// scan's operands, the values that the forward pass kept (the value of scan_keeping), and the
/// adjoint of the result.
constexpr list<int> scan_flows(trace& t, const scan_operation& derivative, const scan_attributes& attributes,
                               const list<int>& args, std::uint64_t wanted) {
    scan_attributes a = attributes;
    a.wanted[derivative.step.depth - 1] = static_cast<std::int64_t>(wanted);
    list<int> flows(args.size(), -1);
    const scan_layout layout = layout_of_scan(derivative.step, t, a, args);
    if (t.error.what != nullptr) return flows;
    const int flat = detail::append_scan(t, *derivative.op, a, args, layout.size);
    for (int first = 0, last = 0; first < layout.parts.size(); first = last) {
        const scan_part& part = layout.parts[first];
        extent size(0, &t.extents);
        for (; last < layout.parts.size() && layout.parts[last].operand == part.operand; ++last)
            size = size + extent(layout.parts[last].size, &t.extents);
        const bool packed = part.operand >= a.given(); // values that an earlier derivative reads
        flows[part.operand] =
            packed
                ? detail::padded_with_zeros(t, detail::scan_slice(t, flat, part.before, size.value), args[part.operand])
                      .id()
                : detail::scan_result(t, flat, part).id();
    }
    return flows;
}

namespace detail {

/// The derivative of node `output`, a scan or the results of one, by one operand; all of them are traced
/// when the first is requested. `keeping` computes the values that the derivative reads; it is null for
/// results, whose operand 0 has them.
constexpr int traced_scan_flow(trace& t, const scan_operation* keeping, const scan_operation& derivative,
                               const scan_attributes& a, int which, int adjoint, const int* inputs, int output) {
    const int before = keeping != nullptr ? 0 : 1; // operands that are none of the scan
    const std::uint64_t wanted = t.wanted >> before;
    list_flows& known = t.many_flows;
    if (known.value != output || known.adjoint != adjoint || known.wanted != wanted) {
        list<int> args;
        for (int k = before; k < t.nodes[output].arguments; ++k) args.push_back(inputs[k]);
        int kept = inputs[0];
        if (keeping != nullptr) {
            const scan_layout layout = layout_of_scan(keeping->step, t, a, args);
            if (t.error.what != nullptr) return -1;
            kept = append_scan(t, *keeping->op, a, args, layout.size);
        }
        args.push_back(kept);
        args.push_back(adjoint);
        const list<int> nodes = scan_flows(t, derivative, a, args, wanted);
        known.value = output;
        known.adjoint = adjoint;
        known.wanted = wanted;
        known.nodes = nodes;
    }
    return known.nodes[which - before];
}

} // namespace detail

// What the component runs (core/component.hpp).
int scan_flow_at_run_time(trace& t, const scan_operation* keeping, const scan_operation& derivative,
                          const scan_attributes& a, int which, int adjoint, const int* inputs, int output);
void trace_scan_at_run_time(trace& t, const scan_operation& keeping, const operation& result, scan_attributes& a,
                            const list<int>& args, std::source_location where, node* results);

template <class Builder, int Order>
struct scan_op : scan_value {
    static constexpr std::string_view name = "scan";
    static constexpr bool per_node_kernel = true;
    static constexpr int trace_flow(trace& t, const attributes& a, int which, int adjoint, const int* inputs,
                                    int output) {
        if constexpr (Order >= most_scan_derivatives) {
            t.fail("scan: a derivative of a third derivative in graph mode; eager mode has it");
            return -1;
        } else {
            const scan_operation keeping = operation_of_scan<scan_keeping<Builder>, Order + 1>(),
                                 derivative = operation_of_scan<scan_vjp<Builder>, Order + 1>();
            return TG_RUNS_HERE ? detail::traced_scan_flow(t, &keeping, derivative, a, which, adjoint, inputs, output)
                                : scan_flow_at_run_time(t, &keeping, derivative, a, which, adjoint, inputs, output);
        }
    }
    template <class Stage, int Node>
    static constexpr runtime::kernel_pair kernel_of() {
        return scan_kernel<Builder, Stage, Node>::both();
    }
    /// For graphs that are made when the program runs.
    static void trace_step(const program_view& outer, int number, trace& t, scan_table& slots) {
        detail::trace_scan_step_at_run_time(builder_of<Builder>, outer, number, t, slots);
    }
};

/// Takes the value of a scan that kept the values its derivative needs (scan_keeping) and the
/// scan's operands, and returns the scan's own results, which are the last part of that value. It
/// is differentiated by the operands, not by the value, so no adjoint of the value's size ever
/// exists.
template <class Builder>
struct scan_result_op : scan_value {
    static constexpr std::string_view name = "scan_result";
    static constexpr bool per_node_kernel = true;
    static constexpr int trace_flow(trace& t, const attributes& a, int which, int adjoint, const int* inputs,
                                    int output) {
        if (which == 0) return -1;
        const scan_operation derivative = operation_of_scan<scan_vjp<Builder>, 1>();
        return TG_RUNS_HERE ? detail::traced_scan_flow(t, nullptr, derivative, a, which, adjoint, inputs, output)
                            : scan_flow_at_run_time(t, nullptr, derivative, a, which, adjoint, inputs, output);
    }
    template <class, int>
    static constexpr runtime::kernel_pair kernel_of() {
        return any_kernel();
    }
    static constexpr runtime::kernel_pair any_kernel() { return runtime::on_both<runtime::copy_of_end<>>(); }
};

namespace detail {

/// The symbols that occur in a shape's extents, as bits.
constexpr std::int64_t symbols_in(const extent_table& table, std::int64_t value) {
    if (!is_symbolic(value)) return 0;
    std::int64_t found = 0;
    const extent_table::polynomial p = table.polynomials[tapegraph::detail::symbolic_index(value)];
    for (int i = p.first; i < p.first + p.count; ++i)
        for (std::uint64_t rest = table.monomials[i].atoms; rest != 0; rest <<= extent_table::atom_bits) {
            const int atom = extent_table::first_atom(rest);
            found |= table.atoms[atom].divisor == 0 ? std::int64_t{1} << atom
                                                    : symbols_in(table, table.atoms[atom].dividend);
        }
    return found;
}

constexpr bool sequences_fit(trace& t, const scan_attributes& a, const list<int>& args) {
    const int first = static_cast<int>(a.carries), axis = static_cast<int>(a.axis);
    operand_info in[2]{t.info(args[first]), t.info(args[first])};
    const auto refused = [&](const char* what, int count) {
        t.fail(what, in, count);
        return false;
    };
    if (axis < 0 || axis >= in[0].dims.rank()) return refused("scan: xs has no axis for time there", 1);
    if (!at_least_or_required(in[0].dims[axis], 1, "scan")) return refused("scan: a sequence of no steps", 1);
    if (a.sequences == 1) return true;
    in[1] = t.info(args[first + 1]);
    bool valid = in[1].type == dtype::boolean && in[1].dims.rank() > axis && in[1].dims.rank() <= in[0].dims.rank();
    for (int i = 0; valid && i < in[1].dims.rank(); ++i) valid = equal_or_required(in[0].dims[i], in[1].dims[i]);
    return valid || refused("scan: a mask is bool, with the leading axes of xs up to time at least", 2);
}

/// Appends the user's scan; `results` are the outputs over time and the last states.
constexpr void traced_scan_results(trace& t, const scan_operation& keeping, const operation& result, scan_attributes& a,
                                   const list<int>& args, std::source_location where, node* results) {
    if (!sequences_fit(t, a, args)) return;
    for (int k = 0; k < a.given(); ++k)
        for (int i = 0; i < t.nodes[args[k]].rank; ++i)
            a.symbols |= symbols_in(t.extents, t.pool[t.nodes[args[k]].dims + i]);
    const scan_layout layout = layout_of_scan(keeping.step, t, a, args, where);
    if (t.error.what != nullptr) return;
    if (layout.draws != 0) { // all derivatives draw the same numbers again
        const extent time = t.dims(args[static_cast<int>(a.carries)])[static_cast<int>(a.axis)];
        a.draws = layout.draws;
        a.ordinal = t.draw(extent(a.draws, &t.extents) * time);
        a.symbols |= symbols_in(t.extents, a.draws);
    }
    const int results_at = layout.parts.size() - static_cast<int>(a.carries) - 1;
    const scan_part& first = layout.parts[results_at];
    const int record = append_scan(t, *keeping.op, a, args, layout.size);
    list<int> operands;
    operands.push_back(record);
    for (const int arg : args) operands.push_back(arg);
    const extent size = extent(layout.size, &t.extents) - extent(first.before, &t.extents);
    const int flat = append_scan(t, result, a, operands, size.value);
    for (int k = results_at; k < layout.parts.size(); ++k) {
        scan_part part = layout.parts[k];
        part.before = (extent(part.before, &t.extents) - extent(first.before, &t.extents)).value;
        results[k - results_at] = scan_result(t, flat, part);
    }
}

/// The symbols that occur in the last recorded cell.
constexpr std::int64_t symbols_in_cell(trace& t, const trace& cell) {
    std::int64_t found = 0;
    for (int i = 0; i < cell.nodes.size(); ++i) {
        for (int k = 0; k < cell.nodes[i].rank; ++k) found |= symbols_in(t.extents, cell.pool[cell.nodes[i].dims + k]);
        if (cell.is(i, descriptor_of<extent_op>)) found |= symbols_in(t.extents, cell.words_of(i)[0]);
    }
    return found;
}

} // namespace detail

#if TG_DEFINES(graph)
TG_DEFINITION int scan_flow_at_run_time(trace& t, const scan_operation* keeping, const scan_operation& derivative,
                                        const scan_attributes& a, int which, int adjoint, const int* inputs,
                                        int output) {
    return detail::traced_scan_flow(t, keeping, derivative, a, which, adjoint, inputs, output);
}
TG_DEFINITION void trace_scan_at_run_time(trace& t, const scan_operation& keeping, const operation& result,
                                          scan_attributes& a, const list<int>& args, std::source_location where,
                                          node* results) {
    detail::traced_scan_results(t, keeping, result, a, args, where, results);
}
#endif

} // namespace tapegraph::ir

namespace tapegraph {

template <>
struct mode_scan<graph> {
    template <class Cell, class State, class Mask, class... W>
    static constexpr auto run(const Cell& user, const State& state, const graph_node& xs, const Mask& mask,
                              const scan_options& o, std::source_location where, const W&... weights) {
        constexpr bool masked = !std::is_same_v<Mask, detail::no_mask>;
        constexpr int states = [] {
            if constexpr (handle<State>)
                return 0;
            else
                return static_cast<int>(std::tuple_size_v<State>);
        }();
        using cell = ir::scan_cell<Cell, states, static_cast<int>(sizeof...(W)), masked>;
        constexpr int carries = states == 0 ? 1 : states;
        ir::trace& t = xs.owner();
        t.line = t.intern(where);
        list<int> args;
        if constexpr (states == 0)
            args.push_back(state.id());
        else
            std::apply([&](const auto&... each) { (args.push_back(each.id()), ...); }, state);
        args.push_back(xs.id());
        if constexpr (masked) args.push_back(mask.id());
        (args.push_back(weights.id()), ...);
        ir::scan_attributes a;
        a.carries = carries;
        a.sequences = masked ? 2 : 1;
        a.constants = sizeof...(W);
        a.axis = o.axis;
        a.recompute = o.recompute;
        graph_node flat[carries + 1];
        for (graph_node& each : flat) each = xs;
        if constexpr (std::is_empty_v<Cell>) {
            trace_scan<cell>(t, a, args, where, flat);
        } else if (std::is_constant_evaluated()) {
            t.fail("scan: in graph mode a cell cannot capture: pass what it needs as an argument, or take tg::traced");
        } else {
            record<states, masked, sizeof...(W)>(t, user, a, args, where);
            if (t.error.what == nullptr) trace_scan<ir::recorded_scan_cell>(t, a, args, where, flat);
        }
        if constexpr (states == 0)
            return scan_values<graph_node, graph_node>{flat[1], flat[0]};
        else
            return [&]<std::size_t... I>(std::index_sequence<I...>) {
                return scan_values<State, graph_node>{State(flat[I + 1]...), flat[0]};
            }
        (std::make_index_sequence<carries>{});
    }

private:
    // Calls a cell that exists only at run time, once.
    template <int States, bool Masked, int Constants, class Cell>
    static void record(ir::trace& t, const Cell& user, ir::scan_attributes& a, list<int>& args,
                       std::source_location where) {
        if (!ir::detail::sequences_fit(t, a, args)) return;
        list<operand_info> in;
        for (const int arg : args) in.push_back(t.info(arg));
        ir::cell_recording recording(t);
        ir::scan_step step;
        step.where = where;
        ir::detail::trace_cell<States, Constants, Masked>(
            t, user, in.begin(), a, step, recording.first_node(),
            [&](dtype type, const shape& dims) { return recording.input(type, dims); });
        t.line = t.intern(where);
        if (t.error.what == nullptr) recording.finish(step, a, args);
        if (t.error.what != nullptr) return;
        a.symbols |= ir::detail::symbols_in_cell(t, ir::scan_cells::current->all.back()->nodes);
    }

    template <class Cell>
    static constexpr void trace_scan(ir::trace& t, ir::scan_attributes& a, list<int>& args, std::source_location where,
                                     graph_node* results) {
        static_assert(ir::operation_binding<ir::scan_result_op<Cell>>::bound);
        const ir::scan_operation keeping = ir::operation_of_scan<ir::scan_keeping<Cell>, 1>();
        const ir::operation& result = ir::descriptor_of<ir::scan_result_op<Cell>>;
        TG_RUNS_HERE ? ir::detail::traced_scan_results(t, keeping, result, a, args, where, results)
                     : ir::trace_scan_at_run_time(t, keeping, result, a, args, where, results);
    }
};

} // namespace tapegraph
