#pragma once

#include <tapegraph/graph/names.hpp>

namespace tapegraph {

/// A compiled program as a Graphviz graph: every node, with fused regions as clusters.
inline std::string to_dot(const ir::program_view& view) {
    namespace d = ir::detail;
    const auto quoted = [](std::string_view s) {
        std::string q = "\"";
        for (const char c : s) {
            if (c == '"' || c == '\\') q += '\\';
            q += c;
        }
        return q + "\"";
    };
    // The step that computes a node; a node that several kernels recompute is drawn in the first.
    std::vector<int> cluster(static_cast<std::size_t>(view.nodes.size()), -1), pending;
    for (int s = 0; s < view.steps.size(); ++s) {
        const ir::step_entry& step = view.steps[s];
        if (view.kernels[step.kernel].kind == static_cast<int>(ir::kernel_kind::operation)) continue;
        const auto is_slot = [&](int node) {
            for (int k = 0; k < step.inputs; ++k)
                if (view.values[step.first_value + k] == node) return true;
            return false;
        };
        pending.clear();
        for (int k = step.inputs; k < step.inputs + step.outputs; ++k)
            pending.push_back(view.values[step.first_value + k]);
        while (!pending.empty()) {
            const int node = pending.back();
            pending.pop_back();
            if (cluster[static_cast<std::size_t>(node)] < 0) cluster[static_cast<std::size_t>(node)] = s;
            const ir::entry& e = view.nodes[node];
            for (int k = 0; k < e.arguments; ++k) {
                const int argument = view.arguments[e.first_argument + k];
                if (!is_slot(argument) && cluster[static_cast<std::size_t>(argument)] != s) pending.push_back(argument);
            }
        }
    }
    const auto declared = [&](int node) {
        const ir::entry& e = view.nodes[node];
        const bool leaf = e.op->kind == operation_kind::leaf;
        const std::string label =
            (leaf ? d::node_name(view, node) : std::string(e.op->name)) + "\n" + d::shape_text(view, node);
        std::string escaped = quoted(label);
        for (std::size_t at; (at = escaped.find('\n')) != std::string::npos;) escaped.replace(at, 1, "\\n");
        return "n" + std::to_string(node) + " [label=" + escaped + (leaf ? ", shape=box" : "") + "];";
    };
    d::report r;
    r.line("digraph program {").line("  node [shape=ellipse, fontsize=10];");
    for (int s = 0; s < view.steps.size(); ++s) {
        std::string inside;
        for (int node = 0; node < view.nodes.size(); ++node)
            if (cluster[static_cast<std::size_t>(node)] == s) inside += "    " + declared(node) + "\n";
        if (inside.empty()) continue;
        r.line("  subgraph cluster_" + std::to_string(s) + " {");
        r.line("    label=" + quoted(d::kernel_name(view, view.steps[s].kernel)) + ";");
        r.text += inside;
        r.line("  }");
    }
    for (int node = 0; node < view.nodes.size(); ++node)
        if (cluster[static_cast<std::size_t>(node)] < 0) r.line("  " + declared(node));
    for (int node = 0; node < view.nodes.size(); ++node) {
        const ir::entry& e = view.nodes[node];
        for (int k = 0; k < e.arguments; ++k)
            r.line("  n" + std::to_string(view.arguments[e.first_argument + k]) + " -> n" + std::to_string(node) + ";");
    }
    const auto edges_to = [&](std::string_view kind, int node, const std::string& name) {
        const std::string id = quoted(std::string(kind) + " " + name);
        r.line("  " + id + " [shape=box, style=rounded];").line("  n" + std::to_string(node) + " -> " + id + ";");
    };
    for (const ir::output_entry& output : view.outputs) edges_to("output", output.node, std::string(output.name));
    for (const ir::assignment_entry& update : view.assignments)
        edges_to("update of", update.node, d::node_name(view, view.variables[update.variable].node));
    r.line("}");
    return r.text;
}

/// The training step of a graph model as a Graphviz graph.
template <class Model>
    requires requires(const Model& m) { m.training_view(); }
std::string to_dot(const Model& model) { return to_dot(model.training_view()); }

} // namespace tapegraph
