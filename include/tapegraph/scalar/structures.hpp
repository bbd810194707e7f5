#pragma once

#include <tapegraph/core/aggregates.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/expr/derivatives.hpp>
#include <tapegraph/expr/transforms.hpp>
#include <tapegraph/scalar/jet.hpp>
#include <tapegraph/scalar/number.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// Arguments and results of functions of numbers: numbers, vectors, arrays and spans of these, structures whose number type
/// is a template argument, and results of several parts.

namespace tapegraph::scalars {

/// A number that a derivative can be taken by: plain, or a jet, for derivatives of derivatives.
template <class T>
concept plain_number = std::floating_point<T> || is_jet<T>;

template <class R>
struct sequence_of; // element, and `with<V>`: the same sequence of V
template <class T, class A>
struct sequence_of<std::vector<T, A>> {
    using element = T;
    template <class V>
    using with = std::vector<V>;
};
template <class T, std::size_t N>
struct sequence_of<std::array<T, N>> {
    using element = T;
    template <class V>
    using with = std::array<V, N>;
};
template <class T, std::size_t N>
struct sequence_of<std::span<T, N>> {
    using element = std::remove_const_t<T>;
    template <class V>
    using with = std::vector<V>;
};
template <class R>
concept sequence = requires {
    typename sequence_of<R>::element;
};
template <class R>
concept number_sequence = sequence<R> && plain_number<typename sequence_of<R>::element>;

template <class N>
inline constexpr bool is_number = plain_number<N> || differential_number<N>;

/// The number type of a structure `template <class Number> struct S`, a sequence, or a number: the first one found in its
/// template arguments; void of other types.
template <class X>
struct number_type_of {
    using type = std::conditional_t<is_number<X>, X, void>;
};
template <class... A>
struct first_number {
    using type = void;
};
template <class First, class... Rest>
struct first_number<First, Rest...> : std::conditional_t<std::is_void_v<typename number_type_of<First>::type>,
                                                         first_number<Rest...>, number_type_of<First>> {};
template <sequence X>
struct number_type_of<X> : number_type_of<typename sequence_of<X>::element> {};
template <template <class...> class S, class... A>
    requires(!sequence<S<A...>> && !is_number<S<A...>> && !handle<S<A...>>)
struct number_type_of<S<A...>> : first_number<A...> {};

/// A type with its number type T exchanged for V.
template <class X, class T, class V>
struct rebound {
    using type = X;
};
template <class T, class V>
struct rebound<T, T, V> {
    using type = V;
};
template <class X, class T, class V>
    requires(sequence<X> && !std::is_same_v<X, T>)
struct rebound<X, T, V> {
    using type = typename sequence_of<X>::template with<typename rebound<typename sequence_of<X>::element, T, V>::type>;
};
template <template <class...> class S, class... A, class T, class V>
    requires(!sequence<S<A...>> && !std::is_same_v<S<A...>, T> && !is_number<S<A...>>)
struct rebound<S<A...>, T, V> {
    using type = S<typename rebound<A, T, V>::type...>;
};

/// A structure of numbers: an aggregate whose number type is a template argument. Members whose type does not depend on it
/// are constants.
template <class S>
concept structure =
    !sequence<S> && !is_number<S> && !detail::is_tuple<S> && std::is_aggregate_v<S> && !requires(const S& s) {
    s.parts();
}
&&!std::is_void_v<typename number_type_of<S>::type>;

/// A sequence or structure of numbers that derivatives can be taken by, however deep.
template <class X>
concept number_argument = (sequence<X> || structure<X>)&&plain_number<typename number_type_of<X>::type>;

/// Whether member I of a structure holds numbers: whether its type changes with the structure's number type.
template <structure S, std::size_t I>
constexpr bool holds_numbers() {
    using T = typename number_type_of<S>::type;
    using other = std::conditional_t<std::is_same_v<T, real<double>>, real<float>, real<double>>;
    return !std::is_same_v<
        std::tuple_element_t<I, tapegraph::detail::member_types<S>>,
        std::tuple_element_t<I, tapegraph::detail::member_types<typename rebound<S, T, other>::type>>>;
}

/// Lengths and indices are signed in some libraries.
template <sequence R>
constexpr std::size_t length(const R& r) {
    return static_cast<std::size_t>(r.size());
}
template <class R>
constexpr decltype(auto) element(R& r, std::size_t i) {
    return r[static_cast<decltype(r.size())>(i)];
}

/// A sequence like `like` of other elements, made of make(element) for each.
template <class R, class Make>
auto mapped_sequence(const R& like, const Make& make) {
    using V = std::remove_cvref_t<decltype(make(like[0]))>;
    typename sequence_of<R>::template with<V> result{};
    if constexpr (requires { result.resize_like(like); })
        result.resize_like(like);
    else if constexpr (requires { result.resize(like.size()); })
        result.resize(static_cast<decltype(result.size())>(like.size()));
    for (std::size_t i = 0; i < length(like); ++i) element(result, i) = make(element(like, i));
    return result;
}

/// A structure with `make` of each number: a number, a sequence of structures, an aggregate, a tuple, or a result with parts
/// of a transform (value_with_gradient), so that transforms nest.
template <class Make, class R>
auto mapped_structure(const Make& make, const R& r);
/// What `make` gives for the numbers of R.
template <class Make, structure R>
using made_number =
    std::remove_cvref_t<decltype(std::declval<const Make&>()(std::declval<const typename number_type_of<R>::type&>()))>;
template <class Make, structure R>
auto mapped_aggregate(const Make& make, const R& r) {
    using T = typename number_type_of<R>::type;
    using result = typename rebound<R, T, made_number<Make, R>>::type;
    return tapegraph::detail::with_members(r, [&](const auto&... members) {
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            const auto member = [&]<std::size_t K>(std::integral_constant<std::size_t, K>, const auto& m) {
                if constexpr (holds_numbers<R, K>())
                    return mapped_structure(make, m);
                else
                    return m;
            };
            return result{member(std::integral_constant<std::size_t, I>{}, members)...}; // braces: in order
        }
        (std::index_sequence_for<decltype(members)...>{});
    });
}
template <class Make, class... R>
auto mapped_structure(const Make& make, const std::tuple<R...>& r) {
    return std::apply(
        [&](const R&... each) {
            return std::tuple<decltype(mapped_structure(make, each))...>{mapped_structure(make, each)...};
        },
        r);
}
template <class Make, template <class...> class R, class... P>
    requires requires(const R<P...>& r) { r.parts(); }
