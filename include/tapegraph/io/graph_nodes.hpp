#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/dtype.hpp>
#include <tapegraph/graph/cost.hpp>
#include <tapegraph/graph/explain.hpp>
#include <tapegraph/graph/names.hpp>

#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// A compiled program as a list of named nodes, from which graphs are drawn.

namespace tapegraph::io {

/// The part of a training step that a node belongs to.
enum class graph_part {
    forward,  ///< needed by results, loss and metrics
    loss,     ///< of these, the nodes after the model's own output
    gradient, ///< adjoints
    update    ///< of an optimizer, or of a moving average
};

/// A node. `inputs` are indices in the list.
struct graph_item {
    std::string name; ///< distinct; scopes end in '/': "conv1/max_pool", "gradients/conv1/max_pool_gradient"
    std::string op;   ///< the operation's name, or "Placeholder", "VariableV2", "Const", "Assign", "Identity"
    std::vector<int> inputs{};
    graph_part part = graph_part::forward;
    std::string scope{}; ///< in the model, without the part
    dtype type = dtype::f32;
    std::vector<std::int64_t> shape{}; ///< -1: known once extents are bound
    double value = 0;                  ///< of a constant
    std::string line{};                ///< in the source: "model.hpp:23"
    int call = -1;                     ///< the kernel call that computes it; -1: none, or part of another's
    std::string kernel{};              ///< of that call
    double flops = 0, bytes = 0;       ///< predicted cost, for explain_options' extents
};

namespace detail {

std::vector<graph_part> graph_parts(const ir::program_view& view);

/// Removes characters that are invalid in a name; a name without letters is replaced by that of its
/// operation.
inline std::string graph_name(std::string_view text) {
    std::string name;
    for (const char c : text) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                            c == '.' || c == '-' || c == '/';
        name += letter ? c : '_';
    }
    return name;
}

} // namespace detail

/// The nodes of a program in the order in which they are computed, followed by its results and
/// updates.
std::vector<graph_item> graph_items(const ir::program_view& view);

/// The same with the predicted cost of every call, for the extents in `options`.
std::vector<graph_item> graph_items(const ir::program_view& view, const explain_options& options);

/// Names of the nodes that kernel calls compute, one for each call of the program, for node_time.
inline std::vector<std::string> graph_call_names(const ir::program_view& view) {
    const std::vector<graph_item> items = graph_items(view);
    std::vector<std::string> names;
    for (const ir::step_entry& step : view.steps) names.push_back(items[static_cast<std::size_t>(step.node)].name);
    return names;
}

#if TG_DEFINES_FOR_HOST(io)

namespace detail {

TG_DEFINITION std::vector<graph_part> graph_parts(const ir::program_view& view) {
    const auto count = static_cast<std::size_t>(view.nodes.size());
    std::vector<graph_part> part(count, graph_part::gradient);
    // Marks nodes that results need. Operands precede their users.
    std::vector<char> needed(count, 0);
    for (const ir::output_entry& o : view.outputs) needed[static_cast<std::size_t>(o.node)] = 1;
    int labels = view.nodes.size(); // the first of these ends the model
    for (const ir::input_entry& i : view.inputs)
        if (i.name.starts_with("labels of ") && i.node < labels) labels = i.node;
    for (int n = view.nodes.size() - 1; n >= 0; --n) {
        if (needed[static_cast<std::size_t>(n)] == 0) continue;
        const ir::entry& e = view.nodes[n];
        part[static_cast<std::size_t>(n)] = n >= labels ? graph_part::loss : graph_part::forward;
        for (int k = 0; k < e.arguments; ++k)
            needed[static_cast<std::size_t>(view.arguments[e.first_argument + k])] = 1;
    }
    // Of the rest, those that read an optimizer's numbers or its state.
    for (int n = 0; n < view.nodes.size(); ++n) {
        if (needed[static_cast<std::size_t>(n)] != 0) continue;
        const ir::entry& e = view.nodes[n];
        bool update = e.is(ir::descriptor_of<ir::variable_op>) || e.is(ir::descriptor_of<ir::input_op>);
        for (int k = 0; k < e.arguments; ++k)
            update =
                update || part[static_cast<std::size_t>(view.arguments[e.first_argument + k])] == graph_part::update;
        if (update) part[static_cast<std::size_t>(n)] = graph_part::update;
    }
    return part;
}

} // namespace detail

