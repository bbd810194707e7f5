#pragma once

#include <tapegraph/eager/generator.hpp>
#include <tapegraph/io/onnx_import/find_weights.hpp>
#include <tapegraph/io/onnx_import/read_model.hpp>
#include <tapegraph/io/onnx_import/rules.hpp>
#include <tapegraph/io/onnx_import/stages.hpp>
#include <tapegraph/io/onnx_import/walk.hpp>
#include <tapegraph/io/onnx_model.hpp>

#include <atomic>
#include <mutex>

/// Implements io/onnx_model.hpp: programs of a file's graph, and the variables that they share.

namespace tapegraph::io::onnx_import {

struct state : tapegraph::detail::model_base {
    store shared;
    std::vector<std::string> until; ///< the values that are outputs; empty: those of the file
    std::vector<onnx_value> inputs, outputs;
    /// `any`: one program for all inputs. `of_extents`: one for each shape of inputs, if the file
    /// computes something that needs numbers. `of_values`: one for each shape and each value of
    /// small inputs that are not measurements, if axes or extents depend on these. `in_stages`: the graph is cut at operators that count.
    enum class kind { any, of_extents, of_values, in_stages };
    std::atomic<kind> programs_are{kind::any};
    static constexpr std::int64_t most_values = 64;
    static constexpr std::size_t most_programs = 256;
    std::mutex mutex;
    tapegraph::detail::call_counter random; ///< each prediction draws numbers of its own
    std::map<std::vector<std::int64_t>, std::shared_ptr<program>> programs;
    std::unique_ptr<stages> parts; ///< if programs are in stages
    std::shared_ptr<state> origin; ///< the state that owns the variables

    explicit state(file_model m) : model_base({}) {
        trains_ = false;
        shared.model = std::move(m);
    }
    const std::string& file() const { return shared.model.file; }
    variable_list& list() { return origin ? origin->list() : variables_; }
    model_base& base() { return origin ? origin->base() : *this; }

    void describe() {
        const auto own = shared.model.opsets.find(std::string(own_operators::domain));
        if (own != shared.model.opsets.end() && own->second > own_operators::version)
            throw argument_error(one_line("'" + file() + "': version " + std::to_string(own->second) +
                                          " of the domain 'tapegraph'; this program reads up to version " +
                                          std::to_string(own_operators::version)));
        std::set<std::string> given;
        for (const initializer_info& i : shared.model.graph.initializers) given.insert(i.name);
        const auto described = [&](const value_info& v) {
            if (!v.type)
                throw argument_error(
                    one_line("'" + file() + "': '" + v.name + "' is of " +
                             (v.element_type == 0 ? "a type other than a tensor" : element_type_name(v.element_type)) +
                             ", which is not supported"));
            if (v.dims.size() > static_cast<std::size_t>(max_rank))
                throw argument_error(one_line("'" + file() + "': '" + v.name + "' has " +
                                              std::to_string(v.dims.size()) + " axes; at most 8 are supported"));
            return onnx_value{v.name, *v.type, v.dims, v.names, v.ranked};
        };
        for (const value_info& v : shared.model.graph.inputs)
            if (!given.contains(v.name)) inputs.push_back(described(v));
        std::set<std::string> zipped; // maps by the file, here the tensors that they are made of
        for (const file_node& n : shared.model.graph.nodes)
            if (n.domain == "ai.onnx.ml" && n.type == "ZipMap") zipped.insert(n.outputs.begin(), n.outputs.end());
        for (const value_info& v : shared.model.graph.outputs)
            outputs.push_back(zipped.contains(v.name) ? onnx_value{v.name, dtype::f32, {-1, -1}, {"", ""}, true}
                                                      : described(v));
    }

