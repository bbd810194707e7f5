#pragma once

#include <tapegraph/ops/elementwise/arithmetic.hpp>
#include <tapegraph/scalar/standard.hpp>
#include <tapegraph/scalar/statement.hpp>

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

namespace tapegraph {

/// A value and its derivatives in N directions, for forward mode in code with loops and branches: the dual number of
/// automatic differentiation, without a tape. tg::dual is its relative for functions that the compiler sees whole.
/// Jets of jets have higher derivatives. `jet<T, N> x;` is not initialised, as a double is not; `jet<T, N> x{}` is 0.
template <class T, int N>
struct jet {
    using value_type = T;
    T value;
    T derivative[N];

    constexpr jet() = default;
    // NOLINTBEGIN: constants are numbers
    TG_INLINE constexpr jet(const T& constant) : value(constant), derivative{} {}
    template <arithmetic Number>
        requires(!std::is_same_v<Number, T>)
    TG_INLINE constexpr jet(Number constant) : value(static_cast<T>(constant)), derivative{} {}
    // NOLINTEND
    /// A number that moves in direction `direction` at speed 1.
    TG_INLINE constexpr jet(const T& number, int direction) : value(number), derivative{} {
        derivative[direction] = T(1);
    }

    template <arithmetic Number>
    TG_INLINE constexpr explicit operator Number() const {
        return static_cast<Number>(value);
    }
    TG_INLINE constexpr jet& operator+=(const jet& x) { return *this = *this + x; }
    TG_INLINE constexpr jet& operator-=(const jet& x) { return *this = *this - x; }
    TG_INLINE constexpr jet& operator*=(const jet& x) { return *this = *this * x; }
    TG_INLINE constexpr jet& operator/=(const jet& x) { return *this = *this / x; }
    template <arithmetic Number>
    TG_INLINE constexpr jet& operator*=(Number x) {
        return *this = *this * x;
    }
    template <arithmetic Number>
    TG_INLINE constexpr jet& operator/=(Number x) {
        return *this = *this / x;
    }
    TG_INLINE constexpr jet& operator++() { return *this += jet(1); }
    TG_INLINE constexpr jet& operator--() { return *this -= jet(1); }
    TG_INLINE constexpr jet operator++(int) { return std::exchange(*this, *this + 1); }
    TG_INLINE constexpr jet operator--(int) { return std::exchange(*this, *this - 1); }

