#pragma once

#include <tapegraph/compile/compile.hpp>
#include <tapegraph/compile/graph_trainer.hpp>
#include <tapegraph/compile/model_verdict.hpp>
#include <tapegraph/compile/traced_calls.hpp>
#include <tapegraph/nn/optimizers/basic.hpp>
#include <tapegraph/train/compiled_traces.hpp>
#include <tapegraph/train/traces.hpp>
#include <tapegraph/train/trainable_model.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

/// Models whose graph is made at run time: `compile<traced>`.

namespace tapegraph {

namespace detail {

/// Evaluation and prediction by graphs that are made at run time, and the interface that `compile`
/// checks.
template <class Derived, class Trainer, class Model, class Spec, class Loss, class Optimizer>
class basic_traced_model : public trainable_model<Derived, Spec, Loss, Trainer> {
protected:
    using base = trainable_model<Derived, Spec, Loss, Trainer>;
    using model = at_run_time<Model>;
    using training = ir::training_trace<model, Spec, Loss, Optimizer>;
    using prediction = ir::prediction_trace<model, Spec>;
    using result = decltype(ir::trace_model<model, Spec>(std::declval<ir::model_trace&>()));
    friend base;

    template <class Options>
    basic_traced_model(const Model& m, const Options& options, const Loss& loss, const Optimizer& optimizer)
        : base(options, loss), model_(m), optimizer_(optimizer) {
        const traced_now<Model> now(model_);
        const auto layers = ir::traced_program::of<ir::prediction_trace<model, Spec, true>>(false);
        constexpr bool trains = !std::is_same_v<Optimizer, none>;
        const auto whole = ir::traced_program::of<std::conditional_t<trains, training, prediction>>(false);
        placed_ = has_places(layers->view()) || has_places(whole->view());
        on_devices_ = has_devices(layers->view());
        model_base::read_traces(*this, layers->view(), whole->view(), first_values_at_run_time<model>(), trains);
        this->set_first_values(optimizer_);
        this->gradients_ = traced_gradient::pool_of(programs_->by_inputs);
    }

public:
    using base::predict;
    /// The outputs for a batch as tensors of these element types, one for all of them or one for
    /// each: `predict<std::int32_t>(x)`. predict without types gives the inputs' floating type.
    /// Throws dtype_error if an output is of another type, otherwise as predict does.
    template <class... T, class... X>
        requires(sizeof...(T) > 0)
    auto predict(const tensor<X>&... x) const {
        static_assert(sizeof...(X) == static_cast<std::size_t>(input_pack<Spec>::count),
                      "predict<T>: a tensor for each input");
        const any_tensor inputs[]{x...};
        return typed_results<result, T...>(this->predict_any(inputs), "predict");
    }
    /// The same for all records of a data set.
    template <class... T>
        requires(sizeof...(T) > 0)
    auto predict(const data::dataset& set, std::int64_t batch_size = 32) const {
        return typed_results<result, T...>(this->predict_any(set, batch_size), "predict");
    }
    Optimizer& optimizer() { return optimizer_; }
    const Model& definition() const { return model_; }
    /// Traces the prediction again, for the export (io/onnx.hpp).
    void trace_prediction(ir::model_trace& t) const {
        const traced_now<Model> now(model_);
        static_assert(ir::detail::count_stages<prediction>() == 1);
        ir::trace_alone(t, [](ir::model_trace& to) { prediction::build(to); }); // the export refuses scans by name
        if (t.error.what != nullptr) throw shape_error(ir::detail::error_line(t));
    }

protected:
    using value_type = typename value_type_of<Spec>::type;

    step_result measure_once(batch_columns columns) {
        using evaluation = ir::evaluation_trace<model, Spec, Loss>;
        if (placed_) return run_placed<evaluation>(programs_->placed_evaluation, columns, false);
        ir::program& p = this->evaluation_program_of(made_once<evaluation>(programs_->evaluation, model_).view());
        base::set_numbers(p, "loss", this->numbers_of_loss());
        return this->measure_with(p, columns);
    }

