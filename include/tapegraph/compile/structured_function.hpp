#pragma once

#include <tapegraph/compile/function.hpp>
#include <tapegraph/expr/structures.hpp>

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

/// tg::function of structures of numbers: structures of specs in the place of specs.

namespace tapegraph {

namespace detail {

template <class T, auto... Extents>
inline constexpr bool is_leaf<spec<T, Extents...>> = true;

template <class... Arguments>
inline constexpr bool has_structure = (leaf_structure<Arguments> || ...);

/// The rank of a structure's specs; 0 of other arguments.
template <class Argument>
inline constexpr int leaf_rank = 0;
template <leaf_structure S>
inline constexpr int leaf_rank<S> = leaf_of<S>::type::rank;

/// The types for one argument: `traced` is what the function is traced with, `plain` what a call is given.
template <class Spec>
struct argument_types {
    static_assert(has_fixed_extents<Spec>, "tg::function of structures: the extents of all specs are numbers");
    using traced = graph_node;
    using plain = typename plain_of_spec<Spec>::type;
};
template <leaf_structure S>
struct argument_types<S> {
    using leaf = typename leaf_of<S>::type;
    static_assert(leaf::rank == 0, "tg::function: a structure has specs of numbers, tg::spec<double>; "
                                   "std::arrays of these are its vectors");
    using traced = typename leaves_exchanged<S, leaf, graph_node>::type;
    using plain = typename leaves_exchanged<S, leaf, typename leaf::element_type>::type;
};

/// The numbers of a structure, or the value of a spec, as a tuple.
template <class Argument>
constexpr auto plain_leaves(const typename argument_types<Argument>::plain& x) {
    if constexpr (leaf_structure<Argument>)
        return leaves(x);
    else
        return std::tuple<typename argument_types<Argument>::plain>(x);
}

} // namespace detail

/// A function of structures, which calls Inner, the function of their numbers.
template <class Inner, class F, class... Arguments>
class structured_function {
    using result = std::remove_cvref_t<decltype(std::declval<const F&>()(
        std::declval<const typename detail::argument_types<Arguments>::traced&>()...))>;

public:
    using leaf_function = Inner;

    /// Runs the function, which allocates nothing in graph mode. Results are built like those that f returns, of numbers and
    /// std::arrays. No tape follows such a call.
    auto operator()(const typename detail::argument_types<Arguments>::plain&... arguments) {
        return detail::rebuilt<result>(
            std::apply(inner_, std::tuple_cat(detail::plain_leaves<Arguments>(arguments)...)));
    }
    /// The seed of its random operations; the draws begin anew.
    void set_seed(std::uint64_t seed) { inner_.set_seed(seed); }
    /// The compiled trace and schedule.
    const ir::program_view& view() const { return inner_.view(); }
    /// The program that runs it.
    ir::program& program() { return inner_.program(); }

private:
    Inner inner_;
};

namespace detail {

/// How the function of a structure's numbers is called and checked: as one of its own.
template <class F, class Leaves, class... Arguments>
struct leaf_function;
template <class F, class... Specs, class... Arguments>
struct leaf_function<F, std::tuple<Specs...>, Arguments...> {
    using type = function_of_leaves<true, F, typename argument_types<Arguments>::traced...>;
    template <class Inner>
    using made = structured_function<Inner, F, Arguments...>;
    static auto call() -> decltype(called_function<type, Specs...>::template call<type>(0));
    template <class Result, class Mode>
    using checked = typename checked_function<Result, Mode, type, Specs...>::type;
    template <class Mode>
    using compiled = compiled_function<Mode, type, Specs...>;
};
template <class F, class... Arguments>
using leaf_function_of =
    leaf_function<F, decltype(leaves(std::declval<const std::tuple<Arguments...>&>())), Arguments...>;

template <class Mode, class... Arguments>
constexpr auto structures_verdict() {
#ifndef __CUDACC__
    if constexpr (made_at_run_time<Mode>)
        return std::type_identity<ir::advice<"tg::function<tg::traced> takes tensors alone; structures of numbers are "
                                             "for graph and eager mode">>{};
    else if constexpr (!(has_leaves_alone<Arguments> && ...))
        return std::type_identity<
            ir::advice<"a structure of numbers has members of its type argument, std::arrays and structures of these, "
                       "and nothing else: make constants static">>{};
    else if constexpr (((leaf_rank<Arguments> > 0) || ...))
        return std::type_identity<ir::advice<"a structure has specs of numbers, tg::spec<double>; std::arrays of these "
                                             "are its vectors">>{};
    else
#endif
        return std::type_identity<valid>{};
}
template <class Mode, class... Arguments>
using structures_verdict_t = typename decltype(structures_verdict<Mode, Arguments...>())::type;

template <class F, class... Arguments>
    requires has_structure<Arguments...>
struct called_function<F, Arguments...> {
    template <class>
    static auto call(int) {
        if constexpr (std::is_same_v<structures_verdict_t<graph, Arguments...>, valid>)
            return std::type_identity<decltype(leaf_function_of<F, Arguments...>::call())>{};
    }
};
template <class Result, class Mode, class F, class... Arguments>
    requires has_structure<Arguments...>
struct checked_function<Result, Mode, F, Arguments...> {
    using type = structures_verdict_t<Mode, Arguments...>&;
};
template <class Result, class Mode, class F, class... Arguments>
    requires(has_structure<Arguments...>&& std::is_same_v<structures_verdict_t<Mode, Arguments...>, valid>)
struct checked_function<std::type_identity<Result>, Mode, F, Arguments...> {
    using numbers = leaf_function_of<F, Arguments...>;
    using inner = typename numbers::template checked<Result, Mode>;
    using type = std::conditional_t<std::is_same_v<inner, typename numbers::template compiled<Mode>>,
                                    typename numbers::template made<inner>, inner>;
};

} // namespace detail
} // namespace tapegraph
