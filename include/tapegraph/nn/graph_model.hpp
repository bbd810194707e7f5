#pragma once

#include <tapegraph/nn/graph_trainer.hpp>
#include <tapegraph/nn/model.hpp>

namespace tapegraph {

/// A model in graph mode: three programs, for training, evaluation and prediction, compiled with the source. A program that is not
/// used is not instantiated.
template <class Model, class Spec, class Loss, class Optimizer>
class compiled_model<graph, Model, Spec, Loss, Optimizer>
    : public trainable_model<compiled_model<graph, Model, Spec, Loss, Optimizer>, Spec, Loss,
                             detail::basic_graph_trainer<>> {
    using base = trainable_model<compiled_model, Spec, Loss, detail::basic_graph_trainer<>>;
    using training = ir::training_trace<Model, Spec, Loss, Optimizer>;
    using evaluation = ir::evaluation_trace<Model, Spec, Loss>;
    using prediction = ir::prediction_trace<Model, Spec>;

public:
    compiled_model(const compile_options& options, Optimizer optimizer) : base(options), optimizer_(optimizer) {
        this->template set_up<Model, Spec, std::conditional_t<std::is_same_v<Optimizer, none>, prediction, training>>();
        this->set_first_values(optimizer_);
    }

    Optimizer& optimizer() { return optimizer_; }

    /// Bytes of the training program's arena; known once a batch size has been bound.
    std::size_t arena_bytes() const { return this->training_ ? this->training_->arena_bytes() : 0; }
    const ir::program_view& training_view() const { return ir::compile_program<training>(); }
    /// Plans the training step for a batch size before the first step.
    ir::program& training_program() { return this->training_program_of(ir::compile_program<training>()); }

private:
    friend base;

    ir::program& next_step() {
        const auto numbers = optimizer_.numbers(this->step_);
        return this->prepared_step(ir::compile_program<training>(), numbers.data(), static_cast<int>(numbers.size()));
    }
    step_result step_once(const buffer_view& x, const buffer_view& y) { return this->run_step(next_step(), x, y); }
    detail::launched_step launch_once(const buffer_view& x, const buffer_view& y) {
        return this->launch_step(next_step(), x, y);
    }
    step_result result_of(const detail::launched_step& s) { return this->published(s); }
    step_result measure_once(const buffer_view& x, const buffer_view& y) {
        return this->measure_with(ir::compile_program<evaluation>(), x, y);
    }
    tensor<typename Spec::value_type> predict_once(const tensor<typename Spec::element_type>& x) const {
        typename base::prediction_calls calls{&ir::compile_program<prediction>(), nullptr, nullptr};
        calls.output = [](const ir::program& p) -> any_tensor {
            return detail::output_tensor<typename Spec::value_type>(p, 0);
        };
        if constexpr (is_floating(dtype_of<typename Spec::element_type>))
            calls.gradient = [] { return ir::input_gradient_of<prediction>(); };
        return tensor<typename Spec::value_type>(this->predict_with(calls, x));
    }

    Optimizer optimizer_;
};

} // namespace tapegraph
