#pragma once

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

/// Arguments and results of functions of numbers: numbers, vectors, arrays and spans of these, and results of several
/// parts.

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

/// Lengths are signed in some libraries.
template <sequence R>
constexpr std::size_t length(const R& r) {
    return static_cast<std::size_t>(r.size());
}

/// A sequence like `like` of other elements, made of make(element) for each.
template <class R, class Make>
auto mapped_sequence(const R& like, const Make& make) {
    using V = std::remove_cvref_t<decltype(make(like[0]))>;
    typename sequence_of<R>::template with<V> result{};
    if constexpr (requires { result.resize_like(like); })
        result.resize_like(like);
    else if constexpr (requires { result.resize(like.size()); })
        result.resize(like.size());
    for (std::size_t i = 0; i < length(like); ++i) result[i] = make(like[i]);
    return result;
}

/// A structure of results with `make` of each number: a number, a sequence of structures, a tuple, or a result with parts
/// of a transform (value_with_gradient), so that transforms nest.
template <class Make, class R>
auto mapped_structure(const Make& make, const R& r);
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
    else
        return make(r);
}

/// Calls f(number) for every number in a structure, in order.
template <class F, class R>
void for_each_number(const F& f, const R& r) {
    if constexpr (sequence<R>)
        for (std::size_t i = 0; i < length(r); ++i) for_each_number(f, r[i]);
    else if constexpr (detail::is_tuple<R>)
        std::apply([&](const auto&... each) { (for_each_number(f, each), ...); }, r);
    else if constexpr (requires { r.parts(); })
        for_each_number(f, r.parts());
    else
        f(r);
}
template <class R>
std::size_t count_numbers(const R& r) {
    std::size_t count = 0;
    for_each_number([&](const auto&) { ++count; }, r);
    return count;
}

/// The plain type of an argument's numbers.
template <class X>
struct number_in {
    using type = X;
};
template <sequence X>
struct number_in<X> {
    using type = typename number_in<typename sequence_of<X>::element>::type;
};

inline void require_as_many(std::size_t given, std::size_t expected, const char* what) {
    if (given != expected)
        throw shape_error(std::string(what) + " of " + std::to_string(given) + " numbers, expected " +
                          std::to_string(expected));
}

} // namespace tapegraph::scalars
