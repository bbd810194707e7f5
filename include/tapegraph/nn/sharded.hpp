#pragma once

#include <tapegraph/nn/compile.hpp>
#include <tapegraph/nn/sharded/eager_model.hpp>
#include <tapegraph/nn/sharded/graph_model.hpp>

/// Sharded training steps. Not part of tapegraph.hpp.
///
///     auto model = tg::compile<tg::graph>(network{}, spec, loss, tg::adam{}, tg::sharded{.shards = 8});
///     model.fit(train, {.batch_size = 128, .shards = 8});

#ifdef __CUDACC__
#include <tapegraph/nn/sharded/compile_by_nvcc.hpp>
#else

namespace tapegraph {

namespace detail {
template <class Output, class Mode, class Model, class Spec, class Loss, class Optimizer>
using sharded_if_it_fits = typename model_if_it_fits<Output, sharded_mode<Mode>, Model, Spec, Loss, Optimizer>::type;
} // namespace detail

/// Like the functions of nn/compile.hpp, for a model whose batches are sharded.
template <class Mode, class Model, detail::fitting Spec, class Loss, class Optimizer,
          bool = detail::looked_into<Model, Spec>::taken>
auto compile(const Model&, Spec, const Loss& loss, const Optimizer& optimizer, const sharded& how)
    -> detail::sharded_if_it_fits<detail::model_result<Model, Spec>, Mode, detail::model_type<Model>, Spec, Loss,
                                  Optimizer> {
    return {how, loss, optimizer};
}
template <class Mode, class Model, detail::input_spec_like Spec, class Loss, class Optimizer,
          bool = detail::looked_into<Model, Spec>::taken>
[[nodiscard]] decltype(auto) compile(const Model&, Spec, const Loss&, const Optimizer&, const sharded&) {
    return detail::told_by(detail::model_mistake<Mode, detail::model_type<Model>, Spec, Loss, Optimizer>());
}

template <class Mode, class Model, detail::fitting Spec, class Loss, class Optimizer, class... Metrics,
          bool = detail::looked_into<Model, Spec>::taken>
auto compile(const Model&, Spec, const Loss& loss, const Optimizer& optimizer, const metrics<Metrics...>& measured_by,
             const sharded& how)
    -> detail::sharded_if_it_fits<detail::model_result<Model, Spec>, Mode, detail::model_type<Model>, Spec,
                                  measured<Loss, Metrics...>, Optimizer> {
    return {how, {loss, measured_by}, optimizer};
}
template <class Mode, class Model, detail::input_spec_like Spec, class Loss, class Optimizer, class... Metrics,
          bool = detail::looked_into<Model, Spec>::taken>
[[nodiscard]] decltype(auto) compile(const Model&, Spec, const Loss&, const Optimizer&, const metrics<Metrics...>&,
                                     const sharded&) {
    return detail::told_by(
        detail::model_mistake<Mode, detail::model_type<Model>, Spec, measured<Loss, Metrics...>, Optimizer>());
}

template <class Mode, auto Model, detail::input_spec_like Spec, class Loss, class Optimizer,
          bool = detail::looked_into<std::remove_cv_t<decltype(Model)>, Spec>::taken>
auto compile(Spec, const Loss& loss, const Optimizer& optimizer, const sharded& how)
    -> detail::sharded_if_it_fits<detail::model_result<decltype(detail::model_constant<Model>::get()), Spec>, Mode,
                                  detail::model_constant<Model>, Spec, Loss, Optimizer> {
    return {how, loss, optimizer};
}
template <class Mode, auto Model, class Spec, class Loss, class Optimizer,
          bool = detail::looked_into<std::remove_cv_t<decltype(Model)>, Spec>::taken>
[[nodiscard]] decltype(auto) compile(Spec, const Loss&, const Optimizer&, const sharded&) {
    return detail::told_by(detail::model_mistake<Mode, detail::model_constant<Model>, Spec, Loss, Optimizer>());
}

template <class Mode, auto Model, detail::input_spec_like Spec, class Loss, class Optimizer, class... Metrics,
          bool = detail::looked_into<std::remove_cv_t<decltype(Model)>, Spec>::taken>
auto compile(Spec, const Loss& loss, const Optimizer& optimizer, const metrics<Metrics...>& measured_by,
             const sharded& how)
    -> detail::sharded_if_it_fits<detail::model_result<decltype(detail::model_constant<Model>::get()), Spec>, Mode,
                                  detail::model_constant<Model>, Spec, measured<Loss, Metrics...>, Optimizer> {
    return {how, {loss, measured_by}, optimizer};
}
template <class Mode, auto Model, class Spec, class Loss, class Optimizer, class... Metrics,
          bool = detail::looked_into<std::remove_cv_t<decltype(Model)>, Spec>::taken>
[[nodiscard]] decltype(auto) compile(Spec, const Loss&, const Optimizer&, const metrics<Metrics...>&, const sharded&) {
    return detail::told_by(
        detail::model_mistake<Mode, detail::model_constant<Model>, Spec, measured<Loss, Metrics...>, Optimizer>());
}

} // namespace tapegraph

#endif
