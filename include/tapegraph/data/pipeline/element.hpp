#pragma once

#include <tapegraph/core/config.hpp>

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

struct any_field {
    template <class T>
    operator T() const; // NOLINT: implicit, because it stands for a field of any type
};

template <class E, class... Given>
consteval std::size_t count_fields() {
    if constexpr (sizeof...(Given) > 9)
        return 0;
    else if constexpr (requires { E{Given{}..., any_field{}}; })
        return count_fields<E, Given..., any_field>();
    else
        return sizeof...(Given);
}

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
        constexpr std::size_t n = count_fields<plain>();
        static_assert(n > 0 && n < 10, "data pipeline: a record is an aggregate of one to nine fields");
        if constexpr (n == 1) {
            auto& [a] = e;
            return std::tie(a);
        } else if constexpr (n == 2) {
            auto& [a, b] = e;
            return std::tie(a, b);
        } else if constexpr (n == 3) {
            auto& [a, b, c] = e;
            return std::tie(a, b, c);
        } else if constexpr (n == 4) {
            auto& [a, b, c, d] = e;
            return std::tie(a, b, c, d);
        } else if constexpr (n == 5) {
            auto& [a, b, c, d, f] = e;
            return std::tie(a, b, c, d, f);
        } else if constexpr (n == 6) {
            auto& [a, b, c, d, f, g] = e;
            return std::tie(a, b, c, d, f, g);
        } else if constexpr (n == 7) {
            auto& [a, b, c, d, f, g, h] = e;
            return std::tie(a, b, c, d, f, g, h);
        } else if constexpr (n == 8) {
            auto& [a, b, c, d, f, g, h, i] = e;
            return std::tie(a, b, c, d, f, g, h, i);
        } else {
            auto& [a, b, c, d, f, g, h, i, j] = e;
            return std::tie(a, b, c, d, f, g, h, i, j);
        }
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
