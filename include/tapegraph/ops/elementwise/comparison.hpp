#pragma once

#include <tapegraph/core/math/rounding.hpp>
#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/operation.hpp>

/// Comparisons, logic, is_nan and similar tests. They return bool and have no derivative. `==`
/// compares elements, as in NumPy.

namespace tapegraph {

namespace detail {
/// The result type of a test; for scalars that carry derivatives, a plain bool about their values.
template <class T>
TG_INLINE constexpr auto without_derivatives(const T& x) {
    if constexpr (requires { x.value(); }) // a number that records
        return without_derivatives(x.value());
    else if constexpr (is_differential_scalar<T>)
        return without_derivatives(x.value);
    else
        return x;
}
template <class Op, class... Args>
TG_INLINE constexpr auto answer(const Args&... x) {
    if constexpr ((is_differential_scalar<Args> || ...) && (!is_conditional_scalar<Args> && ...))
        return apply<Op>(without_derivatives(x)...);
    else
        return apply<Op>(x...);
}
} // namespace detail

// One structure per comparison, identical except for the operator. Scalars that carry derivatives
// compare by themselves, also with numbers, and return a plain bool.
#define TG_COMPARISON(word, sign)                                                                                      \
    struct word##_op : predicate_op<2> {                                                                               \
        static constexpr std::string_view name = #word;                                                                \
        template <class V>                                                                                             \
        TG_HD static constexpr bool value(V x, V y) {                                                                  \
            return x sign y;                                                                                           \
        }                                                                                                              \
    };                                                                                                                 \
    template <class A, class B>                                                                                        \
        requires operands<A, B> &&(!scalar<A> || !scalar<B>)TG_INLINE constexpr auto operator sign(const A& x,         \
                                                                                                   const B& y) {       \
            return apply<word##_op>(x, y);                                                                             \
        }                                                                                                              \
        template <operand A, operand B>                                                                                \
        TG_INLINE constexpr auto word(const A& x, const B& y) {                                                        \
            return detail::answer<word##_op>(x, y);                                                                    \
        }

TG_COMPARISON(less, <)
TG_COMPARISON(less_equal, <=)
TG_COMPARISON(greater, >)
TG_COMPARISON(greater_equal, >=)
TG_COMPARISON(equal, ==)
TG_COMPARISON(not_equal, !=)
#undef TG_COMPARISON

struct logical_and_op : predicate_op<2> {
    static constexpr std::string_view name = "logical_and";
    template <class V>
    TG_HD static constexpr bool value(V x, V y) {
        return bool(x) & bool(y);
    }
};
struct logical_or_op : predicate_op<2> {
    static constexpr std::string_view name = "logical_or";
    template <class V>
    TG_HD static constexpr bool value(V x, V y) {
        return bool(x) | bool(y);
    }
};
struct logical_xor_op : predicate_op<2> {
    static constexpr std::string_view name = "logical_xor";
    template <class V>
    TG_HD static constexpr bool value(V x, V y) {
        return bool(x) != bool(y);
    }
};
struct logical_not_op : predicate_op<1> {
    static constexpr std::string_view name = "logical_not";
    template <class V>
    TG_HD static constexpr bool value(V x) {
        return !bool(x);
    }
};

/// Whether both are true (not 0), element by element with broadcasting; a tensor of bool.
template <operand A, operand B>
TG_INLINE constexpr auto logical_and(const A& x, const B& y) {
    return detail::answer<logical_and_op>(x, y);
}
/// Whether one of both is true (not 0), element by element with broadcasting.
template <operand A, operand B>
TG_INLINE constexpr auto logical_or(const A& x, const B& y) {
    return detail::answer<logical_or_op>(x, y);
}
/// Whether exactly one of both is true (not 0), element by element with broadcasting.
template <operand A, operand B>
TG_INLINE constexpr auto logical_xor(const A& x, const B& y) {
    return detail::answer<logical_xor_op>(x, y);
}
/// Whether the element is false (0).
template <operand A>
TG_INLINE constexpr auto logical_not(const A& x) {
    return detail::answer<logical_not_op>(x);
}

// The signs are of elements, too: both sides are computed.
/// `logical_and`; both sides are evaluated.
template <class A, class B>
    requires operands<A, B> && (tensor_like<A> || tensor_like<B>)
TG_INLINE constexpr auto operator&&(const A& x, const B& y) {
    return apply<logical_and_op>(x, y);
}
/// `logical_or`; both sides are evaluated.
template <class A, class B>
    requires operands<A, B> && (tensor_like<A> || tensor_like<B>)
TG_INLINE constexpr auto operator||(const A& x, const B& y) {
    return apply<logical_or_op>(x, y);
}
/// `logical_not`.
template <tensor_like A>
TG_INLINE constexpr auto operator!(const A& x) {
    return apply<logical_not_op>(x);
}

// Questions about single elements; integers are finite.
struct is_nan_op : predicate_op<1> {
    static constexpr std::string_view name = "is_nan";
    template <class V>
    TG_HD static constexpr bool value(V x) {
        return x != x;
    }
};
struct is_inf_op : predicate_op<1> {
    static constexpr std::string_view name = "is_inf";
    template <class V>
    TG_HD static constexpr bool value(V x) {
        if constexpr (std::is_floating_point_v<V>)
            return math::abs(x) == math::detail::traits<V>::infinity;
        else
            return false;
    }
};
struct is_finite_op : predicate_op<1> {
    static constexpr std::string_view name = "is_finite";
    template <class V>
    TG_HD static constexpr bool value(V x) {
        if constexpr (std::is_floating_point_v<V>)
            return math::is_finite(x);
        else
            return true;
    }
};

/// Whether each element is NaN.
template <operand A>
TG_INLINE constexpr auto is_nan(const A& x) {
    return detail::answer<is_nan_op>(x);
}
/// Whether each element is infinite.
template <operand A>
TG_INLINE constexpr auto is_inf(const A& x) {
    return detail::answer<is_inf_op>(x);
}
/// Whether each element is neither infinite nor NaN.
template <operand A>
TG_INLINE constexpr auto is_finite(const A& x) {
    return detail::answer<is_finite_op>(x);
}
// The names above are TensorFlow's; these are those of NumPy and PyTorch.
/// `is_nan` by NumPy's and the standard library's name.
template <operand A>
TG_INLINE constexpr auto isnan(const A& x) {
    return is_nan(x);
}
/// `is_inf` by NumPy's and the standard library's name.
template <operand A>
TG_INLINE constexpr auto isinf(const A& x) {
    return is_inf(x);
}
/// `is_finite` by NumPy's and the standard library's name.
template <operand A>
TG_INLINE constexpr auto isfinite(const A& x) {
    return is_finite(x);
}

} // namespace tapegraph
