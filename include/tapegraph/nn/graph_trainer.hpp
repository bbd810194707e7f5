#pragma once

#include <tapegraph/nn/outputs.hpp>
#include <tapegraph/nn/taped_program.hpp>
#include <tapegraph/nn/trainer.hpp>

#include <cstring>
#include <memory>
#include <vector>

namespace tapegraph::detail {

/// A model's programs in graph mode, connected to its variables and run; of models of any type.
template <class = void>
class basic_graph_trainer : public basic_trainer<> {
protected:
    using basic_trainer<>::basic_trainer;

    // Inputs of a program: the batch, what layers ask about frozen variables, labels, the optimizer's numbers.
    static int labels_of(const ir::program& p);
    /// The training program with the numbers of its next step.
    ir::program& prepared_step(const ir::program_view& program, const double* numbers, int count);
    ir::program& training_program_of(const ir::program_view& program);

    step_result run_step(ir::program& p, const buffer_view& x, const buffer_view& y) {
        return run(p, x, y, options_.check_finite);
    }
    step_result measure_with(const ir::program_view& program, const buffer_view& x, const buffer_view& y);
    launched_step launch_step(ir::program& p, const buffer_view& x, const buffer_view& y);
    step_result published(const launched_step& s);

    /// What one kind of prediction is made by.
    struct prediction_calls {
        const ir::program_view* program;
        any_tensor (*output)(const ir::program& p);
        ir::input_gradient (*gradient)(); ///< null where the input has no derivative
    };
    // Predictions of several threads may overlap.
    any_tensor predict_with(const prediction_calls& calls, const any_tensor& x) const;

    std::unique_ptr<ir::program> training_, evaluation_;

private:
    void launch(ir::program& p, const buffer_view& x, const buffer_view& y, bool check);
    step_result run(ir::program& p, const buffer_view& x, const buffer_view& y, bool check);
    void connect(ir::program& p) const;
    void connect_step(ir::program& p);

    std::vector<any_tensor> frozen_copies_;
    std::unique_ptr<program_pool> predictions_ = std::make_unique<program_pool>();
    std::shared_ptr<program_pool> gradients_ = std::make_shared<program_pool>(); // of predictions, by x
};

template <class X>
int basic_graph_trainer<X>::labels_of(const ir::program& p) {
    int i = 1;
    while (p.view().inputs[i].scalar_parameter) ++i;
    return i;
}

template <class X>
ir::program& basic_graph_trainer<X>::training_program_of(const ir::program_view& program) {
    if (!training_) training_ = std::make_unique<ir::program>(program);
    return *training_;
}

template <class X>
ir::program& basic_graph_trainer<X>::prepared_step(const ir::program_view& program, const double* numbers, int count) {
    ir::program& p = training_program_of(program);
    const int first = labels_of(p) + 1;
    for (int i = 0; i < count; ++i) p.set_parameter(first + i, numbers[i]);
    for (int i = 0; i < p.view().variables.size(); ++i)
        if (const int input = p.view().variables[i].frozen_input; input > 0)
            p.set_parameter(input - 1, variables_.at(i).frozen() ? 1 : 0);
    return p;
}

template <class X>
launched_step basic_graph_trainer<X>::launch_step(ir::program& p, const buffer_view& x, const buffer_view& y) {
    launch(p, x, y, false);
    launched_step s;
    s.loss = p.publish_output(0);
    if (p.view().outputs.size() > 1) s.accuracy = p.publish_output(1);
    return s;
}

template <class X>
step_result basic_graph_trainer<X>::published(const launched_step& s) {
    step_result r;
    r.loss = training_->published_output(0, s.loss);
    if (s.accuracy >= 0) r.accuracy = training_->published_output(1, s.accuracy);
    return r;
}

template <class X>
step_result basic_graph_trainer<X>::measure_with(const ir::program_view& program, const buffer_view& x,
                                                 const buffer_view& y) {
    if (!evaluation_) evaluation_ = std::make_unique<ir::program>(program);
    return run(*evaluation_, x, y, false);
}

template <class X>
void basic_graph_trainer<X>::launch(ir::program& p, const buffer_view& x, const buffer_view& y, bool check) {
    if (&p == training_.get())
        connect_step(p);
    else
        connect(p);
    p.set_input(0, x);
    p.set_input(labels_of(p), y);
    const random_state random{options_.seed, static_cast<std::uint64_t>(step_)}; // named: nvcc loses braces here
    p.run(random, check);
}

template <class X>
step_result basic_graph_trainer<X>::run(ir::program& p, const buffer_view& x, const buffer_view& y, bool check) {
    launch(p, x, y, check);
    double loss_and_accuracy[2]{};
    p.scalar_outputs(p.view().outputs.size() > 1 ? 2 : 1, loss_and_accuracy);
    return {loss_and_accuracy[0], loss_and_accuracy[1]};
}

// Programs run on the model's variables where they stand; the first ones are the same in every trace. These only read.
template <class X>
void basic_graph_trainer<X>::connect(ir::program& p) const {
    for (int i = 0; i < p.view().variables.size(); ++i)
        p.set_variable(i, variables_.at(i).data().view_on(p.device()).data);
}

// A step writes variables where they stand; one that a prediction on a tape holds moves away first. It is compiled to update
// every variable that may change: of a frozen one, and of its optimizer state, it gets a copy.
template <class X>
void basic_graph_trainer<X>::connect_step(ir::program& p) {
    frozen_copies_.resize(static_cast<std::size_t>(p.view().variables.size()));
    for (int i = 0; i < p.view().variables.size(); ++i) {
        variable& v = variables_.at(i);
        const std::string_view path = v.path();
        const variable* const owner = v.optimizer_state() ? variables_.find(path.substr(0, path.rfind('/'))) : &v;
        if (owner == nullptr || !owner->frozen()) {
            p.set_variable(i, v.own_data_on(p.device()).data);
            continue;
        }
        any_tensor& copy = frozen_copies_[static_cast<std::size_t>(i)];
        if (!copy.has_storage()) copy = any_tensor(v.type(), v.shape());
        const buffer_view from = v.data().view_on(p.device()), to = copy.write_on(p.device());
        if (p.device() == nullptr)
            std::memcpy(to.data, from.data, from.bytes());
        else
            p.device()->copy(to.data, from.data, from.bytes());
        p.set_variable(i, to.data);
    }
}

template <class X>
any_tensor basic_graph_trainer<X>::predict_with(const prediction_calls& calls, const any_tensor& x) const {
    any_tensor result;
    predictions_->with(*calls.program, [&](ir::program& p) {
        connect(p);
        p.set_input(0, x.view());
        const random_state random{options_.seed, static_cast<std::uint64_t>(step_)};
        p.run(random);
        result = calls.output(p);
        if (calls.gradient == nullptr || !tape_storage::instance().tracks(x)) return;
        taped_call call(p, random, {x});
        call.gradient = calls.gradient();
        call.programs = gradients_;
        for (int i = 0; i < p.view().variables.size(); ++i) call.variables.push_back(variables_.at(i).data());
        result.set_tape_index(record_program(call));
    });
    return result;
}

TG_COMPILED(nn, class basic_graph_trainer<void>)

} // namespace tapegraph::detail
