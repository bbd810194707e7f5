#pragma once

#include <tapegraph/graph/compile.hpp>
#include <tapegraph/nn/training.hpp>
#include <tapegraph/nn/variables.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace tapegraph {

/// The layer table of a model: type, output shape and parameters of each layer, and totals.
struct model_summary {
    struct row {
        std::string path, type, output;
        std::int64_t parameters = 0;
    };
    std::vector<row> rows;
    std::int64_t parameters = 0, trainable = 0;
    int variables = 0; ///< of the model itself, without an optimizer's

    std::string text() const {
        std::size_t first = 18, second = 14;
        for (const row& r : rows) {
            first = std::max(first, label(r).size() + 2);
            second = std::max(second, r.output.size() + 2);
        }
        const auto line = [&](const std::string& a, const std::string& b, const std::string& c) {
            std::string s = a;
            s.append(first - std::min(first, a.size()), ' ').append(b).append(second - std::min(second, b.size()), ' ');
            return s.append(12 - std::min<std::size_t>(12, c.size()), ' ').append(c).append("\n");
        };
        std::string result = line("layer (type)", "output shape", "parameters");
        result.append(first + second + 12, '-').append("\n");
        for (const row& r : rows) result += line(label(r), r.output, grouped(r.parameters));
        result.append(first + second + 12, '-').append("\n");
        result += "parameters:     " + grouped(parameters) + "\n";
        result += "trainable:      " + grouped(trainable) + "\n";
        result += "not trainable:  " + grouped(parameters - trainable) + "\n";
        return result;
    }

    /// "1,674,701"
    static std::string grouped(std::int64_t n) {
        std::string s = std::to_string(n);
        for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(s.size()) - 3; at > 0; at -= 3)
            s.insert(static_cast<std::size_t>(at), ",");
        return s;
    }

private:
    static std::string label(const row& r) { return r.path.empty() ? r.type : r.path + " (" + r.type + ")"; }
};

namespace detail {

inline std::string batch_shape(ir::trace& t, int node) {
    std::string s = "[";
    const shape dims = t.dims(node);
    for (int i = 0; i < dims.rank(); ++i)
        s += (i > 0 ? ", " : "") + (dims[i].known() ? std::to_string(dims[i].value) : std::string("?"));
    return s + "]";
}

// Operations that people count as layers when they stand between others.
inline std::string_view layer_like(const ir::operation& op) {
    if (&op == &ir::record_of<relu_op>) return "relu";
    if (&op == &ir::record_of<sigmoid_op>) return "sigmoid";
    if (&op == &ir::record_of<tanh_op>) return "tanh";
    if (op.name == "max_pool") return "max_pooling2d";
    if (op.name == "average_pool") return "average_pooling2d";
    if (op.name == "reshape") return "flatten";
    return {};
}

/// Traces a model once at run time and reads its table off the trace.
template <class Model, class Spec>
model_summary describe_model() {
    ir::trace t;
    t.training = true;
    ir::trace_model<Model, Spec>(t);
    if (t.error.what != nullptr) {
        std::string text = std::string(t.error.what);
        if (t.error.operands > 0) text += ": " + std::string(ir::detail::operand_text(t.error.first).view());
        if (t.error.operands > 1) text += " and " + std::string(ir::detail::operand_text(t.error.second).view());
        text += ", in scope '" + path_of(t.scopes, t.error.scope) + "' at " +
                std::string(ir::detail::place_text(t.places[t.error.place]).view());
        throw shape_error(text);
    }
    model_summary s;
    s.variables = t.variables.size();
    int layer = 0;
    for (int node = 0; node < t.nodes.size();) {
        if (layer < t.layers.size() && node >= t.layers[layer].first_node) {
            const ir::layer_entry& l = t.layers[layer++];
            model_summary::row r{path_of(t.scopes, l.scope), std::string(l.type), batch_shape(t, l.node), 0};
            for (int v = l.first_variable; v < l.last_variable; ++v)
                r.parameters += t.dims(t.variables[v].node).elements();
            s.rows.push_back(std::move(r));
            node = std::max(node, l.node + 1);
            continue;
        }
        if (const std::string_view type = layer_like(*t.nodes[node].op); !type.empty())
            s.rows.push_back({"", std::string(type), batch_shape(t, node), 0});
        ++node;
    }
    for (const ir::variable_entry& v : t.variables) {
        const std::int64_t count = t.dims(v.node).elements();
        s.parameters += count;
        if (v.trainable) s.trainable += count;
    }
    return s;
}

} // namespace detail
} // namespace tapegraph