    std::vector<any_tensor> predict_any_once(std::span<const any_tensor> x) const {
        const ir::program_view& view = predicting().view();
        std::vector<any_tensor> results(static_cast<std::size_t>(view.outputs.size()));
        const auto tracked = [](const any_tensor& each) { return tape_storage::instance().tracks(each); };
        if (placed_ && std::none_of(x.begin(), x.end(), tracked)) { // on a tape it is one program, as its derivative is
            predict_placed(x, results);
            return results;
        }
        typename base::prediction_calls calls{&view, nullptr, this};
        const auto floats = [](const any_tensor& each) { return is_floating(each.type()); };
        if (std::any_of(x.begin(), x.end(), floats))
            calls.gradient = [](const void* self) {
                const auto& m = *static_cast<const basic_traced_model*>(self);
                return m.programs_->by_inputs->template of<prediction>(m.predicting(), m.model_);
            };
        this->predict_with(calls, {x.begin(), x.end()}, results);
        return results;
    }
    template <class... T>
    auto predict_once(const tensor<T>&... x) const {
        const any_tensor inputs[]{x...};
        return typed_results<result, value_type>(predict_any_once(inputs), "predict");
    }
    // Runs a program in parts on several devices or tasks.
    template <class Trace>
    step_result run_placed(placed_part_programs& in_parts, batch_columns columns, bool trains) {
        const auto run = this->template run_in_parts<placed_run>(trains);
        run_parts(in_parts.programs, in_parts.template of<Trace>(model_), run, columns, [&](ir::program& p) {
            base::set_numbers(p, "loss", this->numbers_of_loss());
            if (trains) base::set_numbers(p, "optimizer", optimizer_.numbers(this->step_));
        });
        return finish_parts(in_parts.programs, run);
    }
    void predict_placed(std::span<const any_tensor> x, std::span<any_tensor> to) const {
        const std::lock_guard one_at_a_time(programs_->predicting);
        std::vector<buffer_view> columns;
        for (const any_tensor& each : x) columns.push_back(each.view());
        placed_part_programs& in_parts = programs_->placed_prediction;
        run_parts(in_parts.programs, in_parts.of<prediction>(model_), this->template run_in_parts<placed_run>(false),
                  columns.data(), [](ir::program&) {});
        copy_results(in_parts.programs, to);
    }
    // Several threads may predict first.
    const ir::traced_program& predicting() const {
        const std::lock_guard one_at_a_time(programs_->predicting);
        return made_once<prediction>(programs_->prediction, model_);
    }

    Model model_;
    Optimizer optimizer_;
    // Held by a pointer, because views point into it
    std::unique_ptr<traced_model_programs> programs_ = std::make_unique<traced_model_programs>();
    bool placed_ = false, on_devices_ = false; // whether parts are on devices or tasks, or on devices, of their own
};

} // namespace detail

/// A model whose graph is made at run time.
template <class Model, class Spec, class Loss, class Optimizer>
class compiled_model<traced, Model, Spec, Loss, Optimizer>
    : public detail::basic_traced_model<compiled_model<traced, Model, Spec, Loss, Optimizer>, detail::graph_trainer,
                                        Model, Spec, Loss, Optimizer> {
    using whole = detail::basic_traced_model<compiled_model, detail::graph_trainer, Model, Spec, Loss, Optimizer>;
    using typename whole::base;
    using typename whole::model;
    using typename whole::training;
    friend base;

public:
    compiled_model(const Model& m, const compile_options& options, const Loss& loss, const Optimizer& optimizer)
        : whole(m, options, loss, optimizer) {}

    /// Bytes of the training program's arena; known once a batch size is bound.
    std::size_t arena_bytes() const { return this->training_ ? this->training_->arena_bytes() : 0; }
    const ir::program_view& training_view() const {
        return detail::made_once<training>(this->programs_->training, this->model_).view();
    }
    /// Plans the training step for a batch size before the first step.
    ir::program& training_program() { return this->training_program_of(training_view()); }

private:
    ir::program& next_step() {
        const auto numbers = this->optimizer_.numbers(this->step_);
        ir::program& p = this->prepared_step(training_view());
        base::set_numbers(p, "loss", this->numbers_of_loss());
        base::set_numbers(p, "optimizer", numbers);
        return p;
    }
    step_result step_once(detail::batch_columns columns) {
        if (!this->placed_) return this->run_step(next_step(), columns);
        return this->template run_placed<training>(this->programs_->placed_training, columns, true);
    }
    bool launches() const { return !this->placed_; }
    detail::launched_step launch_once(detail::batch_columns columns) { return this->launch_step(next_step(), columns); }
    step_result result_of(const detail::launched_step& s) { return this->published(s); }

    gradient_list gradients_once(detail::batch_columns columns) {
        static_assert(!std::is_same_v<Optimizer, none>, "gradients: this model has no loss");
        using gradients = ir::gradient_output_trace<model, Spec, Loss>;
        ir::program& p =
            this->gradient_program_of(detail::made_once<gradients>(this->programs_->gradients, this->model_).view());
        base::set_numbers(p, "loss", this->numbers_of_loss());
        return this->gradients_with(p, columns);
    }
};

} // namespace tapegraph
