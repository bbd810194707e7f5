#pragma once

#include <tapegraph/data/pipeline/stage.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

/// zip and concatenate: combine several sets.

namespace tapegraph::data::detail {

template <class... Ups>
struct zip_stage {
    using element = std::tuple<typename Ups::element...>;
    using ticket = std::tuple<typename Ups::ticket...>;
    static constexpr int stages = (Ups::stages + ...);
    static constexpr bool batched = (Ups::batched && ...);
    static constexpr std::size_t count = sizeof...(Ups);

    /// The number of the first stage of each set, in reports.
    static constexpr std::array<int, count> bases = [] {
        std::array<int, count> all{};
        int base = 0, i = 0;
        ((all[static_cast<std::size_t>(i++)] = base, base += Ups::stages), ...);
        return all;
    }();

    template <class Up>
    struct part {
        struct from {
            const Up* up;
            walk_context context;
        };
        part(const from& f) : cursor(*f.up, f.context) {} // NOLINT: implicit, to construct in place in a tuple
        typename Up::cursor cursor;
    };
    struct cursor {
        cursor(const zip_stage& s, const walk_context& c) : cursor(s, c, std::index_sequence_for<Ups...>{}) {}
        template <std::size_t... I>
        cursor(const zip_stage& s, const walk_context& c, std::index_sequence<I...>)
            : parts(typename part<Ups>::from{&std::get<I>(s.ups), c.shifted(bases[I])}...) {}
        bool draw(ticket& t) {
            return [&]<std::size_t... I>(std::index_sequence<I...>) {
                return (std::get<I>(parts).cursor.draw(std::get<I>(t)) && ...);
            }
            (std::index_sequence_for<Ups...>{});
        }
        std::tuple<part<Ups>...> parts;
    };
    element make(ticket& t, const walk_context& c) const {
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return element{std::get<I>(ups).make(std::get<I>(t), c.shifted(bases[I]))...}; // braces: in order
        }
        (std::index_sequence_for<Ups...>{});
    }
    std::string origin(const ticket& t) const {
        std::string text;
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            ((text += (I == 0 ? "" : "; ") + std::get<I>(ups).origin(std::get<I>(t))), ...);
        }
        (std::index_sequence_for<Ups...>{});
        return text;
    }
    /// The number of elements of the shortest set.
    std::int64_t size() const {
        return std::apply(
            [](const auto&... up) {
                std::int64_t least = endless;
                bool known = true;
                for (const std::int64_t size : {up.size()...}) {
                    if (size == unknown_size) known = false;
                    if (size >= 0 && (least == endless || size < least)) least = size;
                }
                return known ? least : unknown_size;
            },
            ups);
    }
    work_plan plan() const {
        return std::apply(
            [](const auto&... up) {
                work_plan all;
                ((all = together(all, up.plan())), ...);
                return all;
            },
            ups);
    }

    std::tuple<Ups...> ups;
};

template <class First, class Second>
struct concatenate_stage {
    using element = typename First::element;
    static_assert(std::is_same_v<element, typename Second::element>,
                  "concatenate: the sets have elements of different types");
    struct ticket {
        bool in_second = false;
        typename First::ticket first{};
        typename Second::ticket second{};
    };
    static constexpr int stages = First::stages + Second::stages;
    static constexpr bool batched = First::batched && Second::batched;

    struct cursor {
        cursor(const concatenate_stage& s, const walk_context& c)
            : first(s.first, c), second(s.second, c.shifted(First::stages)) {}
        bool draw(ticket& t) {
            in_second = in_second || !first.draw(t.first);
            t.in_second = in_second;
            return !in_second || second.draw(t.second);
        }
        typename First::cursor first;
        typename Second::cursor second;
        bool in_second = false;
    };
    element make(ticket& t, const walk_context& c) const {
        return t.in_second ? second.make(t.second, c.shifted(First::stages)) : first.make(t.first, c);
    }
    std::string origin(const ticket& t) const { return t.in_second ? second.origin(t.second) : first.origin(t.first); }
    std::int64_t size() const {
        const std::int64_t a = first.size(), b = second.size();
        if (a == endless || b == endless) return endless;
        return a < 0 || b < 0 ? unknown_size : a + b;
    }
    work_plan plan() const { return together(first.plan(), second.plan()); }

    First first;
    Second second;
};

} // namespace tapegraph::data::detail
