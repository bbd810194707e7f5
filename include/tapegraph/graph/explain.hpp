#pragma once

#include <tapegraph/graph/program.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
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

namespace ir {

/// Floating-point operations and bytes of one kernel call.
struct cost {
    double flops = 0;
    double bytes = 0; ///< of operands and results, each once
};

namespace detail {

inline double elements_of(const buffer_view& v) { return static_cast<double>(v.elements()); }

// 2 per multiply-add: an output element of a convolution sums over a filter without its last axis.
inline double convolution_flops(std::string_view name, const kernel_call& c) {
    const bool to_filter = name == "convolution_filter_gradient";
    const buffer_view& filter = to_filter ? c.out[0] : c.in[1];
    const buffer_view& image = to_filter ? c.in[1] : name == "convolution" ? c.out[0] : c.in[0];
    const auto last = static_cast<double>(filter.extents[filter.rank - 1]);
    return last == 0 ? 0 : 2 * elements_of(image) * elements_of(filter) / last;
}

inline double operation_flops(const operation& op, const kernel_call& c) {
    switch (op.kind) {
    case operation_kind::contract: {
        // [..., m, k] or, read transposed, [..., k, m]
        const buffer_view& a = c.in[0];
        const bool transposed = op.words > 0 && c.attributes[0] != 0;
        return 2 * elements_of(c.out[0]) * static_cast<double>(a.extents[transposed ? a.rank - 2 : a.rank - 1]);
    }
    case operation_kind::convolve: return convolution_flops(op.name, c);
    case operation_kind::pool: {
        // The pooled image is the smallest of those involved; every element of it looks at one window.
        double pooled = elements_of(c.out[0]);
        for (int k = 0; k < c.inputs; ++k) pooled = std::min(pooled, elements_of(c.in[k]));
        const std::int64_t* const window = c.attributes + op.words - 2; // the last member of window_attributes
        return pooled * static_cast<double>(window[0] * window[1]);
    }
    case operation_kind::scan:
    case operation_kind::random: return elements_of(c.out[0]);
    default: return 0; // moves elements
    }
}

} // namespace detail

/// Cost of step `s` of a bound program: 1 per elementwise instruction and element, n for a reduction of n elements, 2 m n k
/// for a matrix product, 2 per multiply-add of a convolution, a window per pooled element; moving elements costs bytes.
inline cost cost_of(const program& p, int s) {
    const program_view& view = p.view();
    const kernel_call& call = p.call_of(s);
    const kernel_entry& kernel = view.kernels[view.steps[s].kernel];
    cost c;
    for (int k = 0; k < call.inputs; ++k) c.bytes += static_cast<double>(call.in[k].bytes());
    for (int k = 0; k < call.outputs; ++k) c.bytes += static_cast<double>(call.out[k].bytes());
    if (kernel.kind == static_cast<int>(kernel_kind::operation)) {
        c.flops = detail::operation_flops(*view.ops[kernel.op], call);
    } else {
        double each = view.kernel_words[kernel.first_word + 1];
        if (kernel.kind == static_cast<int>(kernel_kind::reduction)) each += 1;
        c.flops = each * detail::elements_of(call.domain);
    }
    return c;
}

/// The whole step, copies of updates included.
inline cost cost_of(const program& p) {
    cost total;
    for (int s = 0; s < p.view().steps.size(); ++s) {
        const cost c = cost_of(p, s);
        total.flops += c.flops;
        total.bytes += c.bytes;
    }
    for (const assignment_entry& update : p.view().assignments)
        if (p.placement_of(p.view().alias[update.node]).variable != update.variable)
            total.bytes += 2 * static_cast<double>(p.value_of(update.node).bytes());
    return total;
}

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
        std::string s = digits;
        for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(s.size()) - 3; at > (s[0] == '-' ? 1 : 0); at -= 3)
            s.insert(static_cast<std::size_t>(at), ",");
        return s;
    }
    static std::string left(std::string s, std::size_t width) {
        if (s.size() < width) s.append(width - s.size(), ' ');
        return s;
    }
    static std::string right(const std::string& s, std::size_t width) {
        return s.size() < width ? std::string(width - s.size(), ' ') + s : s;
    }
    static std::string shortest(double value) {
        char digits[64];
        std::snprintf(digits, sizeof digits, "%.6g", value);
        return digits;
    }
};

inline std::string scope_text(const program_view& view, int scope) {
    text_builder b;
    scope_path(b, view.scopes, scope);
    return std::string(b.view());
}

