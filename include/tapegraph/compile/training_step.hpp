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
    "or parameters of its type, or take tg::compile_step<tg::traced>">;

/// The optimizers that a call of compile_step gives: its list, or a single one.
template <class Given>
struct given_optimizers {
    using type = optimizers<Given>;
};
template <class... Each>
struct given_optimizers<optimizers<Each...>> {
    using type = optimizers<Each...>;
};
template <class Given>
inline constexpr bool are_optimizers = optimizer_like<Given>;
template <class... Each>
inline constexpr bool are_optimizers<optimizers<Each...>> = true;

#ifndef __CUDACC__ // see compile/model_verdict.hpp
template <class Mode, class Step, class Spec, class Optimizers>
constexpr auto step_verdict() {
    if constexpr (made_at_run_time<Mode>)
        return std::type_identity<std::conditional_t<is_defined<Mode>, valid, traced_undefined>>{};
    else if constexpr (!std::is_empty_v<Step>)
        return std::type_identity<step_members>{};
    else
        return stage_verdict<ir::traced_stage<ir::step_updates<step_type<Step>, Spec, Optimizers>>>();
}
#endif

/// `type` is what compile_step returns.
template <class Mode, class Step, class Spec, class Given>
struct checked_step {
    using list = typename given_optimizers<Given>::type;
    using made = compiled_step<Mode, std::conditional_t<made_at_run_time<Mode>, Step, step_type<Step>>, Spec, list>;
#ifdef __CUDACC__
    using type = made;
#else
    using verdict = typename decltype(step_verdict<Mode, Step, Spec, list>())::type;
    using type = typename checked_result<verdict, made, made>::type;
#endif
};
} // namespace detail

/// Compiles a step of one's own: an empty type whose call takes a step (a scope that can minimize) and the inputs, and returns a tensor or
/// `outputs`, such as the losses. `traced`, of tapegraph/traced.hpp, makes the graph now, of any callable, with members and captures; it
/// returns tensors of the inputs' floating type, and throws shape_error for parts that do not fit together. `them` is
/// `optimizers{adam{}, sgd{}}`, or the only one. `spec` and `options` as of tg::compile; models that predict with the variables of a step
/// share them: `tg::compile<graph>(generator{}, spec, {.shared = &train.variables(), .shared_scope = "generator"})`.
template <detail::any_mode Mode, class Step, detail::input_spec_like Spec, class Given,
          class = typename detail::step_of<Spec>::template result<Step>>
    requires detail::are_optimizers<Given>
[[nodiscard]] auto compile_step(const Step& step, Spec, const Given& them, const compile_options& options = {}) ->
    typename detail::checked_step<Mode, Step, Spec, Given>::type {
    using result = typename detail::checked_step<Mode, Step, Spec, Given>::type;
    using list = typename detail::given_optimizers<Given>::type;
#ifdef __CUDACC__
    using training = ir::step_updates<detail::step_type<Step>, Spec, list>;
    if constexpr (!detail::made_at_run_time<Mode>)
        if constexpr (!ir::well_formed<ir::traced_stage<training>>) ir::refuse<ir::traced_stage<training>>();
#endif
    if constexpr (std::is_reference_v<result>)
        return detail::value_of_a_mistake<result>();
    else if constexpr (detail::made_at_run_time<Mode>)
        return result(step, options, list(them));
    else
        return result(options, list(them));
}
// Taken where the call is wrong.
// clang-format off
template <class Mode>
detail::step_call compile_step(any_argument, ...) TG_MISTAKE;
// clang-format on

} // namespace tapegraph
