#pragma once

#include <tapegraph/core/number_text.hpp>
#include <tapegraph/graph/program.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

/// Names of nodes, shapes and kernels in reports.

namespace tapegraph::ir {

namespace detail {

/// Lines of aligned text.
class report {
public:
    std::string text;

    report& line(std::string_view s = {}) {
        text.append(s).push_back('\n');
        return *this;
    }
    /// "1,234,567"
    static std::string number(double value) {
        char digits[64];
        std::snprintf(digits, sizeof digits, "%.0f", value);
        const std::string_view all = digits;
        std::string s;
        for (std::size_t at = 0; at < all.size(); ++at) {
            if (at > (all[0] == '-' ? 1 : 0) && (all.size() - at) % 3 == 0) s.push_back(',');
            s.push_back(all[at]);
        }
        return s;
    }
    static std::string left(std::string_view s, std::size_t width) {
        std::string padded(std::max(s.size(), width), ' ');
        s.copy(padded.data(), s.size());
        return padded;
    }
    static std::string right(const std::string& s, std::size_t width) {
        return s.size() < width ? std::string(width - s.size(), ' ') + s : s;
    }
};

inline std::string scope_text(const program_view& view, int scope) {
    text_builder b;
    scope_path(b, view.scopes, scope);
    return std::string(b.view());
}

/// The name of a node: a number for constants, the path of a variable, "%12" otherwise.
inline std::string node_name(const program_view& view, int node) {
    const entry& e = view.nodes[node];
    if (e.is(descriptor_of<constant_op>)) return rounded_text(std::bit_cast<double>(view.words[e.words]), 6);
    if (e.is(descriptor_of<input_op>)) return std::string(view.inputs[static_cast<int>(view.words[e.words])].name);
    if (e.is(descriptor_of<variable_op>)) {
        const variable_entry& v = view.variables[static_cast<int>(view.words[e.words])];
        const std::string path = scope_text(view, v.scope);
        return path.empty() ? std::string(v.name) : path + "/" + std::string(v.name);
    }
    if (e.is(descriptor_of<extent_op>)) return "extent";
    return "%" + std::to_string(node);
}

/// The path of the layer that a call belongs to. Operations fused after one on a variable may have
/// been written in the scope of the next layer, so the variable's scope is used.
inline std::string layer_of(const program_view& view, int s) {
    const step_entry& step = view.steps[s];
    int scope = view.nodes[step.node].scope;
    if (view.kernels[step.kernel].kind == static_cast<int>(kernel_kind::operation))
        for (int k = 0; k < step.inputs; ++k) {
            const entry& operand = view.nodes[view.alias[view.values[step.first_value + k]]];
            if (!operand.is(descriptor_of<variable_op>)) continue;
            scope = view.variables[static_cast<int>(view.words[operand.words])].scope;
            break;
        }
    return scope_text(view, scope);
}

inline std::string shape_text(const buffer_view& v) {
    std::string s = std::string(name_of(v.type)) + "[";
    for (int i = 0; i < v.rank; ++i) s += (i > 0 ? "," : "") + std::to_string(v.extents[i]);
    return s + "]";
}

inline std::string shape_text(const program_view& view, int node) {
    const entry& e = view.nodes[node];
    std::string s = std::string(name_of(e.type)) + "[";
    for (int i = 0; i < e.rank; ++i) {
        const std::int64_t extent = view.pool[e.dims + i];
        s += (i > 0 ? "," : "") + (is_symbolic(extent) ? std::string("?") : std::to_string(extent));
    }
    return s + "]";
}

/// The instructions of a region: "r1 = r0 * s2".
inline std::vector<std::string> region_text(const program_view& view, const kernel_entry& kernel) {
    const region_view region = view.region_of(kernel);
    const int slots = region.slots();
    const auto reg = [&](int r) { return r < slots ? "s" + std::to_string(r) : "r" + std::to_string(r - slots); };
    std::vector<std::string> lines;
    for (int i = 0; i < region.instructions(); ++i) {
        const region_instruction step = region.instruction(i);
        const operation& op = *view.ops[step.op];
        std::string s = "r" + std::to_string(i) + " = ";
        const std::string_view infix = op.name == "add"        ? " + "
                                       : op.name == "subtract" ? " - "
                                       : op.name == "multiply" ? " * "
                                       : op.name == "divide"   ? " / "
                                                               : "";
        if (!infix.empty()) {
            s += reg(step.operand[0]) + std::string(infix) + reg(step.operand[1]);
        } else {
            s += std::string(op.name);
            if (op.name == "cast") s += std::string("<") + name_of(step.type) + ">";
            s += "(";
            for (int k = 0; k < step.operands(); ++k) s += (k > 0 ? ", " : "") + reg(step.operand[k]);
            s += ")";
        }
        lines.push_back(std::move(s));
    }
    return lines;
}

inline std::string kernel_name(const program_view& view, int k) {
    const kernel_entry& kernel = view.kernels[k];
    if (kernel.kind == static_cast<int>(kernel_kind::operation)) return std::string(view.ops[kernel.op]->name);
    const std::string region = "region" + std::to_string(k);
    if (kernel.kind == static_cast<int>(kernel_kind::region)) return region;
    if (kernel.kind == static_cast<int>(kernel_kind::sums) && view.region_of(kernel).results() > 1)
        return "sums of " + region;
    const bool plain = view.region_of(kernel).instructions() == 0;
    return std::string(view.ops[kernel.op]->name) + (plain ? std::string() : " of " + region);
}

} // namespace detail
} // namespace tapegraph::ir
