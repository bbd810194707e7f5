#pragma once

#include <tapegraph/eager/derivatives.hpp>
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/graph/derivatives.hpp>
#include <tapegraph/graph/input_rules.hpp>
#include <tapegraph/nn/outputs.hpp>
#include <tapegraph/nn/spec.hpp>
#include <tapegraph/nn/taped_program.hpp>
#include <tapegraph/nn/verdict.hpp>

#include <memory>
#include <tuple>

/// tg::function: turns a C++ function into a compiled graph or an eager callable.

namespace tapegraph {

namespace detail {

/// Converts results of a program to tensors with the element types of a stage's outputs.
template <class Stage>
struct elements_of_stage {
    template <int I>
    static auto typed(any_tensor&& value) {
        return tensor<element_t<Stage::value.nodes[Stage::value.outputs[I].node].type>>(std::move(value));
    }
};

/// The permitted results of a traced function: a tensor, a tuple of these, or the result of
/// value_and_gradient, jvp and similar functions.
template <class R>
struct returned;

template <tensor_like R>
struct returned<R> {
    static constexpr int count = 1;
    static constexpr void record(ir::trace& t, const R& value) { t.outputs.push_back({"", eval(value).id()}); }
    template <class Elements, int First>
    static auto rebuild(call_results<>& from, tape_index first) {
        auto value = Elements::template typed<First>(from.take(First));
        if (is_floating(value.type()) && first.serial != 0) value.set_tape_index({first.serial, first.index + First});
        return value;
    }
};

template <class... R>
struct returned<std::tuple<R...>> {
    static constexpr int count = (0 + ... + returned<R>::count);
    static constexpr void record(ir::trace& t, const std::tuple<R...>& values) {
        std::apply(
            [&](const auto&... value) { (returned<std::remove_cvref_t<decltype(value)>>::record(t, value), ...); },
            values);
    }
    template <class Elements, int First>
    static auto rebuild(call_results<>& from, tape_index first) {
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            // The type is spelled out, so that a tuple within a tuple stays two levels.
            return std::tuple<decltype(returned<R>::template rebuild<Elements, First + before(I)>(from, first))...>{
                returned<R>::template rebuild<Elements, First + before(I)>(from, first)...};
        }
        (std::index_sequence_for<R...>{});
    }

private:
    static constexpr int before(std::size_t index) {
        const int counts[]{returned<R>::count...};
        int sum = 0;
        for (std::size_t i = 0; i < index; ++i) sum += counts[i];
        return sum;
    }
};

template <template <class...> class R, class... P>
    requires result_record<R<P...>>
struct returned<R<P...>> {
    using parts = returned<std::tuple<P...>>;
    static constexpr int count = parts::count;
    static constexpr void record(ir::trace& t, const R<P...>& r) { parts::record(t, r.parts()); }
    template <class Elements, int First>
    static auto rebuild(call_results<>& from, tape_index first) {
        return std::apply([](auto&&... part) { return R<std::remove_cvref_t<decltype(part)>...>{std::move(part)...}; },
                          parts::template rebuild<Elements, First>(from, first));
    }
};

template <class F, class... Specs>
struct function_trace {
    template <class Spec>
    static constexpr graph_node input(ir::trace& t) {
        constexpr std::string_view names[]{"argument 1", "argument 2", "argument 3", "argument 4",
                                           "argument 5", "argument 6", "argument 7", "argument 8"};
        const int number = t.inputs.size();
        return {&t, t.input(number < 8 ? names[number] : "argument", dtype_of<typename Spec::element_type>,
                            Spec::dims(t.extents))};
    }
    static constexpr auto call(ir::trace& t) {
        const std::tuple arguments{input<Specs>(t)...}; // braces: inputs in order
        return std::apply([](const auto&... x) { return F{}(x...); }, arguments);
    }
    using result = decltype(call(std::declval<ir::trace&>()));
    static constexpr void build(ir::trace& t) { returned<result>::record(t, call(t)); }
};

} // namespace detail

/// A function compiled into a static graph for arguments of given types and shapes; the compiler
/// checks shapes.
template <class F, class... Specs>
class graph_function {
    using trace = detail::function_trace<F, Specs...>;
    using elements = detail::elements_of_stage<ir::compile_stage<ir::detail::traced<trace>>>;

public:
    graph_function() : program_(std::make_unique<ir::program>(ir::compile_program<trace>())) {}

    /// Runs the graph. Results are tensors, in the structure in which the function returns nodes.
    /// If an argument is on a gradient_tape, the call is one record there, whose derivative is
    /// compiled, too. That derivative has neither a further derivative on the tape nor a forward
    /// mode: requesting one throws argument_error.
    auto operator()(const tensor<typename Specs::element_type>&... arguments) {
        const device_scope on(program_->device());
        int index = 0;
        (program_->set_input(index++, arguments.view()), ...);
        const random_state random = random_.next();
        detail::call_results<> results(*program_);
        program_->run(random);
        const detail::tape_storage& tape = detail::tape_storage::instance();
        tape_index place;
        if constexpr (differentiable)
            if (tape.recording() && (tape.tracks(arguments) || ...)) place = record(random, {arguments...});
        return detail::returned<typename trace::result>::template rebuild<elements, 0>(results, place);
    }

    /// Makes calls draw from this seed, counted from here, instead of the thread's
    /// (random::set_seed).
    void set_seed(std::uint64_t seed) { random_.set_seed(seed); }

