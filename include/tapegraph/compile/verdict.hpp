#pragma once

#include <tapegraph/graph/refusal.hpp>
#include <tapegraph/train/traces.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

/// Checks whether the compiler can build a model or function, where the user calls tg::compile or
/// tg::function, before anything else: so a mistake is one error, and the error names that line.

namespace tapegraph {
struct traced;
}

namespace tapegraph::detail {

/// The modes whose graph the compiler makes, so that it can check all of a model or function.
template <class Mode>
concept source_mode = std::is_same_v<Mode, graph> || std::is_same_v<Mode, eager>;
/// Those of tg::compile and tg::function. `traced` needs compile/traced_model.hpp.
template <class Mode>
concept any_mode = source_mode<Mode> || std::is_same_v<Mode, traced>;

/// Whether the graph is made when the program runs.
template <class Mode>
inline constexpr bool made_at_run_time = std::is_same_v<Mode, traced>;

// Whether a callable takes arguments of some types, determined without instantiating its body:
// overload resolution between it and functions that take anything is ambiguous if it does.
// Instantiating the body would print its errors.
struct not_taken {};
struct const_rivals {
    not_taken operator()() const;
    template <class A>
    not_taken operator()(A) const;
    template <class A, class B>
    not_taken operator()(A, B) const;
    template <class A, class B, class C>
    not_taken operator()(A, B, C) const;
    template <class A, class B, class C, class D>
    not_taken operator()(A, B, C, D) const;
    template <class A, class B, class C, class D, class E>
    not_taken operator()(A, B, C, D, E) const;
    template <class A, class B, class C, class D, class E, class F>
    not_taken operator()(A, B, C, D, E, F) const;
};
struct rivals {
    not_taken operator()();
    template <class A>
    not_taken operator()(A);
    template <class A, class B>
    not_taken operator()(A, B);
    template <class A, class B, class C>
    not_taken operator()(A, B, C);
    template <class A, class B, class C, class D>
    not_taken operator()(A, B, C, D);
    template <class A, class B, class C, class D, class E>
    not_taken operator()(A, B, C, D, E);
    template <class A, class B, class C, class D, class E, class F>
    not_taken operator()(A, B, C, D, E, F);
};
struct variadic_rival {
    template <class... A>
    not_taken operator()(A...) const;
};
template <class F, class Rivals>
struct against : F, Rivals {
    using F::operator();
    using Rivals::operator();
};
struct call_operator {
    void operator()();
};
template <class F>
struct named_twice : F, call_operator {};

template <class F>
concept may_be_called = std::is_class_v<F> && !std::is_final_v<F> && !requires {
    &named_twice<F>::operator();
};

template <class F, class... A>
constexpr bool accepts() {
    if constexpr (!may_be_called<F>)
        return std::is_final_v<F> || !std::is_class_v<F>; // as far as can be determined
    else if constexpr (sizeof...(A) > 6)
        return true;
    else if constexpr (!requires(const against<F, const_rivals>& f, const A&... a) {
                           { f(a...) } -> std::same_as<not_taken>;
                       })
        return true;
    else if constexpr (!requires(against<F, rivals> & f, const A&... a) {
                           { f(a...) } -> std::same_as<not_taken>;
                       })
        return true;
    else // with any number of arguments, like the result of tg::gradient
        return !requires(const against<F, variadic_rival>& f, const A&... a) {
            { f(a...) } -> std::same_as<not_taken>;
        };
}

/// No mistake.
struct valid {};
/// A mistake that the compiler has printed.
struct mistake_printed {};

#ifndef __CUDACC__ // see compile/model_verdict.hpp
/// The mode without its header: `traced` is declared here and defined there.
using traced_undefined = ir::advice<"tg::traced needs #include <tapegraph/traced.hpp>">;
template <class Mode>
constexpr bool is_defined = requires {
    sizeof(Mode);
};
#endif

#ifndef __CUDACC__ // see compile/model_verdict.hpp
/// The verdict on a trace: `valid`, `mistake_printed`, or a type of facts.
template <class Stage>
constexpr auto stage_verdict() {
    if constexpr (ir::well_formed<Stage>)
        return std::type_identity<valid>{};
    else if constexpr (Stage::value.message_printed)
        return std::type_identity<mistake_printed>{};
    else if constexpr (Stage::value.used.scopes == 0) // no trace exists
        return std::type_identity<ir::advice<ir::detail::unevaluated_text>>{};
    else
        return std::type_identity<ir::facts_of<Stage>>{};
}

#endif

// clang reports a failed evaluation of a stage, so this first checks whether it can be evaluated.
template <class Builder>
constexpr bool run_once() {
    ir::model_trace t;
    Builder::build(t);
    return true;
}
template <class Builder>
constexpr bool can_be_run() {
#if defined(__clang__) && !defined(TG_EXPLAIN_EVALUATION)
    return requires { typename std::bool_constant<run_once<Builder>()>; };
#else
    return true;
#endif
}

/// For a model or function that does not accept its inputs.
struct never_called {
    template <class>
    static mistake_printed call(int);
};

/// What a checked call returns: `Made` if there is no mistake. Otherwise a reference to the type that
/// shows the mistake and is never defined: no variable can be made of it, and the error names the
/// variable. `Silent` if the compiler has printed the mistake: a type with the same members, so that
/// using it is no further error.
template <class Verdict, class Made, class Silent>
struct checked_result {
    using type = Verdict&;
};
template <class Made, class Silent>
struct checked_result<valid, Made, Silent> {
    using type = Made;
};
template <class Made, class Silent>
struct checked_result<mistake_printed, Made, Silent> {
    using type = Silent;
};

/// The value of a call with a mistake. It is not defined: a program that does not use the value, and
/// so has no error, is not linked.
template <class Result>
Result value_of_a_mistake();

// Arguments of calls that are checked but never made.
inline constexpr graph_scope root_scope{nullptr, 0};
inline constexpr graph_node some_node{};
template <class>
inline constexpr graph_node some_value{};
template <class>
using node_for = graph_node;

} // namespace tapegraph::detail
