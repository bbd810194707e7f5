#pragma once

// g++ prints the way to what an error names: the shortest first.
// clang-format off: each before those that include it
#include <tapegraph/compile/step/scopes.hpp>
#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/expr/expr.hpp>
#include <tapegraph/ir/node.hpp>
// clang-format on
#include <tapegraph/compile/step/eager_step.hpp>
#include <tapegraph/compile/step/graph_step.hpp>
#include <tapegraph/compile/verdict.hpp>
#include <tapegraph/graph/refusal.hpp>

#include <type_traits>
#include <utility>

/// Custom training steps: several models, losses and optimizers in one compiled step. Not part of
/// tapegraph.hpp.
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

namespace detail {
// The declaration of compile_step evaluates it, so that the compiler reports a mistake in the step in
// the fewest lines.
inline constexpr graph_step some_step{nullptr};
template <class Spec>
struct step_of;
template <class T, auto... Extents>
struct step_of<spec<T, Extents...>> {
    template <class Step>
    using result = decltype(std::declval<Step>()(some_step, some_node));
};
template <class... Inputs>
struct step_of<inputs<Inputs...>> {
    template <class Step>
    using result = decltype(std::declval<Step>()(some_step, some_value<Inputs>...));
};

using step_call = ir::advice<
    "tg::compile_step<tg::graph>(step, spec, tg::optimizers{tg::adam{}}): the step is called with a step and "
    "its inputs, constexpr auto operator()(auto step, auto x) const; the spec is the inputs'">;
using step_members = ir::advice<
    "this step has data members, which a compiled graph would ignore: make them constants, `static constexpr` "
    "or parameters of its type">;
} // namespace detail

/// Compiles a custom training step: an empty type whose call takes a step (a scope that can minimize)
/// and the inputs, and returns a tensor or `outputs`, such as the losses. `spec` and `options` are those
/// of tg::compile. A model that predicts with a step's variables shares them:
///
///     tg::compile<graph>(generator{}, spec, {.shared = &train.variables(), .shared_scope = "generator"})
template <class Mode, class Step, detail::input_spec_like Spec, class... Each,
          class = typename detail::step_of<Spec>::template result<Step>>
    requires(std::is_empty_v<Step> && !std::is_same_v<Mode, traced>)
auto compile_step(const Step&, Spec, const optimizers<Each...>& them, const compile_options& options = {}) {
    using step = detail::step_type<Step>;
    using training = ir::step_updates<step, Spec, optimizers<Each...>>;
    if constexpr (!ir::well_formed<ir::traced_stage<training>>) ir::refuse<ir::traced_stage<training>>();
    return compiled_step<Mode, step, Spec, optimizers<Each...>>(options, them);
}
template <class Mode, class Step, detail::input_spec_like Spec, detail::optimizer_like Optimizer>
    requires(std::is_empty_v<Step> || std::is_same_v<Mode, traced>)
auto compile_step(const Step& step, Spec spec, const Optimizer& optimizer, const compile_options& options = {}) {
    return compile_step<Mode>(step, spec, optimizers{optimizer}, options);
}
// Taken where the call is wrong.
// clang-format off
template <class Mode>
detail::step_call compile_step(any_argument, ...) TG_MISTAKE;
template <class Mode, class Step>
    requires(!std::is_empty_v<Step> && !std::is_same_v<Mode, traced>)
detail::step_members compile_step(const Step&, ...) TG_MISTAKE;
// clang-format on

} // namespace tapegraph
