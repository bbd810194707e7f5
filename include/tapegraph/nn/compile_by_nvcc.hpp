#pragma once

#include <tapegraph/nn/eager_model.hpp>
#include <tapegraph/nn/graph_model.hpp>
#include <tapegraph/nn/model_verdict.hpp>

/// tg::compile and tg::summarize for nvcc, whose front end writes texts that are template arguments
/// into the host code under names that it does not declare. So errors are reported by the first
/// trace with an error, in nvcc's own words.

namespace tapegraph {

namespace detail {
template <class Trace>
constexpr void require_trace() {
    if constexpr (!ir::well_formed<ir::traced_stage<Trace>>) ir::refuse<ir::traced_stage<Trace>>();
}
template <class Mode, class Model, class Spec, class Loss, class Optimizer>
compiled_model<Mode, Model, Spec, Loss, Optimizer> compiled_by_nvcc(const compile_options& options, const Loss& loss,
                                                                    const Optimizer& optimizer) {
    require_trace<ir::prediction_trace<Model, Spec, true>>();
    if constexpr (!std::is_same_v<Optimizer, none>) require_trace<ir::training_trace<Model, Spec, Loss, Optimizer>>();
    return {options, loss, optimizer};
}
} // namespace detail

template <class Model, detail::input_spec_like Spec>
model_summary summarize(const Model&, Spec) {
    using trace = ir::prediction_trace<detail::model_type<Model>, Spec, true>;
    detail::require_trace<trace>();
    return detail::describe_model(ir::stage_view<ir::traced_stage<trace>>());
}
template <class Mode, class Model, detail::input_spec_like Spec, class Loss, class Optimizer>
auto compile(const Model&, Spec, const Loss& loss, const Optimizer& optimizer, const compile_options& options = {}) {
    return detail::compiled_by_nvcc<Mode, detail::model_type<Model>, Spec>(options, loss, optimizer);
}
template <class Mode, class Model, detail::input_spec_like Spec, class Loss, class Optimizer, class... Metrics>
auto compile(const Model&, Spec, const Loss& loss, const Optimizer& optimizer, const metrics<Metrics...>& measured_by,
             const compile_options& options = {}) {
    return detail::compiled_by_nvcc<Mode, detail::model_type<Model>, Spec>(
        options, measured<Loss, Metrics...>{loss, measured_by}, optimizer);
}
template <class Mode, class Model, detail::input_spec_like Spec>
auto compile(const Model&, Spec, const compile_options& options = {}) {
    return detail::compiled_by_nvcc<Mode, detail::model_type<Model>, Spec>(options, sigmoid_cross_entropy{}, none{});
}
template <class Mode, auto Model, detail::input_spec_like Spec, class Loss, class Optimizer>
auto compile(Spec, const Loss& loss, const Optimizer& optimizer, const compile_options& options = {}) {
    return detail::compiled_by_nvcc<Mode, detail::model_constant<Model>, Spec>(options, loss, optimizer);
}
template <class Mode, auto Model, detail::input_spec_like Spec, class Loss, class Optimizer, class... Metrics>
auto compile(Spec, const Loss& loss, const Optimizer& optimizer, const metrics<Metrics...>& measured_by,
             const compile_options& options = {}) {
    return detail::compiled_by_nvcc<Mode, detail::model_constant<Model>, Spec>(
        options, measured<Loss, Metrics...>{loss, measured_by}, optimizer);
}
template <class Mode, auto Model, detail::input_spec_like Spec>
auto compile(Spec, const compile_options& options = {}) {
    return detail::compiled_by_nvcc<Mode, detail::model_constant<Model>, Spec>(options, sigmoid_cross_entropy{},
                                                                               none{});
}

} // namespace tapegraph
