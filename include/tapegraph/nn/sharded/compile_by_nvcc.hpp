#pragma once

#include <tapegraph/nn/compile_by_nvcc.hpp>
#include <tapegraph/nn/sharded/eager_model.hpp>
#include <tapegraph/nn/sharded/graph_model.hpp>

/// tg::compile for models whose batches are sharded, for nvcc (see nn/compile_by_nvcc.hpp).

namespace tapegraph {

namespace detail {
template <class Mode, class Model, class Spec, class Loss, class Optimizer>
compiled_model<sharded_mode<Mode>, Model, Spec, Loss, Optimizer> sharded_by_nvcc(const sharded& how, const Loss& loss,
                                                                                 const Optimizer& optimizer) {
    require_trace<ir::prediction_trace<Model, Spec, true>>();
    return {how, loss, optimizer};
}
} // namespace detail

template <class Mode, class Model, detail::input_spec_like Spec, class Loss, class Optimizer>
auto compile(const Model&, Spec, const Loss& loss, const Optimizer& optimizer, const sharded& how) {
    return detail::sharded_by_nvcc<Mode, detail::model_type<Model>, Spec>(how, loss, optimizer);
}
template <class Mode, class Model, detail::input_spec_like Spec, class Loss, class Optimizer, class... Metrics>
auto compile(const Model&, Spec, const Loss& loss, const Optimizer& optimizer, const metrics<Metrics...>& measured_by,
             const sharded& how) {
    return detail::sharded_by_nvcc<Mode, detail::model_type<Model>, Spec>(
        how, measured<Loss, Metrics...>{loss, measured_by}, optimizer);
}
template <class Mode, auto Model, detail::input_spec_like Spec, class Loss, class Optimizer>
auto compile(Spec, const Loss& loss, const Optimizer& optimizer, const sharded& how) {
    return detail::sharded_by_nvcc<Mode, detail::model_constant<Model>, Spec>(how, loss, optimizer);
}
template <class Mode, auto Model, detail::input_spec_like Spec, class Loss, class Optimizer, class... Metrics>
auto compile(Spec, const Loss& loss, const Optimizer& optimizer, const metrics<Metrics...>& measured_by,
             const sharded& how) {
    return detail::sharded_by_nvcc<Mode, detail::model_constant<Model>, Spec>(
        how, measured<Loss, Metrics...>{loss, measured_by}, optimizer);
}

} // namespace tapegraph
