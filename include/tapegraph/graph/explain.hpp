#pragma once

#include <tapegraph/core/number_text.hpp>
#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/graph/cost.hpp>
#include <tapegraph/graph/dot.hpp>
#include <tapegraph/graph/live_bytes.hpp>
#include <tapegraph/graph/names.hpp>
#include <tapegraph/graph/placement_log.hpp>
#include <tapegraph/graph/text_table.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

/// Reports on plans: the cost of a step and the fused formulas, and on demand passes, regions,
/// kernel calls and buffers. The umbrella header does not include it.

namespace tapegraph {

/// Options of explain: extents to plan for (axis 0 of the inputs, and others known only at run
/// time), and the level of detail.
struct explain_options {
    std::int64_t batch_size = 32;
    std::int64_t other_extents = 32;
    bool details = false; ///< the summary is followed by passes, kernels, calls and buffers
    int calls = 8;        ///< how many of the most expensive calls, and of the longest fused formulas, to show
};

namespace ir::detail {

/// Feeds every input a shape and plans. Nothing is computed, so addresses are never read.
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
        line += ")" + method_of_step(p, s);
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

inline void explain_buffers(const program& p, report& r) {
    const program_view& view = p.view();
    const int steps = view.steps.size();
    r.line().line("buffers of the arena");
    for (int s = 0; s < steps; ++s)
        for (int k = 0; k < view.steps[s].outputs; ++k) {
            const int node = view.values[view.steps[s].first_value + view.steps[s].inputs + k];
            const program::arena_slot slot = p.arena_slot_of(node);
            if (slot.offset < 0) continue;
            const double bytes = static_cast<double>(p.value_of(node).bytes());
            const int from = overwritten(p, s, node);
            r.line("  " + report::left(node_name(view, node), 8) + report::right(report::number(bytes), 14) +
                   " bytes at " + report::right(report::number(static_cast<double>(slot.offset)), 14) + ", calls " +
                   std::to_string(s) + (slot.death >= steps ? " to the end" : " to " + std::to_string(slot.death)) +
                   (from < 0 ? "" : ", written over " + node_name(view, from)));
        }
    const std::vector<double> live = live_bytes(p);
    r.line("  peak of live bytes " + report::number(*std::max_element(live.begin(), live.end())) + ", arena " +
           report::number(static_cast<double>(p.arena_bytes())) + " bytes");
}

inline void explain_cost(const program& p, report& r) {
    const cost total = cost_of(p);
    r.line().line("cost of a step");
    r.line("  floating-point operations  " + report::number(total.flops));
    r.line("  bytes read and written     " + report::number(total.bytes));
    r.line("  arithmetic intensity       " + rounded_text(total.bytes > 0 ? total.flops / total.bytes : 0, 6) +
           " operations per byte");
}

inline void explain_size(const program& p, report& r) {
    const program_view& view = p.view();
    double parameters = 0, bytes = 0;
    int trainable = 0;
    for (int i = 0; i < view.variables.size(); ++i) {
        const buffer_view v = p.variable(i);
        bytes += static_cast<double>(v.bytes());
        if (!view.variables[i].trainable) continue;
        parameters += static_cast<double>(v.elements());
        ++trainable;
    }
    if (view.variables.size() > 0)
        r.line("parameters  " + report::number(parameters) + " in " + std::to_string(trainable) +
               " trainable variables; all " + std::to_string(view.variables.size()) + " variables hold " +
               tapegraph::detail::with_prefix(bytes, "B"));
    const std::vector<double> live = live_bytes(p);
    r.line("arena       " + tapegraph::detail::with_prefix(static_cast<double>(p.arena_bytes()), "B") + ", of which " +
           tapegraph::detail::with_prefix(*std::max_element(live.begin(), live.end()), "B") +
           " are used at once at most");
    std::size_t kept = 0;
    for (int s = 0; s < view.steps.size(); ++s) kept += p.kept_bytes(s);
    if (kept > 0)
        r.line("kept        " + tapegraph::detail::with_prefix(static_cast<double>(kept), "B") +
               " of packed weights, while variables do not change");
    const cost total = cost_of(p);
    r.line("a step      " + tapegraph::detail::with_prefix(total.flops, "FLOP") + ", " +
           tapegraph::detail::with_prefix(total.bytes, "B") + " read and written, " +
           rounded_text(total.bytes > 0 ? std::round(10 * total.flops / total.bytes) / 10 : 0, 6) +
           " operations per byte");
}

// Predicted time of a call on a machine that does five operations per byte moved, as typical
// processors do.
inline double predicted(const cost& c) { return std::max(c.flops / 5, c.bytes); }

inline void explain_largest(const program& p, const explain_options& options, report& r) {
    const program_view& view = p.view();
    struct ranked {
        int step;
        cost costs;
    };
    std::vector<ranked> calls;
    double all = 0;
    for (int s = 0; s < view.steps.size(); ++s) {
        calls.push_back({s, cost_of(p, s)});
        all += predicted(calls.back().costs);
    }
    std::stable_sort(calls.begin(), calls.end(),
                     [](const ranked& a, const ranked& b) { return predicted(a.costs) > predicted(b.costs); });
    const std::size_t shown = std::min(calls.size(), static_cast<std::size_t>(std::max(options.calls, 0)));
    if (shown == 0) return;
    tapegraph::detail::text_table table({"share", "FLOP", "B", "layer", "operation", "result", "line"}, 4);
    for (std::size_t i = 0; i < shown; ++i) {
        const auto& [s, c] = calls[i];
        const step_entry& step = view.steps[s];
        const source_line& line = view.lines[view.nodes[step.node].line];
        table.add({tapegraph::detail::formatted("%.0f%%", all > 0 ? 100 * predicted(c) / all : 0),
                   tapegraph::detail::with_prefix(c.flops, ""), tapegraph::detail::with_prefix(c.bytes, ""),
                   layer_of(view, s),
                   tapegraph::detail::shortened(kernel_operations(view, step.kernel) + method_of_step(p, s)),
                   shape_text(p.value_of(step.node)), line.line > 0 ? std::string(line_text(line).view()) : ""});
    }
    r.line().line("the calls predicted to cost most");
    r.text += table.text();
}

inline void explain_fused(const program_view& view, const explain_options& options, report& r) {
    struct formula {
        int kernel, operations, uses;
    };
    std::vector<formula> fused;
    int operations = 0;
    for (int k = 0; k < view.kernels.size(); ++k) {
        int inside = 1;
        if (view.kernels[k].kind != static_cast<int>(kernel_kind::operation))
            inside = view.region_of(view.kernels[k]).instructions() +
                     reductions_of(view.kernels[k], view.kernel_words.begin());
        int uses = 0;
        for (const step_entry& step : view.steps) uses += step.kernel == k ? 1 : 0;
        operations += inside * uses;
        if (inside > 1 && uses > 0) fused.push_back({k, inside, uses});
    }
    std::stable_sort(fused.begin(), fused.end(),
                     [](const formula& a, const formula& b) { return a.operations > b.operations; });
    r.line().line(std::to_string(operations) + " operations in " + std::to_string(view.steps.size()) + " calls" +
                  (fused.empty() ? "" : "; fused, the longest first"));
    for (std::size_t i = 0; i < fused.size() && i < static_cast<std::size_t>(std::max(options.calls, 0)); ++i)
        r.line("  " + report::right(std::to_string(fused[i].uses), 3) + (fused[i].uses == 1 ? " call   " : " calls  ") +
               tapegraph::detail::shortened(kernel_operations(view, fused[i].kernel), 100));
}

inline void explain_summary(const program& p, const explain_options& options, report& r) {
    explain_size(p, r);
    explain_largest(p, options, r);
    explain_fused(p.view(), options, r);
}

} // namespace ir::detail

/// The plan of a bound program as text: its parameters, memory and cost, the calls predicted to be
/// the most expensive, and the fused formulas. `{.details = true}` adds passes, kernels, every call
/// with its source line, and the place of each buffer. tg::profile measures the time of calls.
inline std::string explain(const ir::program& p, const explain_options& options = {}) {
    ir::detail::report r;
    ir::detail::explain_summary(p, options, r);
    if (!options.details) return r.text;
    r.line();
    ir::detail::explain_passes(p.view(), r);
    ir::detail::explain_kernels(p.view(), r);
    ir::detail::explain_calls(p, r);
    ir::detail::explain_buffers(p, r);
    ir::detail::explain_cost(p, r);
    return r.text;
}

/// The plan of a compiled program for the given extents. Reserves memory of the arena's size
/// meanwhile.
inline std::string explain(const ir::program_view& view, const explain_options& options = {}) {
    ir::program p(view);
    ir::detail::bind_for(p, options);
    return explain(p, options);
}

// clang-format off
template <class = void> no_such_option_in<explain_options> explain(any_argument, ...) TG_MISTAKE;
// clang-format on

/// The plan of a graph model's training step. After the first step of a sharded model that several ranks train, it lists the
/// exchanges as well.
template <class Model>
    requires requires(const Model& m) { m.training_view(); }
std::string explain(const Model& model, const explain_options& options = {}) {
    const auto planned = [&] {
        if constexpr (requires { typename Model::computing; }) { // the device and math_mode of the model
            const typename Model::computing here(model);
            return explain(model.training_view(), options);
        } else {
            return explain(model.training_view(), options);
        }
    };
    std::string text = planned();
    if constexpr (requires { model.exchanges_text(); }) text += model.exchanges_text();
    return text;
}

} // namespace tapegraph