    /// Whether the value and all derivatives are 0.
    TG_INLINE constexpr bool is_zero() const {
        const auto zero = [](const T& x) {
            if constexpr (scalars::is_jet<T>)
                return x.is_zero();
            else
                return x == T(0);
        };
        bool zeros = zero(value);
        for (int k = 0; k < N; ++k) zeros &= zero(derivative[k]);
        return zeros;
    }
};

namespace scalars {

template <class J, class X>
TG_INLINE constexpr decltype(auto) value_in(const X& x) {
    if constexpr (std::is_same_v<X, J>)
        return (x.value);
    else if constexpr (std::is_same_v<X, bool>)
        return x;
    else
        return static_cast<decltype(J::value)>(x);
}

/// slope * derivative of an operand; an infinite slope adds nothing where the derivative is 0.
template <class T>
[[gnu::cold, gnu::noinline]] constexpr T guarded_product(T slope, T derivative) {
    return derivative == T(0) ? T(0) : slope * derivative;
}

/// y = slope * x + (First ? 0 : y) for the 16 bytes at block K: g++ -O2 does not make vectors of loops this short.
template <bool First, std::size_t K, class T>
TG_INLINE void add_scaled_block(T* y, T slope, const T* x) {
    typedef T lanes __attribute__((vector_size(16)));
    constexpr std::size_t at = K * (sizeof(lanes) / sizeof(T));
    lanes a, b;
    std::memcpy(&a, x + at, sizeof a);
    if constexpr (First) {
        b = slope * a;
    } else {
        std::memcpy(&b, y + at, sizeof b);
        b = b + slope * a;
    }
    std::memcpy(y + at, &b, sizeof b);
}
template <bool First, class T, std::size_t... K>
TG_INLINE void add_scaled_blocks(T* y, T slope, const T* x, std::index_sequence<K...>) {
    (add_scaled_block<First, K>(y, slope, x), ...);
}

/// Adds slope * (derivatives of x) to y's. Unrolled, because derivatives are to stay in registers.
template <bool First, bool Finite, class T, int N, std::size_t... K>
TG_INLINE constexpr void add_scaled(jet<T, N>& y, const T& slope, const jet<T, N>& x, std::index_sequence<K...>) {
    if constexpr (!Finite && std::is_floating_point_v<T>) {
        if (!(slope - slope == T(0))) [[unlikely]] {
            ((y.derivative[K] = guarded_product(slope, x.derivative[K]) + (First ? T(0) : y.derivative[K])), ...);
            return;
        }
    }
    if constexpr (std::is_floating_point_v<T> && N * sizeof(T) % 16 == 0) {
        if (!std::is_constant_evaluated()) {
            add_scaled_blocks<First>(y.derivative, slope, x.derivative, std::make_index_sequence<N * sizeof(T) / 16>{});
            return;
        }
    }
    if constexpr (First)
        ((y.derivative[K] = slope * x.derivative[K]), ...);
    else
        ((y.derivative[K] = y.derivative[K] + slope * x.derivative[K]), ...);
}

/// Adds what comes by operand K. `first` is known when the code is compiled.
template <class Op, std::size_t K, class J, class Operand, class... V>
TG_INLINE constexpr void add_operand(J& y, bool& first, const Operand& x, const V&... values) {
    using T = decltype(J::value);
    if constexpr (std::is_same_v<Operand, J> && differentiable<Op, static_cast<int>(K), T, V..., T>) {
        const T slope = scalar_rule<Op, T>::template slope<static_cast<int>(K)>(T(1), values..., y.value);
        constexpr bool finite = Op::finite_slopes || Op::zeros == zero_adjoint::passes;
        constexpr auto places = std::make_index_sequence<sizeof(y.derivative) / sizeof(T)>{};
        if (first)
            add_scaled<true, finite>(y, slope, x, places);
        else
            add_scaled<false, finite>(y, slope, x, places);
        first = false;
    }
}

template <class Op, class J, std::size_t... I, class... X>
TG_INLINE constexpr J apply_jet(std::index_sequence<I...>, const X&... x) {
    J y{};
    y.value = scalar_rule<Op, decltype(J::value)>::value(value_in<J>(x)...);
    bool first = true;
    const auto add = [&](const auto&... values) __attribute__((always_inline)) {
        (add_operand<Op, I>(y, first, x, values...), ...);
    };
    add(value_in<J>(x)...);
    if (first)
        for (auto& d : y.derivative) d = decltype(J::value)(0);
    return y;
}

} // namespace scalars

/// Applies an elementwise operation to numbers, some of which are jets and none of which records.
template <class Op, scalar... X>
    requires((scalars::is_jet<X> || ...) && (!recording<X> && ...))
TG_INLINE constexpr auto apply_scalar(const X&... x) {
    using J = typename scalars::recorded_value<X...>::type;
    if constexpr (Op::condition_operands == 1)
        return [](const auto& condition, const auto& a, const auto& b) { return condition ? J(a) : J(b); }(x...);
    else
        return scalars::apply_jet<Op, J>(std::index_sequence_for<X...>{}, x...);
}

#define TG_COMPARES(sign)                                                                                              \
    template <class T, int N>                                                                                          \
    TG_INLINE constexpr bool operator sign(const jet<T, N>& x, const jet<T, N>& y) {                                   \
        return x.value sign y.value;                                                                                   \
    }                                                                                                                  \
    template <class T, int N, arithmetic B>                                                                            \
    TG_INLINE constexpr bool operator sign(const jet<T, N>& x, const B& y) {                                           \
        return x.value sign y;                                                                                         \
    }                                                                                                                  \
    template <class T, int N, arithmetic A>                                                                            \
    TG_INLINE constexpr bool operator sign(const A& x, const jet<T, N>& y) {                                           \
        return x sign y.value;                                                                                         \
    }
TG_COMPARES(<)
TG_COMPARES(<=)
TG_COMPARES(>)
TG_COMPARES(>=)
TG_COMPARES(==)
TG_COMPARES(!=)
#undef TG_COMPARES

} // namespace tapegraph
