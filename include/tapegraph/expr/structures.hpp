#pragma once

#include <tapegraph/core/aggregates.hpp>
#include <tapegraph/expr/derivatives.hpp>

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

/// Structures of values: std::arrays, aggregates whose type arguments are the values' types, and arrays and aggregates of
/// these. The transforms of expr/derivatives.hpp take them as arguments, and see their leaves one after the other.

namespace tapegraph {

/// The mode of arguments of which one is a structure.
struct structured;

namespace detail {

/// What a structure is taken apart into: a number, a handle or formula, a spec.
template <class X>
inline constexpr bool is_leaf = arithmetic<X> || tensor_like<X>;

/// The type of a structure's leaves, the first that its type arguments name; void of other types.
template <class X>
struct leaf_of {
    using type = std::conditional_t<is_leaf<X>, X, void>;
};
template <class... X>
struct first_leaf {
    using type = void;
};
template <class First, class... Rest>
struct first_leaf<First, Rest...>
    : std::conditional_t<std::is_void_v<typename leaf_of<First>::type>, first_leaf<Rest...>, leaf_of<First>> {};
template <class T, std::size_t N>
struct leaf_of<std::array<T, N>> : leaf_of<T> {};
template <template <class...> class S, class... X>
    requires(!is_leaf<S<X...>> && std::is_aggregate_v<S<X...>> && !result_record<S<X...>>)
struct leaf_of<S<X...>> : first_leaf<X...> {};

template <class X>
concept leaf_structure = !is_leaf<X> && !std::is_void_v<typename leaf_of<X>::type>;
template <class X>
concept handle_structure = leaf_structure<X> && tensor_like<typename leaf_of<X>::type>;

template <class M, class Leaf>
inline constexpr bool may_be_member = std::is_same_v<M, Leaf> || leaf_structure<M>;

/// Whether a structure has nothing but leaves of its type.
template <class X>
constexpr bool has_only_leaves();
template <class Leaf, class... M>
constexpr bool are_members(std::type_identity<std::tuple<M...>>) {
    return ((may_be_member<M, Leaf> && has_only_leaves<M>()) && ...);
}
template <class X>
constexpr bool has_only_leaves() {
    if constexpr (!leaf_structure<X>)
        return true;
    else if constexpr (requires { std::tuple_size<X>::value; })
        return has_only_leaves<std::tuple_element_t<0, X>>();
    else
        return are_members<typename leaf_of<X>::type>(std::type_identity<member_types<X>>{});
}
template <class X>
inline constexpr bool has_leaves_alone = has_only_leaves<X>();

/// A structure's type with leaves of type To in the place of From.
template <class X, class From, class To>
struct leaves_exchanged {
    using type = X;
};
template <class From, class To>
struct leaves_exchanged<From, From, To> {
    using type = To;
};
template <class T, std::size_t N, class From, class To>
    requires(!std::is_same_v<std::array<T, N>, From>)
struct leaves_exchanged<std::array<T, N>, From, To> {
    using type = std::array<typename leaves_exchanged<T, From, To>::type, N>;
};
template <template <class...> class S, class... X, class From, class To>
    requires(!is_leaf<S<X...>> && !std::is_same_v<S<X...>, From>)
struct leaves_exchanged<S<X...>, From, To> {
    using type = S<typename leaves_exchanged<X, From, To>::type...>;
};

/// The leaves of a structure, of a tuple or of a transform's result, in order, as a tuple.
template <class X>
constexpr auto leaves(const X& x);
template <class... X>
constexpr auto leaves(const std::tuple<X...>& x) {
    return std::apply([](const X&... each) { return std::tuple_cat(leaves(each)...); }, x);
}
template <class X>
constexpr auto leaves(const X& x) {
    if constexpr (is_leaf<X>) {
        return std::tuple<X>(x);
    } else if constexpr (result_record<X>) {
        return leaves(x.parts());
    } else if constexpr (requires { std::tuple_size<X>::value; }) {
        return std::apply([](const auto&... each) { return std::tuple_cat(leaves(each)...); }, x);
    } else {
        return with_members(x, [](const auto&... members) {
            static_assert((may_be_member<std::remove_cvref_t<decltype(members)>, typename leaf_of<X>::type> && ...),
                          "a structure of values has values of its type argument, std::arrays and structures of them, "
                          "and nothing else: make constants static");
            return std::tuple_cat(leaves(members)...);
        });
    }
}
template <class X>
inline constexpr std::size_t leaf_count = std::tuple_size_v<decltype(leaves(std::declval<const X&>()))>;

/// The number of leaves in the first `index` of the types.
template <class... X>
constexpr std::size_t leaves_before(std::size_t index) {
    const std::size_t counts[]{leaf_count<X>..., 0};
    std::size_t sum = 0;
    for (std::size_t i = 0; i < index; ++i) sum += counts[i];
    return sum;
}

/// A value built like X of the leaves [First, First + leaf_count<X>), which may have another type than those of X.
template <class X>
struct rebuilt_like {
    template <std::size_t First, class Leaves>
    static constexpr auto from(const Leaves& all) {
        if constexpr (is_leaf<X>) {
            return std::get<First>(all);
        } else {
            using leaf = std::tuple_element_t<First, Leaves>;
            using result = typename leaves_exchanged<X, typename leaf_of<X>::type, leaf>::type;
            static_assert(are_of_type<First, leaf, Leaves>(std::make_index_sequence<leaf_count<X>>{}),
                          "the values of one structure have one type");
            return members<result, First>(std::type_identity<member_types<X>>{}, all);
        }
    }

private:
    template <std::size_t First, class Leaf, class Leaves, std::size_t... I>
    static constexpr bool are_of_type(std::index_sequence<I...>) {
        return (std::is_same_v<std::tuple_element_t<First + I, Leaves>, Leaf> && ...);
    }
    template <class Result, std::size_t First, class... M, class Leaves>
    static constexpr Result members(std::type_identity<std::tuple<M...>>, const Leaves& all) {
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return Result{rebuilt_like<M>::template from<First + leaves_before<M...>(I)>(all)...};
        }
        (std::index_sequence_for<M...>{});
    }
};
template <class T, std::size_t N>
struct rebuilt_like<std::array<T, N>> {
    template <std::size_t First, class Leaves>
    static constexpr auto from(const Leaves& all) {
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            using element = decltype(rebuilt_like<T>::template from<First>(all));
            return std::array<element, N>{rebuilt_like<T>::template from<First + I * leaf_count<T>>(all)...};
        }
        (std::make_index_sequence<N>{});
    }
};
template <class... X>
struct rebuilt_like<std::tuple<X...>> {
    template <std::size_t First, class Leaves>
    static constexpr auto from(const Leaves& all) {
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return std::tuple<decltype(rebuilt_like<X>::template from<First + leaves_before<X...>(I)>(all))...>{
                rebuilt_like<X>::template from<First + leaves_before<X...>(I)>(all)...};
        }
        (std::index_sequence_for<X...>{});
    }
};
template <template <class...> class R, class... P>
    requires result_record<R<P...>>
