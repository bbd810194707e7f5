#pragma once

#include <tapegraph/graph/compile.hpp>
#include <tapegraph/nn/untraced_model.hpp>
#include <tapegraph/nn/verdict.hpp>

/// The diagnoses of tg::compile about a model and its loss.

namespace tapegraph::detail {

/// A model given by its type, and one given as a constant.
template <class Model>
struct model_type {
    static constexpr bool whole = std::is_empty_v<Model>;
    static constexpr Model get() { return Model{}; }
};
template <auto Model>
struct model_constant {
    static constexpr bool whole = true;
    static constexpr auto get() { return Model; }
};

#ifndef __CUDACC__ // see nn/compile_by_nvcc.hpp
/// The advice for a model that could be called if it were not constant.
using const_missing = ir::advice<"the call of a model is const: constexpr auto operator()(auto scope, auto x) const { "
                                 "... }; a lambda is not mutable">;

/// What a model returns for inputs of these specs, and whether it can be called with them.
template <class Model, class Spec>
struct looked_into;
// g++ prints the location of this alias with each mistake in a model, and the template parameters
// of what encloses it; so it stands in a structure without any.
struct one_input {
    template <class M>
    using result = decltype(std::declval<const M&>()(root_scope, some_node));
};
template <class Model, class T, auto... Extents>
struct looked_into<Model, spec<T, Extents...>> : one_input {
    static constexpr bool taken = takes<Model, graph_scope, graph_node>();
    static constexpr bool callable = requires(const Model& m) { m(root_scope, some_node); };
    static constexpr bool changes = !callable && requires(Model & m) { m(root_scope, some_node); };
};
template <class Model, class... Inputs>
struct looked_into<Model, inputs<Inputs...>> {
    template <class M>
    using result = decltype(std::declval<const M&>()(root_scope, some_value<Inputs>...));
    static constexpr bool taken = takes<Model, graph_scope, node_for<Inputs>...>();
    static constexpr bool callable = requires(const Model& m) { m(root_scope, some_value<Inputs>...); };
    static constexpr bool changes = !callable && requires(Model & m) { m(root_scope, some_value<Inputs>...); };
};

template <class Model, class Spec>
using model_result = typename looked_into<Model, Spec>::template result<Model>;

// A loss that is one formula of output and labels is named by its call; every other one by its type.
template <class Loss, class Result>
using with_result = Loss;
struct formula_of_a_loss {
    template <class Loss>
    using looked_into = with_result<Loss, decltype(Loss{}(some_node, some_node))>;
};
struct another_loss {
    template <class Loss>
    using looked_into = Loss;
};
template <class Loss>
constexpr auto kind_of_loss() {
    if constexpr (std::is_empty_v<Loss> && numbers_in<Loss>() == 0) {
        if constexpr (takes<Loss, graph_node, graph_node>() &&
                      requires(dtype type, const shape& output) { Loss::labels(type, output); })
            return formula_of_a_loss{};
        else
            return another_loss{};
    } else {
        return another_loss{};
    }
}
template <class Loss>
using loss_result = typename decltype(kind_of_loss<Loss>())::template looked_into<Loss>;

// The declarations of tg::compile evaluate models through this, too, and do so first: g++ then
// reports mistakes in a body with the fewest lines.
template <class Model, class Spec>
constexpr auto body_verdict() {
    using model = decltype(Model::get());
    if constexpr (!Model::whole) {
        return std::type_identity<ir::advice<
            "this model has data members, which a compiled graph would ignore. Give it as a constant: "
            "tg::compile<tg::graph, your_model{.layers = 5}>(spec, loss, optimizer), or, where they are known at run "
            "time, give it to tg::compile<tg::traced>">>{};
    } else if constexpr (!looked_into<model, Spec>::taken && input_pack<Spec>::count == 1) {
        return std::type_identity<ir::advice<"a model is called with a scope and its input, nodes or tensors: "
                                             "constexpr auto operator()(auto scope, auto x) const">>{};
    } else if constexpr (!looked_into<model, Spec>::taken) {
        return std::type_identity<
            ir::advice<"a model of several inputs is called with a scope and each of them, in the "
                       "order of tg::inputs: constexpr auto operator()(auto scope, auto a, auto b) const">>{};
    } else if constexpr (looked_into<model, Spec>::changes) {
        return std::type_identity<const_missing>{};
    } else if constexpr (!looked_into<model, Spec>::callable) {
        return std::type_identity<said>{};
    } else {
        using result = model_result<model, Spec>;
        if constexpr (std::is_void_v<result>)
            return std::type_identity<ir::advice<"the model returns nothing: is `return` missing?">>{};
        else if constexpr (!tensor_like<std::remove_cvref_t<result>> && !is_outputs<std::remove_cvref_t<result>> &&
                           !is_masked<std::remove_cvref_t<result>>)
            return std::type_identity<ir::advice<"a model returns its output, one tensor, or several: "
                                                 "return tg::outputs{tg::output<\"name\">(x), ...}">>{};
        else
            return std::type_identity<fits>{};
    }
}

template <class Loss>
constexpr auto one_loss_verdict() {
    constexpr bool numbered = numbers_in<Loss>() > 0;
    using numbers = std::array<graph_node, static_cast<std::size_t>(numbers_in<Loss>())>;
    if constexpr (!std::is_empty_v<Loss> && !numbered) {
        return std::type_identity<
            ir::advice<"this loss has data members, which a compiled graph would ignore: make them constants, "
                       "`static constexpr`, parameters of its type, or numbers (docs/losses.md)">>{};
    } else if constexpr (!requires(dtype type, const shape& output) { Loss::labels(type, output); } &&
                         takes<Loss, graph_node>()) {
        return std::type_identity<fits>{}; // no labels
    } else if constexpr (numbered && !takes<Loss, graph_node, graph_node, numbers>()) {
        return std::type_identity<ir::advice<"a loss with numbers is called with output, labels and numbers: "
                                             "constexpr auto operator()(auto x, auto z, const auto& n) const">>{};
    } else if constexpr (numbered) {
        return std::type_identity<fits>{};
    } else if constexpr (!takes<Loss, graph_node, graph_node>()) {
        return std::type_identity<
            ir::advice<"a loss is called with output and labels: constexpr auto operator()(auto x, auto z) const">>{};
    } else if constexpr (!requires(dtype type, const shape& output) { Loss::labels(type, output); }) {
        return std::type_identity<ir::advice<"a loss says what labels are: static constexpr tg::tensor_spec "
                                             "labels(tg::dtype type, const tg::shape& output)">>{};
    } else if constexpr (!requires { Loss{}(some_node, some_node); }) {
        return std::type_identity<said>{};
    } else if constexpr (!tensor_like<std::remove_cvref_t<decltype(Loss{}(some_node, some_node))>>) {
        return std::type_identity<ir::advice<"a loss returns a tensor: is `return` missing?">>{};
    } else {
        return std::type_identity<fits>{};
    }
}

template <class Result, class Loss>
struct loss_verdict_of {
    static constexpr auto get() {
        if constexpr (is_outputs<Result>)
            return std::type_identity<ir::advice<"a model of several outputs has a loss for each: "
                                                 "tg::losses{tg::on<\"name\">(loss), ...}">>{};
        else
            return one_loss_verdict<Loss>();
    }
};
template <class Result>
struct loss_verdict_of<Result, added_losses> {
    static constexpr auto get() { return std::type_identity<fits>{}; }
};
template <class Result, class Loss>
struct loss_verdict_of<Result, weighted<Loss>> {
    static constexpr auto get() {
        if constexpr (
            !requires { &Loss::template per_record<graph_node, graph_node>; } &&
            !requires { Loss{}.per_record(some_node, some_node); } &&
            !requires { Loss{}.per_record(some_node, some_node, std::array<double, Loss::count>{}); })
            return std::type_identity<ir::advice<"weighted needs a loss that has per_record(output, labels)">>{};
        else
            return std::type_identity<fits>{};
    }
};
template <class Result, class Loss, class... Metrics>
struct loss_verdict_of<Result, measured<Loss, Metrics...>> : loss_verdict_of<Result, Loss> {};
template <class Result, fixed_string... Names, class... Losses>
struct loss_verdict_of<Result, losses<part_on<Names, Losses>...>> {
    static constexpr auto get() {
        if constexpr (!is_outputs<Result>)
            return std::type_identity<ir::advice<"tg::losses is for models that return tg::outputs">>{};
        else if constexpr (!(returned(Names.view()) && ...))
            return std::type_identity<ir::advice<"tg::on names an output that the model does not return">>{};
        else if constexpr (!all_named())
            return std::type_identity<
                ir::advice<"an output of the model has no loss; say so: tg::on<\"name\">(tg::none{})">>{};
        else
            return std::type_identity<fits>{};
    }

private:
    static constexpr bool returned(std::string_view name) {
        for (const std::string_view each : output_pack<Result>::names)
            if (each == name) return true;
        return false;
    }
    static constexpr bool all_named() {
        for (const std::string_view each : output_pack<Result>::names)
            if (!((each == Names.view()) || ...)) return false;
        return true;
    }
};

/// `none`: for a model without loss, only prediction is checked.
template <class Model, class Spec, class Loss, class Optimizer>
constexpr auto model_verdict() {
    using body = decltype(body_verdict<Model, Spec>());
    using prediction = ir::prediction_trace<Model, Spec, true>;
    if constexpr (!std::is_same_v<typename body::type, fits>) {
        return body{};
    } else if constexpr (optimizer_like<Loss> || !(optimizer_like<Optimizer> || std::is_same_v<Optimizer, none>)) {
        return std::type_identity<ir::advice<"the loss comes before the optimizer: tg::compile<mode>(model, spec, "
                                             "tg::mean_squared_error{}, tg::adam{})">>{};
    } else if constexpr (!can_be_run<prediction>()) {
        return std::type_identity<ir::advice<ir::detail::unevaluated_text>>{};
    } else {
        using model = decltype(stage_verdict<ir::traced_stage<prediction>>());
        if constexpr (!std::is_same_v<typename model::type, fits> || std::is_same_v<Optimizer, none>) {
            return model{};
        } else {
            using result = decltype(sealed_result(std::declval<model_result<decltype(Model::get()), Spec>>()));
            using loss = decltype(loss_verdict_of<result, Loss>::get());
            if constexpr (!std::is_same_v<typename loss::type, fits>)
                return loss{};
            else
                return stage_verdict<ir::traced_stage<ir::training_trace<Model, Spec, Loss, Optimizer>>>();
        }
    }
}

/// Has a member `type` if nothing is wrong. `Output` is a parameter so that the compiler evaluates
/// it.
template <class Output, class Mode, class Model, class Spec, class Loss, class Optimizer>
struct model_if_it_fits {};
template <class Output, class Mode, class Model, class Spec, class Loss, class Optimizer>
    requires std::is_same_v<typename decltype(model_verdict<Model, Spec, Loss, Optimizer>())::type, fits>
struct model_if_it_fits<Output, Mode, Model, Spec, Loss, Optimizer> {
    using type = compiled_model<Mode, Model, Spec, Loss, Optimizer>;
};

template <class Output, class Model, class Spec>
struct summary_if_it_fits {};
template <class Output, class Model, class Spec>
    requires std::is_same_v<typename decltype(model_verdict<Model, Spec, none, none>())::type, fits>
struct summary_if_it_fits<Output, Model, Spec> {
    using type = model_summary;
};

/// The mistake, as a type.
template <class Mode, class Model, class Spec, class Loss, class Optimizer>
constexpr auto model_mistake() {
    return shown<typename decltype(model_verdict<Model, Spec, Loss, Optimizer>())::type, Mode,
                 compiled_model<untraced<Mode>, Model, Spec, Loss, Optimizer>>();
}

#endif

} // namespace tapegraph::detail
