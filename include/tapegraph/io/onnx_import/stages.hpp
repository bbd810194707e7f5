#pragma once

#include <tapegraph/eager/generator.hpp>
#include <tapegraph/io/onnx_import/program.hpp>
#include <tapegraph/io/onnx_import/rules_counted.hpp>

#include <functional>
#include <optional>

/// A graph that is cut at operators whose results have as many elements as values say (NonMaxSuppression):
/// what lies between them are programs, one for each shape of their inputs.

namespace tapegraph::io::onnx_import {

class stages {
public:
    /// Cuts a graph. Its results are the graph's outputs, or these values.
    stages(store& shared, const std::vector<std::string>& until) : shared_(shared), results_(until) {
        const file_graph& g = shared.model.graph;
        std::size_t begin = 0;
        const auto add = [&](std::size_t first, std::size_t last, bool counted) {
            if (first == last) return;
            parts_.emplace_back();
            parts_.back().first = first, parts_.back().last = last, parts_.back().counted = counted;
        };
        for (std::size_t i = 0; i < g.nodes.size(); ++i) {
            if (!is_counted(g.nodes[i])) continue;
            add(begin, i, false), add(i, i + 1, true);
            begin = i + 1;
        }
        add(begin, g.nodes.size(), false);
        if (until.empty())
            for (const value_info& o : g.outputs) results_.push_back(o.name);
        connect(g);
    }
    static bool is_counted(const file_node& n) {
        if (!n.domain.empty()) return false;
        if (n.type == "RoiAlign") // with a sampling_ratio it is nodes
            return std::none_of(n.attributes.begin(), n.attributes.end(),
                                [](const attribute& a) { return a.name == "sampling_ratio" && a.i > 0; });
        const auto table = rules::counted();
        return std::any_of(table.begin(), table.end(), [&](const operator_rule& rule) { return rule.type == n.type; });
    }
    static bool cuts(const file_graph& g) { return std::any_of(g.nodes.begin(), g.nodes.end(), is_counted); }

    /// The results for named inputs in the file's element types. Throws import_error with what cannot be
    /// imported.
    std::vector<any_tensor> run(const std::map<std::string, any_tensor>& inputs, const variable_list& weights,
                                const std::function<bool(const any_tensor&)>& may_be_known,
                                tapegraph::detail::call_counter& random) {
        std::map<std::string, held> values;
        for (const auto& [name, x] : inputs) values[name] = {x, false};
        for (const initializer_info& i : shared_.model.graph.initializers)
            if (std::find(results_.begin(), results_.end(), i.name) != results_.end())
                values[i.name] = {i.value->tensor(), true};
        for (part& p : parts_) run_part(p, values, weights, may_be_known, random.next());
        std::vector<any_tensor> results;
        for (const std::string& name : results_) {
            if (!values.contains(name))
                throw import_error(one_line("'" + shared_.model.file + "': no node gives '" + name + "'"), false);
            results.push_back(values[name].x);
        }
        return results;
    }

private:
    struct held {
        any_tensor x;
        bool known; ///< the same for all inputs of these shapes
    };
    struct made_part : program {
        std::vector<std::optional<any_tensor>> fixed; ///< in the places of `out`: results that are known
    };
    struct part {
        std::size_t first = 0, last = 0; ///< nodes
        bool counted = false;
        bool by_values = false; ///< programs depend on the values of small inputs
        std::vector<std::string> in, out;
        std::map<std::vector<std::int64_t>, std::shared_ptr<made_part>> programs;
    };
    static constexpr std::size_t most_programs = 256;

    static void read_names(const file_node& n, std::set<std::string>& names) {
        names.insert(n.inputs.begin(), n.inputs.end());
        for (const attribute& a : n.attributes)
            if (a.g) {
                for (const file_node& inner : a.g->nodes) read_names(inner, names);
                for (const value_info& o : a.g->outputs) names.insert(o.name);
            }
    }
    /// Finds which values go from one part to another.
    void connect(const file_graph& g) {
        std::map<std::string, std::size_t> made_by;
        std::set<std::string> given;
        for (const value_info& i : g.inputs) given.insert(i.name);
        for (const initializer_info& i : g.initializers) given.erase(i.name);
        const auto export_from = [&](const std::string& name) {
            std::vector<std::string>& out = parts_[made_by.at(name)].out;
            if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
        };
        for (std::size_t p = 0; p < parts_.size(); ++p) {
            std::set<std::string> names;
            for (std::size_t i = parts_[p].first; i < parts_[p].last; ++i) {
                read_names(g.nodes[i], names);
                for (const std::string& name : g.nodes[i].outputs) made_by.try_emplace(name, p);
            }
            for (const std::string& name : names) {
                const auto found = made_by.find(name);
                if (name.empty() || (found == made_by.end() ? !given.contains(name) : found->second == p)) continue;
                parts_[p].in.push_back(name);
                if (found != made_by.end()) export_from(name);
            }
        }
        for (const std::string& name : results_)
            if (made_by.contains(name)) export_from(name);
    }

