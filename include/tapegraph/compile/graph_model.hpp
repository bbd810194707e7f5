#pragma once

#include <tapegraph/compile/graph_trainer.hpp>
#include <tapegraph/compile/placed/placed_programs.hpp>
#include <tapegraph/train/trainable_model.hpp>

namespace tapegraph {

namespace detail {

/// Evaluation and prediction in graph mode, by programs compiled with the source. Programs that are
/// not used are not instantiated.
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
        if constexpr (!std::is_same_v<Optimizer, none>) this->template look_at_outputs<Model>();
    }

    step_result measure_once(batch_columns columns) {
        if constexpr (is_placed<evaluation>) return run_placed<evaluation>(placed_.evaluation, columns, false);
        ir::program& p = this->evaluation_program_of(ir::compile_program<evaluation>());
        base::set_numbers(p, "loss", this->numbers_of_loss());
        return this->measure_with(p, columns);
    }
    template <class... T>
    auto predict_once(const tensor<T>&... x) const {
        using stage = ir::compile_stage<ir::detail::traced<prediction>>;
        typename base::prediction_calls calls{&ir::compile_program<prediction>(), nullptr, nullptr};
        if constexpr ((is_floating(dtype_of<T>) || ...))
            calls.gradient = [](const void*) { return ir::input_gradient_of<prediction>(); };
        using result = decltype(ir::trace_model<Model, Spec>(std::declval<ir::model_trace&>()));
        return result_tensors<result, stage>([&](std::span<any_tensor> to) {
            if constexpr (is_placed<prediction>) // on a tape it is one program, because its derivative is one
                if (!(tape_storage::instance().tracks(x) || ...)) return predict_placed({x.view()...}, to);
            this->predict_with(calls, {x...}, to);
        });
    }

    // Runs a program in parts on several devices.
    template <class Trace>
    step_result run_placed(part_programs& programs, batch_columns columns, bool trains) {
        const placed_run run = this->template run_in_parts<placed_run>(trains);
        run_parts(programs, parts_of<Trace>::all, run, columns, [&](ir::program& p) {
            base::set_numbers(p, "loss", this->numbers_of_loss());
            if (trains) base::set_numbers(p, "optimizer", optimizer_.numbers(this->step_));
        });
        return finish_parts(programs, run);
    }
    void predict_placed(std::initializer_list<buffer_view> columns, std::span<any_tensor> to) const {
        const std::lock_guard one_at_a_time(*placed_.predicting);
        run_parts(placed_.prediction, parts_of<prediction>::all, this->template run_in_parts<placed_run>(false),
                  columns.begin(), [](ir::program&) {});
        copy_results(placed_.prediction, to);
    }

    // Without placements, this is empty and costs nothing.
    static constexpr bool placed = is_placed<ir::prediction_trace<Model, Spec, true>>;
    static constexpr bool on_devices = anything_on_devices<ir::traced_stage<ir::prediction_trace<Model, Spec, true>>>();
    mutable std::conditional_t<placed, placed_programs, none> placed_;
    Optimizer optimizer_;
};

} // namespace detail

/// A model in graph mode.
template <class Model, class Spec, class Loss, class Optimizer>
class compiled_model<graph, Model, Spec, Loss, Optimizer>
    : public detail::basic_graph_model<compiled_model<graph, Model, Spec, Loss, Optimizer>, detail::graph_trainer,
                                       Model, Spec, Loss, Optimizer> {
    using base = detail::basic_graph_model<compiled_model, detail::graph_trainer, Model, Spec, Loss, Optimizer>;
    using training = ir::training_trace<Model, Spec, Loss, Optimizer>;

public:
    compiled_model(const compile_options& options, const Loss& loss, const Optimizer& optimizer)
        : base(options, loss, optimizer) {}

    /// Bytes of the training program's arena; known once a batch size has been bound.
    std::size_t arena_bytes() const { return this->training_ ? this->training_->arena_bytes() : 0; }
    /// The training step; of a model without a loss and an optimizer its prediction.
    const ir::program_view& training_view() const {
        using shown = std::conditional_t<std::is_same_v<Optimizer, none>, ir::prediction_trace<Model, Spec>, training>;
        return ir::compile_program<shown>();
    }
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
    step_result step_once(detail::batch_columns columns) {
        if constexpr (detail::is_placed<training>)
            return this->template run_placed<training>(this->placed_.training, columns, true);
        else
            return this->run_step(next_step(), columns);
    }
    detail::launched_step launch_once(detail::batch_columns columns) requires(!detail::is_placed<training>) {
        return this->launch_step(next_step(), columns);
    }
    step_result result_of(const detail::launched_step& s) { return this->published(s); }
    gradient_list gradients_once(detail::batch_columns columns) {
        static_assert(!std::is_same_v<Optimizer, none>, "gradients: this model has no loss");
        ir::program& p = this->gradient_program_of(ir::compile_program<ir::gradient_output_trace<Model, Spec, Loss>>());
        base::set_numbers(p, "loss", this->numbers_of_loss());
        return this->gradients_with(p, columns);
    }
};

} // namespace tapegraph
