#pragma once

#include <tapegraph/expr/dual.hpp>
#include <tapegraph/expr/series.hpp>

#include <array>
#include <tuple>
#include <utility>

/// value_and_gradient and gradient of a function, for scalars, eager tensors and graph nodes alike.

namespace tapegraph {

/// The result of value_and_gradient. `gradient` is one derivative for a function of one argument,
/// otherwise an array (of scalars) or a tuple (of tensors) in the order of the arguments.
template <class Value, class Gradient>
struct value_with_gradient {
    Value value;
    Gradient gradient;

    /// Both as a tuple, for structured bindings.
    constexpr auto parts() const { return std::tuple<Value, Gradient>{value, gradient}; }
};

namespace detail {

template <class Tuple>
TG_INLINE constexpr auto unwrapped(Tuple&& values) {
    if constexpr (std::tuple_size_v<std::remove_cvref_t<Tuple>> == 1)
        return std::get<0>(std::forward<Tuple>(values));
    else
        return std::forward<Tuple>(values);
}

// Everything is inlined, because a remaining call would pass all derivatives through memory.
template <class F, class... Args>
__attribute__((flatten)) constexpr auto differentiate_scalars(const F& f, const Args&... args) {
    using T = std::common_type_t<std::conditional_t<arithmetic<Args>, std::common_type_t<Args, float>, Args>...>;
    constexpr int count = sizeof...(Args);
    using variable = dual<T, count>;
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        unsigned origins = count;
        const variable y(f(variable::variable(static_cast<T>(args), static_cast<int>(I), &origins)...));
        const std::array<T, sizeof...(I)> gradient{y.derivative(static_cast<int>(I))...};
        return value_with_gradient<T, decltype(unwrapped(gradient))>{y.value, unwrapped(gradient)};
    }
    (std::index_sequence_for<Args...>{});
}

} // namespace detail

template <class F>
struct gradient_of;

namespace detail {

/// How many gradients of a function of one argument are taken of each other, and the function inside.
template <class F>
struct nested_gradients {
    static constexpr int count = 0;
    static constexpr const F& function(const F& f) { return f; }
};
template <class F>
struct nested_gradients<gradient_of<F>> {
    static constexpr int count = 1 + nested_gradients<F>::count;
    static constexpr const auto& function(const gradient_of<F>& g) { return nested_gradients<F>::function(g.f); }
};

// Duals have the bits of first and second derivatives; nested deeper their parts would double with each order.
inline constexpr int most_nested_duals = 2;

/// The derivatives of f of orders up to N.
template <int N, class F, class Number>
constexpr auto differentiate_repeatedly(const F& f, const Number& x) {
    using T = std::conditional_t<arithmetic<Number>, std::common_type_t<Number, float>, Number>;
    return series<T, N>(f(series<T, N>::variable(static_cast<T>(x))));
}

} // namespace detail

/// value_and_gradient(f) as a function object. It is empty when f is, so it can be compiled like f.
template <class F>
struct value_and_gradient_of {
    [[no_unique_address]] F f;

    /// f's value and its derivative by each argument; of several arguments a tuple. f returns a scalar.
    constexpr auto operator()(const auto&... args) const {
        using nested = detail::nested_gradients<F>;
        if constexpr (!(scalar<std::remove_cvref_t<decltype(args)>> && ...)) {
            return mode_of_t<std::remove_cvref_t<decltype(args)>...>::value_and_gradient(f, args...);
        } else if constexpr (sizeof...(args) == 1 && nested::count >= detail::most_nested_duals) {
            const auto y = detail::differentiate_repeatedly<nested::count + 1>(nested::function(f), args...);
            using T = std::remove_cvref_t<decltype(y.value())>;
            return value_with_gradient<T, T>{y.of[nested::count], y.of[nested::count + 1]};
        } else {
            return detail::differentiate_scalars(f, args...);
        }
    }
};

/// gradient(f) as a function object.
template <class F>
struct gradient_of {
    [[no_unique_address]] F f;

    /// f's derivative by each argument; of several arguments a tuple. f returns a scalar.
    constexpr auto operator()(const auto&... args) const { return value_and_gradient_of<F>{f}(args...).gradient; }
};

/// value_and_gradient(f)(x...): the value of f and its derivatives by every argument. A tensor-valued f is differentiated
/// as the sum of its elements.
template <class F>
constexpr auto value_and_gradient(F f) {
    return value_and_gradient_of<F>{f};
}

/// gradient(f)(x...): only the derivatives of f. Apply it repeatedly for higher derivatives.
template <class F>
constexpr auto gradient(F f) {
    return gradient_of<F>{f};
}

} // namespace tapegraph