    /// Whether an input is small enough, and of a kind, that programs may depend on its values.
    static bool known_by_value(const any_tensor& x) {
        return x.size() <= most_values && (!is_floating(x.type()) || (x.rank() <= 1 && x.size() <= max_rank * 2));
    }
    /// Makes the inputs of a trace. Their extents are the file's, or those of `given`.
    std::vector<value_pointer> input_values(importer& on, const std::vector<any_tensor>* given) {
        std::vector<value_pointer> values;
        ir::model_trace& t = on.trace();
        for (std::size_t k = 0; k < inputs.size(); ++k) {
            const onnx_value& v = inputs[k];
            shape s;
            s.attach(&t.extents);
            if (given != nullptr) {
                for (int i = 0; i < (*given)[k].rank(); ++i) s.push_back((*given)[k].shape()[i]);
            } else {
                if (!v.ranked)
                    throw import_error(one_line("'" + file() + "': input '" + v.name + "' has no rank"), true);
                for (std::size_t i = 0; i < v.extents.size(); ++i)
                    s.push_back(v.extents[i] >= 0 ? extent(v.extents[i])
                                                  : extent(t.extents.symbol(kept_text(v.extent_names[i])), &t.extents));
            }
            const graph_node input(&t, t.input(kept_text(v.name), carrier_of(v.type), s));
            if (given != nullptr && programs_are == kind::of_values && known_by_value((*given)[k])) {
                array a = array_of_tensor((*given)[k], v.type);
                values.push_back(on.make_known(std::move(a)));
                continue;
            }
            values.push_back(on.make(input, v.type));
        }
        return values;
    }

    /// The importer that traced the graph; adds the outputs' element types to `types`. `predicts`:
    /// for a program, and not for a file, which has no operator for all of its operations.
    importer trace(ir::model_trace& t, const std::vector<any_tensor>* given, std::vector<dtype>& types, bool predicts) {
        t.training = false;
        importer on(shared, t, graph_scope(&t, 0));
        on.predicts = predicts;
        const auto results = on.run(input_values(on, given), until);
        for (std::size_t k = 0; k < results.size(); ++k) {
            t.outputs.push_back({kept_text(outputs[k].name), on.plain(*results[k]).id()});
            types.push_back(results[k]->type);
        }
        return on;
    }
    std::unique_ptr<program> make(const std::vector<any_tensor>* given) {
        auto p = std::make_unique<program>();
        p->traced = ir::traced_program::made_by(
            [&](ir::model_trace& t) { p->bind(trace(t, given, p->types, true).bindings, shared); });
        return p;
    }
    variable_list trace_again(ir::model_trace& t) {
        const auto as_they_are = [&](const std::string& name, dtype type) {
            if (carrier_of(type) != type)
                throw argument_error(one_line("'" + file() + "': '" + name + "' is " + name_of(type) +
                                              ", which nodes hold as " + name_of(carrier_of(type)) +
                                              ": it cannot be written again"));
        };
        for (const onnx_value& v : inputs) as_they_are(v.name, v.type);
        std::vector<dtype> types;
        const importer on = trace(t, nullptr, types, false);
        for (std::size_t k = 0; k < types.size(); ++k) as_they_are(outputs[k].name, types[k]);
        variable_list all;
        for (std::size_t i = 0; i < on.bindings.size(); ++i) {
            const binding& b = on.bindings[i];
            const std::string path = tapegraph::detail::path_of_variable(t, static_cast<int>(i));
            if (b.of == nullptr) all.add(path, shared.constants[b.constant], false, false);
            if (b.of != nullptr) all.add(path, list()[b.of->path].data(), list()[b.of->path].trainable(), false);
        }
        return all;
    }

    /// Reads the graph once, which makes its variables.
    void begin() {
        shared.values = [](const weight&) -> const void* { return nullptr; };
        std::vector<const weight*> used;
        try {
            auto p = make(nullptr);
            for (const binding& b : p->bindings)
                if (b.of != nullptr) used.push_back(b.of);
            programs[{}] = std::move(p);
        } catch (const import_error& why) {
            if (!why.by_symbols || inputs.empty()) throw;
            programs_are = kind::of_extents;
            for (const auto& [name, w] : shared.weights) used.push_back(&w);
        }
        for (const weight* const w : used) {
            array values;
            for (const initializer_info& i : shared.model.graph.initializers)
                if (i.name == w->name) {
                    values = w->gates.size() < 2 ? *i.value : i.value->with_blocks(w->gates);
                    if (!w->order.empty()) values = values.transposed(w->order);
                }
            variables_.add(w->path, values.tensor(), w->trainable, false);
        }
        shared.values = [this](const weight& w) -> const void* { return list()[w.path].data().read(); };
    }

