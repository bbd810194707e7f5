#pragma once

#include <tapegraph/nn/eager_model.hpp>
#include <tapegraph/nn/graph_model.hpp>
#include <tapegraph/nn/model_verdict.hpp>

#ifdef __CUDACC__
#include <tapegraph/nn/compile_by_nvcc.hpp>
#else

namespace tapegraph {

// Every function has two overloads. The declaration of the first evaluates the model in
// `decltype(...)`, which keeps the compiler's lines about a mistake in it few; overload resolution
// chooses it if nothing is wrong. The second returns a type that nobody can use and that names the
// mistake.

/// Returns the layer table of a model without making variables:
/// `summarize(model{}, spec<float, dyn, 784>{}).text()`.
template <class Model, detail::fitting Spec, bool = detail::looked_into<Model, Spec>::taken>
auto summarize(const Model&, Spec) ->
    typename detail::summary_if_it_fits<detail::model_result<Model, Spec>, detail::model_type<Model>, Spec>::type {
    return detail::describe_model(
        ir::stage_view<ir::traced_stage<ir::prediction_trace<detail::model_type<Model>, Spec, true>>>());
}
template <class Model, detail::input_spec_like Spec, bool = detail::looked_into<Model, Spec>::taken>
[[nodiscard]] decltype(auto) summarize(const Model&, Spec) {
    return detail::told_by(detail::model_mistake<none, detail::model_type<Model>, Spec, none, none>());
}

/// Makes a trainable model: `compile<graph>(model{}, spec<float, dyn, 784>{}, loss{}, adam{})`.
/// `graph` compiles the training step with the program; `eager` runs the model as it is written. A
/// model of several inputs takes `inputs{input<"image">(spec...), ...}`, one of several outputs
/// `losses{on<"class">(loss{}), ...}`.
template <detail::source_mode Mode, class Model, detail::fitting Spec, class Loss, class Optimizer,
          bool = detail::looked_into<Model, Spec>::taken>
auto compile(const Model&, Spec, const Loss& loss, const Optimizer& optimizer, const compile_options& options = {}) ->
    typename detail::model_if_it_fits<detail::model_result<Model, Spec>, Mode, detail::model_type<Model>, Spec,
                                      detail::loss_result<Loss>, Optimizer>::type {
    return {options, loss, optimizer};
}
template <detail::source_mode Mode, class Model, detail::input_spec_like Spec, class Loss, class Optimizer,
          bool = detail::looked_into<Model, Spec>::taken>
[[nodiscard]] decltype(auto) compile(const Model&, Spec, const Loss&, const Optimizer&, const compile_options& = {}) {
    return detail::told_by(detail::model_mistake<Mode, detail::model_type<Model>, Spec, Loss, Optimizer>());
}

/// The same with metrics: `compile<graph>(model{}, spec, loss{}, adam{}, metrics{precision{}, auc{}})`.
template <detail::source_mode Mode, class Model, detail::fitting Spec, class Loss, class Optimizer, class... Metrics,
          bool = detail::looked_into<Model, Spec>::taken>
auto compile(const Model&, Spec, const Loss& loss, const Optimizer& optimizer, const metrics<Metrics...>& measured_by,
             const compile_options& options = {}) ->
    typename detail::model_if_it_fits<detail::model_result<Model, Spec>, Mode, detail::model_type<Model>, Spec,
                                      measured<detail::loss_result<Loss>, Metrics...>, Optimizer>::type {
    return {options, {loss, measured_by}, optimizer};
}
template <detail::source_mode Mode, class Model, detail::input_spec_like Spec, class Loss, class Optimizer,
          class... Metrics, bool = detail::looked_into<Model, Spec>::taken>
[[nodiscard]] decltype(auto) compile(const Model&, Spec, const Loss&, const Optimizer&, const metrics<Metrics...>&,
                                     const compile_options& = {}) {
    return detail::told_by(
        detail::model_mistake<Mode, detail::model_type<Model>, Spec, measured<Loss, Metrics...>, Optimizer>());
}

/// A model for prediction alone: no gradient is compiled.
template <detail::source_mode Mode, class Model, detail::fitting Spec, bool = detail::looked_into<Model, Spec>::taken>
auto compile(const Model&, Spec, const compile_options& options = {}) ->
    typename detail::model_if_it_fits<detail::model_result<Model, Spec>, Mode, detail::model_type<Model>, Spec,
                                      sigmoid_cross_entropy, none>::type {
    return {options, sigmoid_cross_entropy{}, none{}};
}
template <detail::source_mode Mode, class Model, detail::input_spec_like Spec,
          bool = detail::looked_into<Model, Spec>::taken>
[[nodiscard]] decltype(auto) compile(const Model&, Spec, const compile_options& = {}) {
    return detail::told_by(detail::model_mistake<Mode, detail::model_type<Model>, Spec, sigmoid_cross_entropy, none>());
}

// A model with members is given as a constant:
// `compile<graph, model{.layers = 5}>(spec, loss, adam{})`.

template <detail::source_mode Mode, auto Model, detail::input_spec_like Spec, class Loss, class Optimizer,
          bool = detail::looked_into<std::remove_cv_t<decltype(Model)>, Spec>::taken>
auto compile(Spec, const Loss& loss, const Optimizer& optimizer, const compile_options& options = {}) ->
    typename detail::model_if_it_fits<detail::model_result<decltype(detail::model_constant<Model>::get()), Spec>, Mode,
                                      detail::model_constant<Model>, Spec, detail::loss_result<Loss>, Optimizer>::type {
    return {options, loss, optimizer};
}
template <detail::source_mode Mode, auto Model, class Spec, class Loss, class Optimizer,
          bool = detail::looked_into<std::remove_cv_t<decltype(Model)>, Spec>::taken>
[[nodiscard]] decltype(auto) compile(Spec, const Loss&, const Optimizer&, const compile_options& = {}) {
    return detail::told_by(detail::model_mistake<Mode, detail::model_constant<Model>, Spec, Loss, Optimizer>());
}

template <detail::source_mode Mode, auto Model, detail::input_spec_like Spec, class Loss, class Optimizer,
          class... Metrics, bool = detail::looked_into<std::remove_cv_t<decltype(Model)>, Spec>::taken>
auto compile(Spec, const Loss& loss, const Optimizer& optimizer, const metrics<Metrics...>& measured_by,
             const compile_options& options = {}) ->
    typename detail::model_if_it_fits<detail::model_result<decltype(detail::model_constant<Model>::get()), Spec>, Mode,
                                      detail::model_constant<Model>, Spec, measured<Loss, Metrics...>,
                                      Optimizer>::type {
    return {options, {loss, measured_by}, optimizer};
}
template <detail::source_mode Mode, auto Model, class Spec, class Loss, class Optimizer, class... Metrics,
          bool = detail::looked_into<std::remove_cv_t<decltype(Model)>, Spec>::taken>
[[nodiscard]] decltype(auto) compile(Spec, const Loss&, const Optimizer&, const metrics<Metrics...>&,
                                     const compile_options& = {}) {
    return detail::told_by(
        detail::model_mistake<Mode, detail::model_constant<Model>, Spec, measured<Loss, Metrics...>, Optimizer>());
}

template <detail::source_mode Mode, auto Model, detail::input_spec_like Spec,
          bool = detail::looked_into<std::remove_cv_t<decltype(Model)>, Spec>::taken>
auto compile(Spec, const compile_options& options = {}) ->
    typename detail::model_if_it_fits<detail::model_result<decltype(detail::model_constant<Model>::get()), Spec>, Mode,
                                      detail::model_constant<Model>, Spec, sigmoid_cross_entropy, none>::type {
    return {options, sigmoid_cross_entropy{}, none{}};
}
template <detail::source_mode Mode, auto Model, class Spec,
          bool = detail::looked_into<std::remove_cv_t<decltype(Model)>, Spec>::taken>
[[nodiscard]] decltype(auto) compile(Spec, const compile_options& = {}) {
    return detail::told_by(
        detail::model_mistake<Mode, detail::model_constant<Model>, Spec, sigmoid_cross_entropy, none>());
}

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
using loss_alone = ir::advice<"who gives a loss gives an optimizer: tg::compile<mode>(model, spec, loss, tg::adam{}); "
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

} // namespace tapegraph

#endif
