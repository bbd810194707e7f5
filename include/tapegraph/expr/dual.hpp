#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/operation.hpp>

#include <cstddef>
#include <utility>

namespace tapegraph {

/// The directions of a scalar with derivatives by N variables. By one variable there is one direction, 1, which is not kept:
/// nested scalars would have three parts a level in the place of two.
template <class T, int N>
struct dual_directions {
    T direction[N]{}; // not std::array: g++ 12 fails on nested ones in constant evaluation
};
template <class T>
struct dual_directions<T, 1> {};

/// A plain scalar and its derivatives by N variables. Arithmetic on it gives such scalars again and
/// is constexpr, so loops, branches and static_assert work. Everything is inlined. Nest it for
/// higher derivatives.
///
/// Derivative k is factor * direction[k]. Functions of one operand change only the factor; the sum
/// of operands with different directions gets a direction of its own. Directions are numbered by
/// `origin`, which tells copies of one from another; 0 is a constant. Compilers may not drop x * 0
/// or x + 0 (NaN, signed zeros), so `depends` records which variables a value depends on. In code
/// without branches all these marks are compile-time constants, and neither they nor the zeros
/// leave an instruction.
template <class T, int N>
struct dual : dual_directions<T, N> {
    T value{};
    T factor{1};
    bool depends[N]{};
    unsigned origin = 0;
    unsigned* origins = nullptr; // the last number assigned

    constexpr dual() = default;
    // NOLINTNEXTLINE: implicit, so that constants can be operands
    TG_INLINE constexpr dual(T number) : value(number) {}
    template <arithmetic Number>
        requires(!std::is_same_v<Number, T>)
    // NOLINTNEXTLINE
    TG_INLINE constexpr dual(Number number) : value(static_cast<T>(number)) {}
    /// Variable number `index`. All variables of a function share the counter of directions, which
    /// starts at N.
    TG_INLINE static constexpr dual variable(T number, int index, unsigned* origins) {
        dual d(number);
        if constexpr (N > 1) d.direction[index] = T(1);
        d.depends[index] = true;
        d.origin = static_cast<unsigned>(index) + 1;
        d.origins = origins;
        return d;
    }
    /// A value and its derivative along one direction.
    TG_INLINE static constexpr dual along(T number, T tangent) requires(N == 1) {
        dual d(number);
        d.factor = tangent;
        d.depends[0] = true;
        d.origin = 1;
        return d;
    }
    /// The derivative by variable `index`.
    TG_INLINE constexpr T derivative(int index) const {
        if (!depends[index]) return T(0);
        if constexpr (N == 1)
            return factor;
        else
            return factor * this->direction[index];
    }

    TG_INLINE constexpr dual& operator+=(const dual& y) { return *this = *this + y; }
    TG_INLINE constexpr dual& operator-=(const dual& y) { return *this = *this - y; }
    TG_INLINE constexpr dual& operator*=(const dual& y) { return *this = *this * y; }
    TG_INLINE constexpr dual& operator/=(const dual& y) { return *this = *this / y; }

