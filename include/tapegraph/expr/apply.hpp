#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/core/math/bits.hpp>
#include <tapegraph/expr/expr.hpp>

#include <source_location>
#include <type_traits>

/// The dispatch points: every operation a user writes passes through `apply` (elementwise, lazy),
/// `reduce` (a reduction of an unsealed formula) or `invoke` (everything else). The operands alone
/// decide what happens there.

namespace tapegraph {

/// A scalar that carries derivatives; its header specialises this and gives `apply_scalar`.
template <class T>
inline constexpr bool is_differential_scalar = false;

/// A scalar whose comparisons are part of what is recorded, not answers.
template <class T>
inline constexpr bool is_conditional_scalar = false;

/// A number of the language.
template <class T>
concept arithmetic = std::is_arithmetic_v<T>;

/// A number, or one that carries derivatives, as gradients of plain functions use.
template <class T>
concept scalar = arithmetic<T> || is_differential_scalar<T>;

/// Arguments that an elementwise function accepts.
template <class T>
concept operand = tensor_like<T> || scalar<T> || std::is_same_v<T, number> || is_typed_number<T>;

/// For operators: at least one operand must be the library's, or every `1 + 2` of a program would
/// be a candidate.
template <class... T>
concept operands = (operand<T> && ...) && ((!arithmetic<T>) || ...);

namespace detail {
template <class T>
constexpr auto leaf(const T& value) {
    if constexpr (arithmetic<T>)
        return number{static_cast<double>(value)};
    else if constexpr (is_typed_number<T>)
        return number{static_cast<double>(value.value)};
    else
        return value;
}

// The common element type of typed numbers; results of comparisons (bool) do not count.
template <class... Args>
struct common_number {
    using type = bool;
};
template <class First, class... Rest>
struct common_number<First, Rest...> : common_number<Rest...> {};
template <class T, class... Rest>
    requires(!std::is_same_v<T, bool>)
struct common_number<typed_number<T>, Rest...> {
    using type = T;
};
template <class T, class Arg>
constexpr auto plain(const Arg& arg) {
    if constexpr (is_typed_number<Arg>)
        return arg.value;
    else if constexpr (std::is_same_v<Arg, number>)
        return static_cast<T>(arg.value);
    else
        return static_cast<T>(arg);
}

template <class Op, class... T>
struct common_scalar {
    using common = std::common_type_t<T...>;
    using type = std::conditional_t<std::is_integral_v<common> && !Op::integers, double, common>;
};
} // namespace detail

/// Applies an elementwise operation: tensors give a lazy expression, plain scalars the value.
template <class Op, operand... Args>
TG_INLINE constexpr auto apply(const Args&... args) {
    if constexpr ((tensor_like<Args> || ...)) {
        return expr<Op, decltype(detail::leaf(args))...>(detail::leaf(args)...);
    } else if constexpr ((is_typed_number<Args> || ...)) {
        const auto value = apply<Op>(detail::plain<typename detail::common_number<Args...>::type>(args)...);
        using T = std::remove_const_t<decltype(value)>;
        if constexpr (std::is_floating_point_v<T>)
            return typed_number<T>{math::detail::product(value, T(1))}; // not contracted with a following operation
        else
            return typed_number<T>{value};
    } else if constexpr ((is_differential_scalar<Args> || ...)) {
        return apply_scalar<Op>(args...);
    } else if constexpr (Op::condition_operands == 0) {
        using common = typename detail::common_scalar<Op, Args...>::type;
        return Op::value(static_cast<common>(args)...);
    } else {
        return [](bool condition, const auto&... rest) {
            using common = typename detail::common_scalar<Op, std::remove_cvref_t<decltype(rest)>...>::type;
            return Op::value(condition, static_cast<common>(rest)...);
        }(args...);
    }
}

namespace detail {
// A mode whose handles all have one type declares it as `node`. Results then have that type instead
// of a deduced one: derivatives of operations refer to one another in circles, and clang resolves
// them while the first is still being looked up.
template <class Mode>
concept one_handle = requires { typename Mode::node; };
} // namespace detail

/// Computes an operation that is not elementwise; its operands are sealed first. `target` is the
/// requested shape, for operations that take one (reshape, broadcast_to).
template <class Op, tensor_like... Args>
    requires(!detail::one_handle<mode_of_t<Args...>>)
constexpr auto invoke(const typename Op::attributes& attributes, const shape* target, std::source_location where,
                      const Args&... args) {
    return mode_of_t<Args...>::template invoke<Op>(attributes, target, where, args...);
}
template <class Op, tensor_like... Args>
    requires detail::one_handle<mode_of_t<Args...>>
constexpr typename mode_of_t<Args...>::node invoke(const typename Op::attributes& attributes, const shape* target,
                                                   std::source_location where, const Args&... args) {
    return mode_of_t<Args...>::template invoke<Op>(attributes, target, where, args...);
}

/// Draws random numbers of the given shape. The operation has no operands; `like` only selects the
/// mode, which numbers the operation in its random stream.
template <class Op, handle Like>
constexpr auto draw(const typename Op::attributes& attributes, const shape& dims, std::source_location where,
                    const Like& like) {
    return mode_of_t<Like>::template draw<Op>(attributes, dims, where, like);
}
/// Draws random numbers as `draw` does, of the element type of `like`.
template <template <class> class Op, handle Like>
constexpr Like draw_like(const typename Op<float>::attributes& attributes, const shape& dims, std::source_location where,
                         const Like& like) {
    return mode_of_t<Like>::template draw_like<Op>(attributes, dims, where, like);
}

/// Computes an operation of any number of operands, which are sealed handles of one type.
template <class Op, handle H>
constexpr H invoke_list(const typename Op::attributes& attributes, std::source_location where, const H* parts, int count) {
    return mode_of_t<H>::template invoke_list<Op>(attributes, where, parts, count);
}

/// Computes a reduction whose operand may be an unsealed formula, which becomes part of the reduction's kernel.
template <class Op, tensor_like Arg>
    requires(!detail::one_handle<mode_of_t<Arg>>)
constexpr auto reduce(const typename Op::attributes& attributes, std::source_location where, const Arg& arg) {
    return mode_of_t<Arg>::template reduce<Op>(attributes, where, arg);
}
template <class Op, tensor_like Arg>
    requires detail::one_handle<mode_of_t<Arg>>
constexpr typename mode_of_t<Arg>::node reduce(const typename Op::attributes& attributes, std::source_location where,
                                               const Arg& arg) {
    return mode_of_t<Arg>::template reduce<Op>(attributes, where, arg);
}

/// Gives a formula a value: seals it into a handle. A handle is returned as it is.
template <tensor_like Arg>
constexpr auto eval(const Arg& arg, std::source_location where = std::source_location::current()) {
    return mode_of_t<Arg>::seal(arg, where);
}

template <class T>
constexpr typed_number<T> eval(typed_number<T> value, std::source_location = std::source_location::current()) {
    return value;
}

/// A number that depends on extents (a count, for a mean), as an operand for formulas of `like`.
template <tensor_like Like>
constexpr auto extent_number(const Like& like, extent value) {
    return mode_of_t<Like>::extent_number(like, value);
}

/// The shape of a handle or formula.
template <tensor_like Arg>
constexpr shape shape_of(const Arg& arg) {
    return mode_of_t<Arg>::shape_of(arg);
}

/// Evaluates a formula of tensors so that it can be printed; while a graph is traced, gives the
/// formula's shape.
template <expression E>
std::string to_string(const E& e) {
    if constexpr (requires { eval(e).data(); })
        return to_string(eval(e));
    else
        return "formula" + to_string(shape_of(e));
}

} // namespace tapegraph
