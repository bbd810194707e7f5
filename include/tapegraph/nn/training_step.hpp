#pragma once

#include <tapegraph/nn/step/eager_step.hpp>
#include <tapegraph/nn/step/graph_step.hpp>

#include <type_traits>

/// Training steps of one's own: several models, losses and optimizers in one compiled step. Not part of tapegraph.hpp.
///
///     struct gan {
///         constexpr auto operator()(auto step, auto images) const {
///             ...
///             step.template minimize<0>(d_loss, "discriminator");
///             step.template minimize<1>(g_loss, "generator");
///             return tg::outputs{tg::output<"d_loss">(d_loss), tg::output<"g_loss">(g_loss)};
///         }
///     };
///     auto train = tg::compile_step<tg::graph>(gan{}, spec, tg::optimizers{tg::adam{}, tg::adam{}});
///     const auto [d_loss, g_loss] = train(images);

namespace tapegraph {

/// Compiles a step of one's own: an empty type whose call takes a step (a scope that can minimize) and the inputs, and returns a tensor or
/// `outputs`, such as the losses. `spec` and `options` as of tg::compile; models that predict with the variables of a step share them:
/// `tg::compile<graph>(generator{}, spec, {.shared = &train.variables(), .shared_scope = "generator"})`.
template <class Mode, class Step, detail::input_spec_like Spec, class... Each>
auto compile_step(const Step&, Spec, const optimizers<Each...>& them, const compile_options& options = {}) {
    static_assert(std::is_empty_v<Step>, "a step has no data members: a compiled graph would ignore them");
    using step = detail::step_type<Step>;
    using training = ir::step_updates<step, Spec, optimizers<Each...>>;
    if constexpr (!ir::well_formed<ir::traced_stage<training>>) ir::refuse<ir::traced_stage<training>>();
    return compiled_step<Mode, step, Spec, optimizers<Each...>>(options, them);
}
template <class Mode, class Step, detail::input_spec_like Spec, class Optimizer>
auto compile_step(const Step& step, Spec spec, const Optimizer& optimizer, const compile_options& options = {}) {
    return compile_step<Mode>(step, spec, optimizers{optimizer}, options);
}

} // namespace tapegraph
