#pragma once

#include <tapegraph/graph/input_rules.hpp>
#include <tapegraph/nn/eager_slots.hpp>
#include <tapegraph/nn/model.hpp>

namespace tapegraph {

namespace ir {

/// Whether some variable's gradient is taken by gathered rows.
template <class Model, class Spec, class Loss>
inline constexpr bool gathers_rows = traced_stage<forward_trace<Model, Spec, Loss>>::value.used.row_uses > 0;

/// Whether some variable has a regularizer, or a constraint.
template <class Model, class Spec, class Loss>
inline constexpr bool regularizes = traced_stage<forward_trace<Model, Spec, Loss>>::value.used.regularizers > 0;
template <class Model, class Spec, class Loss>
inline constexpr bool constrains = traced_stage<forward_trace<Model, Spec, Loss>>::value.used.constraints > 0;

} // namespace ir

namespace detail {

/// The loss with the penalties of the variables that this evaluation has asked for.
template <class Model, class Spec, class Loss, class T>
tensor<T> with_penalties(const eager_context& context, const tensor<T>& loss) {
    if constexpr (ir::regularizes<Model, Spec, Loss>)
        return penalties<Loss>::added(context, loss);
    else
        return loss;
}

/// A tensor over a copy of a batch's memory, whose elements are of type T.
template <class T>
tensor<T> batch_tensor(const buffer_view& v) {
    auto t = tensor<T>::uninitialized(shape(v.rank, v.extents));
    if (v.memory == 0)
        std::memcpy(t.mutable_data(), v.data, v.bytes());
    else
        runtime::current_runtime()->copy(t.view().data, v.data, v.bytes());
    return t;
}

} // namespace detail

/// A model in eager mode: it runs statement by statement, a tape records it, and the optimizer updates the variables.
template <class Model, class Spec, class Loss, class Optimizer>
class compiled_model<eager, Model, Spec, Loss, Optimizer>
    : public trainable_model<compiled_model<eager, Model, Spec, Loss, Optimizer>, Spec, Loss, detail::basic_trainer<>> {
    using base = trainable_model<compiled_model, Spec, Loss, detail::basic_trainer<>>;
    using T = typename Spec::element_type;
    using value = typename Spec::value_type;

public:
    compiled_model(const compile_options& options, Optimizer optimizer) : base(options), optimizer_(optimizer) {
        this->template set_up<Model, Spec,
                              std::conditional_t<std::is_same_v<Optimizer, none>, ir::prediction_trace<Model, Spec>,
                                                 ir::training_trace<Model, Spec, Loss, Optimizer>>>();
    }

    Optimizer& optimizer() { return optimizer_; }

private:
    friend base;
    static constexpr dtype label_type = Loss::labels(dtype_of<value>, shape{}).type;
    using label = element_t<label_type>;

    eager_context& begin(bool training) {
        context_.variables = &this->variables_;
        context_.begin(training, random_state{this->options_.seed, static_cast<std::uint64_t>(this->step_)});
        return context_;
    }

    step_result step_once(const buffer_view& x, const buffer_view& y) {
        check_inputs<ir::training_trace<Model, Spec, Loss, Optimizer>>(x, y);
        const detail::numeric_check check(this->options_.check_finite);
        eager_context& context = begin(true);
        const detail::random_scope draws(context.random);
        step_result result;
        std::vector<any_tensor> sources, gradients;
        std::vector<variable*> targets;
        {
            gradient_tape tape;
            const auto labels = detail::batch_tensor<label>(y);
            const auto output = eval(Model::get()(eager_scope(&context), detail::batch_tensor<T>(x)));
            detail::numeric_check::enter({});
            const auto loss = detail::with_penalties<Model, Spec, Loss>(context, eval(Loss{}(output, labels)));
            tape.stop_recording();
            const any_tensor accuracy = accuracy_of(output, labels);
            for (const auto& u : context.used) {
                if (!detail::tape_storage::instance().knows(u.handle.tape_index())) continue;
                sources.push_back(u.handle);
                targets.push_back(u.target);
            }
            for (const auto& u : context.row_uses) sources.push_back(u.rows);
            gradients = tape.gradient(loss, sources);
            result = numbers_of(loss, accuracy); // before anything is updated: here is thrown what a device found wrong
        }
        detail::eager_slots slots(&this->variables_, &context.updates);
        const auto numbers = optimizer_.numbers(this->step_);
        std::array<typed_number<value>, Optimizer::count> n;
        for (std::size_t i = 0; i < numbers.size(); ++i) n[i] = {static_cast<value>(numbers[i])};
        for (std::size_t i = 0; i < targets.size(); ++i) {
            slots.begin(targets[i]);
            update(slots, sources[i], gradients[i], n);
            gradients[i].drop_storage();
        }
        if constexpr (ir::gathers_rows<Model, Spec, Loss>)
            detail::update_rows<value>(
                slots, context.row_uses, gradients.data() + targets.size(),
                [&](const auto& some, const auto& w, const auto& g) { Optimizer::update(some, w, g, n); });
        sources.clear();
        if constexpr (ir::constrains<Model, Spec, Loss>) detail::projections<Loss>::template apply<value>(context);
        context.apply();
        return result;
    }

    step_result measure_once(const buffer_view& x, const buffer_view& y) {
        check_inputs<ir::forward_trace<Model, Spec, Loss>>(x, y);
        eager_context& context = begin(false);
        const detail::random_scope draws(context.random);
        const auto labels = detail::batch_tensor<label>(y);
        const auto output = eval(Model::get()(eager_scope(&context), detail::batch_tensor<T>(x)));
        const auto loss = detail::with_penalties<Model, Spec, Loss>(context, eval(Loss{}(output, labels)));
        return numbers_of(loss, accuracy_of(output, labels));
    }

    tensor<value> predict_once(const tensor<T>& x) const {
        check_inputs<ir::prediction_trace<Model, Spec, true>>(x.outline_view());
        eager_context context;
        context.variables = const_cast<variable_list*>(&this->variables_); // every variable exists: nothing is added
        context.begin(false, random_state{this->options_.seed, static_cast<std::uint64_t>(this->step_)});
        const detail::random_scope draws(context.random);
        return eval(Model::get()(eager_scope(&context), x));
    }

    // What graph mode's programs ask of their inputs, in the same words.
    template <class Trace, class... Views>
    static void check_inputs(const Views&... views) {
        static const ir::input_rules rules(ir::stage_view<ir::traced_stage<Trace>>());
        rules.check({views...});
    }
    /// Has no buffer where the loss does not define an accuracy.
    template <class Output>
    static any_tensor accuracy_of(const Output& output, const tensor<label>& labels) {
        if constexpr (requires { Loss::accuracy(output, labels); })
            return eval(Loss::accuracy(output, labels));
        else
            return {};
    }
    static step_result numbers_of(const any_tensor& loss, const any_tensor& accuracy) {
        const buffer_view views[]{loss.view(), accuracy.view()};
        double numbers[2]{};
        runtime::load_scalars(runtime::current_runtime(), views, accuracy.has_storage() ? 2 : 1, numbers);
        return {numbers[0], numbers[1]};
    }
    void update(detail::eager_slots& slots, const any_tensor& w, const any_tensor& g, const auto& n) {
        Optimizer::update(slots, tensor<value>(w), tensor<value>(g), n);
    }

    Optimizer optimizer_;
    eager_context context_;
};

} // namespace tapegraph
