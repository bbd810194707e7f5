#pragma once

#include <tapegraph/ops/elementwise/arithmetic.hpp>
#include <tapegraph/scalar/functions.hpp>
#include <tapegraph/scalar/limits.hpp>
#include <tapegraph/scalar/rounding.hpp>
#include <tapegraph/scalar/standard.hpp>

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <iosfwd>
#include <limits>
#include <type_traits>
#include <utility>

namespace tapegraph {

/// A Taylor polynomial of order N, x(t) = coefficient[0] + coefficient[1] t + ... + coefficient[N] t^N + O(t^(N + 1)): all
/// derivatives of a function of one variable in one run. It takes the place of double in code that is a template of its
/// number's type; comparisons are of values.
template <class T, int N>
struct taylor {
    static_assert(N >= 0 && std::is_floating_point_v<T>, "tg::taylor has an order from 0 on, and plain numbers");
    using value_type = T;
    std::array<T, static_cast<std::size_t>(N) + 1> coefficient{};

    constexpr taylor() = default;
    // NOLINTBEGIN: constants are numbers
    template <arithmetic Number>
    constexpr taylor(Number constant) {
        coefficient[0] = static_cast<T>(constant);
    }
    // NOLINTEND
    /// The variable t, at x: x + t.
    static constexpr taylor variable(T x) {
        taylor t(x);
        if constexpr (N > 0) t.coefficient[1] = T(1);
        return t;
    }
    /// The coefficient of order 0.
    constexpr T value() const { return coefficient[0]; }
    /// The k-th derivative, k! coefficient[k].
    constexpr T derivative(int k) const {
        T d = coefficient[static_cast<std::size_t>(k)];
        for (int i = 2; i <= k; ++i) d *= static_cast<T>(i);
        return d;
    }
    template <arithmetic Number>
    constexpr explicit operator Number() const {
        return static_cast<Number>(coefficient[0]);
    }
    taylor& operator+=(const taylor& x) { return *this = *this + x; }
    taylor& operator-=(const taylor& x) { return *this = *this - x; }
    taylor& operator*=(const taylor& x) { return *this = *this * x; }
    taylor& operator/=(const taylor& x) { return *this = *this / x; }
    taylor& operator++() { return *this += 1; }
    taylor& operator--() { return *this -= 1; }
    taylor operator++(int) { return std::exchange(*this, *this + 1); }
    taylor operator--(int) { return std::exchange(*this, *this - 1); }
};

namespace scalars {

template <class T, int N>
inline constexpr bool is_taylor<taylor<T, N>> = true;

template <class T, int N>
struct recorded_value<taylor<T, N>> {
    using type = taylor<T, N>;
};
template <class T, int N, class Next, class... Rest>
struct recorded_value<taylor<T, N>, Next, Rest...> {
    using type = taylor<T, N>;
};

template <class S, class X>
constexpr auto as_series(const X& x) {
    if constexpr (std::is_same_v<X, bool> || std::is_same_v<X, S>)
        return x;
    else
        return S(x);
}

/// The first terms of a polynomial, up to order N.
template <int N, class T, int M>
TG_INLINE constexpr taylor<T, N> up_to(const taylor<T, M>& x) {
    taylor<T, N> y;
    for (std::size_t k = 0; k < y.coefficient.size(); ++k) y.coefficient[k] = x.coefficient[k];
    return y;
}
template <int, class X>
requires std::same_as<X, bool> TG_INLINE constexpr bool up_to(X x) { return x; }
/// The derivative by t, up to order N.
template <int N, class T, int M>
TG_INLINE constexpr taylor<T, N> derivative_by_t(const taylor<T, M>& x) {
    taylor<T, N> y;
    for (std::size_t k = 0; k < y.coefficient.size(); ++k)
        y.coefficient[k] = static_cast<T>(k + 1) * x.coefficient[k + 1];
    return y;
}
template <class T, int N>
TG_INLINE constexpr bool is_constant(const taylor<T, N>& x) {
    for (std::size_t k = 1; k < x.coefficient.size(); ++k)
        if (x.coefficient[k] != T(0)) return false;
    return true;
}

/// Any operation, by its own derivative: y' = vjp(x', x, y), whose right side up to order K - 1 gives y up to order K.
template <class Op, class S>
struct series_rule;
template <class Op, class T, int N>
struct series_rule<Op, taylor<T, N>> {
    using S = taylor<T, N>;
    template <class... X>
    static S value(const X&... x) {
        S y(scalar_rule<Op, T>::value(first(x)...));
        [&]<int... K>(std::integer_sequence<int, K...>) { (extend<K>(y, std::index_sequence_for<X...>{}, x...), ...); }
        (std::make_integer_sequence<int, N>{});
        return y;
    }

private:
    template <class X>
    static constexpr auto first(const X& x) {
        if constexpr (std::is_same_v<X, bool>)
            return x;
        else
            return x.coefficient[0];
    }
    // The coefficient of order K + 1 from those up to K.
    template <int K, std::size_t... I, class... X>
    static void extend(S& y, std::index_sequence<I...>, const X&... x) {
        (add<K, static_cast<int>(I)>(y, x, up_to<K>(x)...), ...);
    }
    template <int K, int I, class X, class... Shorter>
    static void add(S& y, const X& x, const Shorter&... all) {
        using L = taylor<T, K>;
        if constexpr (differentiable<Op, I, L, Shorter..., L>) {
            if (is_constant(x)) return; // its slope may be infinite
            const L slope(vjp_for<Op, I>(derivative_by_t<K>(x), all..., up_to<K>(y)));
            y.coefficient[K + 1] += slope.coefficient[K] / static_cast<T>(K + 1);
        }
    }
};

#define TG_EACH(k) for (std::size_t k = 0; k < y.coefficient.size(); ++k)
template <class T, int N>
struct series_rule<add_op, taylor<T, N>> {
    using S = taylor<T, N>;
    static S value(const S& a, const S& b) {
        S y;
        TG_EACH(k) y.coefficient[k] = a.coefficient[k] + b.coefficient[k];
        return y;
    }
};
template <class T, int N>
struct series_rule<subtract_op, taylor<T, N>> {
    using S = taylor<T, N>;
    static S value(const S& a, const S& b) {
        S y;
        TG_EACH(k) y.coefficient[k] = a.coefficient[k] - b.coefficient[k];
        return y;
    }
};
template <class T, int N>
struct series_rule<negate_op, taylor<T, N>> {
    using S = taylor<T, N>;
    static S value(const S& a) {
        S y;
        TG_EACH(k) y.coefficient[k] = -a.coefficient[k];
        return y;
    }
};
template <class T, int N>
struct series_rule<multiply_op, taylor<T, N>> {
    using S = taylor<T, N>;
    static S value(const S& a, const S& b) {
        S y;
        TG_EACH(k) {
            y.coefficient[k] = a.coefficient[0] * b.coefficient[k];
            for (std::size_t i = 1; i <= k; ++i) y.coefficient[k] += a.coefficient[i] * b.coefficient[k - i];
        }
        return y;
    }
};
template <class T, int N>
struct series_rule<divide_op, taylor<T, N>> {
    using S = taylor<T, N>;
    static S value(const S& a, const S& b) { // a = y b
        S y;
        TG_EACH(k) {
            T rest = a.coefficient[k];
            for (std::size_t i = 1; i <= k; ++i) rest -= b.coefficient[i] * y.coefficient[k - i];
            y.coefficient[k] = rest / b.coefficient[0];
        }
        return y;
    }
};
template <class T, int N>
struct series_rule<exp_op, taylor<T, N>> {
    using S = taylor<T, N>;
    static S value(const S& x) { // y' = y x'
        S y(std::exp(x.coefficient[0]));
        for (std::size_t k = 1; k < y.coefficient.size(); ++k) {
            T sum = 0;
            for (std::size_t i = 1; i <= k; ++i) sum += static_cast<T>(i) * x.coefficient[i] * y.coefficient[k - i];
            y.coefficient[k] = sum / static_cast<T>(k);
        }
        return y;
    }
};
template <class T, int N>
struct series_rule<log_op, taylor<T, N>> {
    using S = taylor<T, N>;
    static S value(const S& x) { // x y' = x'
        S y(std::log(x.coefficient[0]));
        for (std::size_t k = 1; k < y.coefficient.size(); ++k) {
            T rest = static_cast<T>(k) * x.coefficient[k];
            for (std::size_t i = 1; i < k; ++i) rest -= static_cast<T>(i) * y.coefficient[i] * x.coefficient[k - i];
            y.coefficient[k] = rest == T(0) ? T(0) : rest / (static_cast<T>(k) * x.coefficient[0]);
        }
        return y;
    }
};
template <class T, int N>
struct series_rule<sqrt_op, taylor<T, N>> {
    using S = taylor<T, N>;
    static S value(const S& x) { // y y = x
        S y(std::sqrt(x.coefficient[0]));
        for (std::size_t k = 1; k < y.coefficient.size(); ++k) {
            T rest = x.coefficient[k];
            for (std::size_t i = 1; i < k; ++i) rest -= y.coefficient[i] * y.coefficient[k - i];
            y.coefficient[k] = rest == T(0) ? T(0) : rest / (2 * y.coefficient[0]);
        }
        return y;
    }
};
#undef TG_EACH

/// y' = (1 + sign y^2) x': tangents, the circle's and the hyperbola's.
template <class T, int N>
taylor<T, N> series_of_tangent(const taylor<T, N>& x, T y0, int sign) {
    taylor<T, N> y(y0), slope(1 + static_cast<T>(sign) * y0 * y0); // of y by x
    for (std::size_t k = 1; k < y.coefficient.size(); ++k) {
        T sum = 0, square = 0;
        for (std::size_t i = 1; i <= k; ++i) sum += static_cast<T>(i) * x.coefficient[i] * slope.coefficient[k - i];
        y.coefficient[k] = sum / static_cast<T>(k);
        for (std::size_t i = 0; i <= k; ++i) square += y.coefficient[i] * y.coefficient[k - i];
        slope.coefficient[k] = static_cast<T>(sign) * square;
    }
    return y;
}
template <class T, int N>
struct series_rule<tan_op, taylor<T, N>> {
    static taylor<T, N> value(const taylor<T, N>& x) { return series_of_tangent(x, std::tan(x.coefficient[0]), 1); }
};
template <class T, int N>
struct series_rule<tanh_op, taylor<T, N>> {
    static taylor<T, N> value(const taylor<T, N>& x) { return series_of_tangent(x, std::tanh(x.coefficient[0]), -1); }
};

/// A pair of functions, s' = c x' and c' = sign s x': sine and cosine, or the hyperbolic ones.
template <class T, int N>
std::array<taylor<T, N>, 2> series_of_pair(const taylor<T, N>& x, T s0, T c0, int sign) {
    taylor<T, N> s(s0), c(c0);
    for (std::size_t k = 1; k < s.coefficient.size(); ++k) {
        T of_s = 0, of_c = 0;
        for (std::size_t i = 1; i <= k; ++i) {
            const T slope = static_cast<T>(i) * x.coefficient[i];
            of_s += slope * c.coefficient[k - i];
            of_c += slope * s.coefficient[k - i];
        }
        s.coefficient[k] = of_s / static_cast<T>(k);
        c.coefficient[k] = static_cast<T>(sign) * of_c / static_cast<T>(k);
    }
    return {s, c};
}
#define TG_PAIR(word, sine, cosine, sign, which)                                                                       \
    template <class T, int N>                                                                                          \
    struct series_rule<word##_op, taylor<T, N>> {                                                                      \
        using S = taylor<T, N>;                                                                                        \
        static S value(const S& x) {                                                                                   \
            return series_of_pair(x, std::sine(x.coefficient[0]), std::cosine(x.coefficient[0]), sign)[which];         \
        }                                                                                                              \
    };
TG_PAIR(sin, sin, cos, -1, 0)
TG_PAIR(cos, sin, cos, -1, 1)
TG_PAIR(sinh, sinh, cosh, 1, 0)
TG_PAIR(cosh, sinh, cosh, 1, 1)
#undef TG_PAIR

template <class T, int N>
struct series_rule<where_op, taylor<T, N>> {
    using S = taylor<T, N>;
    static S value(bool condition, const S& x, const S& y) { return condition ? x : y; }
};

} // namespace scalars

