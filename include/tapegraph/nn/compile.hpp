#pragma once

#include <tapegraph/nn/eager_model.hpp>
#include <tapegraph/nn/graph_model.hpp>
#include <tapegraph/nn/model_verdict.hpp>

#ifdef __CUDACC__
#include <tapegraph/nn/compile_by_nvcc.hpp>
#else

namespace tapegraph {

// Each function is there twice. The declaration of the first looks into the model (`decltype(...)`, so that the compiler's lines about
// a mistake in there are few), and the first is taken where nothing is wrong. The second gives what
// nobody can have, and its type says why.

/// The layer table of a model, which makes no variable: `summarize(model{}, spec<float, dyn, 784>{}).text()`.
template <detail::anything Model, class T, auto... Extents, bool = detail::takes<Model, graph_scope, graph_node>()>
auto summarize(const Model&, spec<T, Extents...>) ->
    typename detail::summary_if_it_fits<decltype(Model{}(detail::root_scope, detail::some_node)),
                                        detail::model_type<Model>, spec<T, Extents...>>::type {
    return detail::describe_model(
        ir::stage_view<ir::traced_stage<ir::prediction_trace<detail::model_type<Model>, spec<T, Extents...>, true>>>());
}
template <class Model, class T, auto... Extents, bool = detail::takes<Model, graph_scope, graph_node>()>
[[nodiscard]] decltype(auto) summarize(const Model&, spec<T, Extents...>) {
    return detail::told_by(detail::model_mistake<none, detail::model_type<Model>, spec<T, Extents...>, none, none>());
}

/// Makes a trainable model: `compile<graph>(model{}, spec<float, dyn, 784>{}, loss{}, adam{})`. `graph` compiles the
/// training step with the program; `eager` runs the model as it is written.
template <class Mode, detail::anything Model, class T, auto... Extents, class Loss, class Optimizer,
          bool = detail::takes<Model, graph_scope, graph_node>()>
auto compile(const Model&, spec<T, Extents...>, const Loss&, const Optimizer& optimizer,
             const compile_options& options = {}) ->
    typename detail::model_if_it_fits<decltype(Model{}(detail::root_scope, detail::some_node)), Mode,
                                      detail::model_type<Model>, spec<T, Extents...>, Loss, Optimizer>::type {
    return {options, optimizer};
}
template <class Mode, class Model, class T, auto... Extents, class Loss, class Optimizer,
          bool = detail::takes<Model, graph_scope, graph_node>()>
[[nodiscard]] decltype(auto) compile(const Model&, spec<T, Extents...>, const Loss&, const Optimizer&,
                                     const compile_options& = {}) {
    return detail::told_by(
        detail::model_mistake<Mode, detail::model_type<Model>, spec<T, Extents...>, Loss, Optimizer>());
}

/// Makes a trainable model of one that has members, given as a constant: `compile<graph, model{.layers = 5}>(spec, loss, adam{})`.
template <class Mode, auto Model, class T, auto... Extents, detail::anything Loss, class Optimizer,
          bool = detail::takes<std::remove_cv_t<decltype(Model)>, graph_scope, graph_node>()>
auto compile(spec<T, Extents...>, const Loss&, const Optimizer& optimizer, const compile_options& options = {}) ->
    typename detail::model_if_it_fits<decltype(detail::model_constant<Model>::get()(detail::root_scope,
                                                                                    detail::some_node)),
                                      Mode, detail::model_constant<Model>, spec<T, Extents...>, Loss, Optimizer>::type {
    return {options, optimizer};
}
template <class Mode, auto Model, class T, auto... Extents, class Loss, class Optimizer,
          bool = detail::takes<std::remove_cv_t<decltype(Model)>, graph_scope, graph_node>()>
[[nodiscard]] decltype(auto) compile(spec<T, Extents...>, const Loss&, const Optimizer&, const compile_options& = {}) {
    return detail::told_by(
        detail::model_mistake<Mode, detail::model_constant<Model>, spec<T, Extents...>, Loss, Optimizer>());
}

/// A model given as a constant, for prediction alone.
template <class Mode, auto Model, detail::anything T, auto... Extents,
          bool = detail::takes<std::remove_cv_t<decltype(Model)>, graph_scope, graph_node>()>
auto compile(spec<T, Extents...>, const compile_options& options = {}) -> typename detail::model_if_it_fits<
    decltype(detail::model_constant<Model>::get()(detail::root_scope, detail::some_node)), Mode,
    detail::model_constant<Model>, spec<T, Extents...>, sigmoid_cross_entropy, none>::type {
    return {options, none{}};
}
template <class Mode, auto Model, class T, auto... Extents,
          bool = detail::takes<std::remove_cv_t<decltype(Model)>, graph_scope, graph_node>()>
[[nodiscard]] decltype(auto) compile(spec<T, Extents...>, const compile_options& = {}) {
    return detail::told_by(
        detail::model_mistake<Mode, detail::model_constant<Model>, spec<T, Extents...>, sigmoid_cross_entropy, none>());
}

/// A model for prediction alone: no gradient is compiled.
template <class Mode, detail::anything Model, class T, auto... Extents,
          bool = detail::takes<Model, graph_scope, graph_node>()>
auto compile(const Model&, spec<T, Extents...>, const compile_options& options = {}) ->
    typename detail::model_if_it_fits<decltype(Model{}(detail::root_scope, detail::some_node)), Mode,
                                      detail::model_type<Model>, spec<T, Extents...>, sigmoid_cross_entropy,
                                      none>::type {
    return {options, none{}};
}
template <class Mode, class Model, class T, auto... Extents, bool = detail::takes<Model, graph_scope, graph_node>()>
[[nodiscard]] decltype(auto) compile(const Model&, spec<T, Extents...>, const compile_options& = {}) {
    return detail::told_by(
        detail::model_mistake<Mode, detail::model_type<Model>, spec<T, Extents...>, sigmoid_cross_entropy, none>());
}

} // namespace tapegraph

#endif
