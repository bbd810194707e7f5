#pragma once

#include <tapegraph/compile/graph_trainer.hpp>
#include <tapegraph/compile/instance.hpp>
#include <tapegraph/compile/traced_calls.hpp>
#include <tapegraph/core/kept_text.hpp>
#include <tapegraph/train/traces.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// Instances (compile/instance.hpp) whose graph is made at run time. Not part of traced.hpp.

namespace tapegraph {

namespace ir {

/// Makes inputs of everything that a model reads besides its inputs: each variable, and whether it
/// is frozen (by its path, if a layer reads that). So a call of its program is one record of a tape
/// that passes gradients to variables.
inline void variables_to_inputs(model_trace& t) {
    const list<input_entry> before = t.inputs;
    t.inputs.clear();
    const auto add = [&](std::string_view name, int at) {
        entry& e = t.nodes[at];
        e.op = &descriptor_of<input_op>;
        e.sealed = true;
        e.words = t.words.push_back(t.inputs.size());
        t.inputs.push_back({name, at});
    };
    for (const input_entry& x : before)
        if (!x.scalar_parameter) add(x.name, x.node);
    for (int i = 0; i < t.variables.size(); ++i) {
        const list<char> text = detail::path_text(t, i);
        const std::string_view path = kept_text({text.begin(), static_cast<std::size_t>(text.size())});
        add(path, t.variables[i].node);
        if (const int flag = t.variables[i].frozen_input; flag > 0) add(path, before[flag - 1].node);
    }
    t.variables.clear();
    t.definitions.clear();
    t.regularizers.clear();
    t.constraints.clear();
    t.row_uses.clear();
    t.layers.clear();
}

/// A model, whose outputs are followed by its added losses and the values that it assigns.
template <class Model, class Spec>
struct instance_training_trace {
    static constexpr bool regularizes = requires { sizeof(tapegraph::detail::penalties<Model>); };
    static void build(model_trace& t) {
        prediction_trace<Model, Spec, true, true>::build(t);
        t.scope = 0;
        for (const int loss : t.added_losses) t.outputs.push_back({"added_loss", loss, output_role::value});
        for (const assignment_entry& a : t.assignments)
            t.outputs.push_back({"assigned", a.node, output_role::update, a.variable});
        t.added_losses.clear();
        t.assignments.clear();
        if constexpr (!regularizes) add_penalties<Model>(t);
    }
};

template <class Forward>
struct instance_trace {
    using previous = Forward;
    static void build(model_trace& t) { variables_to_inputs(t); }
};

/// The gradient of a call by its inputs, and so by variables. Assigned values have none.
template <class Forward>
struct instance_gradient_trace {
    using previous = Forward;
    static void build(model_trace& t) {
        list<output_entry> followed;
        for (const output_entry& output : t.outputs)
            if (output.role != output_role::update) followed.push_back(output);
        t.outputs = followed;
        input_gradient_trace<Forward>::build(t);
    }
};

} // namespace ir

/// A model with its variables, whose calls run graphs that are made at run time: one for training
/// and one for prediction. A call under a tape is one record, which hands gradients to inputs and
/// variables; it has no further derivative on the tape, and no forward mode.
template <class Model, class Spec, class Elements = typename detail::input_pack<Spec>::element_types>
class traced_instance;

template <class Model, class Spec, class... Elements>
class traced_instance<Model, Spec, std::tuple<Elements...>>
    : public detail::instance_losses<detail::at_run_time<Model>, typename detail::value_type_of<Spec>::type,
                                     ir::instance_training_trace<detail::at_run_time<Model>, Spec>::regularizes,
                                     detail::graph_trainer> {
    using base = typename traced_instance::instance_losses;
    using model = detail::at_run_time<Model>;
    using value = typename detail::value_type_of<Spec>::type;
    using prediction = ir::instance_trace<ir::prediction_trace<model, Spec>>;
    using training = ir::instance_trace<ir::instance_training_trace<model, Spec>>;
    using result = decltype(ir::trace_model<model, Spec>(std::declval<ir::model_trace&>()));
    static constexpr std::size_t results = detail::output_pack<std::remove_cv_t<result>>::count;

public:
    traced_instance(const Model& m, const compile_options& options) : base(options), model_(m) {
        const detail::traced_now<Model> now(model_);
        const auto layers = ir::traced_program::of<ir::prediction_trace<model, Spec, true>>(false);
        const auto whole = ir::traced_program::of<ir::prediction_trace<model, Spec>>(false);
        detail::model_base::read_traces(*this, layers->view(), whole->view(), detail::first_values_at_run_time<model>(),
                                        false);
    }

    /// Runs the model outside of training; as model_instance's.
    auto operator()(const tensor<Elements>&... x) { return call<prediction>(*predicts_, {x...}); }
    /// Runs the model in training; as model_instance's.
    auto in_training(const tensor<Elements>&... x) {
        ++this->step_;
        return call<training>(*trains_, {x...});
    }
    const Model& definition() const { return model_; }

private:
    /// A graph, the programs that run it, and its derivative.
    struct graph_of_calls {
        std::unique_ptr<ir::traced_program> traced, gradient;
        detail::program_pool runs;
        std::shared_ptr<detail::program_pool> gradients = detail::program_pool::make();
    };

    template <class Trace>
    auto call(graph_of_calls& graph, std::vector<any_tensor> inputs) {
        constexpr bool in_training = std::is_same_v<Trace, training>;
        const detail::model_base::computing here(*this);
        std::vector<buffer_view> columns;
        for (const any_tensor& each : inputs) columns.push_back(each.outline_view());
        this->check_batch({detail::input_table<Spec>::rows, sizeof...(Elements)}, columns.data());
        const ir::program_view& view = detail::made_once<Trace>(graph.traced, model_).view();
        add_variables(view, inputs);
        const random_state random{this->options_.seed, static_cast<std::uint64_t>(this->step_)};
        std::vector<any_tensor> found, losses;
        graph.runs.with(view, [&](ir::program& p) {
            for (std::size_t i = 0; i < inputs.size(); ++i)
                p.set_input(static_cast<int>(i), inputs[i].view_on(p.device()));
            detail::call_results made(p);
            p.run(random);
            int followed = 0;
            for (; followed < view.outputs.size(); ++followed) {
                const ir::output_role role = view.outputs[followed].role;
                if (role == ir::output_role::update) break;
                (role == ir::output_role::value ? losses : found).push_back(made.take(followed));
            }
            record<Trace>(graph, p, random, inputs, followed, found, losses);
            for (int k = followed; k < view.outputs.size(); ++k)
                if (variable& v = this->variables_.at(view.outputs[k].number); !v.frozen()) v.replace(made.take(k));
        });
        if constexpr (in_training) this->add_losses(std::move(losses), regularizes_now());
        return detail::typed_results<result, value>(std::move(found), "instance");
    }

    // The inputs of the variables follow the model's inputs.
    void add_variables(const ir::program_view& view, std::vector<any_tensor>& inputs) {
        auto& tape = detail::tape_storage::instance();
        for (int i = static_cast<int>(sizeof...(Elements)); i < view.inputs.size(); ++i) {
            variable& v = this->variables_[view.inputs[i].name];
            if (view.nodes[view.inputs[i].node].type == dtype::boolean) {
                const device_scope on(nullptr);
                any_tensor frozen(dtype::boolean, shape{});
                *static_cast<bool*>(frozen.write()) = v.frozen();
                inputs.push_back(std::move(frozen));
                continue;
            }
            if (tape.recording() && v.trainable() && !tape.tracks(v.data())) v.data().set_tape_index(tape.watch());
            inputs.push_back(v.data());
        }
    }

    template <class Trace>
    void record(graph_of_calls& graph, ir::program& p, const random_state& random,
                const std::vector<any_tensor>& inputs, int followed, std::vector<any_tensor>& found,
                std::vector<any_tensor>& losses) {
        auto& tape = detail::tape_storage::instance();
        if (!tape.recording() ||
            std::none_of(inputs.begin(), inputs.end(), [&](const any_tensor& each) { return tape.tracks(each); }))
            return;
        detail::taped_call call(p, random, inputs);
        call.outputs.resize(static_cast<std::size_t>(followed)); // assigned values have no derivative
        if (graph.traced->traced().differentiated)
            call.gradient = {nullptr, "it takes derivatives itself"};
        else
            call.gradient = {&detail::made_once<ir::instance_gradient_trace<Trace>>(graph.gradient, model_).view(),
                             nullptr};
        call.programs = graph.gradients;
        tape_index place = detail::record_program(call);
        for (auto* const values : {&found, &losses})
            for (any_tensor& each : *values) {
                if (is_floating(each.type())) each.set_tape_index(place);
                ++place.index;
            }
    }

    bool regularizes_now() const {
        if constexpr (base::regularizes)
            for (const variable& v : this->variables_)
                if (v.regularizer()) return true;
        return false;
    }

    Model model_;
    // Held by pointer, because views of graphs and records of tapes point into them.
    std::shared_ptr<graph_of_calls> predicts_ = std::make_shared<graph_of_calls>(),
                                    trains_ = std::make_shared<graph_of_calls>();
};

/// Creates an instance whose graph is made at run time: `instance<traced>(model, spec, options)`.
/// The model is any callable. Throws shape_error if its parts do not fit together.
template <class Mode, class Model, detail::input_spec_like Spec>
    requires std::is_same_v<Mode, traced>
auto instance(const Model& model, Spec, const compile_options& options = {}) {
    return traced_instance<Model, Spec>(model, options);
}

} // namespace tapegraph
