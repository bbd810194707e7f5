#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/core/dtype.hpp>
#include <tapegraph/graph/lower.hpp>
#include <tapegraph/model/spec.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

/// Numbers and std::arrays as arguments and results of compiled functions. Their extents are part of their types, so a
/// call needs neither tensors nor anything from the heap.

namespace tapegraph::detail {

/// A value of fixed extents: T, std::array<T, 3>, std::array<std::array<T, 3>, 2>, ... Its elements lie in row-major
/// order, one after the other.
template <class T, std::int64_t... Extents>
struct plain_value {
    using type = T;
};
template <class T, std::int64_t First, std::int64_t... Rest>
struct plain_value<T, First, Rest...> {
    using type = std::array<typename plain_value<T, Rest...>::type, static_cast<std::size_t>(First)>;
};

template <class Spec>
inline constexpr bool has_fixed_extents = [] {
    for (int axis = 0; axis < Spec::rank; ++axis)
        if (Spec::extents[axis] < 0) return false;
    return true;
}();

/// The plain value of a spec's element type and extents.
template <class Spec, class Axes = std::make_index_sequence<Spec::rank>>
struct plain_of_spec;
template <class Spec, std::size_t... Axis>
struct plain_of_spec<Spec, std::index_sequence<Axis...>>
    : plain_value<typename Spec::element_type, Spec::extents[Axis]...> {};

/// What a caller may pass for a spec beside a tensor: for a scalar any number, otherwise the arrays of its extents.
template <class X, class Spec>
inline constexpr bool is_plain_argument = [] {
    if constexpr (!has_fixed_extents<Spec>)
        return false;
    else if constexpr (Spec::rank == 0)
        return std::is_arithmetic_v<X> || std::is_same_v<X, typename Spec::element_type>;
    else
        return std::is_same_v<X, typename plain_of_spec<Spec>::type>;
}();

template <class Arguments, class Specs>
inline constexpr bool are_plain_arguments = false;
template <class... X, class... Specs>
    requires(sizeof...(X) == sizeof...(Specs) && sizeof...(X) > 0)
inline constexpr bool are_plain_arguments<std::tuple<X...>, std::tuple<Specs...>> =
    (is_plain_argument<X, Specs> && ...);

template <class X>
inline constexpr bool is_array = false;
template <class T, std::size_t N>
inline constexpr bool is_array<std::array<T, N>> = true;

/// One std::array is enough to tell that a call means numbers; a call with an array of other extents than its spec's has
/// an overload of its own, which says so.
template <class Arguments>
inline constexpr bool has_array = false;
template <class... X>
inline constexpr bool has_array<std::tuple<X...>> = (is_array<X> || ...);

/// The plain value of output I of a stage.
template <class Stage, int I>
struct plain_output {
    static constexpr const auto& node = Stage::value.nodes[Stage::value.outputs[I].node];
    static constexpr bool fixed = [] {
        for (int axis = 0; axis < node.rank; ++axis)
            if (is_symbolic(Stage::value.pool[node.dims + axis])) return false;
        return true;
    }();
    static constexpr bool empty = [] {
        bool found = false;
        for (int axis = 0; axis < node.rank; ++axis) found = found || Stage::value.pool[node.dims + axis] == 0;
        return found;
    }();
    template <int... Axis>
    static auto of(std::integer_sequence<int, Axis...>)
        -> plain_value<element_t<node.type>, Stage::value.pool[node.dims + Axis]...>;
    using type = typename decltype(of(std::make_integer_sequence<int, node.rank>{}))::type;

    static type from(const buffer_view& elements) {
        type value{};
        if constexpr (!empty) std::memcpy(static_cast<void*>(&value), elements.data, sizeof value);
        return value;
    }
};

/// The arguments of a program in memory that does not move, so that it is told of them once.
template <class... Specs>
struct plain_inputs {
    std::tuple<typename plain_of_spec<Specs>::type...> values{};

    template <class... X>
    void assign(const X&... x) {
        assign(std::index_sequence_for<X...>{}, x...);
    }
    /// f(position, view) for each of them.
    template <class F>
    void for_each(const F& f) {
        visit(f, std::index_sequence_for<Specs...>{});
    }

private:
    template <std::size_t... I, class... X>
    void assign(std::index_sequence<I...>, const X&... x) {
        ((std::get<I>(values) = static_cast<std::tuple_element_t<I, decltype(values)>>(x)), ...);
    }
    template <class F, std::size_t... I>
    void visit(const F& f, std::index_sequence<I...>) {
        (f(static_cast<int>(I), view_of<Specs>(std::get<I>(values))), ...);
    }
    template <class Spec, class Value>
    static buffer_view view_of(Value& value) {
        buffer_view v;
        v.data = &value;
        v.type = dtype_of<typename Spec::element_type>;
        v.rank = Spec::rank;
        for (int axis = 0; axis < Spec::rank; ++axis) v.extents[axis] = Spec::extents[axis];
        return v;
    }
};

} // namespace tapegraph::detail
