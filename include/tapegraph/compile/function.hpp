#pragma once

#include <tapegraph/compile/plain_values.hpp>
#include <tapegraph/compile/verdict.hpp>
#include <tapegraph/eager/derivatives.hpp>
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/graph/derivatives.hpp>
#include <tapegraph/graph/input_rules.hpp>
#include <tapegraph/model/outputs.hpp>
#include <tapegraph/model/spec.hpp>
#include <tapegraph/model/taped_program.hpp>

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

/// The results of a call as tensors, on the tape from place `first` on. `at<I>()` makes the I-th.
template <class Elements>
struct tensor_results {
    call_results& from;
    tape_index first;

    template <int I>
    auto at() const {
        auto value = Elements::template typed<I>(from.take(I));
        if (is_floating(value.type()) && first.serial != 0) value.set_tape_index({first.serial, first.index + I});
        return value;
    }
};
/// The same as numbers and std::arrays.
template <class Stage>
struct plain_results {
    const ir::program& from;

    template <int I>
    auto at() const {
        using output = plain_output<Stage, I>;
        static_assert(output::fixed,
                      "the extents of a result are known only at run time: pass tensors, not std::arrays");
        return output::from(from.output(I));
    }
};
/// The same of tensors that exist.
template <class Stage>
struct plain_copies {
    template <int I, class T>
    static auto at(const tensor<T>& value) {
        return plain_output<Stage, I>::from(value.view_on(nullptr));
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
    template <int First, class Results>
    static auto rebuild(const Results& results) {
        return results.template at<First>();
    }
    /// The same of a result that exists: `results.at<I>(part)` makes each of its parts.
    template <int First, class Results, class Given>
    static auto convert(const Results& results, const Given& given) {
        return results.template at<First>(given);
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
    template <int First, class Results>
    static auto rebuild(const Results& results) {
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            // The type is spelled out, so that a tuple within a tuple stays two levels.
            return std::tuple<decltype(returned<R>::template rebuild<First + before(I)>(results))...>{
                returned<R>::template rebuild<First + before(I)>(results)...};
        }
        (std::index_sequence_for<R...>{});
    }
    template <int First, class Results, class Given>
    static auto convert(const Results& results, const Given& given) {
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return std::tuple<decltype(returned<R>::template convert<First + before(I)>(results,
                                                                                        std::get<I>(given)))...>{
                returned<R>::template convert<First + before(I)>(results, std::get<I>(given))...};
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
    template <int First, class Results>
    static auto rebuild(const Results& results) {
        return named(parts::template rebuild<First>(results));
    }
    template <int First, class Results, class Given>
    static auto convert(const Results& results, const Given& given) {
        return named(parts::template convert<First>(results, given.parts()));
    }

private:
    template <class Tuple>
    static auto named(Tuple tuple) {
        return std::apply([](auto&&... part) { return R<std::remove_cvref_t<decltype(part)>...>{std::move(part)...}; },
                          std::move(tuple));
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

/// An overload for calls with a std::array that fits no spec, or beside tensors.
#define TG_ARRAYS_OF_OTHER_EXTENTS                                                                                     \
    template <class... X>                                                                                              \
        requires(detail::has_array<std::tuple<X...>> &&                                                                \
                 !detail::are_plain_arguments<std::tuple<X...>, std::tuple<Specs...>>)                                 \
    void operator()(const X&...) TG_REFUSES("tg::function: std::arrays of the specs' extents and element types, and "  \
                                            "numbers for scalars; or tensors alone");

/// A function compiled into a static graph for arguments of given types and shapes; the compiler
/// checks shapes.
template <class F, class... Specs>
class graph_function {
    using trace = detail::function_trace<F, Specs...>;
    using stage = ir::compile_stage<ir::detail::traced<trace>>;
    using elements = detail::elements_of_stage<stage>;

public:
    graph_function() : program_(std::make_unique<ir::program>(ir::compile_program<trace>())) {}

    /// Runs the graph. Results are tensors, in the structure in which the function returns nodes.
    /// If an argument is on a gradient_tape, the call is one record there, whose derivative is
    /// compiled, too. That derivative has neither a further derivative on the tape nor a forward
    /// mode: requesting one throws argument_error.
    auto operator()(const tensor<typename Specs::element_type>&... arguments) {
        const device_scope on(program_->device());
        int index = 0;
        plain_is_set_ = false;
        (program_->set_input(index++, arguments.view()), ...);
        const random_state random = random_.next();
        detail::call_results results(*program_);
        program_->run(random);
        const detail::tape_storage& tape = detail::tape_storage::instance();
        tape_index place;
        if constexpr (differentiable)
            if (tape.recording() && (tape.tracks(arguments) || ...)) place = record(random, {arguments...});
        return detail::returned<typename trace::result>::template rebuild<0>(
            detail::tensor_results<elements>{results, place});
    }
    /// The same of numbers and std::arrays, where all specs have fixed extents: a scalar is a number, other values are
    /// std::arrays as deep as their rank, std::array<std::array<double, 3>, 2> for spec<double, 2, 3>. Results are such
    /// values, too, and nothing is allocated: short arrays cost least this way. No tape follows such a call.
    template <class... X>
        requires detail::are_plain_arguments<std::tuple<X...>, std::tuple<Specs...>>
    auto operator()(const X&... arguments) {
        using inputs = detail::plain_inputs<Specs...>;
        if (plain_ == nullptr) plain_ = std::make_shared<inputs>();
        inputs& plain = *static_cast<inputs*>(plain_.get());
        plain.assign(arguments...);
        if (!plain_is_set_) {
            plain.for_each([this](int index, const buffer_view& view) { program_->set_input(index, view); });
            plain_is_set_ = true;
        }
        program_->run(random_.next());
        return detail::returned<typename trace::result>::template rebuild<0>(detail::plain_results<stage>{*program_});
    }
    TG_ARRAYS_OF_OTHER_EXTENTS

    /// Makes calls draw from this seed, counted from here, instead of the thread's
    /// (random::set_seed).
    void set_seed(std::uint64_t seed) { random_.set_seed(seed); }

    /// The compiled program: its values, calls and memory, for tools that show or time them.
    const ir::program_view& view() const { return program_->view(); }
    /// The program that calls run, for profilers.
    ir::program& program() { return *program_; }

private:
    static constexpr bool differentiable = (is_floating(dtype_of<typename Specs::element_type>) || ...);
    tape_index record(const random_state& random, std::vector<any_tensor> arguments) {
        detail::taped_call call(*program_, random, std::move(arguments));
        call.gradient = ir::input_gradient_of<trace>();
        if (gradients_ == nullptr) gradients_ = detail::program_pool::make();
        call.programs = gradients_;
        return detail::record_program(call);
    }

    std::unique_ptr<ir::program> program_;
    std::shared_ptr<detail::program_pool> gradients_;
    std::shared_ptr<void> plain_; // plain_inputs<Specs...>, a type that not all specs have
    bool plain_is_set_ = false;   // the program's inputs are those of plain_
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
    /// The same of numbers and std::arrays, as graph_function.
    template <class... X>
        requires detail::are_plain_arguments<std::tuple<X...>, std::tuple<Specs...>>
    auto operator()(const X&... arguments) {
        detail::plain_inputs<Specs...> plain;
        plain.assign(arguments...);
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            const auto results = (*this)(tensor<typename Specs::element_type>(
                reinterpret_cast<const typename Specs::element_type*>(&std::get<I>(plain.values)),
                shape(Specs::rank, Specs::extents))...);
            return detail::returned<typename detail::function_trace<F, Specs...>::result>::template convert<0>(
                detail::plain_copies<trace_stage>{}, results);
        }
        (std::index_sequence_for<Specs...>{});
    }
    TG_ARRAYS_OF_OTHER_EXTENTS
    /// Works like graph_function::set_seed; equal seeds give equal numbers in both modes.
    void set_seed(std::uint64_t seed) { random_.set_seed(seed); }

private:
    ir::input_rules rules_{ir::stage_view<trace_stage>()};
    detail::call_counter random_;
};

#undef TG_ARRAYS_OF_OTHER_EXTENTS

template <class F, class... Specs>
class traced_function; // compile/traced_function.hpp

namespace detail {

template <class Mode, class F, class... Specs>
using compiled_function = std::conditional_t<
    std::is_same_v<Mode, traced>, traced_function<F, Specs...>,
    std::conditional_t<std::is_same_v<Mode, graph>, graph_function<F, Specs...>, eager_function<F, Specs...>>>;

/// The result of tg::function where it cannot create a function and the compiler has printed the
/// reason. None of its members is defined.
template <class Mode, class F, class... Specs>
struct untraced_function {
    untraced_function();
    explicit untraced_function(const F&);
    untraced_function(const untraced_function&);
    tensor<float> operator()(const tensor<typename Specs::element_type>&...);
    void set_seed(std::uint64_t);
    const ir::program_view& view() const;
    ir::program& program();
};

#ifndef __CUDACC__
/// How a function is called. `call` is evaluated where tg::function is declared, as that of a model
/// is where tg::compile is (compile/model_verdict.hpp).
template <class... Specs>
struct call_of_function {
    template <class F>
    static auto call(int) -> decltype(std::declval<const F&>()(some_value<Specs>...));
    template <class>
    static mistake_printed call(...);
};
template <class F, class... Specs>
struct called_function
    : std::conditional_t<accepts<F, node_for<Specs>...>(), call_of_function<Specs...>, never_called> {};

template <class Result, class Mode, class F, class... Specs>
constexpr auto function_verdict() {
    constexpr bool at_run_time = std::is_same_v<Mode, traced>;
    if constexpr (at_run_time && !is_defined<Mode>) {
        return std::type_identity<traced_undefined>{};
    } else if constexpr (!std::is_empty_v<F> && !at_run_time) {
        return std::type_identity<
            ir::advice<"a compiled function cannot capture: pass what it needs as an argument, or take "
                       "tg::function<tg::traced>">>{};
    } else if constexpr (std::is_same_v<Result, mistake_printed> && !accepts<F, node_for<Specs>...>()) {
        return std::type_identity<ir::advice<
            "a compiled function takes an argument for each spec, nodes or tensors: [](auto x, auto w) { ... }">>{};
    } else if constexpr (std::is_same_v<Result, mistake_printed>) {
        return std::type_identity<mistake_printed>{};
    } else if constexpr (std::is_void_v<Result>) {
        return std::type_identity<ir::advice<"the function returns nothing: is `return` missing?">>{};
    } else if constexpr (!requires { returned<std::remove_cvref_t<Result>>::count; }) {
        return std::type_identity<ir::advice<"a compiled function returns a tensor, or a tuple of tensors">>{};
    } else if constexpr (at_run_time) {
        return std::type_identity<valid>{};
    } else if constexpr (!can_be_run<function_trace<F, Specs...>>()) {
        return std::type_identity<ir::advice<ir::detail::unevaluated_text>>{};
    } else {
        return stage_verdict<ir::traced_stage<function_trace<F, Specs...>>>();
    }
}

/// `type` is what tg::function returns; `Result` is that of `call`.
template <class Result, class Mode, class F, class... Specs>
struct checked_function : checked_result<typename decltype(function_verdict<Result, Mode, F, Specs...>())::type,
                                         compiled_function<Mode, F, Specs...>, untraced_function<Mode, F, Specs...>> {};

#else // see compile/model_verdict.hpp
template <class F, class... Specs>
struct called_function {
    template <class>
    static none call(int);
};

template <class Result, class Mode, class F, class... Specs>
struct checked_function {
    using type = compiled_function<Mode, F, Specs...>;
};
#endif

} // namespace detail

/// `function<graph>(f, spec<float, dyn, 784>{}, ...)`. f is a captureless lambda or an empty function
/// object. A structure of specs, `state<spec<double>>{}`, is for f of state<N>
/// (compile/structured_function.hpp). `function<traced>`, of tapegraph/traced.hpp, makes the graph now; f
/// is any callable, and is called once, with nodes. It throws shape_error if parts of f do not fit together.
template <detail::any_mode Mode, class F, class... Specs>
[[nodiscard]] auto function(const F& f, Specs...) ->
    typename detail::checked_function<decltype(detail::called_function<F, Specs...>::template call<F>(0)), Mode, F,
                                      Specs...>::type {
    using made = typename detail::checked_function<decltype(detail::called_function<F, Specs...>::template call<F>(0)),
                                                   Mode, F, Specs...>::type;
#ifdef __CUDACC__
    using stage = ir::traced_stage<detail::function_trace<F, Specs...>>;
    if constexpr (!std::is_same_v<Mode, traced> && !requires { typename made::leaf_function; })
        if constexpr (!ir::well_formed<stage>) ir::refuse<stage>();
#endif
    if constexpr (std::is_reference_v<made>)
        return detail::value_of_a_mistake<made>();
    else if constexpr (std::is_same_v<Mode, traced>)
        return made(f);
    else
        return {};
}

} // namespace tapegraph