    std::vector<std::int64_t> key_of(const std::vector<any_tensor>& x) const {
        std::vector<std::int64_t> key;
        if (programs_are == kind::any) return key;
        for (const any_tensor& each : x) {
            key.push_back(each.rank());
            for (int i = 0; i < each.rank(); ++i) key.push_back(each.shape()[i].value);
            if (programs_are != kind::of_values || !known_by_value(each)) continue;
            const array a = array_of_tensor(each, each.type());
            for (std::int64_t i = 0; i < a.size(); ++i)
                key.push_back(is_floating(a.type()) ? std::bit_cast<std::int64_t>(a.number(i)) : a.integer(i));
        }
        return key;
    }
    std::shared_ptr<program> program_for(const std::vector<any_tensor>& x) {
        const std::lock_guard lock(mutex);
        if (programs_are == kind::in_stages) return nullptr;
        std::vector<std::int64_t> key = key_of(x);
        if (const auto found = programs.find(key); found != programs.end()) return found->second;
        std::shared_ptr<program> made;
        try {
            made = make(programs_are == kind::any ? nullptr : &x);
        } catch (const import_error&) {
            // What does not fit may be in a branch that is not taken.
            if (programs_are != kind::of_extents || std::none_of(x.begin(), x.end(), known_by_value)) throw;
            programs_are = kind::of_values;
            key = key_of(x);
            made = make(&x);
        }
        if (programs.size() >= most_programs) programs.clear();
        return programs[key] = made;
    }

    /// Runs a program. One for all inputs takes extents for equal that have one name, and slices and windows for
    /// fitting; where it does not take these inputs, one for their shapes may.
    std::vector<any_tensor> run(program& p, const std::vector<any_tensor>& x) {
        const random_state numbers = [&] {
            const std::lock_guard lock(mutex);
            return random.next();
        }();
        try {
            return p.run(list(), x, numbers);
        } catch (const shape_error&) {
            std::shared_ptr<program> own;
            {
                const std::lock_guard lock(mutex);
                if (programs_are != kind::any) throw;
                try {
                    own = make(&x);
                } catch (const error&) { // they do not fit either
                }
                if (own == nullptr) throw;
                programs_are = kind::of_extents;
                programs[key_of(x)] = own;
            }
            return own->run(list(), x, numbers);
        }
    }
    std::vector<any_tensor> predict(std::span<const any_tensor> given) {
        if (given.size() != inputs.size())
            throw argument_error("predict: " + std::to_string(given.size()) + " tensors, '" + file() + "' takes " +
                                 std::to_string(inputs.size()));
        std::vector<any_tensor> x;
        for (std::size_t k = 0; k < given.size(); ++k) {
            const onnx_value& v = inputs[k];
            if (given[k].type() != v.type)
                throw dtype_error(one_line("predict: '" + v.name + "' is " + name_of(given[k].type()) +
                                           ", the file takes " + name_of(v.type)));
            bool valid = !v.ranked || given[k].rank() == static_cast<int>(v.extents.size());
            for (std::size_t i = 0; valid && i < v.extents.size(); ++i)
                valid = v.extents[i] < 0 || given[k].shape()[static_cast<int>(i)].value == v.extents[i];
            if (!valid)
                throw shape_error(one_line("predict: '" + v.name + "' has shape " + to_string(given[k].shape()) +
                                           ", which is not the file's"));
            x.push_back(in_carrier(given[k], carrier_of(v.type)));
        }
        if (programs_are != kind::in_stages) {
            std::shared_ptr<program> held;
            try {
                held = program_for(x);
            } catch (const import_error& why) {
                if (!why.by_symbols || !stages::cuts(shared.model.graph)) throw;
            }
            if (held) return run(*held, x);
        }
        const std::lock_guard lock(mutex); // while parts run, too: they keep programs
        programs_are = kind::in_stages;
        if (!parts) parts = std::make_unique<stages>(shared, until);
        std::map<std::string, any_tensor> named;
        for (std::size_t k = 0; k < given.size(); ++k) named[inputs[k].name] = given[k];
        return parts->run(named, list(), &known_by_value, random);
    }
};

} // namespace tapegraph::io::onnx_import

