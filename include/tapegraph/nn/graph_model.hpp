#pragma once

#include <tapegraph/nn/model.hpp>
#include <tapegraph/nn/outputs.hpp>
#include <tapegraph/nn/taped_program.hpp>

namespace tapegraph {

/// A model in graph mode: three programs, for training, evaluation and prediction, compiled with the source. A program that is not
/// used is not instantiated.
template <class Model, class Spec, class Loss, class Optimizer>
class compiled_model<graph, Model, Spec, Loss, Optimizer>
    : public trainable_model<compiled_model<graph, Model, Spec, Loss, Optimizer>, Spec, Loss> {
    using base = trainable_model<compiled_model, Spec, Loss>;
    using training = ir::training_trace<Model, Spec, Loss, Optimizer>;
    using evaluation = ir::evaluation_trace<Model, Spec, Loss>;
    using prediction = ir::prediction_trace<Model, Spec>;

public:
    compiled_model(const compile_options& options, Optimizer optimizer) : base(options), optimizer_(optimizer) {
        this->template set_up<Model, Spec, std::conditional_t<std::is_same_v<Optimizer, none>, prediction, training>>();
    }

    Optimizer& optimizer() { return optimizer_; }

    /// Bytes of the training program's arena; known once a batch size has been bound.
    std::size_t arena_bytes() const { return training_ ? training_->arena_bytes() : 0; }
    const ir::program_view& training_view() const { return ir::compile_program<training>(); }
    /// Plans the training step for a batch size before the first step.
    ir::program& training_program() {
        if (!training_) training_ = std::make_unique<ir::program>(ir::compile_program<training>());
        return *training_;
    }

private:
    friend base;

    step_result step_once(const buffer_view& x, const buffer_view& y) {
        return run(prepared_step(), x, y, this->options_.check_finite);
    }
    ir::program& prepared_step() {
        ir::program& p = training_program();
        const auto numbers = optimizer_.numbers(this->step_);
        const int first = labels_of(p) + 1;
        for (std::size_t i = 0; i < numbers.size(); ++i) p.set_parameter(first + static_cast<int>(i), numbers[i]);
        for (int i = 0; i < p.view().variables.size(); ++i)
            if (const int input = p.view().variables[i].frozen_input; input > 0)
                p.set_parameter(input - 1, this->variables_.at(i).frozen() ? 1 : 0);
        return p;
    }

    // Inputs of a program: the batch, what layers ask about frozen variables, labels, the optimizer's numbers.
    static int labels_of(const ir::program& p) {
        int i = 1;
        while (p.view().inputs[i].scalar_parameter) ++i;
        return i;
    }

    // A step on a device whose results have been sent to the host, but not waited for.
    struct launched_step {
        std::int64_t loss = -1, accuracy = -1;
    };
    launched_step launch_once(const buffer_view& x, const buffer_view& y) {
        ir::program& p = prepared_step();
        launch(p, x, y, false);
        launched_step s;
        s.loss = p.publish_output(0);
        if (p.view().outputs.size() > 1) s.accuracy = p.publish_output(1);
        return s;
    }
    step_result result_of(const launched_step& s) {
        step_result r;
        r.loss = training_->published_output(0, s.loss);
        if (s.accuracy >= 0) r.accuracy = training_->published_output(1, s.accuracy);
        return r;
    }

    step_result measure_once(const buffer_view& x, const buffer_view& y) {
        if (!evaluation_) evaluation_ = std::make_unique<ir::program>(ir::compile_program<evaluation>());
        return run(*evaluation_, x, y, false);
    }
    void launch(ir::program& p, const buffer_view& x, const buffer_view& y, bool check) {
        if (&p == training_.get()) {
            connect_step(p);
        } else {
            connect(p);
        }
        p.set_input(0, x);
        p.set_input(labels_of(p), y);
        const random_state random{this->options_.seed, static_cast<std::uint64_t>(this->step_)}; // named: nvcc loses braces here
        p.run(random, check);
    }
    step_result run(ir::program& p, const buffer_view& x, const buffer_view& y, bool check) {
        launch(p, x, y, check);
        double loss_and_accuracy[2]{};
        p.scalar_outputs(p.view().outputs.size() > 1 ? 2 : 1, loss_and_accuracy);
        return {loss_and_accuracy[0], loss_and_accuracy[1]};
    }
    // Programs run on the model's variables where they stand; the first ones are the same in every trace. These only read.
    void connect(ir::program& p) const {
        for (int i = 0; i < p.view().variables.size(); ++i)
            p.set_variable(i, this->variables_.at(i).data().view_on(p.device()).data);
    }
    // A step writes variables where they stand; one that a prediction on a tape holds moves away first. It is compiled to update
    // every variable that may change: of a frozen one, and of its optimizer state, it gets a copy.
    void connect_step(ir::program& p) {
        frozen_copies_.resize(static_cast<std::size_t>(p.view().variables.size()));
        for (int i = 0; i < p.view().variables.size(); ++i) {
            variable& v = this->variables_.at(i);
            const std::string_view path = v.path();
            const variable* const owner =
                v.optimizer_state() ? this->variables_.find(path.substr(0, path.rfind('/'))) : &v;
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
    // Predictions of several threads may overlap.
    tensor<typename Spec::value_type> predict_once(const tensor<typename Spec::element_type>& x) const {
        tensor<typename Spec::value_type> result;
        predictions_->with(ir::compile_program<prediction>(), [&](ir::program& p) {
            connect(p);
            p.set_input(0, x.view());
            const random_state random{this->options_.seed, static_cast<std::uint64_t>(this->step_)};
            p.run(random);
            result = detail::output_tensor<typename Spec::value_type>(p, 0);
            if constexpr (is_floating(dtype_of<typename Spec::element_type>))
                if (detail::tape_storage::instance().tracks(x)) result.set_tape_index(record(p, random, x));
        });
        return result;
    }
    tape_index record(const ir::program& p, const random_state& random, const any_tensor& x) const {
        detail::taped_call call(p, random, {x});
        call.gradient = ir::input_gradient_of<prediction>();
        call.programs = gradients_;
        for (int i = 0; i < p.view().variables.size(); ++i) call.variables.push_back(this->variables_.at(i).data());
        return detail::record_program(call);
    }

    Optimizer optimizer_;
    std::unique_ptr<ir::program> training_, evaluation_;
    std::vector<any_tensor> frozen_copies_;
    std::unique_ptr<detail::program_pool> predictions_ = std::make_unique<detail::program_pool>();
    std::shared_ptr<detail::program_pool> gradients_ = std::make_shared<detail::program_pool>(); // of predictions, by x
};

} // namespace tapegraph