auto mapped_structure(const Make& make, const R<P...>& r) {
    return std::apply(
        [&](const P&... each) { return R<decltype(mapped_structure(make, each))...>{mapped_structure(make, each)...}; },
        r.parts());
}
template <class Make, class R>
auto mapped_structure(const Make& make, const R& r) {
    if constexpr (sequence<R>)
        return mapped_sequence(r, [&](const auto& each) { return mapped_structure(make, each); });
    else if constexpr (structure<R>)
        return mapped_aggregate(make, r);
    else
        return make(r);
}

/// Calls f(number) for every number in a structure, in order.
template <class F, class R>
void for_each_number(const F& f, const R& r) {
    if constexpr (sequence<R>)
        for (std::size_t i = 0; i < length(r); ++i) for_each_number(f, element(r, i));
    else if constexpr (detail::is_tuple<R>)
        std::apply([&](const auto&... each) { (for_each_number(f, each), ...); }, r);
    else if constexpr (requires { r.parts(); })
        for_each_number(f, r.parts());
    else if constexpr (structure<R>)
        tapegraph::detail::with_members(r, [&](const auto&... members) {
            [&]<std::size_t... I>(std::index_sequence<I...>) {
                const auto member = [&]<std::size_t K>(std::integral_constant<std::size_t, K>, const auto& m) {
                    if constexpr (holds_numbers<R, K>()) for_each_number(f, m);
                };
                (member(std::integral_constant<std::size_t, I>{}, members), ...);
            }
            (std::index_sequence_for<decltype(members)...>{});
        });
    else
        f(r);
}
template <class R>
std::size_t count_numbers(const R& r) {
    std::size_t count = 0;
    for_each_number([&](const auto&) { ++count; }, r);
    return count;
}

inline void require_as_many(std::size_t given, std::size_t expected, const char* what) {
    if (given != expected)
        throw shape_error(std::string(what) + " of " + std::to_string(given) + " numbers, expected " +
                          std::to_string(expected));
}

} // namespace tapegraph::scalars
