#pragma once

#include <tapegraph/nn/eager_model.hpp>
#include <tapegraph/nn/graph_model.hpp>
#include <tapegraph/nn/model_verdict.hpp>

/// tg::compile and tg::summarize for nvcc, whose front end writes texts that are template arguments into the host's code by names
/// that it does not declare. So mistakes are told by the first trace that does not fit, in nvcc's own words.

namespace tapegraph {

namespace detail {
template <class Trace>
constexpr void require_trace() {
    if constexpr (!ir::well_formed<ir::traced_stage<Trace>>) ir::refuse<ir::traced_stage<Trace>>();
}
template <class Mode, class Model, class Spec, class Loss, class Optimizer>
compiled_model<Mode, Model, Spec, Loss, Optimizer> compiled_by_nvcc(const compile_options& options,
                                                                    const Optimizer& optimizer) {
    require_trace<ir::prediction_trace<Model, Spec, true>>();
    if constexpr (!std::is_same_v<Optimizer, none>)
        require_trace<ir::training_trace<Model, Spec, Loss, Optimizer>>();
    return {options, optimizer};
}
} // namespace detail

template <class Model, class T, auto... Extents>
model_summary summarize(const Model&, spec<T, Extents...>) {
    using trace = ir::prediction_trace<detail::model_type<Model>, spec<T, Extents...>, true>;
    detail::require_trace<trace>();
    return detail::describe_model(ir::stage_view<ir::traced_stage<trace>>());
}
template <class Mode, class Model, class T, auto... Extents, class Loss, class Optimizer>
auto compile(const Model&, spec<T, Extents...>, const Loss&, const Optimizer& optimizer,
             const compile_options& options = {}) {
    return detail::compiled_by_nvcc<Mode, detail::model_type<Model>, spec<T, Extents...>, Loss>(options, optimizer);
}
template <class Mode, auto Model, class T, auto... Extents, class Loss, class Optimizer>
auto compile(spec<T, Extents...>, const Loss&, const Optimizer& optimizer, const compile_options& options = {}) {
    return detail::compiled_by_nvcc<Mode, detail::model_constant<Model>, spec<T, Extents...>, Loss>(options, optimizer);
}
template <class Mode, auto Model, class T, auto... Extents>
auto compile(spec<T, Extents...>, const compile_options& options = {}) {
    return detail::compiled_by_nvcc<Mode, detail::model_constant<Model>, spec<T, Extents...>, sigmoid_cross_entropy>(
        options, none{});
}
template <class Mode, class Model, class T, auto... Extents>
auto compile(const Model&, spec<T, Extents...>, const compile_options& options = {}) {
    return detail::compiled_by_nvcc<Mode, detail::model_type<Model>, spec<T, Extents...>, sigmoid_cross_entropy>(
        options, none{});
}

} // namespace tapegraph
