#pragma once

#include <tapegraph/core/config.hpp>

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

/// The members of aggregates, which are structures without constructors, in order: of up to 16 members, without base classes.

namespace tapegraph::detail {

template <std::size_t>
struct any_member {
    template <class M>
    constexpr operator M() const; // NOLINT: implicit, as the initializer of any member
};
template <class S, std::size_t... I>
concept braced = requires {
    S{any_member<I>{}...};
};
template <class S, std::size_t... I>
constexpr bool takes_initializers(std::index_sequence<I...>) {
    return braced<S, I...>;
}
inline constexpr std::size_t most_members = 16;

/// The number of members, which is that of the initializers that it takes; 0 of other types, and of larger ones.
template <class S, std::size_t Count = most_members>
constexpr std::size_t member_count() {
    if constexpr (!std::is_aggregate_v<S> || Count == 0)
        return 0;
    else if constexpr (takes_initializers<S>(std::make_index_sequence<Count>{}))
        return Count == most_members && takes_initializers<S>(std::make_index_sequence<Count + 1>{}) ? 0 : Count;
    else
        return member_count<S, Count - 1>();
}

/// f(members...)
template <class S, class F>
constexpr decltype(auto) with_members(S& s, const F& f) {
    constexpr std::size_t count = member_count<std::remove_const_t<S>>();
    static_assert(count > 0, "a structure of 1 to 16 members, without constructors and base classes");
#define TG_MEMBERS(number, ...)                                                                                        \
    if constexpr (count == number) {                                                                                   \
        auto& [__VA_ARGS__] = s;                                                                                       \
        return f(__VA_ARGS__);                                                                                         \
    } else
    TG_MEMBERS(1, a)
    TG_MEMBERS(2, a, b)
    TG_MEMBERS(3, a, b, c)
    TG_MEMBERS(4, a, b, c, d)
    TG_MEMBERS(5, a, b, c, d, e)
    TG_MEMBERS(6, a, b, c, d, e, g)
    TG_MEMBERS(7, a, b, c, d, e, g, h)
    TG_MEMBERS(8, a, b, c, d, e, g, h, i)
    TG_MEMBERS(9, a, b, c, d, e, g, h, i, j)
    TG_MEMBERS(10, a, b, c, d, e, g, h, i, j, k)
    TG_MEMBERS(11, a, b, c, d, e, g, h, i, j, k, l)
    TG_MEMBERS(12, a, b, c, d, e, g, h, i, j, k, l, m)
    TG_MEMBERS(13, a, b, c, d, e, g, h, i, j, k, l, m, n)
    TG_MEMBERS(14, a, b, c, d, e, g, h, i, j, k, l, m, n, o)
    TG_MEMBERS(15, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p)
    TG_MEMBERS(16, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q)
    return;
#undef TG_MEMBERS
}

struct list_of_types {
    template <class... M>
    std::tuple<M...> operator()(M&...) const;
};
/// The members' types, as a tuple.
template <class S>
using member_types = decltype(with_members(std::declval<S&>(), list_of_types{}));

} // namespace tapegraph::detail
