#pragma once

#include <tapegraph/core/aggregates.hpp>

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

/// Elements of a pipeline, which may have any type. The fields of a std::tuple, a std::pair or a
/// plain structure are handled one by one, so that each becomes a column of a batch.

namespace tapegraph::data::detail {

template <class E>
inline constexpr bool is_tuple = false;
template <class... Fields>
inline constexpr bool is_tuple<std::tuple<Fields...>> = true;
template <class A, class B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;

/// Whether an aggregate's fields are columns; specialise it for an aggregate that is one value,
/// such as std::array.
template <class E>
inline constexpr bool is_record = std::is_aggregate_v<E>&& std::is_class_v<E> && !std::is_empty_v<E>;
template <class T, std::size_t N>
inline constexpr bool is_record<std::array<T, N>> = false;

template <class E>
concept has_fields = is_tuple<E> || is_record<E>;

/// References to the fields, in order.
template <class E>
constexpr auto fields_of(E& e) {
    using plain = std::remove_const_t<E>;
    if constexpr (is_tuple<plain>) {
        return std::apply([](auto&... f) { return std::tuple<decltype(f)...>(f...); }, e);
    } else {
        static_assert(tapegraph::detail::member_count<plain>() > 0,
                      "data pipeline: a record is an aggregate of one to sixteen fields");
        return tapegraph::detail::with_members(e, [](auto&... f) { return std::tie(f...); });
    }
}

/// The types of the fields as a tuple.
template <class E>
struct field_types {
    template <class... R>
    static std::tuple<std::remove_cvref_t<R>...> plain(std::tuple<R...>);
    using type = decltype(plain(fields_of(std::declval<E&>())));
};

/// Calls `f` with an element, or with the fields of a tuple one by one, followed by `more...`;
/// whichever matches first.
template <class F, class Tuple, class... More>
struct takes_fields : std::false_type {};
template <class F, class... Fields, class... More>
struct takes_fields<F, std::tuple<Fields...>, More...> : std::is_invocable<F, Fields..., More...> {};
template <class F, class A, class B, class... More>
struct takes_fields<F, std::pair<A, B>, More...> : std::is_invocable<F, A, B, More...> {};

// Tried in sequence, because a generic function that is checked with the wrong types may not
// compile.
template <class F, class E, class... More>
struct takes : std::disjunction<takes_fields<F, E, More...>, std::is_invocable<F, E, More...>> {};

template <class F, class E, class... More>
constexpr decltype(auto) call_with(const F& f, E&& e, More&... more) {
    using plain = std::remove_cvref_t<E>;
    if constexpr (takes_fields<const F&, plain, More&...>::value)
        return std::apply(
            [&](auto&&... fields) -> decltype(auto) { return f(std::forward<decltype(fields)>(fields)..., more...); },
            std::forward<E>(e));
    else
        return f(std::forward<E>(e), more...);
}

} // namespace tapegraph::data::detail
