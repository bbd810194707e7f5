#pragma once

#include <tapegraph/nn/eager_scope.hpp>
#include <tapegraph/nn/trainer.hpp>

namespace tapegraph {

/// A model with its loss and optimizer, in one of the two modes.
template <class Mode, class Model, class Spec, class Loss, class Optimizer>
class compiled_model;

/// What both modes do in the same way, over `step_once`, `measure_once` and `predict_once` of the mode. The loops are in
/// nn/trainer.hpp and know nothing of the model's type.
template <class Derived, class Spec, class Loss, class Trainer>
class trainable_model : public Trainer {
public:
    using Trainer::Trainer;
    using element = typename Spec::element_type;

    /// One step on tensors: x of the model's input, y as the loss's `labels` says. Gives loss and accuracy before the update.
    /// Throws shape_error or dtype_error for what does not fit; then nothing has changed.
    template <class Labels>
    step_result train_on_batch(const tensor<element>& x, const tensor<Labels>& y) {
        return train_step(x.view_on(this->device_), y.view_on(this->device_));
    }
    /// One step on a batch that a loader made; its first column is the input, its second holds the labels.
    step_result train_on_batch(const data::batch& b) {
        Trainer::check_columns(b.columns());
        return train_step(Trainer::batch_view(b, 0), Trainer::batch_view(b, 1));
    }

    /// One step on a batch in memory that somebody else owns: views of the input and of the labels.
    step_result train_step(const buffer_view& x, const buffer_view& y) {
        return this->step_with({input_of(), &step_of}, x, y);
    }

    /// Trains for some epochs over a data set whose first column is the input and whose second holds the labels. Behind the options
    /// come callbacks, whose hooks are called in this order: nn/training_state.hpp, nn/callbacks/. Throws argument_error for options
    /// that make no sense, and a data set without records or labels.
    template <class... Callbacks>
    history fit(const data::dataset& train, const fit_options& options = {}, Callbacks&&... callbacks) {
        static_assert((detail::training_callback<std::remove_reference_t<Callbacks>> && ...),
                      "fit: a callback has none of the hooks on_train_begin, on_train_end, on_epoch_begin, on_epoch_end, "
                      "on_batch_begin, on_batch_end, on_test_begin, on_test_end, on_checkpoint, each with a training_state&");
        detail::mode_calls calls{input_of(), &step_of, &measure_of};
        if constexpr (requires(Derived& d) { d.launch_once(buffer_view{}, buffer_view{}); }) {
            calls.launch = [](detail::model_base& m, const buffer_view& x, const buffer_view& y) {
                return static_cast<Derived&>(m).launch_once(x, y);
            };
            calls.result_of = [](detail::model_base& m, const detail::launched_step& s) {
                return static_cast<Derived&>(m).result_of(s);
            };
        }
        const detail::callback_hooks hooks[]{detail::hooks_of(callbacks)..., {}};
        return this->fit_with(calls, train, options,
                              {hooks, sizeof...(Callbacks), detail::learning_rate_of(static_cast<Derived&>(*this).optimizer())});
    }

    /// Mean loss and accuracy over a data set, weighted by batch size; nothing is trained. Errors as of `fit`.
    step_result evaluate(const data::dataset& set, std::int64_t batch_size = 32) {
        return this->evaluate_with({input_of(), nullptr, &measure_of}, set, batch_size);
    }

    /// Loss and accuracy of one batch.
    template <class Labels>
    step_result evaluate(const tensor<element>& x, const tensor<Labels>& y) {
        const device_scope on(this->device_);
        Trainer::check_batch(input_of(), x.outline_view());
        return measure_of(*this, x.view(), y.view());
    }

    /// The model's output for a batch, as outside of training. Throws shape_error for an input that is not the model's. Safe from
    /// several threads at once.
    auto predict(const tensor<element>& x) const {
        const device_scope on(this->device_);
        Trainer::check_batch(input_of(), x.outline_view());
        return static_cast<const Derived&>(*this).predict_once(x);
    }

private:
    static detail::input_spec input_of() {
        return {dtype_of<element>, Spec::rank, Spec::extents, [] { return Spec::text(); }};
    }
    static step_result step_of(detail::model_base& m, const buffer_view& x, const buffer_view& y) {
        return static_cast<Derived&>(m).step_once(x, y);
    }
    static step_result measure_of(detail::model_base& m, const buffer_view& x, const buffer_view& y) {
        return static_cast<Derived&>(m).measure_once(x, y);
    }
};

} // namespace tapegraph