namespace tapegraph::io {

TG_DEFINITION onnx_model::onnx_model(const files::path& file)
    : state_(std::make_shared<onnx_import::state>(onnx_import::read_model(file))) {
    state_->describe();
    onnx_import::find_weights(state_->shared);
    state_->begin();
}
TG_DEFINITION const std::vector<onnx_value>& onnx_model::inputs() const { return state_->inputs; }
TG_DEFINITION const std::vector<onnx_value>& onnx_model::outputs() const { return state_->outputs; }
TG_DEFINITION std::vector<any_tensor> onnx_model::predict(std::span<const any_tensor> x) const {
    return state_->predict(x);
}
TG_DEFINITION std::map<std::string, any_tensor> onnx_model::predict(const std::map<std::string, any_tensor>& x) const {
    std::vector<any_tensor> ordered;
    std::string names;
    for (const onnx_value& v : inputs()) {
        names += (names.empty() ? "'" : ", '") + v.name + "'";
        if (const auto found = x.find(v.name); found != x.end()) ordered.push_back(found->second);
    }
    if (ordered.size() != x.size() || ordered.size() != inputs().size())
        throw argument_error("predict: '" + state_->file() + "' takes " + names);
    const std::vector<any_tensor> results = predict(std::span<const any_tensor>(ordered));
    std::map<std::string, any_tensor> named;
    for (std::size_t k = 0; k < results.size(); ++k) named[outputs()[k].name] = results[k];
    return named;
}
TG_DEFINITION variable_list& onnx_model::variables() { return state_->list(); }
TG_DEFINITION const variable_list& onnx_model::variables() const { return state_->list(); }
TG_DEFINITION variable_list onnx_model::trace_prediction(ir::model_trace& t) const {
    const std::lock_guard lock(state_->mutex);
    return state_->trace_again(t);
}
TG_DEFINITION tapegraph::detail::model_base& onnx_model::base() const { return state_->base(); }
TG_DEFINITION onnx_model onnx_model::until(std::string_view value) const { return until_all({std::string(value)}); }
TG_DEFINITION onnx_model onnx_model::until_all(const std::vector<std::string>& values) const {
    if (values.empty()) throw argument_error("until_all: no values");
    auto part = std::make_shared<onnx_import::state>(state_->shared.model);
    part->inputs = state_->inputs;
    part->until = values;
    part->programs_are = state_->programs_are.load();
    part->origin = state_->origin ? state_->origin : state_;
    part->shared.weights = state_->shared.weights;
    part->shared.values = [s = part->origin](const onnx_import::weight& w) -> const void* {
        return s->list()[w.path].data().read();
    };
    for (const std::string& value : values) part->outputs.push_back({value, dtype::f32, {}, {}, false});
    if (part->programs_are == onnx_import::state::kind::any) {
        part->programs[{}] = part->make(nullptr);
        for (std::size_t k = 0; k < values.size(); ++k) part->outputs[k].type = part->programs[{}]->types[k];
    }
    return onnx_model(part);
}
TG_DEFINITION std::vector<graph_node> onnx_model::call(const graph_scope& scope, std::span<const graph_node> x) const {
    if (x.size() != inputs().size())
        throw argument_error("'" + state_->file() + "' takes " + std::to_string(inputs().size()) + " inputs, not " +
                             std::to_string(x.size()));
    std::vector<graph_node> results;
    if (x.empty()) return results;
    const std::lock_guard lock(state_->mutex);
    onnx_import::importer on(state_->shared, scope.owner(), scope);
    std::vector<onnx_import::value_pointer> values;
    for (std::size_t k = 0; k < x.size(); ++k) {
        const dtype type = inputs()[k].type;
        if (x[k].type() != onnx_import::carrier_of(type))
            throw dtype_error(onnx_import::one_line("'" + state_->file() + "' takes '" + inputs()[k].name + "' as " +
                                                    name_of(type) + ", not " + name_of(x[k].type())));
        values.push_back(on.make(x[k], type));
    }
    for (const onnx_import::value_pointer& v : on.run(values, state_->until)) results.push_back(on.plain(*v));
    return results;
}
TG_DEFINITION graph_node onnx_model::the_only(const std::vector<graph_node>& results) const {
    if (results.size() != 1)
        throw argument_error("'" + state_->file() + "' has " + std::to_string(results.size()) +
                             " outputs; until(name) takes one");
    return results[0];
}

} // namespace tapegraph::io
