#pragma once

#include <tapegraph/compile/eager_model.hpp>
#include <tapegraph/graph/dot.hpp>

#include <string>
#include <type_traits>

/// Draws models in eager mode as graph/dot.hpp draws those in graph mode: from the trace by which
/// tg::compile checked the model, scheduled as in graph mode. No kernels are compiled for it.

namespace tapegraph {

namespace ir {

/// A builder's hypothetical program. Its kernels do nothing, so that it can be bound and its cost
/// predicted, but not run.
template <class Builder>
const program_view& drawn_program() {
    using reduced = compile_stage<detail::reduced<compile_stage<detail::simplified<traced_stage<Builder>>>>>;
    using scheduled = compile_stage<detail::scheduled<compile_stage<detail::fused<reduced>>>>;
    static_assert(well_formed<scheduled>, "the compiler gave up scheduling this model: it is too large to be drawn");
    constexpr kernel_function nothing = [](const kernel_call&) {};
    static const auto view = [] {
        static runtime::kernel_pair none[scheduled::value.used.kernels + 1];
        for (runtime::kernel_pair& kernel : none) {
            kernel.run = nothing;
            kernel.workspace = &runtime::no_workspace;
        }
        program_view v = stage_view<scheduled>();
        v.functions = {none, v.kernels.size()};
        return v;
    }();
    return view;
}

} // namespace ir

/// The step of a model in eager mode as graph mode would schedule it: its training step, or its
/// prediction if it has no optimizer.
template <class Model, class Spec, class Loss, class Optimizer>
const ir::program_view& drawn_step(const compiled_model<eager, Model, Spec, Loss, Optimizer>&) {
    using trace = std::conditional_t<std::is_same_v<Optimizer, none>, ir::prediction_trace<Model, Spec>,
                                     ir::training_trace<Model, Spec, Loss, Optimizer>>;
    return ir::drawn_program<trace>();
}

/// The same as a Graphviz graph, identical byte for byte to that of the model in graph mode.
template <class Model, class Spec, class Loss, class Optimizer>
std::string to_dot(const compiled_model<eager, Model, Spec, Loss, Optimizer>& model) {
    return to_dot(drawn_step(model));
}

} // namespace tapegraph