    const ir::program_view& view() const { return program_->view(); }
    ir::program& program() { return *program_; }

private:
    static constexpr bool differentiable = (is_floating(dtype_of<typename Specs::element_type>) || ...);
    tape_index record(const random_state& random, std::vector<any_tensor> arguments) {
        detail::taped_call call(*program_, random, std::move(arguments));
        call.gradient = ir::input_gradient_of<trace>();
        if (gradients_ == nullptr) gradients_ = std::make_shared<detail::program_pool>();
        call.programs = gradients_;
        return detail::record_program(call);
    }

    std::unique_ptr<ir::program> program_;
    std::shared_ptr<detail::program_pool> gradients_;
    detail::call_counter random_;
};

/// The same function run eagerly on the same arguments. It is also traced, though not compiled:
/// inputs that graph mode refuses, at compile time or when it is called, are refused here with the
/// same messages.
template <class F, class... Specs>
class eager_function {
    using trace_stage = ir::traced_stage<detail::function_trace<F, Specs...>>;

public:
    auto operator()(const tensor<typename Specs::element_type>&... arguments) {
        const std::initializer_list<buffer_view> outlines{arguments.outline_view()...};
        rules_.check({outlines.begin(), outlines.size()});
        detail::random_stream stream{random_.next(), 0};
        const detail::random_scope draws(stream);
        return detail::map_results([](const auto& each) { return eval(each); }, F{}(arguments...));
    }
    /// Works like graph_function::set_seed; equal seeds give equal numbers in both modes.
    void set_seed(std::uint64_t seed) { random_.set_seed(seed); }

private:
    ir::input_rules rules_{ir::stage_view<trace_stage>()};
    detail::call_counter random_;
};

namespace detail {

/// The result of tg::function where it cannot create a function and has reported the reason. None
/// of its members is defined.
template <class Mode, class F, class... Specs>
struct untraced_function {
    untraced_function(const untraced_function&);
    tensor<float> operator()(const tensor<typename Specs::element_type>&...);
    void set_seed(std::uint64_t);
    const ir::program_view& view() const;
    ir::program& program();
};

#ifdef __CUDACC__ // see nn/compile_by_nvcc.hpp
} // namespace detail

template <class Mode, class F, class... Specs>
auto function(const F&, Specs...) {
    using stage = ir::traced_stage<detail::function_trace<F, Specs...>>;
    if constexpr (!ir::well_formed<stage>) ir::refuse<stage>();
    return std::conditional_t<std::is_same_v<Mode, graph>, graph_function<F, Specs...>, eager_function<F, Specs...>>{};
}
#else
template <class F, class... Specs>
constexpr auto function_verdict() {
    if constexpr (!std::is_empty_v<F>) {
        return std::type_identity<
            ir::advice<"a compiled function cannot capture: pass what it needs as an argument, or take "
                       "tg::function<tg::traced>">>{};
    } else if constexpr (!takes<F, node_for<Specs>...>()) {
        return std::type_identity<ir::advice<
            "a compiled function takes an argument for each spec, nodes or tensors: [](auto x, auto w) { ... }">>{};
    } else if constexpr (!requires { F{}(some_value<Specs>...); }) {
        return std::type_identity<said>{};
    } else if constexpr (std::is_void_v<decltype(F{}(some_value<Specs>...))>) {
        return std::type_identity<ir::advice<"the function returns nothing: is `return` missing?">>{};
    } else if constexpr (!requires { returned<std::remove_cvref_t<decltype(F{}(some_value<Specs>...))>>::count; }) {
        return std::type_identity<ir::advice<"a compiled function returns a tensor, or a tuple of tensors">>{};
    } else if constexpr (!can_be_run<function_trace<F, Specs...>>()) {
        return std::type_identity<ir::advice<ir::detail::unevaluated_text>>{};
    } else {
        return stage_verdict<ir::traced_stage<function_trace<F, Specs...>>>();
    }
}

/// Has a type where there is no error. `Output` exists to be inspected.
template <class Output, class Mode, class F, class... Specs>
struct function_if_it_fits {};
template <class Output, class Mode, class F, class... Specs>
    requires std::is_same_v<typename decltype(function_verdict<F, Specs...>())::type, fits>
struct function_if_it_fits<Output, Mode, F, Specs...> {
    using type =
        std::conditional_t<std::is_same_v<Mode, graph>, graph_function<F, Specs...>, eager_function<F, Specs...>>;
};

/// The error as a type: a type with the facts the first time, and untraced_function where the
/// compiler has reported it.
template <class Mode, class F, class... Specs>
constexpr auto function_mistake() {
    return shown<typename decltype(function_verdict<F, Specs...>())::type, Mode,
                 untraced_function<Mode, F, Specs...>>();
}

} // namespace detail

/// `function<graph>(f, spec<float, dyn, 784>{}, ...)`. f is a captureless lambda or an empty function object.
template <detail::source_mode Mode, detail::anything F, class... Specs,
          bool = detail::takes<F, detail::node_for<Specs>...>()>
auto function(const F&, Specs...) ->
    typename detail::function_if_it_fits<decltype(F{}(detail::some_value<Specs>...)), Mode, F, Specs...>::type {
    return {};
}
// Selected where there is an error, see nn/compile.hpp.
template <detail::source_mode Mode, class F, class... Specs, bool = detail::takes<F, detail::node_for<Specs>...>()>
[[nodiscard]] decltype(auto) function(const F&, Specs...) {
    return detail::told_by(detail::function_mistake<Mode, F, Specs...>());
}

#endif

} // namespace tapegraph
