#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/model/gradient_list.hpp>
#include <tapegraph/model/outputs.hpp>
#include <tapegraph/model/taped_program.hpp>
#include <tapegraph/train/fit.hpp>

#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace tapegraph::detail {

/// Connects a model's programs in graph mode to its variables and runs them, for models of any
/// type.
class graph_trainer : public trainer_base {
protected:
    using trainer_base::trainer_base;
    graph_trainer(graph_trainer&&) = default;
    graph_trainer& operator=(graph_trainer&&) = default;
    ~graph_trainer(); // not in the class, where programs that link the component would compile it

    /// Sets the numbers that the program calls `name`, "loss" or "optimizer".
    static void set_numbers(ir::program& p, std::string_view name, std::span<const double> numbers);
    /// The training program, with the flags of frozen variables that layers read.
    ir::program& prepared_step(const ir::program_view& program);
    ir::program& training_program_of(const ir::program_view& program);
    ir::program& evaluation_program_of(const ir::program_view& program);
    ir::program& gradient_program_of(const ir::program_view& program);

    step_result run_step(ir::program& p, batch_columns columns) { return run(p, columns, options_.check_finite); }
    gradient_list gradients_with(ir::program& p, batch_columns columns);
    step_result measure_with(ir::program& p, batch_columns columns) { return run(p, columns, false); }
    launched_step launch_step(ir::program& p, batch_columns columns);
    step_result published(const launched_step& s);

    /// The functions for one kind of prediction.
    struct prediction_calls {
        const ir::program_view* program;
        ir::input_gradient (*gradient)(const void* model); ///< null if no input has a derivative
        const void* model;
    };
    // Writes the program's outputs to `results`. Predictions of several threads may overlap.
    void predict_with(const prediction_calls& calls, std::vector<any_tensor> x, std::span<any_tensor> results) const;

    /// The arguments of a run in parts (compile/placed/placed_programs.hpp).
    template <class Run>
    Run run_in_parts(bool trains) const {
        return {const_cast<variable_list&>(this->variables_),
                device_,
                options_.soft_placement,
                trains && options_.check_finite,
                trains,
                {options_.seed, static_cast<std::uint64_t>(step_)},
                options_.tasks,
                step_};
    }

    void launch(ir::program& p, batch_columns columns, bool check);
    void set_frozen(ir::program& p);
    void connect_step(ir::program& p);

    std::unique_ptr<ir::program> training_, evaluation_, derivatives_;
    std::shared_ptr<program_pool> gradients_ = program_pool::make(); // of predictions, by x

private:
    step_result run(ir::program& p, batch_columns columns, bool check);
    void connect(ir::program& p) const;
    void connect_evaluation(ir::program& p);

    std::vector<any_tensor> frozen_copies_;
    std::unique_ptr<program_pool> predictions_ = std::make_unique<program_pool>();
};

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION void graph_trainer::set_numbers(ir::program& p, std::string_view name, std::span<const double> numbers) {
    int i = 0; // flags of frozen variables may stand between the numbers of two optimizers
    for (const double number : numbers) {
        while (!p.view().inputs[i].scalar_parameter || p.view().inputs[i].name != name) ++i;
        p.set_parameter(i++, number);
    }
}

TG_DEFINITION ir::program& graph_trainer::training_program_of(const ir::program_view& program) {
    if (!training_) training_ = std::make_unique<ir::program>(program);
    return *training_;
}

TG_DEFINITION ir::program& graph_trainer::evaluation_program_of(const ir::program_view& program) {
    if (!evaluation_) evaluation_ = std::make_unique<ir::program>(program);
    return *evaluation_;
}

TG_DEFINITION ir::program& graph_trainer::prepared_step(const ir::program_view& program) {
    ir::program& p = training_program_of(program);
    set_frozen(p);
    return p;
}

TG_DEFINITION ir::program& graph_trainer::gradient_program_of(const ir::program_view& program) {
    if (!derivatives_) derivatives_ = std::make_unique<ir::program>(program);
    return *derivatives_;
}

TG_DEFINITION void graph_trainer::set_frozen(ir::program& p) {
    for (int i = 0; i < p.view().variables.size(); ++i)
        if (const int input = p.view().variables[i].frozen_input; input > 0)
            p.set_parameter(input - 1, variables_.at(i).frozen() ? 1 : 0);
}

// After loss and accuracy the program's outputs are gradients and assigned values, with their
// variables' numbers, counted from 1.
TG_DEFINITION gradient_list graph_trainer::gradients_with(ir::program& p, batch_columns columns) {
    set_frozen(p);
    const step_result measured = run(p, columns, options_.check_finite);
    gradient_list list;
    list.loss = measured.loss;
    list.accuracy = measured.accuracy;
    const auto& outputs = p.view().outputs;
    for (int i = 0; i < variables_.size(); ++i) {
        const variable& v = variables_.at(i);
        if (!v.trainable()) continue;
        int k = outputs.size() - 1;
        while (k > 0 && outputs[k].number != i + 1) --k;
        list.add(v.path(), k > 0 ? output_copy(p, k) : any_tensor(), v.type(), v.shape());
    }
    for (int k = 1; k < outputs.size(); ++k)
        if (const int of = outputs[k].number - 1; outputs[k].name == "assigned" && !variables_.at(of).frozen())
            list.add_assigned(variables_.at(of).path(), output_copy(p, k));
    return list;
}

