#pragma once

#include <tapegraph/nn/graph_trainer.hpp>
#include <tapegraph/nn/model.hpp>

namespace tapegraph {

namespace detail {

/// What graph mode does without a step: evaluation and prediction, by programs compiled with the source. A program that is not used is
/// not instantiated.
template <class Derived, class Trainer, class Model, class Spec, class Loss, class Optimizer>
class basic_graph_model : public trainable_model<Derived, Spec, Loss, Trainer> {
    using evaluation = ir::evaluation_trace<Model, Spec, Loss>;
    using prediction = ir::prediction_trace<Model, Spec>;

public:
    Optimizer& optimizer() { return optimizer_; }

protected:
    using base = trainable_model<Derived, Spec, Loss, Trainer>;
    friend base;

    template <class Options>
    basic_graph_model(const Options& options, const Loss& loss, const Optimizer& optimizer)
        : base(options, loss), optimizer_(optimizer) {
        using training = ir::training_trace<Model, Spec, Loss, Optimizer>;
        this->template set_up<Model, Spec, std::conditional_t<std::is_same_v<Optimizer, none>, prediction, training>>();
        this->set_first_values(optimizer_);
    }

    step_result measure_once(batch_columns columns) {
        ir::program& p = this->evaluation_program_of(ir::compile_program<evaluation>());
        base::set_numbers(p, "loss", this->numbers_of_loss());
        return this->measure_with(p, columns);
    }
    template <class... T>
    auto predict_once(const tensor<T>&... x) const {
        using stage = ir::compile_stage<ir::detail::traced<prediction>>;
        typename base::prediction_calls calls{&ir::compile_program<prediction>(), nullptr};
        if constexpr ((is_floating(dtype_of<T>) || ...))
            calls.gradient = [] { return ir::input_gradient_of<prediction>(); };
        using result = decltype(ir::trace_model<Model, Spec>(std::declval<ir::trace&>()));
        return result_tensors<result, stage>([&](std::span<any_tensor> to) { this->predict_with(calls, {x...}, to); });
    }

    Optimizer optimizer_;
};

} // namespace detail

/// A model in graph mode.
template <class Model, class Spec, class Loss, class Optimizer>
class compiled_model<graph, Model, Spec, Loss, Optimizer>
    : public detail::basic_graph_model<compiled_model<graph, Model, Spec, Loss, Optimizer>,
                                       detail::basic_graph_trainer<>, Model, Spec, Loss, Optimizer> {
    using base = detail::basic_graph_model<compiled_model, detail::basic_graph_trainer<>, Model, Spec, Loss, Optimizer>;
    using training = ir::training_trace<Model, Spec, Loss, Optimizer>;

public:
    compiled_model(const compile_options& options, const Loss& loss, const Optimizer& optimizer)
        : base(options, loss, optimizer) {}

    /// Bytes of the training program's arena; known once a batch size has been bound.
    std::size_t arena_bytes() const { return this->training_ ? this->training_->arena_bytes() : 0; }
    const ir::program_view& training_view() const { return ir::compile_program<training>(); }
    /// Plans the training step for a batch size before the first step.
    ir::program& training_program() { return this->training_program_of(ir::compile_program<training>()); }

private:
    template <class, class, class, class, class>
    friend class trainable_model;

    ir::program& next_step() {
        const auto numbers = this->optimizer_.numbers(this->step_);
        ir::program& p = this->prepared_step(ir::compile_program<training>());
        base::set_numbers(p, "loss", this->numbers_of_loss());
        base::set_numbers(p, "optimizer", numbers);
        return p;
    }
    step_result step_once(detail::batch_columns columns) { return this->run_step(next_step(), columns); }
    detail::launched_step launch_once(detail::batch_columns columns) { return this->launch_step(next_step(), columns); }
    step_result result_of(const detail::launched_step& s) { return this->published(s); }
    gradient_list gradients_once(detail::batch_columns columns) {
        static_assert(!std::is_same_v<Optimizer, none>, "gradients: this model has no loss");
        ir::program& p = this->gradient_program_of(ir::compile_program<ir::gradient_output_trace<Model, Spec, Loss>>());
        base::set_numbers(p, "loss", this->numbers_of_loss());
        return this->gradients_with(p, columns);
    }
};

} // namespace tapegraph
