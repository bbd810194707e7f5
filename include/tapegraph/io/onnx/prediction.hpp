#pragma once

#include <tapegraph/compile/compile.hpp>
#include <tapegraph/compile/instance.hpp>

/// The graph by which a model predicts, as it was traced: what files of models are written from.

namespace tapegraph::onnx::detail {

template <class Model>
struct prediction_of;
template <class Mode, class Model, class Spec, class Loss, class Optimizer>
struct prediction_of<compiled_model<Mode, Model, Spec, Loss, Optimizer>> {
    using stage = ir::traced_stage<ir::prediction_trace<Model, Spec>>;
};
template <class Model, class Spec, class Elements>
struct prediction_of<model_instance<Model, Spec, Elements>> {
    using stage = ir::traced_stage<ir::prediction_trace<Model, Spec>>;
};

/// Whether the compiler has traced it; otherwise it is traced when the program runs.
template <class Model>
concept compiled_prediction = !requires(const Model& model, ir::model_trace& t) {
    model.trace_prediction(t);
};

/// Returns the variables that the trace names.
template <class Model>
decltype(auto) trace_prediction(const Model& model, ir::model_trace& t) {
    if constexpr (compiled_prediction<Model>) {
        ir::schedule unused;
        ir::thaw(prediction_of<Model>::stage::value, t, unused);
        return model.variables();
    } else if constexpr (std::is_void_v<decltype(model.trace_prediction(t))>) {
        model.trace_prediction(t);
        return model.variables();
    } else {
        return model.trace_prediction(t);
    }
}

} // namespace tapegraph::onnx::detail
