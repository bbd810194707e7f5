#pragma once

#include <tapegraph/expr/dual.hpp>

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tapegraph {

struct multiply_op; // ops/elementwise/arithmetic.hpp
struct divide_op;

/// A plain scalar with its derivatives of orders 1 to N by one variable, for orders from 3 on: nested duals would have
/// 2^N parts that hold N + 1 numbers. An operation's derivatives come from its vjp, as those of dual do: the slopes are
/// computed as series of order N - 1, and Leibniz's rule gives y^(k) = sum over j < k of C(k-1, j) slope^(j) x^(k-j).
/// One function per operation and order: what there is to compile grows with the order, not with its power.
///
/// Derivatives are kept, not Taylor coefficients, so those of polynomials with small integer numbers are exact.
template <class T, int N>
struct series {
    T of[N + 1]{}; ///< by order; of[0] is the value
    /// Derivatives above it are 0 whatever the variable is: 0 of constants, 1 of the variable. They are left out of sums,
    /// so that they add nothing where a slope is infinite.
    int degree = 0;

    constexpr series() = default;
    // NOLINTBEGIN: implicit, so that constants can be operands
    constexpr series(const T& number) { of[0] = number; }
    template <arithmetic Number>
        requires(!std::is_same_v<Number, T>)
    constexpr series(Number number) { of[0] = static_cast<T>(number); }
    // NOLINTEND
    /// The variable itself: its number, with slope 1.
    static constexpr series variable(const T& number) {
        series s(number);
        s.of[1] = T(1);
        s.degree = 1;
        return s;
    }

    /// The coefficient of order 0.
    constexpr const T& value() const { return of[0]; }

    constexpr series& operator+=(const series& y) { return *this = *this + y; }
    constexpr series& operator-=(const series& y) { return *this = *this - y; }
    constexpr series& operator*=(const series& y) { return *this = *this * y; }
    constexpr series& operator/=(const series& y) { return *this = *this / y; }

    // Comparisons ignore derivatives.
    friend constexpr bool operator<(const series& x, const series& y) { return x.of[0] < y.of[0]; }
    friend constexpr bool operator>(const series& x, const series& y) { return x.of[0] > y.of[0]; }
    friend constexpr bool operator<=(const series& x, const series& y) { return x.of[0] <= y.of[0]; }
    friend constexpr bool operator>=(const series& x, const series& y) { return x.of[0] >= y.of[0]; }
    friend constexpr bool operator==(const series& x, const series& y) { return x.of[0] == y.of[0]; }
    friend constexpr bool operator!=(const series& x, const series& y) { return x.of[0] != y.of[0]; }
};

template <class T, int N>
inline constexpr bool is_differential_scalar<series<T, N>> = true;
template <class T, int N>
inline constexpr int derivative_depth<series<T, N>> = 1 + derivative_depth<T>;

namespace detail {

/// The series of one order less; the number itself below order 1.
template <class Series>
struct lower_series;
template <class T, int N>
struct lower_series<series<T, N>> {
    using type = series<T, N - 1>;
};
template <class T>
struct lower_series<series<T, 1>> {
    using type = T;
};
template <class Series>
using lower_series_t = typename lower_series<Series>::type;

template <class T, int N>
constexpr lower_series_t<series<T, N>> lowered(const series<T, N>& x) {
    if constexpr (N == 1) {
        return x.of[0];
    } else {
        series<T, N - 1> y;
        for (int k = 0; k < N; ++k) y.of[k] = x.of[k];
        y.degree = x.degree < N ? x.degree : N - 1;
        return y;
    }
}

constexpr double binomial(int n, int k) {
    double value = 1;
    for (int i = 1; i <= k; ++i) value = value * (n - k + i) / i;
    return value;
}
template <class T, int N>
struct binomials {
    T of[N + 1][N + 1]{};
    constexpr binomials() {
        for (int n = 0; n <= N; ++n)
            for (int k = 0; k <= n; ++k) of[n][k] = static_cast<T>(binomial(n, k));
    }
};
/// C(n, k) as factors of T.
template <class T, int N>
inline constexpr binomials<std::conditional_t<arithmetic<T>, T, double>, N> binomials_for{};

template <class Op, class T, int N, class... X>
constexpr void derive(series<T, N>& y, const X&... x);

/// The value of an operation as its slopes see it, of one order less. Many slopes do not read it, so it is computed when
/// one does, and once.
template <class Op, class Lower, int Count>
struct value_of_slopes {
    const Lower* operands[Count];
    Lower value;
    bool known = false;

    constexpr const Lower& get() {
        if (!known) {
            [this]<std::size_t... I>(std::index_sequence<I...>) { derive<Op>(value, *operands[I]...); }
            (std::make_index_sequence<static_cast<std::size_t>(Count)>{});
            known = true;
        }
        return value;
    }
};

} // namespace detail

/// An operand of formulas that stands for a value_of_slopes.
template <class Op, class Lower, int Count>
struct late_series {
    detail::value_of_slopes<Op, Lower, Count>* memory;

    /// The series, computed by the first use.
    constexpr const Lower& get() const { return memory->get(); }
    /// The coefficient of order 0.
    constexpr const auto& value() const { return get().value(); }
    // NOLINTNEXTLINE: what takes the value takes this
    constexpr operator const Lower&() const { return memory->get(); }
#define TG_COMPARED(sign)                                                                                              \
    friend constexpr bool operator sign(const late_series& x, const Lower& y) { return x.get() sign y; }
    TG_COMPARED(<)
    TG_COMPARED(>)
    TG_COMPARED(<=)
    TG_COMPARED(>=)
    TG_COMPARED(==)
    TG_COMPARED(!=)
#undef TG_COMPARED
};
template <class Op, class Lower, int Count>
inline constexpr bool is_differential_scalar<late_series<Op, Lower, Count>> = true;
template <class Op, class Lower, int Count>
inline constexpr int derivative_depth<late_series<Op, Lower, Count>> = derivative_depth<Lower>;

namespace detail {

/// An operand as a series: itself, or a constant.
template <class Series, class Arg>
constexpr decltype(auto) series_of(const Arg& x) {
    if constexpr (requires { x.memory->get(); })
        return series_of<Series>(x.get());
    else
        return lifted<Series>(x);
}

/// Adds slope times the operand's derivatives to y's, from order `first` on.
template <class Slope, class T, int N>
constexpr void add_flow(series<T, N>& y, const series<T, N>& x, const Slope& slope, int first = 1) {
    int degree = x.degree;
    if constexpr (N == 1 || derivative_depth<Slope> < derivative_depth<series<T, N>>) {
        const T factor(slope);
        for (int k = first; k <= x.degree; ++k) y.of[k] = y.of[k] + factor * x.of[k];
    } else {
        const auto& c = binomials_for<T, N>.of;
        const series<T, N - 1>& s = series_of<series<T, N - 1>>(slope);
        degree = std::min(N, x.degree + s.degree);
        for (int k = first; k <= degree; ++k)
            for (int j = std::max(0, k - x.degree); j <= std::min(k - 1, s.degree); ++j)
                y.of[k] = y.of[k] + c[k - 1][j] * (s.of[j] * x.of[k - j]);
    }
    y.degree = std::max(y.degree, degree);
}

template <class Op, int I, class T, int N, class... Slopes>
constexpr void chain_series(series<T, N>& y, const series<T, N>& x, const Slopes&... operands) {
    if constexpr (differentiable<Op, I, T, Slopes...>) {
        if (x.degree == 0) return; // its slope may be NaN
        add_flow(y, x, vjp_for<Op, I>(T(1), operands...));
    }
}

template <class Op, class T, int N, std::size_t... I, class... X, class... Lower>
constexpr void derive_by_slopes(series<T, N>& y, std::index_sequence<I...>, const std::tuple<const X&...>& x,
                                const Lower&... lower) {
    if constexpr (N == 1) {
        (chain_series<Op, static_cast<int>(I)>(y, std::get<I>(x), lower..., y.of[0]), ...);
    } else {
        using kept = series<T, N - 1>;
        value_of_slopes<Op, kept, static_cast<int>(sizeof...(I))> value{{&lower...}, kept(y.of[0])};
        const late_series<Op, kept, static_cast<int>(sizeof...(I))> late{&value};
        if constexpr (sizeof...(I) == 1 && differentiable<Op, 0, T, Lower..., decltype(late)>) {
            const auto slope = vjp_for<Op, 0>(T(1), lower..., late);
            if (value.known) // all orders but the last
                for (int k = 1; k < N; ++k) y.of[k] = value.value.of[k];
            add_flow(y, std::get<0>(x), slope, value.known ? N : 1);
        } else {
            (chain_series<Op, static_cast<int>(I)>(y, std::get<I>(x), lower..., late), ...);
        }
    }
}

/// The derivatives of y, whose value is known, from those of the operands.
template <class Op, class T, int N, class... X>
constexpr void derive(series<T, N>& y, const X&... x) {
    if (((x.degree == 0) && ...)) return;
    if constexpr (std::is_same_v<Op, multiply_op>) {
        // (a b)^(k) = sum over j of C(k, j) a^(j) b^(k-j)
        const auto product = [&y](const series<T, N>& a, const series<T, N>& b) {
            const auto& c = binomials_for<T, N>.of;
            y.degree = std::min(N, a.degree + b.degree);
            for (int k = 1; k <= y.degree; ++k)
                for (int j = std::max(0, k - b.degree); j <= std::min(k, a.degree); ++j)
                    y.of[k] = y.of[k] + c[k][j] * (a.of[j] * b.of[k - j]);
        };
        product(x...);
    } else if constexpr (std::is_same_v<Op, divide_op>) {
        // q b = a, so q^(k) b = a^(k) - sum over j < k of C(k, j) q^(j) b^(k-j)
        const auto quotient = [&y](const series<T, N>& a, const series<T, N>& b) {
            const auto& c = binomials_for<T, N>.of;
            y.degree = b.degree > 0 ? N : a.degree;
            for (int k = 1; k <= y.degree; ++k) {
                T rest = a.of[k];
                for (int j = std::max(0, k - b.degree); j < k; ++j) rest = rest - c[k][j] * (y.of[j] * b.of[k - j]);
                y.of[k] = rest / b.of[0];
            }
        };
        quotient(x...);
    } else {
        derive_by_slopes<Op>(y, std::index_sequence_for<X...>{}, std::tuple<const X&...>(x...), lowered(x)...);
    }
}

template <class Op, class T, int N, class... X>
constexpr series<T, N> apply_to_series(const series<T, N>& first, const X&... rest) {
    series<T, N> y(apply<Op>(first.of[0], rest.of[0]...));
    derive<Op>(y, first, rest...);
    return y;
}

/// Applies an elementwise operation to scalars some of which are series.
template <class Op, class Series, class... Args>
constexpr Series apply_series(const Args&... x) {
    return apply_to_series<Op>(series_of<Series>(x)...);
}
template <class T, int N>
constexpr bool truth(const series<T, N>& x) {
    return truth(x.of[0]);
}
/// A condition selects derivatives as it selects values.
template <class Op, class Series, class Condition, class A, class B>
    requires(Op::condition_operands == 1)
constexpr Series apply_series(const Condition& condition, const A& a, const B& b) {
    return truth(condition) ? series_of<Series>(a) : series_of<Series>(b);
}

template <class T, int N>
struct carrier<series<T, N>> {
    using type = series<T, N>;
    template <class Op, class... Args>
    static constexpr type apply(const Args&... args) {
        return apply_series<Op, type>(args...);
    }
};
template <class Op, class Lower, int Count>
struct carrier<late_series<Op, Lower, Count>> : carrier<Lower> {};

} // namespace detail

} // namespace tapegraph
