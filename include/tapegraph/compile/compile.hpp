#pragma once

#include <tapegraph/compile/eager_model.hpp>
#include <tapegraph/compile/graph_model.hpp>
#include <tapegraph/compile/model_verdict.hpp>

namespace tapegraph {

// The return type of a function shows a mistake, if there is one. In it the compiler evaluates the
// calls of the model and of the loss.

namespace detail {
template <class Given>
struct model_class {
    using type = Given;
};
template <auto Model>
struct model_class<model_constant<Model>> {
    using type = std::remove_cv_t<decltype(Model)>;
};
/// The return types of the functions below, whose declarations spell them out.
template <class Mode, class Given, class Spec, class Loss, class Optimizer,
          class Model = typename model_class<Given>::type,
          class Trained = std::conditional_t<std::is_same_v<Optimizer, none>, none, Loss>>
using made_model = typename checked_model<decltype(called_model<Model, Spec>::template call<Model>(0)),
                                          decltype(called_loss<Trained>::template call<Trained>(0)), Mode, Given, Spec,
                                          Loss, Optimizer>::type;

template <class Mode, class Given, class Spec, class Loss, class Optimizer>
auto make_model(const auto& model, const auto& options, const Loss& loss, const Optimizer& optimizer)
    -> made_model<Mode, Given, Spec, Loss, Optimizer> {
    using result = made_model<Mode, Given, Spec, Loss, Optimizer>;
#ifdef __CUDACC__
    require_traces<Mode, typename known_model<Mode, Given>::type, Spec, Loss, Optimizer>();
#endif
    if constexpr (std::is_reference_v<result>)
        return value_of_a_mistake<result>();
    else if constexpr (made_at_run_time<Mode>)
        return {model, options, loss, optimizer};
    else
        return {options, loss, optimizer};
}

template <class Model, class Spec>
auto make_summary() ->
    typename checked_summary<decltype(called_model<Model, Spec>::template call<Model>(0)), Model, Spec>::type {
    using result =
        typename checked_summary<decltype(called_model<Model, Spec>::template call<Model>(0)), Model, Spec>::type;
    using trace = ir::prediction_trace<model_type<Model>, Spec, true>;
#ifdef __CUDACC__
    require_trace<trace>();
#endif
    if constexpr (std::is_reference_v<result>)
        return value_of_a_mistake<result>();
    else
        return describe_model(ir::stage_view<ir::traced_stage<trace>>());
}
} // namespace detail

/// Returns the layer table of a model without making variables:
/// `summarize(model{}, spec<float, dyn, 784>{}).text()`.
template <class Model, detail::input_spec_like Spec>
[[nodiscard]] auto summarize(const Model&, Spec) ->
    typename detail::checked_summary<decltype(detail::called_model<Model, Spec>::template call<Model>(0)), Model,
                                     Spec>::type {
    return detail::make_summary<Model, Spec>();
}

/// Makes a trainable model: `compile<graph>(model{}, spec<float, dyn, 784>{}, loss{}, adam{})`.
/// `graph` compiles the training step with the program; `eager` runs the model as it is written;
/// `traced` (tapegraph/traced.hpp) makes the graph now, of any callable, and throws shape_error if
/// its parts do not fit together. A model of several inputs takes
/// `inputs{input<"image">(spec...), ...}`, one of several outputs
/// `losses{on<"class">(loss{}), ...}`.
template <detail::any_mode Mode, class Model, detail::input_spec_like Spec, class Loss, class Optimizer>
[[nodiscard]] auto compile(const Model& model, Spec, const Loss& loss, const Optimizer& optimizer,
                           const compile_options& options = {}) ->
    typename detail::checked_model<decltype(detail::called_model<Model, Spec>::template call<Model>(0)),
                                   decltype(detail::called_loss<Loss>::template call<Loss>(0)), Mode, Model, Spec, Loss,
                                   Optimizer>::type {
    return detail::make_model<Mode, Model, Spec>(model, options, loss, optimizer);
}

/// The same with metrics: `compile<graph>(model{}, spec, loss{}, adam{}, metrics{precision{}, auc{}})`.
template <detail::any_mode Mode, class Model, detail::input_spec_like Spec, class Loss, class Optimizer,
          detail::metrics_like Metrics>
[[nodiscard]] auto compile(const Model& model, Spec, const Loss& loss, const Optimizer& optimizer,
                           const Metrics& measures, const compile_options& options = {}) ->
    typename detail::checked_model<decltype(detail::called_model<Model, Spec>::template call<Model>(0)),
                                   decltype(detail::called_loss<Loss>::template call<Loss>(0)), Mode, Model, Spec,
                                   typename detail::measured_by<Loss, Metrics>::type, Optimizer>::type {
    return detail::make_model<Mode, Model, Spec>(
        model, options, typename detail::measured_by<Loss, Metrics>::type{loss, measures}, optimizer);
}

/// A model for prediction alone: no gradient is compiled.
template <detail::any_mode Mode, class Model, detail::input_spec_like Spec>
[[nodiscard]] auto compile(const Model& model, Spec, const compile_options& options = {}) ->
    typename detail::checked_model<decltype(detail::called_model<Model, Spec>::template call<Model>(0)), none, Mode,
                                   Model, Spec, sigmoid_cross_entropy, none>::type {
    return detail::make_model<Mode, Model, Spec>(model, options, sigmoid_cross_entropy{}, none{});
}

// A model with members is given as a constant:
// `compile<graph, model{.layers = 5}>(spec, loss, adam{})`.

template <detail::source_mode Mode, auto Model, detail::input_spec_like Spec, class Loss, class Optimizer>
[[nodiscard]] auto compile(Spec, const Loss& loss, const Optimizer& optimizer, const compile_options& options = {}) ->
    typename detail::checked_model<
        decltype(detail::called_constant<Model, Spec>::template call<std::remove_cv_t<decltype(Model)>>(0)),
        decltype(detail::called_loss<Loss>::template call<Loss>(0)), Mode, detail::model_constant<Model>, Spec, Loss,
        Optimizer>::type {
    return detail::make_model<Mode, detail::model_constant<Model>, Spec>(Model, options, loss, optimizer);
}
template <detail::source_mode Mode, auto Model, detail::input_spec_like Spec, class Loss, class Optimizer,
          detail::metrics_like Metrics>
[[nodiscard]] auto compile(Spec, const Loss& loss, const Optimizer& optimizer, const Metrics& measures,
                           const compile_options& options = {}) ->
    typename detail::checked_model<
        decltype(detail::called_constant<Model, Spec>::template call<std::remove_cv_t<decltype(Model)>>(0)),
        decltype(detail::called_loss<Loss>::template call<Loss>(0)), Mode, detail::model_constant<Model>, Spec,
        typename detail::measured_by<Loss, Metrics>::type, Optimizer>::type {
    return detail::make_model<Mode, detail::model_constant<Model>, Spec>(
        Model, options, typename detail::measured_by<Loss, Metrics>::type{loss, measures}, optimizer);
}
template <detail::source_mode Mode, auto Model, detail::input_spec_like Spec>
[[nodiscard]] auto compile(Spec, const compile_options& options = {}) -> typename detail::checked_model<
    decltype(detail::called_constant<Model, Spec>::template call<std::remove_cv_t<decltype(Model)>>(0)), none, Mode,
    detail::model_constant<Model>, Spec, sigmoid_cross_entropy, none>::type {
    return detail::make_model<Mode, detail::model_constant<Model>, Spec>(Model, options, sigmoid_cross_entropy{},
                                                                         none{});
}

#ifndef __CUDACC__
// Catches calls that fit no form of compile, in any mode.
namespace detail {
using compile_call = ir::advice<
    "tg::compile<mode>(model, spec, loss, optimizer), or (model, spec) for prediction alone; mode: tg::graph, "
    "tg::eager or "
    "tg::traced; spec: the input's, tg::spec<float, tg::dyn, 784>{}; metrics and options in braces come last">;
using constant_call = ir::advice<
    "tg::compile<mode, model{.layers = 5}>(spec, loss, optimizer), or (spec) for prediction alone. Members of such a "
    "model "
    "are public, and numbers, arrays of numbers and the like; otherwise tg::compile<tg::traced>(model, spec, ...)">;
using loss_alone = ir::advice<"a loss needs an optimizer: tg::compile<mode>(model, spec, loss, tg::adam{}); "
                              "prediction alone takes neither">;
/// A template argument of any value.
struct any_value : any_argument {
    using any_argument::any_argument;
};
} // namespace detail
// clang-format off
template <class Mode = void> // for a mode that was forgotten
detail::compile_call compile(any_argument, ...) TG_MISTAKE;
template <class Mode, detail::any_value Model>
detail::constant_call compile(any_argument, ...) TG_MISTAKE;
template <class Mode, detail::input_spec_like Spec>
detail::loss_alone compile(any_argument, Spec, any_argument) TG_MISTAKE;
template <class Mode, detail::input_spec_like Spec>
no_such_option_in<compile_options> compile(any_argument, Spec, ...) TG_MISTAKE;
// clang-format on
#endif

} // namespace tapegraph
