#pragma once

#include <tapegraph/expr/apply.hpp>

#include <tuple>
#include <utility>

/// The operations that each mode must provide for function transforms.

namespace tapegraph {

/// Each mode specialises it with:
/// - `custom(f, backward, where, x...)`: f(x...), differentiated by backward; x are handles;
/// - `checkpoint(f, where, x...)`: f(x...), whose intermediate values are recomputed for the derivative;
/// - `effect<Op>(x, where)`: runs an operation that has no result, in program order;
/// - `refuse(like, what, first, second)`: reports shapes that do not fit.
template <class Mode>
struct mode_transforms;

/// Returned by a backward function in place of a derivative that does not exist, such as that by an integer operand.
struct no_gradient_t {};
inline constexpr no_gradient_t no_gradient{};

namespace detail {

/// backward(dy, y, x...) or, where it does not take y, backward(dy, x...).
template <class B, class Y, class... X>
constexpr auto call_backward(const B& backward, const Y& dy, const Y& y, const X&... x) {
    if constexpr (std::is_invocable_v<const B&, const Y&, const Y&, const X&...>)
        return backward(dy, y, x...);
    else
        return backward(dy, x...);
}

template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;

/// Derivative I from the result of a backward function: one value or a tuple.
template <std::size_t I, std::size_t Count, class Flows>
constexpr decltype(auto) flow_at(const Flows& flows) {
    if constexpr (is_tuple<Flows>) {
        static_assert(std::tuple_size_v<Flows> == Count,
                      "custom_gradient: backward returns one derivative per argument of forward");
        return std::get<I>(flows);
    } else {
        static_assert(Count == 1, "custom_gradient: backward returns a tuple, one derivative per argument of forward");
        return (flows);
    }
}

inline constexpr const char* wrong_flow = "custom_gradient: a derivative has another shape or type than its argument";

} // namespace detail

/// custom_gradient(forward, backward) as a function object; empty when both are.
template <class F, class B>
struct custom_gradient_of {
    [[no_unique_address]] F forward;
    [[no_unique_address]] B backward;

    /// The forward function's values, with the derivative of the backward function.
    template <tensor_like... Args>
    constexpr auto operator()(const Args&... args) const {
        constexpr auto where = std::source_location::current();
        return std::apply(
            [&](const auto&... sealed) {
                return mode_transforms<mode_of_t<Args...>>::custom(forward, backward, where, sealed...);
            },
            std::tuple<decltype(eval(args, where))...>{eval(args, where)...}); // braces: in order
    }
};

/// A function whose derivative the user defines. Its value is forward(x...). Given dy, the derivative of the loss by that value,
/// backward(dy, x...) or backward(dy, y, x...) returns the derivative by each argument, of the argument's shape and type:
/// one tensor, or a std::tuple of them, with `tg::no_gradient` where there is none. Neither the inside of forward nor what it
/// captures is differentiated. Backward is differentiated for higher derivatives. Where the compiler makes the graph, it may not capture.
///
///     constexpr auto round_through = tg::custom_gradient([](auto x) { return tg::round(x); },
///                                                        [](auto dy, auto) { return dy; });
template <class F, class B>
constexpr auto custom_gradient(F forward, B backward) {
    return custom_gradient_of<F, B>{forward, backward};
}

/// checkpoint(f) as a function object.
template <class F>
struct checkpoint_of {
    [[no_unique_address]] F f;

    /// The function's values; what is inside is computed again by the backward pass.
    template <tensor_like... Args>
    constexpr auto operator()(const Args&... args) const {
        constexpr auto where = std::source_location::current();
        return std::apply(
            [&](const auto&... sealed) { return mode_transforms<mode_of_t<Args...>>::checkpoint(f, where, sealed...); },
            std::tuple<decltype(eval(args, where))...>{eval(args, where)...}); // braces: in order
    }
};

/// Trades time for memory: the values computed inside f are not kept for the derivative but
/// recomputed when it is taken. f returns one tensor. It may use variables and random numbers; the
/// second run draws the same ones. In eager mode f is kept until the gradient is taken, so it must
/// capture by value.
template <class F>
constexpr auto checkpoint(F f) {
    return checkpoint_of<F>{f};
}

} // namespace tapegraph
