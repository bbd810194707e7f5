#pragma once

#include <tapegraph/graph/compile.hpp>
#include <tapegraph/nn/untraced_model.hpp>
#include <tapegraph/nn/verdict.hpp>

/// What tg::compile says of a model and its loss.

namespace tapegraph::detail {

/// A model that is its type, and one given as a constant.
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
// Looked into in the declarations of tg::compile, too, and there first: the mistakes in a body are then told with the fewest lines.
template <class Model>
constexpr auto body_verdict() {
    using model = decltype(Model::get());
    if constexpr (!Model::whole) {
        return std::type_identity<
            ir::advice<"this model has data members, which a compiled graph would ignore. Give it as a constant: "
                       "tg::compile<tg::graph, your_model{.layers = 5}>(spec, loss, optimizer)">>{};
    } else if constexpr (!takes<model, graph_scope, graph_node>()) {
        return std::type_identity<ir::advice<"a model is called with a scope and its input, nodes or tensors: "
                                             "constexpr auto operator()(auto scope, auto x) const">>{};
    } else if constexpr (!requires { Model::get()(root_scope, some_node); }) {
        return std::type_identity<said>{};
    } else {
        using result = decltype(Model::get()(root_scope, some_node));
        if constexpr (std::is_void_v<result>)
            return std::type_identity<ir::advice<"the model returns nothing: is `return` missing?">>{};
        else if constexpr (!tensor_like<std::remove_cvref_t<result>>)
            return std::type_identity<ir::advice<"a model returns its output, one tensor">>{};
        else
            return std::type_identity<fits>{};
    }
}

template <class Loss>
constexpr auto loss_verdict() {
    if constexpr (!std::is_empty_v<Loss>) {
        return std::type_identity<
            ir::advice<"this loss has data members, which a compiled graph would ignore: make them constants, "
                       "`static constexpr`, or parameters of its type">>{};
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

/// `none`, a model without loss: only prediction is looked at.
template <class Model, class Spec, class Loss, class Optimizer>
constexpr auto model_verdict() {
    using body = decltype(body_verdict<Model>());
    using prediction = ir::prediction_trace<Model, Spec, true>;
    if constexpr (!std::is_same_v<typename body::type, fits>) {
        return body{};
    } else if constexpr (!can_be_run<prediction>()) {
        return std::type_identity<ir::advice<ir::detail::unevaluated_text>>{};
    } else {
        using model = decltype(stage_verdict<ir::traced_stage<prediction>>());
        if constexpr (!std::is_same_v<typename model::type, fits> || std::is_same_v<Optimizer, none>) {
            return model{};
        } else {
            using loss = decltype(loss_verdict<Loss>());
            if constexpr (!std::is_same_v<typename loss::type, fits>)
                return loss{};
            else
                return stage_verdict<ir::traced_stage<ir::training_trace<Model, Spec, Loss, Optimizer>>>();
        }
    }
}

/// Has a type where nothing is wrong. `Output` is there to be looked into.
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

/// What is wrong, as a type.
template <class Mode, class Model, class Spec, class Loss, class Optimizer>
constexpr auto model_mistake() {
    return shown<typename decltype(model_verdict<Model, Spec, Loss, Optimizer>())::type, Mode,
                 compiled_model<untraced<Mode>, Model, Spec, Loss, Optimizer>>();
}

#endif

} // namespace tapegraph::detail
