#pragma once

#include <tapegraph/compile/eager_model.hpp>
#include <tapegraph/compile/instance_losses.hpp>
#include <tapegraph/compile/model_verdict.hpp>
#include <tapegraph/graph/input_rules.hpp>

#include <tuple>

/// Models that only own variables, for custom loops in eager mode. Not part of tapegraph.hpp.
///
///     auto net = tg::instance(network{}, tg::spec<float, tg::dyn, 784>{});
///     tg::applied optimizer(tg::adam{}, net.variables());
///     tg::gradient_tape tape;
///     const auto loss = tg::mean_squared_error{}(net.in_training(x), y);
///     optimizer.apply_gradients(net.gradients(tape, loss));
///
/// A training step (compile/training_step.hpp) is the compiled form of this loop.

namespace tapegraph {

/// What `tg::instance` returns: a model in eager mode with its variables, and no loss.
template <class Model, class Spec, class Elements = typename detail::input_pack<Spec>::element_types>
class model_instance;

/// A model in eager mode, with its variables.
template <class Model, class Spec, class... Elements>
class model_instance<Model, Spec, std::tuple<Elements...>>
    : public detail::instance_losses<
          Model, typename decltype(detail::model_value_type<Spec, ir::prediction_trace<Model, Spec, true>>())::type,
          (ir::traced_stage<ir::prediction_trace<Model, Spec, true>>::value.used.regularizers > 0),
          detail::trainer_base> {
    using base = typename model_instance::instance_losses;

public:
    explicit model_instance(const compile_options& options) : base(options) {
        this->template set_up<Model, Spec, ir::prediction_trace<Model, Spec>>();
    }

    /// Runs the model outside of training: dropout passes its input through, and averages do not
    /// change. Tapes follow its input and its variables. Throws shape_error or dtype_error for
    /// inputs that do not fit.
    auto operator()(const tensor<Elements>&... x) { return call(false, x...); }
    /// Runs the model in training. Its assignments to variables (moving averages) are done when
    /// this returns; each call has random numbers of its own.
    auto in_training(const tensor<Elements>&... x) {
        ++this->step_;
        auto y = call(true, x...);
        return y;
    }

private:
    auto call(bool training, const tensor<Elements>&... x) {
        static const ir::input_rules rules(ir::stage_view<ir::traced_stage<ir::prediction_trace<Model, Spec, true>>>());
        const detail::model_base::computing here(*this);
        const buffer_view columns[]{x.outline_view()...};
        this->check_batch({detail::input_table<Spec>::rows, sizeof...(Elements)}, columns);
        rules.check(columns);
        eager_context context;
        context.variables = &this->variables_;
        context.follows = true;
        context.begin(training, random_state{this->options_.seed, static_cast<std::uint64_t>(this->step_)});
        const detail::random_scope draws(context.random);
        auto y = detail::sealed_result(Model::get()(eager_scope(&context), x...));
        if (training) this->add_losses(std::move(context.losses), base::regularizes);
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
