#pragma once

#include <tapegraph/nn/eager_model.hpp>
#include <tapegraph/nn/graph_model.hpp>

namespace tapegraph {

namespace detail {
/// A model that is its type, and one given as a constant.
template <class Model>
struct model_type {
    static constexpr Model get() { return Model{}; }
};
template <auto Model>
struct model_constant {
    static constexpr auto get() { return Model; }
};
template <class Model>
constexpr void require_empty() {
    static_assert(std::is_empty_v<Model>,
                  "this model has run-time members, which a compiled graph would ignore. Give it as a constant: "
                  "tg::compile<tg::graph, your_model{.layers = 5}>(spec, loss, optimizer)");
}
} // namespace detail

/// The layer table of a model, which makes no variable: `summarize(model{}, spec<float, dyn, 784>{}).text()`.
template <class Model, class T, auto... Extents>
model_summary summarize(const Model&, spec<T, Extents...>) {
    detail::require_empty<Model>();
    using model = ir::traced_stage<ir::prediction_trace<detail::model_type<Model>, spec<T, Extents...>, true>>;
    if constexpr (!ir::well_formed<model>) {
        ir::refuse<model>();
        return {};
    } else {
        return detail::describe_model(ir::stage_view<model>());
    }
}

/// Makes a trainable model: `compile<graph>(model{}, spec<float, dyn, 784>{}, loss{}, adam{})`. `graph` compiles the
/// training step with the program; `eager` runs the model as it is written.
template <class Mode, class Model, class T, auto... Extents, class Loss, class Optimizer>
auto compile(const Model&, spec<T, Extents...>, const Loss&, const Optimizer& optimizer,
             const compile_options& options = {}) {
    detail::require_empty<Model>();
    static_assert(std::is_empty_v<Loss>, "this loss has run-time members, which a compiled graph would ignore");
    return compiled_model<Mode, detail::model_type<Model>, spec<T, Extents...>, Loss, Optimizer>(options, optimizer);
}

/// Makes a trainable model of one that has members, given as a constant: `compile<graph, model{.layers = 5}>(spec, loss, adam{})`.
template <class Mode, auto Model, class T, auto... Extents, class Loss, class Optimizer>
auto compile(spec<T, Extents...>, const Loss&, const Optimizer& optimizer, const compile_options& options = {}) {
    static_assert(std::is_empty_v<Loss>, "this loss has run-time members, which a compiled graph would ignore");
    return compiled_model<Mode, detail::model_constant<Model>, spec<T, Extents...>, Loss, Optimizer>(options, optimizer);
}

/// A model given as a constant, for prediction alone.
template <class Mode, auto Model, class T, auto... Extents>
auto compile(spec<T, Extents...>, const compile_options& options = {}) {
    return compiled_model<Mode, detail::model_constant<Model>, spec<T, Extents...>, sigmoid_cross_entropy, none>(options, none{});
}

/// A model for prediction alone: no gradient is compiled.
template <class Mode, class Model, class T, auto... Extents>
auto compile(const Model&, spec<T, Extents...>, const compile_options& options = {}) {
    detail::require_empty<Model>();
    return compiled_model<Mode, detail::model_type<Model>, spec<T, Extents...>, sigmoid_cross_entropy, none>(options, none{});
}

} // namespace tapegraph
