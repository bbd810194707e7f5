#pragma once

#include <tapegraph/graph/cost.hpp>
#include <tapegraph/graph/dot.hpp>
#include <tapegraph/graph/names.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

/// A plan in words and as a picture: passes, fused regions, kernel calls, buffers, cost. Include it where it is wanted; the
/// umbrella does not.

namespace tapegraph {

/// Extents to plan for: axis 0 of the inputs, and whatever else is known only at run time.
struct explain_options {
    std::int64_t batch_size = 32;
    std::int64_t other_extents = 32;
};

namespace ir::detail {

/// Feeds every input a shape and plans. Nothing is computed, so the addresses are never read.
inline void bind_for(program& p, const explain_options& options) {
    const program_view& view = p.view();
    extent_table table;
    for (const auto& atom : view.atoms) table.atoms.push_back(atom);
    for (const auto& monomial : view.monomials) table.monomials.push_back(monomial);
    for (const auto& polynomial : view.polynomials) table.polynomials.push_back(polynomial);
    const auto value_of = [&](int atom) {
        const std::string_view name = view.atoms[atom].name;
        return name == "batch" || (name == "?" && atom == 0) ? options.batch_size : options.other_extents;
    };
    static char nothing[64];
    for (int i = 0; i < view.inputs.size(); ++i) {
        if (view.inputs[i].scalar_parameter) continue;
        const entry& e = view.nodes[view.inputs[i].node];
        buffer_view v;
        v.data = nothing;
        v.type = e.type;
        v.rank = e.rank;
        for (int axis = 0; axis < e.rank; ++axis) v.extents[axis] = table.evaluate(view.pool[e.dims + axis], value_of);
        p.set_input(i, v);
    }
    p.bind();
}

inline void explain_passes(const program_view& view, report& r) {
    r.line("passes (what is left after each)");
    for (const pass_entry& pass : view.history)
        r.line("  " + report::left(pass.name, 24) + report::right(std::to_string(pass.nodes), 8) +
               (pass.name == "kernel calls" ? "" : " nodes"));
}

inline void explain_kernels(const program_view& view, report& r) {
    r.line().line("kernels");
    for (int k = 0; k < view.kernels.size(); ++k) {
        const kernel_entry& kernel = view.kernels[k];
        int uses = 0;
        for (const step_entry& step : view.steps) uses += step.kernel == k ? 1 : 0;
        std::string head = "  " + kernel_name(view, k) + " " + name_of(static_cast<dtype>(kernel.type));
        if (kernel.kind != static_cast<int>(kernel_kind::operation)) {
            const region_view region = view.region_of(kernel);
            head += " (";
            for (int s = 0; s < region.slots(); ++s)
                head += (s > 0 ? ", s" : "s") + std::to_string(s) + " " + name_of(region.slot_type(s));
            head += ")";
        }
        r.line(head + ", " + std::to_string(uses) + (uses == 1 ? " call" : " calls"));
        if (kernel.kind == static_cast<int>(kernel_kind::operation)) continue;
        for (const std::string& line : region_text(view, kernel)) r.line("      " + line);
    }
}

inline void explain_calls(const program& p, report& r) {
    const program_view& view = p.view();
    r.line().line("kernel calls");
    for (int s = 0; s < view.steps.size(); ++s) {
        const step_entry& step = view.steps[s];
        std::string line = report::right(std::to_string(s), 5) + "  " + node_name(view, step.node) + " " +
                           shape_text(p.value_of(step.node)) + " = " + kernel_name(view, step.kernel) + "(";
        for (int k = 0; k < step.inputs; ++k)
            line += (k > 0 ? ", " : "") + node_name(view, view.values[step.first_value + k]);
        line += ")";
        const entry& e = view.nodes[step.node];
        const std::string scope = scope_text(view, e.scope);
        if (!scope.empty()) line += "  " + scope;
        if (view.lines[e.line].line > 0) line += "  " + std::string(line_text(view.lines[e.line]).view());
        r.line(line);
    }
    for (const assignment_entry& update : view.assignments) {
        const bool in_place = p.arena_slot_of(view.alias[update.node]).variable == update.variable;
        r.line("       " + node_name(view, view.variables[update.variable].node) + " <- " +
               node_name(view, update.node) + (in_place ? ", in place" : ", copied at the end"));
    }
}

// The operand whose memory a step's result takes over, or -1.
inline int overwritten(const program& p, int s) {
    const program_view& view = p.view();
    const step_entry& step = view.steps[s];
    const std::int64_t at = p.arena_slot_of(step.node).offset;
    for (int k = 0; at >= 0 && k < step.inputs; ++k) {
        const int owner = view.alias[view.values[step.first_value + k]];
        const program::arena_slot slot = p.arena_slot_of(owner);
        if (slot.offset == at && slot.death == s && p.value_of(owner).bytes() > 0) return owner;
    }
    return -1;
}

inline void explain_buffers(const program& p, report& r) {
    const program_view& view = p.view();
    const int steps = view.steps.size();
    std::vector<double> live(static_cast<std::size_t>(steps) + 1, 0.0);
    r.line().line("buffers of the arena");
    for (int s = 0; s < steps; ++s) {
        live[static_cast<std::size_t>(s)] += static_cast<double>(p.scratch_bytes(s));
        const int node = view.steps[s].node;
        const program::arena_slot slot = p.arena_slot_of(node);
        if (slot.offset < 0) continue;
        const double bytes = static_cast<double>(p.value_of(node).bytes());
        const int from = overwritten(p, s);
        // A step that writes over an operand holds their common buffer once.
        for (int at = from < 0 ? s : s + 1; at <= slot.death && at <= steps; ++at)
            live[static_cast<std::size_t>(at)] += bytes;
        r.line("  " + report::left(node_name(view, node), 8) + report::right(report::number(bytes), 14) + " bytes at " +
               report::right(report::number(static_cast<double>(slot.offset)), 14) + ", calls " + std::to_string(s) +
               (slot.death >= steps ? " to the end" : " to " + std::to_string(slot.death)) +
               (from < 0 ? "" : ", written over " + node_name(view, from)));
    }
    const double peak = live.empty() ? 0 : *std::max_element(live.begin(), live.end());
    r.line("  peak of live bytes " + report::number(peak) + ", arena " +
           report::number(static_cast<double>(p.arena_bytes())) + " bytes");
}

inline void explain_cost(const program& p, report& r) {
    const cost total = cost_of(p);
    r.line().line("cost of a step");
    r.line("  floating-point operations  " + report::number(total.flops));
    r.line("  bytes read and written     " + report::number(total.bytes));
    r.line("  arithmetic intensity       " + report::shortest(total.bytes > 0 ? total.flops / total.bytes : 0) +
           " operations per byte");
}

} // namespace ir::detail

/// The plan of a bound program as text.
inline std::string explain(const ir::program& p) {
    ir::detail::report r;
    ir::detail::explain_passes(p.view(), r);
    ir::detail::explain_kernels(p.view(), r);
    ir::detail::explain_calls(p, r);
    ir::detail::explain_buffers(p, r);
    ir::detail::explain_cost(p, r);
    return r.text;
}

/// The plan of a compiled program for some extents. Memory of the arena's size is reserved meanwhile.
inline std::string explain(const ir::program_view& view, const explain_options& options = {}) {
    ir::program p(view);
    ir::detail::bind_for(p, options);
    return explain(p);
}

/// The plan of a graph model's training step.
template <class Model>
    requires requires(const Model& m) { m.training_view(); }
std::string explain(const Model& model, const explain_options& options = {}) {
    return explain(model.training_view(), options);
}

} // namespace tapegraph
