#pragma once

#include <tapegraph/expr/apply.hpp>
#include <tapegraph/expr/operation.hpp>

/// Comparisons and logic. They answer bool and have no derivative. `==` compares elements, as in NumPy.

namespace tapegraph {

// One structure per comparison, alike but for the sign between the operands. Scalars that carry derivatives compare by
// themselves, with numbers too, and answer with a plain bool.
#define TG_COMPARISON(word, sign)                                                                                      \
    struct word##_op : predicate_op<2> {                                                                               \
        static constexpr std::string_view name = #word;                                                               \
        template <class V>                                                                                             \
        TG_HD static constexpr bool value(V x, V y) {                                                                  \
            return x sign y;                                                                                           \
        }                                                                                                              \
    };                                                                                                                 \
    template <class A, class B>                                                                                        \
        requires operands<A, B> && (tensor_like<A> || tensor_like<B>)                                                  \
    constexpr auto operator sign(const A& x, const B& y) {                                                             \
        return apply<word##_op>(x, y);                                                                                 \
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
struct logical_not_op : predicate_op<1> {
    static constexpr std::string_view name = "logical_not";
    template <class V>
    TG_HD static constexpr bool value(V x) {
        return !bool(x);
    }
};

template <tensor_like A, tensor_like B>
TG_INLINE constexpr auto logical_and(const A& x, const B& y) {
    return apply<logical_and_op>(x, y);
}
template <tensor_like A, tensor_like B>
TG_INLINE constexpr auto logical_or(const A& x, const B& y) {
    return apply<logical_or_op>(x, y);
}
template <tensor_like A>
TG_INLINE constexpr auto logical_not(const A& x) {
    return apply<logical_not_op>(x);
}

} // namespace tapegraph
