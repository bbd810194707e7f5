#pragma once

#include <tapegraph/compile/untraced_model.hpp>
#include <tapegraph/compile/verdict.hpp>
#include <tapegraph/graph/compile.hpp>

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

/// The type by which compiled_model identifies a model.
template <class Mode, class Model>
struct known_model {
    using type = std::conditional_t<made_at_run_time<Mode>, Model, model_type<Model>>;
};
template <class Mode, auto Model>
struct known_model<Mode, model_constant<Model>> {
    using type = model_constant<Model>;
};

#ifndef __CUDACC__
/// The advice for a model that could be called if it were not constant.
using const_missing = ir::advice<"the call of a model is const: constexpr auto operator()(auto scope, auto x) const { "
                                 "... }; a lambda is not mutable">;

/// How a model is called with inputs of these specs. `call` is evaluated where tg::compile is
/// declared, before anything else: the compiler then prints the fewest lines with a mistake in the
/// body. It returns `mistake_printed` if the compiler has printed such a mistake, or if the model
/// cannot be called. Whether its call accepts the inputs is found first, because clang says that a
/// call whose body has a mistake does not.
template <class Model, class Spec>
struct called_model;
// g++ prints the template parameters of what encloses `call`, so this structure has none.
struct one_input {
    template <class M>
    static auto call(int) -> decltype(std::declval<const M&>()(root_scope, some_node));
    template <class>
    static mistake_printed call(...);
};
template <class... Inputs>
struct several_inputs {
    template <class M>
    static auto call(int) -> decltype(std::declval<const M&>()(root_scope, some_value<Inputs>...));
    template <class>
    static mistake_printed call(...);
};
template <class Model, class T, auto... Extents>
struct called_model<Model, spec<T, Extents...>>
    : std::conditional_t<accepts<Model, graph_scope, graph_node>(), one_input, never_called> {
    static constexpr bool accepted = accepts<Model, graph_scope, graph_node>();
    static constexpr bool changes = requires(Model & m) { m(root_scope, some_node); };
};
template <class Model, class... Inputs>
struct called_model<Model, inputs<Inputs...>>
    : std::conditional_t<accepts<Model, graph_scope, node_for<Inputs>...>(), several_inputs<Inputs...>, never_called> {
    static constexpr bool accepted = accepts<Model, graph_scope, node_for<Inputs>...>();
    static constexpr bool changes = requires(Model & m) { m(root_scope, some_value<Inputs>...); };
};
template <auto Model, class Spec>
using called_constant = called_model<std::remove_cv_t<decltype(Model)>, Spec>;

// The same of a loss that is one formula of output and labels.
struct formula_of_a_loss {
    template <class L>
    static auto call(int) -> decltype(L{}(some_node, some_node));
    template <class>
    static mistake_printed call(...);
};
struct another_loss {
    template <class>
    static none call(int);
};
template <class Loss>
constexpr auto kind_of_loss() {
    if constexpr (std::is_empty_v<Loss> && numbers_in<Loss>() == 0) {
        if constexpr (accepts<Loss, graph_node, graph_node>() &&
                      requires(dtype type, const shape& output) { Loss::labels(type, output); })
            return formula_of_a_loss{};
        else
            return another_loss{};
    } else {
        return another_loss{};
    }
}
template <class Loss>
struct called_loss : decltype(kind_of_loss<Loss>()) {};
template <class Loss>
using loss_result = decltype(called_loss<Loss>::template call<Loss>(0));

/// The verdict on a model's call. `Called` is the advice about arguments that it does not accept.
template <class Result, class Model, class Spec, class Called>
constexpr auto call_verdict() {
    if constexpr (!std::is_same_v<Result, mistake_printed>)
        return std::type_identity<valid>{};
    else if constexpr (!called_model<Model, Spec>::accepted)
        return std::type_identity<Called>{};
    else if constexpr (called_model<Model, Spec>::changes)
        return std::type_identity<const_missing>{};
    else
        return std::type_identity<mistake_printed>{};
}