struct rebuilt_like<R<P...>> {
    template <std::size_t First, class Leaves>
    static constexpr auto from(const Leaves& all) {
        return std::apply([](const auto&... part) { return R<std::remove_cvref_t<decltype(part)>...>{part...}; },
                          rebuilt_like<std::tuple<P...>>::template from<First>(all));
    }
};
template <class X, class Leaves>
constexpr auto rebuilt(const Leaves& all) {
    return rebuilt_like<X>::template from<0>(all);
}

/// f of arguments built like X, as a function of their leaves. Its results' leaves are a tuple, if Flat.
template <bool Flat, class F, class... X>
struct function_of_leaves {
    [[no_unique_address]] F f;

    constexpr auto operator()(const auto&... each) const {
        const auto arguments = rebuilt<std::tuple<X...>>(std::tuple<std::remove_cvref_t<decltype(each)>...>{each...});
        if constexpr (Flat && !std::is_void_v<decltype(std::apply(f, arguments))>)
            return leaves(std::apply(f, arguments));
        else
            return std::apply(f, arguments);
    }
};

/// A tuple of one, of a single derivative.
template <class X>
constexpr auto wrapped(const X& x) {
    if constexpr (is_leaf<X>)
        return std::tuple<X>(x);
    else
        return x;
}

template <handle_structure X>
struct mode_of<X> {
    using type = structured;
};
template <>
struct one_mode<structured, structured> {
    using type = structured;
};
template <>
struct one_mode<structured, no_mode> {
    using type = structured;
};
template <class Other>
    requires(!std::is_same_v<Other, no_mode> && !std::is_same_v<Other, structured>)
struct one_mode<structured, Other> {
    using type = structured;
};
template <class Other>
    requires(!std::is_same_v<Other, no_mode> && !std::is_same_v<Other, structured>)
struct one_mode<Other, structured> {
    using type = structured;
};

template <class F, class... X>
struct linearization<structured, F, X...> {
    using flat = function_of_leaves<true, F, X...>;
    using argument_leaves = decltype(leaves(std::declval<const std::tuple<X...>&>()));
    template <class>
    struct linearized;
    template <class... L>
    struct linearized<std::tuple<L...>> {
        using type = linearization<mode_of_t<L...>, flat, L...>;
    };
    using result = std::remove_cvref_t<decltype(std::declval<const F&>()(std::declval<const X&>()...))>;

    flat f;
    typename linearized<argument_leaves>::type at;
    decltype(rebuilt<result>(at.value)) value;

    constexpr explicit linearization(const F& function, const X&... x)
        : f{function},
          at(std::apply([this](const auto&... leaf) { return typename linearized<argument_leaves>::type(f, leaf...); },
                        leaves(std::tuple<X...>(x...)))),
          value(rebuilt<result>(at.value)) {}

    template <class Directions>
    constexpr auto push(const Directions& directions, const char* what) {
        return rebuilt<result>(at.push(leaves(directions), what));
    }
    template <class Cotangents>
    constexpr auto pull(const Cotangents& cotangents, const char* what) {
        return rebuilt<std::tuple<X...>>(at.pull(leaves(cotangents), what));
    }
    template <sweep_direction Direction>
    constexpr auto jacobian(std::integral_constant<sweep_direction, Direction> direction) {
        return std::apply(
            [](const auto&... row) {
                const auto rows = std::make_tuple(unwrapped(rebuilt<std::tuple<X...>>(wrapped(row)))...);
                return rebuilt<result>(rows);
            },
            at.jacobian(direction));
    }
};

} // namespace detail

/// Derivatives of functions of structures of numbers.
struct structured {
    /// The value of f at x..., and its gradient in the form of the arguments.
    template <class F, class... X>
    static constexpr auto value_and_gradient(const F& f, const X&... x) {
        const value_and_gradient_of<detail::function_of_leaves<false, F, X...>> flat{{f}};
        const auto both = std::apply(flat, detail::leaves(std::tuple<X...>(x...)));
        auto gradient = detail::unwrapped(detail::rebuilt<std::tuple<X...>>(detail::wrapped(both.gradient)));
        return value_with_gradient<std::remove_cvref_t<decltype(both.value)>, decltype(gradient)>{both.value, gradient};
    }
};

} // namespace tapegraph
