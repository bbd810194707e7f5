#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/model/variables.hpp>
#include <tapegraph/train/traces.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace tapegraph {

/// The layer table of a model: type, output shape and parameters of each layer, and totals.
struct model_summary {
    /// A layer: its path, what it is, the shape of its output and the elements of its variables.
    struct row {
        std::string path, type, output;
        std::int64_t parameters = 0;
    };
    std::vector<row> rows;
    std::int64_t parameters = 0, trainable = 0;
    int variables = 0; ///< those of the model, without an optimizer's

    /// The table as text, a line for each layer and the sums below.
    std::string text() const;

    /// "1,674,701"
    static std::string grouped(std::int64_t n);

private:
    static std::string label(const row& r);
};

namespace detail {

std::string batch_shape(const ir::program_view& v, int node);

inline std::int64_t elements_of(const ir::program_view& v, int node) {
    std::int64_t count = 1;
    for (int i = 0; i < v.nodes[node].rank; ++i) count *= v.pool[v.nodes[node].dims + i];
    return count;
}

/// The name of an operation between layers, if it is commonly counted as a layer. A mean is
/// recognized by the name of its sum.
std::string layer_like(const ir::program_view& v, int node);

/// Builds a model's table from its trace.
model_summary describe_model(const ir::model_view& v);

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION std::string batch_shape(const ir::program_view& v, int node) {
    std::string s = "[";
    const ir::entry& e = v.nodes[node];
    for (int i = 0; i < e.rank; ++i) {
        const std::int64_t size = v.pool[e.dims + i];
        if (i > 0) s.append(", ");
        s.append(is_symbolic(size) ? "?" : std::to_string(size));
    }
    return s.append("]");
}

TG_DEFINITION std::string layer_like(const ir::program_view& v, int node) {
    const ir::entry& e = v.nodes[node];
    std::string layer(e.op->layer);
    if (layer == "flatten") { // other reshapes are not layers
        const ir::entry& from = v.nodes[v.arguments[e.first_argument]];
        const bool flat = e.rank == 2 && from.rank > 2 && v.pool[e.dims] == v.pool[from.dims];
        return flat ? layer : std::string();
    }
    if (!layer.ends_with("*")) return layer;
    const int rank = v.nodes[v.arguments[e.first_argument]].rank;
    if (e.op->kind == operation_kind::reduce) { // over whole images, keeping examples and channels
        const bool mean = (v.words[e.words + 1] & 2) != 0, spatial = v.words[e.words] == (rank == 3 ? 0b10 : 0b110);
        if ((rank != 3 && rank != 4) || !spatial || (e.op->name == "sum" && !mean)) return {};
    }
    layer.pop_back();
    return layer.append(rank == 3 ? "1d" : "2d");
}

TG_DEFINITION model_summary describe_model(const ir::model_view& v) {
    model_summary s;
    s.variables = v.variables.size();
    int layer = 0;
    for (int node = 0; node < v.nodes.size();) {
        if (layer < v.layers.size() && node >= v.layers[layer].first_node) {
            const ir::layer_entry& l = v.layers[layer++];
            model_summary::row r{path_of(v.scopes, l.scope), std::string(l.type), batch_shape(v, l.node), 0};
            for (int i = l.first_variable; i < l.last_variable; ++i)
                r.parameters += elements_of(v, v.variables[i].node);
            s.rows.push_back(std::move(r));
            node = std::max(node, l.node + 1);
            continue;
        }
        if (std::string type = layer_like(v, node); !type.empty())
            s.rows.push_back({"", std::move(type), batch_shape(v, node), 0});
        ++node;
    }
    for (const ir::variable_entry& entry : v.variables) {
        const std::int64_t count = elements_of(v, entry.node);
        s.parameters += count;
        if (entry.trainable) s.trainable += count;
    }
    return s;
}

#endif

} // namespace detail

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION std::string model_summary::text() const {
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
    result.append("parameters:     ").append(grouped(parameters));
    result.append("\ntrainable:      ").append(grouped(trainable));
    result.append("\nnot trainable:  ").append(grouped(parameters - trainable)).append("\n");
    return result;
}

TG_DEFINITION std::string model_summary::label(const row& r) {
    std::string s = r.path.empty() ? r.type : r.path;
    if (!r.path.empty()) s.append(" (").append(r.type).append(")");
    return s;
}

TG_DEFINITION std::string model_summary::grouped(std::int64_t n) {
    std::string s = std::to_string(n);
    for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(s.size()) - 3; at > 0; at -= 3)
        s.insert(static_cast<std::size_t>(at), 1, ',');
    return s;
}

#endif

} // namespace tapegraph