/// Applies an elementwise operation to Taylor polynomials and numbers.
template <class Op, scalar... X>
    requires(scalars::is_taylor<X> || ...)
auto apply_scalar(const X&... x) {
    using S = typename scalars::recorded_value<X...>::type;
    return scalars::series_rule<Op, S>::value(scalars::as_series<S>(x)...);
}

#define TG_COMPARES(sign)                                                                                              \
    template <class A, class B>                                                                                        \
        requires(scalars::is_taylor<A> && scalar<B>)                                                                   \
    || (scalars::is_taylor<B> && scalar<A>)constexpr bool operator sign(const A& x, const B& y) {                      \
        return scalars::innermost(x) sign scalars::innermost(y);                                                       \
    }
TG_COMPARES(<)
TG_COMPARES(<=)
TG_COMPARES(>)
TG_COMPARES(>=)
TG_COMPARES(==)
TG_COMPARES(!=)
#undef TG_COMPARES

template <class C, class Traits, class T, int N>
    requires requires(std::basic_ostream<C, Traits>& stream, const T& number) { stream << number; }
std::basic_ostream<C, Traits>& operator<<(std::basic_ostream<C, Traits>& out, const taylor<T, N>& x) {
    return out << x.value();
}

/// The value of f, a function of one variable, and its derivatives up to the N-th, at x. f is a template of its number's
/// type.
template <int N, class F, arithmetic X>
auto derivatives_up_to(const F& f, X x) {
    using T = std::conditional_t<std::is_integral_v<X>, double, X>;
    const taylor<T, N> y(f(taylor<T, N>::variable(static_cast<T>(x))));
    std::array<T, static_cast<std::size_t>(N) + 1> all;
    for (int k = 0; k <= N; ++k) all[static_cast<std::size_t>(k)] = y.derivative(k);
    return all;
}

} // namespace tapegraph

// NOLINTBEGIN: meant to be specialised for such types
template <class T, int N>
struct std::numeric_limits<tapegraph::taylor<T, N>> : tapegraph::scalars::limits_as<tapegraph::taylor<T, N>, T> {};
// NOLINTEND
