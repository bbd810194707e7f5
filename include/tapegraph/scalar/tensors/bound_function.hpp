#pragma once

#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/scalar/jet.hpp>
#include <tapegraph/scalar/number.hpp>
#include <tapegraph/scalar/tensors/number_tensor.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// The arguments of with_tensors, of which those without numbers are bound.

namespace tapegraph::scalars {

template <class X>
concept tensor_argument = std::is_base_of_v<any_tensor, X> || expression<X>;

/// The number that an argument brings in: of numbers that record a real, of jets a jet; void of tensors.
template <class X>
struct argument_number {
    using type = void;
};
template <class X>
    requires(recording<X>)
struct argument_number<X> {
    using type = real<typename recorded_value<X>::type>;
};
template <class X>
    requires(is_jet<X> || std::floating_point<X>)
struct argument_number<X> {
    using type = X;
};
template <sequence X>
struct argument_number<X> : argument_number<typename sequence_of<X>::element> {};
template <class X>
using argument_number_t = typename argument_number<X>::type;

template <class X>
concept tensor_call_argument = tensor_argument<X> || !std::is_void_v<argument_number_t<X>>;

/// The number type of a call: that of the first argument whose numbers carry derivatives, or else the first plain one.
template <class Plain, class... N>
struct call_number {
    using type = Plain;
};
template <class Plain, class First, class... Rest>
struct call_number<Plain, First, Rest...>
    : std::conditional_t<differential_number<First>, std::type_identity<First>,
                         call_number<std::conditional_t<std::is_void_v<Plain>, First, Plain>, Rest...>> {};

/// An argument as numbers with a shape: of single numbers [], of sequences [n].
template <class N, class X>
number_tensor<N> shaped(const X& x) {
    if constexpr (sequence<X>) {
        std::vector<N> numbers;
        numbers.reserve(length(x));
        for (std::size_t i = 0; i < length(x); ++i) numbers.push_back(N(element(x, i)));
        if constexpr (requires { x.shape(); })
            return {x.shape(), std::move(numbers)};
        else
            return {shape{static_cast<std::int64_t>(numbers.size())}, std::move(numbers)};
    } else {
        return {shape{}, std::vector<N>{N(x)}};
    }
}

/// A function of the arguments that have numbers; the tensors are kept. It returns a tuple of tensors of T.
template <class T, class F, class... X>
struct bound_function {
    F f;
    std::tuple<X...> kept; ///< tensors, and a placeholder for each of the other arguments

    template <class... H>
    auto operator()(const H&... numbers) const {
        const std::tuple<const H&...> all{numbers...};
        const auto y = [&]<std::size_t... I>(std::index_sequence<I...>) { return f(argument<I>(all)...); }
        (std::index_sequence_for<X...>{});
        if constexpr (detail::is_tuple<std::remove_cvref_t<decltype(y)>>)
            return std::apply([](const auto&... each) { return std::tuple{tensor<T>(eval(each))...}; }, y);
        else
            return std::tuple{tensor<T>(eval(y))};
    }

private:
    template <std::size_t I, class All>
    const auto& argument(const All& all) const {
        if constexpr (std::is_base_of_v<any_tensor, std::tuple_element_t<I, std::tuple<X...>>>)
            return std::get<I>(kept);
        else
            return std::get<place<I>()>(all);
    }
    template <std::size_t I>
    static constexpr std::size_t place() { // of argument I among those with numbers
        constexpr bool is_tensor[]{std::is_base_of_v<any_tensor, X>...};
        std::size_t before = 0;
        for (std::size_t k = 0; k < I; ++k) before += is_tensor[k] ? 0u : 1u;
        return before;
    }
};

/// Whether f returns tensors of T, or tuples of these, of tensors of T in the place of numbers.
template <class Y, class T>
inline constexpr bool is_tensor_of = requires(const Y& y) {
    requires tensor_argument<Y>;
    requires std::is_same_v<typename decltype(eval(y))::element_type, T>;
};
template <class... Y, class T>
inline constexpr bool is_tensor_of<std::tuple<Y...>, T> = (is_tensor_of<Y, T> && ...);
template <class T, class X>
auto tensor_in_call(const X& x) {
    if constexpr (tensor_argument<X>)
        return eval(x);
    else
        return tensor<T>{};
}
template <class F, class T, class... X>
inline constexpr bool returns_tensors = is_tensor_of<
    std::remove_cvref_t<decltype(std::declval<const F&>()(tensor_in_call<T>(std::declval<const X&>())...))>, T>;

} // namespace tapegraph::scalars