TG_DEFINITION launched_step graph_trainer::launch_step(ir::program& p, batch_columns columns) {
    launch(p, columns, false);
    launched_step s;
    s.loss = p.publish_output(0);
    if (p.view().outputs.size() > 1) s.accuracy = p.publish_output(1);
    return s;
}

TG_DEFINITION step_result graph_trainer::published(const launched_step& s) {
    step_result r;
    r.loss = training_->published_output(0, s.loss);
    if (s.accuracy >= 0) r.accuracy = training_->published_output(1, s.accuracy);
    return r;
}

TG_DEFINITION void graph_trainer::launch(ir::program& p, batch_columns columns, bool check) {
    if (&p == training_.get())
        connect_step(p);
    else
        connect_evaluation(p);
    for (int i = 0; i < p.view().inputs.size(); ++i)
        if (!p.view().inputs[i].scalar_parameter) p.set_input(i, *columns++);
    const random_state random{options_.seed, static_cast<std::uint64_t>(step_)}; // named: nvcc drops braces here
    p.run(random, check);
}

TG_DEFINITION step_result graph_trainer::run(ir::program& p, batch_columns columns, bool check) {
    launch(p, columns, check);
    double loss_and_accuracy[2]{};
    const auto& outputs = p.view().outputs;
    p.scalar_outputs(outputs.size() > 1 && outputs[1].name == "accuracy" ? 2 : 1, loss_and_accuracy);
    return {loss_and_accuracy[0], loss_and_accuracy[1]};
}

// Programs run on the model's variables in place; the first ones are the same in every trace. These
// programs only read them.
TG_DEFINITION void graph_trainer::connect(ir::program& p) const {
    for (int i = 0; i < p.view().variables.size(); ++i)
        p.set_variable(i, variables_.at(i).data().view_on(p.device()).data, variables_.at(i).data().content());
}

// Evaluations also write the accumulators of metrics.
TG_DEFINITION void graph_trainer::connect_evaluation(ir::program& p) {
    for (int i = 0; i < p.view().variables.size(); ++i) {
        variable& v = variables_.at(i);
        p.set_variable(i, (v.metric_state() ? v.own_data_on(p.device()) : v.data().view_on(p.device())).data,
                       v.data().content());
    }
}

// A step writes variables in place; one that a prediction on a tape holds is moved first. The step
// is compiled to update every variable that may change: of a frozen one, and of its optimizer
// state, it receives a copy.
TG_DEFINITION void graph_trainer::connect_step(ir::program& p) {
    const int count = std::min(p.view().variables.size(), variables_.size()); // later ones belong to others
    frozen_copies_.resize(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
        variable& v = variables_.at(i);
        const std::string_view path = v.path();
        const variable* const owner = v.optimizer_state() ? variables_.find(path.substr(0, path.rfind('/'))) : &v;
        if (owner == nullptr || !owner->frozen()) {
            p.set_variable(i, v.own_data_on(p.device()).data, v.data().content());
            continue;
        }
        any_tensor& copy = frozen_copies_[static_cast<std::size_t>(i)];
        if (!copy.has_storage()) copy = any_tensor(v.type(), v.shape());
        const buffer_view from = v.data().view_on(p.device()), to = copy.write_on(p.device());
        if (p.device() == nullptr)
            std::memcpy(to.data, from.data, from.bytes());
        else
            p.device()->copy(to.data, from.data, from.bytes());
        p.set_variable(i, to.data, copy.content());
    }
}

TG_DEFINITION void graph_trainer::predict_with(const prediction_calls& calls, std::vector<any_tensor> x,
                                               std::span<any_tensor> results) const {
    predictions_->with(*calls.program, [&](ir::program& p) {
        connect(p);
        bool tracked = false;
        for (std::size_t i = 0; i < x.size(); ++i) {
            p.set_input(static_cast<int>(i), x[i].view());
            tracked = tracked || tape_storage::instance().tracks(x[i]);
        }
        const random_state random{options_.seed, static_cast<std::uint64_t>(step_)};
        call_results made(p);
        p.run(random);
        for (std::size_t k = 0; k < results.size(); ++k) results[k] = made.take(static_cast<int>(k));
        if (calls.gradient == nullptr || !tracked) return;
        taped_call call(p, random, std::move(x));
        call.gradient = calls.gradient(calls.model);
        call.programs = gradients_;
        for (int i = 0; i < p.view().variables.size(); ++i) call.variables.push_back(variables_.at(i).data());
        tape_index place = record_program(call);
        for (any_tensor& each : results) {
            if (is_floating(each.type())) each.set_tape_index(place);
            ++place.index;
        }
    });
}

TG_DEFINITION graph_trainer::~graph_trainer() = default;

#endif

} // namespace tapegraph::detail
