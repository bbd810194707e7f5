#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/operation.hpp>

#include <cstddef>
#include <utility>

namespace tapegraph {

/// A plain scalar and its derivatives by N variables. Closed under arithmetic and constexpr, so loops, branches and
/// static_assert work; everything is inlined. Nest it for higher derivatives.
template <class T, int N>
struct dual {
    T value{};
    T gradient[N]{}; // not std::array: g++ 12 loses its way in nested ones in constant evaluation

    constexpr dual() = default;
    // NOLINTNEXTLINE: constants join a computation as they are
    constexpr dual(T number) : value(number) {}
    template <arithmetic Number>
        requires(!std::is_same_v<Number, T>)
    // NOLINTNEXTLINE
    constexpr dual(Number number) : value(static_cast<T>(number)) {}
    /// Variable number `index`.
    static constexpr dual variable(T number, int index) {
        dual d(number);
        d.gradient[static_cast<std::size_t>(index)] = T(1);
        return d;
    }

    constexpr dual& operator+=(const dual& y) { return *this = *this + y; }
    constexpr dual& operator-=(const dual& y) { return *this = *this - y; }
    constexpr dual& operator*=(const dual& y) { return *this = *this * y; }
    constexpr dual& operator/=(const dual& y) { return *this = *this / y; }

    // Branches look at values.
    friend constexpr bool operator<(const dual& x, const dual& y) { return x.value < y.value; }
    friend constexpr bool operator>(const dual& x, const dual& y) { return x.value > y.value; }
    friend constexpr bool operator<=(const dual& x, const dual& y) { return x.value <= y.value; }
    friend constexpr bool operator>=(const dual& x, const dual& y) { return x.value >= y.value; }
    friend constexpr bool operator==(const dual& x, const dual& y) { return x.value == y.value; }
    friend constexpr bool operator!=(const dual& x, const dual& y) { return x.value != y.value; }
};

template <class T, int N>
inline constexpr bool is_differential_scalar<dual<T, N>> = true;

namespace detail {

template <class... Args>
struct dual_among;
template <class T, int N, class... Rest>
struct dual_among<dual<T, N>, Rest...> {
    using type = dual<T, N>;
};
template <class First, class... Rest>
    requires(!is_differential_scalar<First>)
struct dual_among<First, Rest...> : dual_among<Rest...> {};

template <class Op, int I, class T, int N, class... Values>
constexpr void chain(dual<T, N>& y, const dual<T, N>& x, const Values&... values) {
    if constexpr (differentiable<Op, I, T, Values..., T>) {
        // Each factor once: the partial derivative, then one multiply-add per variable.
        const T partial = vjp_for<Op, I>(T(1), values..., y.value);
        for (std::size_t k = 0; k < N; ++k) y.gradient[k] = y.gradient[k] + partial * x.gradient[k];
    }
}

template <class Op, class Dual, std::size_t... I, class... Duals>
constexpr Dual apply_lifted(std::index_sequence<I...>, const Duals&... x) {
    Dual y(apply<Op>(x.value...));
    const auto each = [&]<std::size_t K>(std::integral_constant<std::size_t, K>, const Dual& operand) {
        chain<Op, static_cast<int>(K)>(y, operand, x.value...);
    };
    (each(std::integral_constant<std::size_t, I>{}, x), ...);
    return y;
}

template <class Op, class Dual, class... Args>
constexpr Dual apply_dual(const Args&... args) {
    return apply_lifted<Op, Dual>(std::index_sequence_for<Args...>{}, Dual(args)...);
}

} // namespace detail

/// Applies an elementwise operation to scalars of which some carry derivatives: value and chain rule through the
/// operation's own vjp.
template <class Op, scalar... Args>
    requires(is_differential_scalar<Args> || ...)
constexpr auto apply_scalar(const Args&... args) {
    return detail::apply_dual<Op, typename detail::dual_among<Args...>::type>(args...);
}

} // namespace tapegraph