/// What a node is called: a number for constants, the path of a variable, "%12" otherwise.
inline std::string node_name(const program_view& view, int node) {
    const entry& e = view.nodes[node];
    if (e.op == &record_of<constant_op>) return report::shortest(std::bit_cast<double>(view.words[e.words]));
    if (e.op == &record_of<input_op>) return std::string(view.inputs[static_cast<int>(view.words[e.words])].name);
    if (e.op == &record_of<variable_op>) {
        const variable_entry& v = view.variables[static_cast<int>(view.words[e.words])];
        const std::string path = scope_text(view, v.scope);
        return path.empty() ? std::string(v.name) : path + "/" + std::string(v.name);
    }
    if (e.op == &record_of<extent_op>) return "extent";
    return "%" + std::to_string(node);
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
inline std::vector<std::string> spelled(const program_view& view, const kernel_entry& kernel) {
    const auto word = [&](int i) { return view.kernel_words[kernel.first_word + i]; };
    const int slots = word(0), instructions = word(1);
    const auto reg = [&](int r) { return r < slots ? "s" + std::to_string(r) : "r" + std::to_string(r - slots); };
    std::vector<std::string> lines;
    for (int i = 0; i < instructions; ++i) {
        const int at = 3 + slots + words_per_instruction * i;
        const operation& op = *view.ops[word(at)];
        std::string s = "r" + std::to_string(i) + " = ";
        const std::string_view infix = op.name == "add"        ? " + "
                                       : op.name == "subtract" ? " - "
                                       : op.name == "multiply" ? " * "
                                       : op.name == "divide"   ? " / "
                                                               : "";
        if (!infix.empty()) {
            s += reg(word(at + 2)) + std::string(infix) + reg(word(at + 3));
        } else {
            s += std::string(op.name);
            if (op.name == "cast") s += std::string("<") + name_of(static_cast<dtype>(word(at + 1))) + ">";
            s += "(";
            for (int k = 0; k < 4 && word(at + 2 + k) >= 0; ++k) s += (k > 0 ? ", " : "") + reg(word(at + 2 + k));
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
    const bool plain = view.kernel_words[kernel.first_word + 1] == 0;
    return std::string(view.ops[kernel.op]->name) + (plain ? std::string() : " of " + region);
}

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
        r.line("  " + report::left(std::string(pass.name), 24) + report::right(std::to_string(pass.nodes), 8) +
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
            const int slots = view.kernel_words[kernel.first_word];
            head += " (";
            for (int s = 0; s < slots; ++s)
                head += (s > 0 ? ", s" : "s") + std::to_string(s) + " " +
                        name_of(static_cast<dtype>(view.kernel_words[kernel.first_word + 3 + s]));
            head += ")";
        }
        r.line(head + ", " + std::to_string(uses) + (uses == 1 ? " call" : " calls"));
        if (kernel.kind == static_cast<int>(kernel_kind::operation)) continue;
        for (const std::string& line : spelled(view, kernel)) r.line("      " + line);
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
        if (view.places[e.place].line > 0) line += "  " + std::string(place_text(view.places[e.place]).view());
        r.line(line);
    }
    for (const assignment_entry& update : view.assignments) {
        const bool in_place = p.placement_of(view.alias[update.node]).variable == update.variable;
        r.line("       " + node_name(view, view.variables[update.variable].node) + " <- " +
               node_name(view, update.node) + (in_place ? ", in place" : ", copied at the end"));
    }
}

// The operand whose memory a step's result takes over, or -1.
inline int overwritten(const program& p, int s) {
    const program_view& view = p.view();
    const step_entry& step = view.steps[s];
    const std::int64_t at = p.placement_of(step.node).offset;
    for (int k = 0; at >= 0 && k < step.inputs; ++k) {
        const int owner = view.alias[view.values[step.first_value + k]];
        const program::placement place = p.placement_of(owner);
        if (place.offset == at && place.death == s && p.value_of(owner).bytes() > 0) return owner;
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
        const program::placement place = p.placement_of(node);
        if (place.offset < 0) continue;
        const double bytes = static_cast<double>(p.value_of(node).bytes());
        const int from = overwritten(p, s);
        // A step that writes over an operand holds their common buffer once.
        for (int at = from < 0 ? s : s + 1; at <= place.death && at <= steps; ++at)
            live[static_cast<std::size_t>(at)] += bytes;
        r.line("  " + report::left(node_name(view, node), 8) + report::right(report::number(bytes), 14) + " bytes at " +
               report::right(report::number(static_cast<double>(place.offset)), 14) + ", calls " + std::to_string(s) +
               (place.death >= steps ? " to the end" : " to " + std::to_string(place.death)) +
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

} // namespace detail
} // namespace ir

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

/// A compiled program as a Graphviz graph: every node, fused regions as clusters.
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
    // The step that computes a node; a node that several kernels compute again is drawn in the first.
    std::vector<int> cluster(static_cast<std::size_t>(view.nodes.size()), -1), pending;
    for (int s = 0; s < view.steps.size(); ++s) {
        const ir::step_entry& step = view.steps[s];
        if (view.kernels[step.kernel].kind == static_cast<int>(ir::kernel_kind::operation)) continue;
        const auto is_slot = [&](int node) {
            for (int k = 0; k < step.inputs; ++k)
                if (view.values[step.first_value + k] == node) return true;
            return false;
        };
        pending.assign(1, step.node);
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
        const std::string label = (leaf ? d::node_name(view, node) : std::string(e.op->name)) + "\n" + d::shape_text(view, node);
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

template <class Model>
    requires requires(const Model& m) { m.training_view(); }
std::string to_dot(const Model& model) {
    return to_dot(model.training_view());
}

} // namespace tapegraph
