#pragma once

#include <tapegraph/scalar/program/number_program.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace tapegraph {
namespace scalars {

/// The type of the numbers of arguments: of the first sequence or structure, or of the plain numbers, double for integers.
template <class... X>
struct recorded_number {
    using common = std::common_type_t<X...>;
    using type = std::conditional_t<std::is_integral_v<common>, double, common>;
};
template <class... X>
    requires(number_argument<X> || ...)
struct recorded_number<X...> {
    template <class First, class... Rest>
    struct first_argument : first_argument<Rest...> {};
    template <number_argument First, class... Rest>
    struct first_argument<First, Rest...> {
        using type = typename number_type_of<First>::type;
    };
    using type = typename first_argument<X...>::type;
};

template <class T, class X>
auto symbols_for(symbol_graph<T>& graph, const X& x) {
    return mapped_structure(
        [&](const auto& value) { return symbol<T>(static_cast<T>(value), graph.add_input(), graph.number()); }, x);
}

/// All numbers of arguments, in order.
template <class T, class... X>
std::vector<T> flat_numbers(const X&... x) {
    std::vector<T> all;
    (for_each_number([&](const auto& number) { all.push_back(static_cast<T>(number)); }, x), ...);
    return all;
}

} // namespace scalars

/// The program of f, which runs once, at x: numbers, and vectors, arrays, spans and structures of them, whose numbers become
/// symbols. f is a template of its arguments' types (`const auto& x`) and returns a number, a sequence or structure of
/// numbers, or a tuple of such. Numbers that are no arguments are constants of the program, as is whatever f reads elsewhere. Throws what f
/// throws, and argument_error for symbols of other recordings.
template <class F, class... X>
auto record(const F& f, const X&... x) {
    using given = typename scalars::recorded_number<X...>::type;
    static_assert(std::is_floating_point_v<given>, "tg::record takes functions of double or float");
    using T = std::conditional_t<std::is_floating_point_v<given>, given, double>; // one error is enough
    auto graph = std::make_shared<scalars::symbol_graph<T>>(true);
    std::vector<std::uint32_t> results;
    {
        const scalars::active_graph_scope<T> scope(*graph);
        std::tuple<decltype(scalars::symbols_for<T>(*graph, x))...> symbols{
            scalars::symbols_for<T>(*graph, x)...}; // in order
        const auto y = std::apply(f, symbols);
        scalars::for_each_number(
            [&](const auto& number) {
                const auto s = scalars::operand_of_symbol<T>(number);
                if (s.at != 0 && s.graph != graph->number()) scalars::refuse_symbol();
                results.push_back(s.at != 0 ? s.at : graph->constant(s.value));
            },
            y);
    }
    return number_program<T>(std::move(graph), std::move(results));
}

} // namespace tapegraph
