#pragma once

#include <tapegraph/nn/model.hpp>
#include <tapegraph/nn/outputs.hpp>

#include <mutex>

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
        for (std::size_t i = 0; i < numbers.size(); ++i) p.set_parameter(2 + static_cast<int>(i), numbers[i]);
        return p;
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
        connect(p);
        if (&p == training_.get()) keep_frozen(p);
        p.set_input(0, x);
        p.set_input(1, y);
        p.run({this->options_.seed, static_cast<std::uint64_t>(this->step_)}, check);
    }
    step_result run(ir::program& p, const buffer_view& x, const buffer_view& y, bool check) {
        launch(p, x, y, check);
        double loss_and_accuracy[2]{};
        p.scalar_outputs(p.view().outputs.size() > 1 ? 2 : 1, loss_and_accuracy);
        return {loss_and_accuracy[0], loss_and_accuracy[1]};
    }
    // Programs run on the model's variables where they stand; the first ones are the same in every trace.
    void connect(ir::program& p) const {
        for (int i = 0; i < p.view().variables.size(); ++i)
            p.set_variable(i, this->variables_.at(i).data().view_on(p.device(), true).data);
    }
    // A step is compiled to update every trainable variable: of a frozen one, and of its optimizer state, it gets a copy.
    void keep_frozen(ir::program& p) {
        bool any = false;
        for (const variable& v : this->variables_) any = any || v.frozen();
        if (!any) return;
        frozen_copies_.resize(static_cast<std::size_t>(p.view().variables.size()));
        for (int i = 0; i < p.view().variables.size(); ++i) {
            const variable& v = this->variables_.at(i);
            const std::string_view path = v.path();
            const variable* const owner =
                v.optimizer_state() ? this->variables_.find(path.substr(0, path.rfind('/'))) : &v;
            if (owner == nullptr || !owner->frozen()) continue;
            any_tensor& copy = frozen_copies_[static_cast<std::size_t>(i)];
            if (!copy.has_storage()) copy = any_tensor(v.type(), v.shape());
            const buffer_view from = v.data().view_on(p.device()), to = copy.view_on(p.device(), true);
            if (p.device() == nullptr)
                std::memcpy(to.data, from.data, from.bytes());
            else
                p.device()->copy(to.data, from.data, from.bytes());
            p.set_variable(i, to.data);
        }
    }
    // Each thread takes a program of its own from the pool, so that predictions may overlap.
    tensor<typename Spec::value_type> predict_once(const tensor<typename Spec::element_type>& x) const {
        std::unique_ptr<ir::program> p;
        {
            const std::lock_guard lock(program_pool_->mutex);
            if (!program_pool_->programs.empty()) {
                p = std::move(program_pool_->programs.back());
                program_pool_->programs.pop_back();
            }
        }
        if (!p) p = std::make_unique<ir::program>(ir::compile_program<prediction>());
        connect(*p);
        p->set_input(0, x.view());
        p->run({this->options_.seed, static_cast<std::uint64_t>(this->step_)});
        auto result = detail::output_tensor<typename Spec::value_type>(*p, 0);
        const std::lock_guard lock(program_pool_->mutex);
        program_pool_->programs.push_back(std::move(p));
        return result;
    }

    struct program_pool {
        std::mutex mutex;
        std::vector<std::unique_ptr<ir::program>> programs;
    };
    Optimizer optimizer_;
    std::unique_ptr<ir::program> training_, evaluation_;
    std::vector<any_tensor> frozen_copies_;
    std::unique_ptr<program_pool> program_pool_ = std::make_unique<program_pool>();
};

} // namespace tapegraph