    // Comparisons ignore derivatives.
    TG_INLINE friend constexpr bool operator<(const dual& x, const dual& y) { return x.value < y.value; }
    TG_INLINE friend constexpr bool operator>(const dual& x, const dual& y) { return x.value > y.value; }
    TG_INLINE friend constexpr bool operator<=(const dual& x, const dual& y) { return x.value <= y.value; }
    TG_INLINE friend constexpr bool operator>=(const dual& x, const dual& y) { return x.value >= y.value; }
    TG_INLINE friend constexpr bool operator==(const dual& x, const dual& y) { return x.value == y.value; }
    TG_INLINE friend constexpr bool operator!=(const dual& x, const dual& y) { return x.value != y.value; }
};

template <class T, int N>
inline constexpr bool is_differential_scalar<dual<T, N>> = true;
template <class T>
inline constexpr bool is_dual = false;
template <class T, int N>
inline constexpr bool is_dual<dual<T, N>> = true;

/// How often a number has been wrapped to carry derivatives: 2 for a dual of duals.
template <class T>
inline constexpr int derivative_depth = 0;
template <class T, int N>
inline constexpr int derivative_depth<dual<T, N>> = 1 + derivative_depth<T>;

namespace detail {

/// The deepest of the types: what an operation of all of them gives. The others are its constants.
template <class First, class... Rest>
struct deepest {
    using other = typename deepest<Rest...>::type;
    using type = std::conditional_t<(derivative_depth<First> >= derivative_depth<other>), First, other>;
};
template <class First>
struct deepest<First> {
    using type = First;
};

/// How operations are applied to a scalar that carries derivatives: `apply<Op>(x...)`, of which some are such scalars.
template <class T>
struct carrier;

/// An operand as a number that carries derivatives: itself, or a constant.
template <class Carrier, class Arg>
TG_INLINE constexpr decltype(auto) lifted(const Arg& x);
template <class T>
struct carried;
template <template <class, int> class Carrier, class T, int N>
struct carried<Carrier<T, N>> {
    using type = T;
};
template <class Carrier, class Arg>
TG_INLINE constexpr decltype(auto) lifted(const Arg& x) {
    if constexpr (std::is_same_v<Carrier, Arg>)
        return (x);
    else if constexpr (arithmetic<Arg> || std::is_same_v<typename carried<Carrier>::type, Arg>)
        return Carrier(x);
    else
        return Carrier(lifted<typename carried<Carrier>::type>(x));
}

template <std::size_t K, class T, int N>
TG_INLINE constexpr void add_derivative(dual<T, N>& y, const T& y_factor, const dual<T, N>& x, const T& x_factor) {
    if (!x.depends[K]) {
        if (y.depends[K]) y.direction[K] = y_factor * y.direction[K];
    } else if (!y.depends[K]) {
        y.direction[K] = x_factor * x.direction[K];
        y.depends[K] = true;
    } else {
        y.direction[K] = y_factor * y.direction[K] + x_factor * x.direction[K];
    }
}

/// Adds the contribution of operand x, which is not a constant, to the derivatives of y; `slope` is dy/dx.
template <class T, int N, std::size_t... K>
TG_INLINE constexpr void join(dual<T, N>& y, const dual<T, N>& x, const T& slope, std::index_sequence<K...>) {
    const T factor = x.factor * slope;
    if (y.origin == 0) {
        y.factor = factor;
        if constexpr (N > 1) ((y.direction[K] = x.direction[K]), ...);
        ((y.depends[K] = x.depends[K]), ...);
        y.origin = x.origin;
        y.origins = x.origins;
    } else if (N == 1 || y.origin == x.origin) {
        y.factor = y.factor + factor;
    } else if constexpr (N > 1) {
        (add_derivative<K>(y, y.factor, x, factor), ...);
        y.factor = T(1);
        y.origin = ++*y.origins;
    }
}

template <class Op, int I, class T, int N, class... Values>
TG_INLINE constexpr void chain(dual<T, N>& y, const dual<T, N>& x, const Values&... values) {
    if constexpr (differentiable<Op, I, T, Values..., T>) {
        if (x.origin == 0) return; // its slope may be NaN
        join(y, x, T(vjp_for<Op, I>(T(1), values..., y.value)),
             std::make_index_sequence<static_cast<std::size_t>(N)>{});
    }
}

template <class Op, class Dual, std::size_t... I, class... Duals>
TG_INLINE constexpr Dual apply_lifted(std::index_sequence<I...>, const Duals&... x) {
    Dual y(apply<Op>(x.value...));
    (chain<Op, static_cast<int>(I)>(y, x, x.value...), ...);
    return y;
}

/// A condition selects derivatives as it selects values: the operand that is not selected
/// contributes nothing, even if its derivative is NaN.
template <class Op, class T, int N, std::size_t... K>
TG_INLINE constexpr dual<T, N> apply_choice(std::index_sequence<K...>, bool condition, const dual<T, N>& a,
                                            const dual<T, N>& b) {
    dual<T, N> y(apply<Op>(condition, a.value, b.value));
    if (a.origin == 0 && b.origin == 0) return y;
    y.origin = 1;
    if constexpr (N > 1) { // one variable has one direction
        y.origins = a.origins;
        if (a.origin == 0) y.origins = b.origins;
        y.origin = ++*y.origins;
    }
    ((y.depends[K] = a.depends[K] || b.depends[K]), ...);
    if constexpr (N == 1) {
        y.factor = apply<Op>(condition, a.derivative(0), b.derivative(0));
    } else {
        ((y.direction[K] = apply<Op>(condition, a.derivative(K), b.derivative(K))), ...);
    }
    return y;
}

template <arithmetic T>
TG_INLINE constexpr bool truth(T x) {
    return x != T(0);
}
template <class T, int N>
TG_INLINE constexpr bool truth(const dual<T, N>& x) {
    return truth(x.value);
}

template <class Op, class Dual, class... Args>
TG_INLINE constexpr Dual apply_dual(const Args&... x) {
    return apply_lifted<Op, Dual>(std::index_sequence_for<Args...>{}, lifted<Dual>(x)...);
}
template <class Op, class Dual, class Condition, class A, class B>
    requires(Op::condition_operands == 1)
TG_INLINE constexpr Dual apply_dual(const Condition& condition, const A& x, const B& y) {
    constexpr auto all = std::make_index_sequence<sizeof(Dual::depends) / sizeof(bool)>{};
    return apply_choice<Op>(all, truth(condition), lifted<Dual>(x), lifted<Dual>(y));
}

// From the third order on every operation is a function of its own, which calls those of the order below: inlined into
// each other, functions would grow with the power of the order.
inline constexpr int deepest_inlined = 2;

template <class T, int N>
struct carrier<dual<T, N>> {
    template <class Op, class... Args>
    TG_INLINE static constexpr dual<T, N> apply(const Args&... args) {
        if constexpr (derivative_depth<dual<T, N>> <= deepest_inlined)
            return apply_dual<Op, dual<T, N>>(args...);
        else
            return called<Op>(args...);
    }

private:
    template <class Op, class... Args>
    [[gnu::noinline]] static constexpr dual<T, N> called(const Args&... args) {
        return apply_dual<Op, dual<T, N>>(args...);
    }
};

} // namespace detail

/// Applies an elementwise operation to scalars, some of which carry derivatives: computes the
/// value, and the chain rule through the operation's own vjp.
template <class Op, scalar... Args>
    requires((derivative_depth<Args> > 0) || ...)
TG_INLINE constexpr auto apply_scalar(const Args&... args) {
    return detail::carrier<typename detail::deepest<Args...>::type>::template apply<Op>(args...);
}

} // namespace tapegraph