using call_of_one_input = ir::advice<"a model is called with a scope and its input, nodes or tensors: "
                                     "constexpr auto operator()(auto scope, auto x) const">;
using call_of_several_inputs = ir::advice<"a model of several inputs is called with a scope and each of them, in the "
                                          "order of tg::inputs: constexpr auto operator()(auto scope, auto a, auto b) "
                                          "const">;

/// The verdict on a model without its loss, before the compiler makes a trace.
template <class Result, class Model, class Spec>
constexpr auto body_verdict() {
    using call =
        decltype(call_verdict<
                 Result, decltype(Model::get()), Spec,
                 std::conditional_t<input_pack<Spec>::count == 1, call_of_one_input, call_of_several_inputs>>());
    if constexpr (!Model::whole)
        return std::type_identity<ir::advice<
            "this model has data members, which a compiled graph would ignore. Give it as a constant: "
            "tg::compile<tg::graph, your_model{.layers = 5}>(spec, loss, optimizer), or, where they are known at run "
            "time, give it to tg::compile<tg::traced>">>{};
    else if constexpr (!std::is_same_v<typename call::type, valid>)
        return call{};
    else if constexpr (std::is_void_v<Result>)
        return std::type_identity<ir::advice<"the model returns nothing: is `return` missing?">>{};
    else if constexpr (!tensor_like<std::remove_cvref_t<Result>> && !is_outputs<std::remove_cvref_t<Result>> &&
                       !is_masked<std::remove_cvref_t<Result>>)
        return std::type_identity<ir::advice<"a model returns its output, one tensor, or several: "
                                             "return tg::outputs{tg::output<\"name\">(x), ...}">>{};
    else
        return std::type_identity<valid>{};
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
                         accepts<Loss, graph_node>()) {
        return std::type_identity<valid>{}; // no labels
    } else if constexpr (numbered && !accepts<Loss, graph_node, graph_node, numbers>()) {
        return std::type_identity<ir::advice<"a loss with numbers is called with output, labels and numbers: "
                                             "constexpr auto operator()(auto x, auto z, const auto& n) const">>{};
    } else if constexpr (numbered) {
        return std::type_identity<valid>{};
    } else if constexpr (!accepts<Loss, graph_node, graph_node>()) {
        return std::type_identity<
            ir::advice<"a loss is called with output and labels: constexpr auto operator()(auto x, auto z) const">>{};
    } else if constexpr (!requires(dtype type, const shape& output) { Loss::labels(type, output); }) {
        return std::type_identity<ir::advice<"a loss says what labels are: static constexpr tg::tensor_spec "
                                             "labels(tg::dtype type, const tg::shape& output)">>{};
    } else if constexpr (std::is_same_v<loss_result<Loss>, mistake_printed>) {
        return std::type_identity<mistake_printed>{};
    } else if constexpr (!tensor_like<std::remove_cvref_t<loss_result<Loss>>>) {
        return std::type_identity<ir::advice<"a loss returns a tensor: is `return` missing?">>{};
    } else {
        return std::type_identity<valid>{};
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
    static constexpr auto get() { return std::type_identity<valid>{}; }
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
            return std::type_identity<valid>{};
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
            return std::type_identity<valid>{};
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

/// The verdict on a model of which the compiler makes the graph. With `none` as the optimizer only
/// prediction is checked.
template <class Result, class Model, class Spec, class Loss, class Optimizer>
constexpr auto model_verdict() {
    using body = decltype(body_verdict<Result, Model, Spec>());
    using prediction = ir::prediction_trace<Model, Spec, true>;
    if constexpr (!std::is_same_v<typename body::type, valid>) {
        return body{};
    } else if constexpr (optimizer_like<Loss> || !(optimizer_like<Optimizer> || std::is_same_v<Optimizer, none>)) {
        return std::type_identity<ir::advice<"the loss comes before the optimizer: tg::compile<mode>(model, spec, "
                                             "tg::mean_squared_error{}, tg::adam{})">>{};
    } else if constexpr (!can_be_run<prediction>()) {
        return std::type_identity<ir::advice<ir::detail::unevaluated_text>>{};
    } else {
        using model = decltype(stage_verdict<ir::traced_stage<prediction>>());
        if constexpr (!std::is_same_v<typename model::type, valid> || std::is_same_v<Optimizer, none>) {
            return model{};
        } else {
            using loss = decltype(loss_verdict_of<decltype(sealed_result(std::declval<Result>())), Loss>::get());
            if constexpr (!std::is_same_v<typename loss::type, valid>)
                return loss{};
            else
                return stage_verdict<ir::traced_stage<ir::training_trace<Model, Spec, Loss, Optimizer>>>();
        }
    }
}

using traced_call = ir::advice<
    "a model is called with a scope and its inputs, nodes: [units](auto scope, auto x) { return tg::dense(scope / "
    "\"out\", x, {.units = units}); }">;

/// The verdict where the graph is made at run time, which finds all but mistakes in calls.
template <class Mode, class Result, class LossResult, class Model, class Spec>
constexpr auto traced_verdict() {
    if constexpr (!is_defined<Mode>)
        return std::type_identity<traced_undefined>{};
    else if constexpr (std::is_same_v<LossResult, mistake_printed>)
        return std::type_identity<mistake_printed>{};
    else
        return call_verdict<Result, Model, Spec, traced_call>();
}

/// `type` is what tg::compile returns. `Result` and `LossResult` are those of `call`, which is written
/// out where tg::compile is declared: with an alias it would be one more line of each mistake.
template <class Result, class LossResult, class Mode, class Model, class Spec, class Loss, class Optimizer>
struct checked_model {
    using known = typename known_model<Mode, Model>::type;
    static constexpr auto verdict() {
        if constexpr (made_at_run_time<Mode>)
            return traced_verdict<Mode, Result, LossResult, known, Spec>();
        else
            return model_verdict<Result, known, Spec, Loss, Optimizer>();
    }
    using type =
        typename checked_result<typename decltype(verdict())::type, compiled_model<Mode, known, Spec, Loss, Optimizer>,
                                compiled_model<untraced<Mode>, known, Spec, Loss, Optimizer>>::type;
};

/// The same for tg::summarize.
template <class Result, class Model, class Spec>
struct checked_summary
    : checked_result<typename decltype(model_verdict<Result, model_type<Model>, Spec, none, none>())::type,
                     model_summary, model_summary> {};

#else

// nvcc's front end writes texts that are template arguments into the host code under names that it
// does not declare. So there is no verdict; the first trace with an error reports it, in nvcc's own
// words.
struct unevaluated_call {
    template <class>
    static none call(int);
};
template <class, class>
struct called_model : unevaluated_call {};
template <auto, class>
struct called_constant : unevaluated_call {};
template <class>
struct called_loss : unevaluated_call {};

template <class Result, class LossResult, class Mode, class Model, class Spec, class Loss, class Optimizer>
struct checked_model {
    using type = compiled_model<Mode, typename known_model<Mode, Model>::type, Spec, Loss, Optimizer>;
};
template <class Result, class Model, class Spec>
struct checked_summary {
    using type = model_summary;
};

template <class Trace>
constexpr void require_trace() {
    if constexpr (!ir::well_formed<ir::traced_stage<Trace>>) ir::refuse<ir::traced_stage<Trace>>();
}
template <class Mode, class Model, class Spec, class Loss, class Optimizer>
constexpr void require_traces() {
    if constexpr (!made_at_run_time<Mode>) {
        require_trace<ir::prediction_trace<Model, Spec, true>>();
        if constexpr (source_mode<Mode> && !std::is_same_v<Optimizer, none>)
            require_trace<ir::training_trace<Model, Spec, Loss, Optimizer>>();
    }
}

#endif

} // namespace tapegraph::detail
