#pragma once

#include <tapegraph/graph/input_rules.hpp>
#include <tapegraph/nn/eager_model.hpp>
#include <tapegraph/nn/model_verdict.hpp>

#include <tuple>
#include <vector>

/// Models that only own variables, for custom loops in eager mode. Not part of tapegraph.hpp.
///
///     auto net = tg::instance(network{}, tg::spec<float, tg::dyn, 784>{});
///     tg::applied optimizer(tg::adam{}, net.variables());
///     tg::gradient_tape tape;
///     const auto loss = tg::mean_squared_error{}(net.in_training(x), y);
///     optimizer.apply_gradients(net.gradients(tape, loss));
///
/// A training step (nn/training_step.hpp) is the compiled form of this loop.

namespace tapegraph {

template <class Model, class Spec, class Elements = typename detail::input_pack<Spec>::element_types>
class model_instance;

/// A model in eager mode, with its variables.
template <class Model, class Spec, class... Elements>
class model_instance<Model, Spec, std::tuple<Elements...>> : public detail::basic_trainer<> {
    using value = typename decltype(detail::model_value_type<Spec, ir::prediction_trace<Model, Spec, true>>())::type;

public:
    explicit model_instance(const compile_options& options) : detail::basic_trainer<>(options) {
        this->template set_up<Model, Spec, ir::prediction_trace<Model, Spec>>();
    }

    /// Runs the model outside of training: dropout passes its input through, and averages do not
    /// change. Tapes follow its input and its variables. Throws shape_error or dtype_error for
    /// inputs that do not fit.
    auto operator()(const tensor<Elements>&... x) { return call(false, x...); }
    /// Runs the model in training. Its assignments to variables (moving averages) are done when
    /// this returns; each call has random numbers of its own.
    auto in_training(const tensor<Elements>&... x) {
        ++step_;
        auto y = call(true, x...);
        return y;
    }

    /// The losses that the model adds: scope.add_loss of the calls of `in_training` under this tape
    /// since the last request, and the penalties of regularizers on its variables. `loss +
    /// net.added_losses()`; 0 where there are none.
    tensor<value> added_losses() {
        tensor<value> total(value(0));
        for (const any_tensor& each : losses_) total = eval(total + tensor<value>(each));
        losses_.clear();
        if constexpr (regularizes)
            for (const variable& v : variables_)
                if (v.regularizer())
                    total = eval(total + detail::penalties<Model>::of(v.regularizer(), tensor<value>(v.data())));
        penalties_due_ = false;
        return total;
    }

    /// The gradient of a loss by each trainable variable, in their order, in the form that
    /// `applied` takes. A gradient without elements in memory means that the loss does not depend
    /// on this variable. Throws argument_error if the model adds losses that have not been
    /// requested.
    std::vector<any_tensor> gradients(gradient_tape& tape, const any_tensor& loss) {
        if (!losses_.empty() || penalties_due_) {
            losses_.clear();
            penalties_due_ = false;
            throw argument_error("instance: the model adds to its loss (add_loss or regularizers), which this one "
                                 "leaves out: loss + net.added_losses()");
        }
        std::vector<any_tensor> sources, flows;
        for (const variable& v : variables_) {
            if (!v.trainable()) continue;
            if (detail::tape_storage::instance().tracks(v.data())) sources.push_back(v.data());
        }
        std::vector<any_tensor> found = tape.gradient(loss, sources);
        std::size_t next = 0;
        for (variable& v : variables_) {
            if (!v.trainable()) continue;
            const bool followed = next < sources.size() && sources[next].shares_with(v.data());
            flows.push_back(followed ? std::move(found[next]) : any_tensor{});
            if (followed) ++next;
        }
        return flows;
    }

    template <tensor_like E>
    std::vector<any_tensor> gradients(gradient_tape& tape, const E& loss) {
        const any_tensor sealed = eval(loss);
        return gradients(tape, sealed);
    }

private:
    static constexpr bool regularizes =
        ir::traced_stage<ir::prediction_trace<Model, Spec, true>>::value.used.regularizers > 0;

    std::vector<any_tensor> losses_; // not requested yet
    bool penalties_due_ = false;

    auto call(bool training, const tensor<Elements>&... x) {
        static const ir::input_rules rules(ir::stage_view<ir::traced_stage<ir::prediction_trace<Model, Spec, true>>>());
        const computing here(*this);
        const buffer_view columns[]{x.outline_view()...};
        check_batch({detail::input_table<Spec>::rows, sizeof...(Elements)}, columns);
        rules.check(columns);
        eager_context context;
        context.variables = &variables_;
        context.follows = true;
        context.begin(training, random_state{options_.seed, static_cast<std::uint64_t>(step_)});
        const detail::random_scope draws(context.random);
        auto y = detail::sealed_result(Model::get()(eager_scope(&context), x...));
        if (training) {
            const auto& tape = detail::tape_storage::instance();
            // Those of earlier steps.
            std::erase_if(losses_, [&](const any_tensor& each) { return !tape.tracks(each); });
            for (any_tensor& each : context.losses) losses_.push_back(std::move(each));
            penalties_due_ = regularizes;
        }
        context.apply();
        return y;
    }
};

/// Creates an instance; `spec` and `options` are those of tg::compile.
template <class Model, detail::input_spec_like Spec>
auto instance(const Model&, Spec, const compile_options& options = {}) {
    static_assert(std::is_empty_v<Model>, "this model has data members: tg::instance<your_model{.layers = 5}>(spec)");
    return model_instance<detail::model_type<Model>, Spec>(options);
}
template <auto Model, detail::input_spec_like Spec>
auto instance(Spec, const compile_options& options = {}) {
    return model_instance<detail::model_constant<Model>, Spec>(options);
}

} // namespace tapegraph
