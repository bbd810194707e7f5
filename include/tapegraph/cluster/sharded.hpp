#pragma once

#include <tapegraph/cluster/sharded/eager_model.hpp>
#include <tapegraph/cluster/sharded/graph_model.hpp>
#include <tapegraph/compile/compile.hpp>

/// Sharded training steps. Not part of tapegraph.hpp.
///
///     auto model = tg::compile<tg::graph>(network{}, spec, loss, tg::adam{}, tg::sharded{.shards = 8});
///     model.fit(train, {.batch_size = 128, .shards = 8});

namespace tapegraph {

namespace detail {
template <class Mode>
inline constexpr bool made_at_run_time<sharded_mode<Mode>> = made_at_run_time<Mode>;
} // namespace detail

/// Like the functions of compile/compile.hpp, for a model whose batches are sharded. `traced` needs
/// cluster/traced_sharded.hpp.
template <detail::any_mode Mode, class Model, detail::input_spec_like Spec, class Loss, class Optimizer>
[[nodiscard]] auto compile(const Model& model, Spec, const Loss& loss, const Optimizer& optimizer, const sharded& how)
    -> typename detail::checked_model<decltype(detail::called_model<Model, Spec>::template call<Model>(0)),
                                      decltype(detail::called_loss<Loss>::template call<Loss>(0)),
                                      detail::sharded_mode<Mode>, Model, Spec, Loss, Optimizer>::type {
    return detail::make_model<detail::sharded_mode<Mode>, Model, Spec>(model, how, loss, optimizer);
}
template <detail::any_mode Mode, class Model, detail::input_spec_like Spec, class Loss, class Optimizer,
          detail::metrics_like Metrics>
[[nodiscard]] auto compile(const Model& model, Spec, const Loss& loss, const Optimizer& optimizer,
                           const Metrics& measures, const sharded& how) ->
    typename detail::checked_model<decltype(detail::called_model<Model, Spec>::template call<Model>(0)),
                                   decltype(detail::called_loss<Loss>::template call<Loss>(0)),
                                   detail::sharded_mode<Mode>, Model, Spec,
                                   typename detail::measured_by<Loss, Metrics>::type, Optimizer>::type {
    return detail::make_model<detail::sharded_mode<Mode>, Model, Spec>(
        model, how, typename detail::measured_by<Loss, Metrics>::type{loss, measures}, optimizer);
}
template <detail::source_mode Mode, auto Model, detail::input_spec_like Spec, class Loss, class Optimizer>
[[nodiscard]] auto compile(Spec, const Loss& loss, const Optimizer& optimizer, const sharded& how) ->
    typename detail::checked_model<
        decltype(detail::called_constant<Model, Spec>::template call<std::remove_cv_t<decltype(Model)>>(0)),
        decltype(detail::called_loss<Loss>::template call<Loss>(0)), detail::sharded_mode<Mode>,
        detail::model_constant<Model>, Spec, Loss, Optimizer>::type {
    return detail::make_model<detail::sharded_mode<Mode>, detail::model_constant<Model>, Spec>(Model, how, loss,
                                                                                               optimizer);
}
template <detail::source_mode Mode, auto Model, detail::input_spec_like Spec, class Loss, class Optimizer,
          detail::metrics_like Metrics>
[[nodiscard]] auto compile(Spec, const Loss& loss, const Optimizer& optimizer, const Metrics& measures,
                           const sharded& how) ->
    typename detail::checked_model<
        decltype(detail::called_constant<Model, Spec>::template call<std::remove_cv_t<decltype(Model)>>(0)),
        decltype(detail::called_loss<Loss>::template call<Loss>(0)), detail::sharded_mode<Mode>,
        detail::model_constant<Model>, Spec, typename detail::measured_by<Loss, Metrics>::type, Optimizer>::type {
    return detail::make_model<detail::sharded_mode<Mode>, detail::model_constant<Model>, Spec>(
        Model, how, typename detail::measured_by<Loss, Metrics>::type{loss, measures}, optimizer);
}

} // namespace tapegraph
