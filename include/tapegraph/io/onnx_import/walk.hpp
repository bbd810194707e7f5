#pragma once

#include <tapegraph/graph/program.hpp>
#include <tapegraph/io/onnx_import/call.hpp>
#include <tapegraph/io/own_operators.hpp>

/// The walk over a graph's nodes: it computes known values at once, and the rules make nodes for
/// all others.

namespace tapegraph::io::onnx_import {

namespace detail {

inline std::string called(const file_node& n) {
    return n.type + " '" + (n.name.empty() && !n.outputs.empty() ? n.outputs.front() : n.name) + "'";
}

inline const file_function* function_of(const file_model& m, const file_node& n) {
    for (const file_function& f : m.functions)
        if (f.name == n.type && f.domain == n.domain && f.overload == n.overload) return &f;
    return nullptr;
}

inline array array_of(const buffer_view& v, dtype type) {
    std::vector<std::int64_t> dims(v.extents, v.extents + v.rank);
    array carrier = array::unwritten(v.type, dims);
    if (carrier.byte_count() > 0) std::memcpy(carrier.data(), v.data, carrier.byte_count());
    if (type == v.type) return carrier;
    array to(type, dims);
    for (std::int64_t i = 0; i < to.size(); ++i) { // the low bytes of the wide integers are the narrow ones
        const std::int64_t item = carrier.integer(i);
        std::memcpy(static_cast<std::byte*>(to.data()) + static_cast<std::size_t>(i) * size_of(type), &item,
                    size_of(type));
    }
    return to;
}

inline bool of_sequences(const std::string& type) {
    return type.starts_with("Sequence") || type == "ConcatFromSequence" || type == "SplitToSequence";
}
/// Operators that are not computed at once, though their operands are known: what draws numbers, has bodies,
/// which read more than the operands, or gives sequences.
inline bool stays(const std::string& type) {
    return type.starts_with("Random") || type == "Bernoulli" || type == "Multinomial" || type == "Dropout" ||
           type == "If" || type == "Loop" || type == "Scan" || of_sequences(type);
}
/// Operators whose operands may be sequences.
inline bool takes_sequences(const std::string& type) {
    return of_sequences(type) || type == "Loop" || type == "Identity";
}

} // namespace detail

inline std::vector<value_pointer> importer::fold(const file_node& n, const std::vector<value_pointer>& in,
                                                 environment& env) {
    std::vector<value_pointer> results;
    store own;
    const auto made = ir::traced_program::made_by([&](ir::model_trace& t) {
        importer inner(own, t, graph_scope(&t, 0));
        inner.set_opset(opset_);
        std::vector<value_pointer> given;
        for (const value_pointer& v : in) {
            given.push_back(v == nullptr ? nullptr : std::make_shared<value>(*v));
            if (v == nullptr) continue;
            given.back()->traced = false;
            given.back()->weight.clear();
            given.back()->axes.clear();
        }
        call c(inner, n, given, env);
        rule_of(n.domain, n.type)(c);
        c.refuse_unread();
        results = c.results();
        for (const value_pointer& v : results)
            if (v != nullptr && !v->known) t.outputs.push_back({"output", inner.plain(*v).id()});
    });
    if (made->traced().outputs.empty()) return results;
    ir::program p(made->view(), nullptr);
    for (int i = 0; i < made->view().variables.size(); ++i)
        p.set_variable(i, own.constants[static_cast<std::size_t>(i)].overwrite());
    p.run({});
    int next = 0;
    for (value_pointer& v : results)
        if (v != nullptr && !v->known) v = make_known(detail::array_of(p.output(next++), v->type));
    return results;
}

inline void importer::run_node(const file_node& n, environment& env) {
    const file_function* const function = detail::function_of(store_.model, n);
    const bool of_library = n.domain == own_operators::domain;
    const rule_function rule = rule_of(n.domain, n.type);
    const auto spoil = [&](const std::string& why, bool by_symbols) {
        problems_.push_back(detail::called(n) + (why.empty() ? "" : ": " + why));
        by_symbols_ = by_symbols_ && by_symbols;
    };
    const auto spoil_results = [&] {
        for (const std::string& name : n.outputs) {
            auto v = std::make_shared<value>();
            v->refused = true;
            env.values[name] = v;
        }
    };
    if (rule == nullptr && function == nullptr) {
        spoil(n.domain.empty() ? "no such operator here" : "no such operator of domain '" + n.domain + "' here", false);
        return spoil_results();
    }
    std::vector<value_pointer> in;
    bool all_known = true, none = true, weights = false, refused = false;
    for (const std::string& name : n.inputs) {
        in.push_back(name.empty() ? nullptr : env.find(name));
        if (name.empty()) continue;
        if (in.back() == nullptr) {
            spoil("reads '" + name + "', which nothing before it gives", false);
            return spoil_results();
        }
        refused = refused || in.back()->refused;
        if (in.back()->sequence && function == nullptr && !detail::takes_sequences(n.type)) {
            spoil("operand " + std::to_string(in.size() - 1) + " is a sequence", false);
            return spoil_results();
        }
        none = false;
        const bool counts = n.type != "CastLike" || in.size() == 1; // its second operand only gives a type
        all_known = all_known && (!counts || in.back()->known != nullptr);
        weights = weights || !in.back()->weight.empty();
    }
    if (refused) return spoil_results();
    try {
        std::vector<value_pointer> results;
        if (function != nullptr && rule == nullptr) {
            environment inside;
            inside.arguments = &n.attributes;
            inside.function = function;
            for (std::size_t i = 0; i < function->inputs.size(); ++i)
                inside.values[function->inputs[i]] = i < in.size() ? in[i] : nullptr;
            inside.values[""] = nullptr;
            const std::int64_t before = opset_;
            if (const auto own = function->opsets.find(""); own != function->opsets.end()) opset_ = own->second;
            run_nodes(function->nodes, inside);
            opset_ = before;
            for (const std::string& name : function->outputs) results.push_back(inside.find(name));
        } else {
            call c(*this, n, in, env);
            const bool foldable = all_known && !none && !weights && !of_library && !detail::stays(n.type);
            if (foldable && compute_extents(c)) {
                results = c.results();
            } else {
                bool symbols = false;
                for (const value_pointer& v : in)
                    symbols = symbols || (v != nullptr && v->known && v->known->symbolic());
                if (foldable && !symbols) {
                    results = fold(n, in, env);
                } else {
                    rule(c);
                    c.refuse_unread();
                    results = c.results();
                }
            }
        }
        if (t_.error.what != nullptr) throw shape_error(ir::detail::error_line(t_));
        for (std::size_t k = 0; k < n.outputs.size(); ++k) {
            if (n.outputs[k].empty()) continue;
            if (k >= results.size() || results[k] == nullptr)
                refuse("output " + std::to_string(k) + ", which the rule does not give");
            env.values[n.outputs[k]] = results[k];
        }
        return;
    } catch (const refusal& why) {
        spoil(why.why, why.by_symbols);
    } catch (const shape_error& why) {
        spoil(why.what(), t_.extents.atoms.size() > 0); // extents that are numbers would not help
    } catch (const error& why) {
        spoil(why.what(), false);
    } catch (const char* why) { // thrown by core/extent.hpp
        spoil(why, true);
    }
    t_.error = {};
    spoil_results();
}

inline void importer::run_nodes(const std::vector<file_node>& nodes, environment& env) {
    for (const file_node& n : nodes) run_node(n, env);
}

inline std::vector<value_pointer> importer::run_graph(const file_graph& g, environment& around) {
    environment inside;
    inside.around = &around;
    for (const initializer_info& i : g.initializers) inside.values[i.name] = make_known(*i.value);
    run_nodes(g.nodes, inside);
    std::vector<value_pointer> results;
    for (const value_info& o : g.outputs) {
        results.push_back(inside.find(o.name));
        if (results.back() == nullptr) refuse("its graph gives no '" + o.name + "'");
    }
    return results;
}

/// Carries all refusals of a model.
struct import_error : argument_error {
    bool by_symbols;
    import_error(const std::string& what, bool symbols) : argument_error(what), by_symbols(symbols) {}
};

inline std::vector<value_pointer> importer::run_part(const std::map<std::string, value_pointer>& values,
                                                     std::size_t first, std::size_t last,
                                                     const std::vector<std::string>& names) {
    const file_model& m = store_.model;
    opset_ = m.opset();
    environment env;
    for (const initializer_info& i : m.graph.initializers) {
        const value_pointer v = std::make_shared<value>();
        v->type = i.value->type();
        v->known = i.value;
        if (store_.weights.contains(i.name)) v->weight = i.name;
        env.values[i.name] = v;
    }
    for (const auto& [name, v] : values) env.values.try_emplace(name, v);
    for (std::size_t i = first; i < last; ++i) run_node(m.graph.nodes[i], env);
    if (!problems_.empty()) {
        std::string text = "'" + m.file + "': ";
        for (std::size_t k = 0; k < problems_.size(); ++k) text += (k > 0 ? "; " : "") + problems_[k];
        throw import_error(one_line(text), by_symbols_);
    }
    std::vector<value_pointer> results;
    for (const std::string& name : names) {
        results.push_back(env.find(name));
        if (results.back() == nullptr)
            throw import_error(one_line("'" + m.file + "': no node gives '" + name + "'"), false);
        if (results.back()->sequence)
            throw import_error(one_line("'" + m.file + "': '" + name + "' is a sequence, not a tensor"), false);
    }
    return results;
}

inline std::vector<value_pointer> importer::run(const std::vector<value_pointer>& inputs,
                                                const std::vector<std::string>& until) {
    const file_graph& g = store_.model.graph;
    std::map<std::string, value_pointer> values;
    std::set<std::string> given;
    for (const initializer_info& i : g.initializers) given.insert(i.name);
    std::size_t next = 0;
    for (const value_info& i : g.inputs)
        if (!given.contains(i.name) && next < inputs.size()) values[i.name] = inputs[next++];
    std::vector<std::string> names = until;
    if (until.empty())
        for (const value_info& o : g.outputs) names.push_back(o.name);
    return run_part(values, 0, g.nodes.size(), names);
}

} // namespace tapegraph::io::onnx_import