TG_DEFINITION std::vector<graph_item> graph_items(const ir::program_view& view) {
    namespace d = ir::detail;
    const std::vector<graph_part> parts = detail::graph_parts(view);
    std::vector<graph_item> items;
    std::map<std::string, int> taken; // names, and the number of uses of each
    const auto distinct = [&](const std::string& name) {
        if (taken.emplace(name, 0).second) return name;
        for (;;) {
            std::string other = name + "_" + std::to_string(++taken[name]);
            if (taken.emplace(other, 0).second) return other;
        }
    };
    for (int n = 0; n < view.nodes.size(); ++n) {
        const ir::entry& e = view.nodes[n];
        graph_item item;
        item.part = parts[static_cast<std::size_t>(n)];
        item.type = e.type;
        for (int axis = 0; axis < e.rank; ++axis) {
            const std::int64_t extent = view.pool[e.dims + axis];
            item.shape.push_back(is_symbolic(extent) ? -1 : extent);
        }
        for (int k = 0; k < e.arguments; ++k) item.inputs.push_back(view.arguments[e.first_argument + k]);
        item.scope = d::scope_text(view, e.scope);
        item.op = e.op->name;
        if (view.lines[e.line].line > 0) item.line = d::line_text(view.lines[e.line]).view();
        std::string last = item.op;
        if (e.is(ir::descriptor_of<ir::constant_op>)) {
            item.op = "Const";
            item.value = std::bit_cast<double>(view.words[e.words]);
        } else if (e.is(ir::descriptor_of<ir::variable_op>)) {
            item.op = "VariableV2";
            last = view.variables[static_cast<int>(view.words[e.words])].name;
        } else if (e.is(ir::descriptor_of<ir::input_op>)) {
            const ir::input_entry& input = view.inputs[static_cast<int>(view.words[e.words])];
            item.op = "Placeholder";
            item.scope.clear();
            last = input.name.starts_with("labels of ") ? std::string_view("labels") : input.name;
            if (input.scalar_parameter && last == "optimizer") last = "number"; // such as its learning rate
        }
        const char* const part = item.part == graph_part::gradient ? "gradients/"
                                 : item.part == graph_part::update ? "updates/"
                                 : item.part == graph_part::loss && item.scope.empty() && last != "labels" ? "loss/"
                                                                                                           : "";
        item.name = distinct(detail::graph_name(part + item.scope + (item.scope.empty() ? "" : "/") + last));
        items.push_back(std::move(item));
    }
    for (int s = 0; s < view.steps.size(); ++s) {
        graph_item& item = items[static_cast<std::size_t>(view.steps[s].node)];
        item.call = s;
        item.kernel = d::kernel_name(view, view.steps[s].kernel);
    }
    const auto add = [&](const std::string& name, const char* op, int of, std::vector<int> inputs, graph_part part) {
        graph_item item = items[static_cast<std::size_t>(of)];
        item.name = distinct(detail::graph_name(name));
        item.op = op;
        item.inputs = std::move(inputs);
        item.part = part;
        item.call = -1;
        item.kernel.clear();
        item.line.clear();
        items.push_back(std::move(item));
    };
    for (const ir::output_entry& o : view.outputs)
        add("outputs/" + std::string(o.name.empty() ? std::string_view("result") : o.name), "Identity", o.node,
            {o.node}, graph_part::forward);
    for (const ir::assignment_entry& u : view.assignments) {
        const int variable = view.variables[u.variable].node;
        add("updates/" + d::node_name(view, variable) + "/assign", "Assign", variable, {variable, u.node},
            graph_part::update);
    }
    return items;
}

TG_DEFINITION std::vector<graph_item> graph_items(const ir::program_view& view, const explain_options& options) {
    std::vector<graph_item> items = graph_items(view);
    ir::program p(view);
    ir::detail::bind_for(p, options);
    for (graph_item& item : items) {
        if (item.call < 0) continue;
        const ir::cost c = ir::cost_of(p, item.call);
        item.flops = c.flops;
        item.bytes = c.bytes;
    }
    return items;
}

#endif

} // namespace tapegraph::io
