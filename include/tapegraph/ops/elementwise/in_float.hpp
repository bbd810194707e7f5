#pragma once

#include <tapegraph/core/element_types.hpp>
#include <tapegraph/expr/apply.hpp>
#include <tapegraph/ops/elementwise/cast.hpp>

/// Computes functions of several steps, such as softmax, on 16-bit elements: in float, rounded once
/// at the end. Rounding every step would lose digits that the result could have, and half cannot
/// represent counts beyond 65504.

namespace tapegraph::detail {

/// The element type of a handle or formula.
constexpr dtype type_of(const number&) { return dtype::boolean; } // takes its neighbours' type
template <handle A>
constexpr dtype type_of(const A& x) {
    if constexpr (requires { typename A::element_type; })
        return dtype_of<typename A::element_type>;
    else
        return x.type();
}
template <class Op, class... Args>
constexpr dtype type_of(const expr<Op, Args...>& e) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        dtype common = dtype::f32;
        bool found = false;
        const auto look = [&](int index, bool counts, dtype type) {
            if (found || !counts || index < Op::condition_operands) return;
            common = type;
            found = true;
        };
        (look(static_cast<int>(I), !std::is_same_v<Args, number>, type_of(e.template get<I>())), ...);
        return Op::result_type(common);
    }(std::index_sequence_for<Args...>{});
}

// The element type of an argument where types are known without values (eager mode).
template <class A>
struct static_type {
    static constexpr dtype value = dtype::boolean;
};
template <handle A>
struct static_type<A> {
    static constexpr dtype make() {
        if constexpr (requires { typename A::element_type; })
            return dtype_of<typename A::element_type>;
        else // a handle over another
            return static_type<std::remove_cvref_t<decltype(std::declval<const A&>().whole())>>::value;
    }
    static constexpr dtype value = make();
};
template <class Op, class... Args>
struct static_type<expr<Op, Args...>> {
    static constexpr dtype make() {
        constexpr dtype types[]{static_type<Args>::value...};
        constexpr bool counts[]{!std::is_same_v<Args, number>...};
        for (int i = Op::condition_operands; i < static_cast<int>(sizeof...(Args)); ++i)
            if (counts[i]) return Op::result_type(types[i]);
        return Op::result_type(dtype::f32);
    }
    static constexpr dtype value = make();
};

/// Converts 16-bit elements of x to float; returns other handles unchanged.
template <handle A>
constexpr auto as_float(const A& x, std::source_location where) {
    if constexpr (one_handle<mode_of_t<A>>)
        return is_storage_type(type_of(x)) ? A(eval(cast<float>(x), where)) : x;
    else if constexpr (is_storage_type(static_type<A>::value))
        return eval(cast<float>(x), where);
    else
        return x;
}
/// A node, rounded to an element type if that has 16 bits.
template <class Node>
constexpr Node rounded_to_storage(const Node& wide, dtype type, std::source_location where) {
    Node result = wide;
    storage_types::visit(type, [&]<class T>(std::type_identity<T>) { result = eval(cast<T>(wide), where); });
    return result;
}
/// Rounds a value computed from as_float to the type of `like` where that has 16 bits.
template <handle L, handle A>
constexpr auto rounded_like(const L& like, const A& wide, std::source_location where) {
    if constexpr (one_handle<mode_of_t<A>>)
        return rounded_to_storage(wide, type_of(like), where);
    else if constexpr (is_storage_type(static_type<L>::value))
        return eval(cast<element_t<static_type<L>::value>>(wide), where);
    else
        return wide;
}

/// f(x); for 16-bit elements f(cast<float>(x)), rounded. Both modes seal alike, so that adjoints
/// add in the same order.
template <tensor_like A, class F>
    requires one_handle<mode_of_t<A>>
constexpr auto in_float(const A& x, std::source_location where, const F& f) {
    using node = typename mode_of_t<A>::node;
    const dtype type = type_of(x);
    if (!is_storage_type(type)) return node(f(x));
    // Converted back to a node, so that programs without these types do not compile f a second
    // time.
    const node wide(f(node(eval(cast<float>(node(eval(x, where))), where))));
    return rounded_to_storage(wide, type, where);
}
template <tensor_like A, class F>
    requires(!one_handle<mode_of_t<A>>)
constexpr auto in_float(const A& x, std::source_location where, const F& f) {
    constexpr dtype type = static_type<A>::value;
    if constexpr (is_storage_type(type))
        return eval(cast<element_t<type>>(f(eval(cast<float>(eval(x, where)), where))), where);
    else
        return f(x);
}

} // namespace tapegraph::detail