    bool is_known(const part& p, const held& v, const std::function<bool(const any_tensor&)>& may_be_known) const {
        return p.counted || ((v.known || p.by_values) && may_be_known(v.x));
    }
    std::shared_ptr<made_part> make(const part& p, const std::map<std::string, held>& values,
                                    const std::function<bool(const any_tensor&)>& may_be_known) {
        auto made = std::make_shared<made_part>();
        made->traced = ir::traced_program::made_by([&](ir::model_trace& t) {
            t.training = false;
            importer on(shared_, t, graph_scope(&t, 0));
            on.predicts = true;
            std::map<std::string, value_pointer> given;
            for (const std::string& name : p.in) {
                const held& v = values.at(name);
                const dtype type = v.x.type();
                if (is_known(p, v, may_be_known)) {
                    given[name] = on.make_known(array_of_tensor(v.x, type));
                } else {
                    shape s;
                    s.attach(&t.extents);
                    for (int i = 0; i < v.x.rank(); ++i) s.push_back(v.x.shape()[i]);
                    given[name] = on.make(graph_node(&t, t.input(kept_text(name), carrier_of(type), s)), type);
                }
            }
            for (const value_pointer& v : on.run_part(given, p.first, p.last, p.out)) {
                if (v->known && v->weight.empty()) {
                    made->fixed.emplace_back(v->known->tensor());
                    continue;
                }
                made->fixed.emplace_back(std::nullopt);
                t.outputs.push_back({"output", on.plain(*v).id()});
                made->types.push_back(v->type);
            }
            made->bind(on.bindings, shared_);
        });
        return made;
    }
    void run_part(part& p, std::map<std::string, held>& values, const variable_list& weights,
                  const std::function<bool(const any_tensor&)>& may_be_known, const random_state& random) {
        const auto key_of = [&] {
            std::vector<std::int64_t> key;
            for (const std::string& name : p.in) {
                const held& v = values.at(name);
                key.push_back(v.x.rank());
                for (int i = 0; i < v.x.rank(); ++i) key.push_back(v.x.shape()[i].value);
                if (!is_known(p, v, may_be_known)) continue;
                const array a = array_of_tensor(v.x, v.x.type());
                for (std::int64_t i = 0; i < a.size(); ++i)
                    key.push_back(is_floating(a.type()) ? std::bit_cast<std::int64_t>(a.number(i)) : a.integer(i));
            }
            return key;
        };
        std::shared_ptr<made_part> made;
        if (p.counted) {
            made = make(p, values, may_be_known);
        } else {
            std::vector<std::int64_t> key = key_of();
            const auto found = p.programs.find(key);
            if (found == p.programs.end()) {
                try {
                    made = make(p, values, may_be_known);
                } catch (const import_error& why) {
                    if (!why.by_symbols || p.by_values) throw;
                    p.by_values = true; // axes or extents that depend on what was counted
                    key = key_of();
                    made = make(p, values, may_be_known);
                }
                if (p.programs.size() >= most_programs) p.programs.clear();
                p.programs[key] = made;
            } else {
                made = found->second;
            }
        }
        std::vector<any_tensor> x;
        for (const std::string& name : p.in)
            if (const held& v = values.at(name); !is_known(p, v, may_be_known))
                x.push_back(in_carrier(v.x, carrier_of(v.x.type())));
        const std::vector<any_tensor> results = made->run(weights, x, random);
        std::size_t next = 0;
        for (std::size_t k = 0; k < p.out.size(); ++k) {
            const bool fixed = made->fixed[k].has_value();
            values[p.out[k]] = {fixed ? *made->fixed[k] : results[next++], fixed && !p.counted && !p.by_values};
        }
    }

    store& shared_;
    std::vector<part> parts_;
    std::vector<std::string> results_;
};

} // namespace tapegraph::io::onnx_import
