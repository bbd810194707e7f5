#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/eager/gradient_tape.hpp>
#include <tapegraph/eager/transforms.hpp>
#include <tapegraph/expr/transforms.hpp>
#include <tapegraph/ops/ops.hpp>
#include <tapegraph/scalar/tensors/number_tensor.hpp>
#include <tapegraph/scalar/transforms.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// Functions of numbers in code of tensors: one operation of eager mode, whose derivatives the tape of numbers takes.

namespace tapegraph {
namespace scalars {

/// What a function of numbers returns, as one tensor.
template <class T, class Y>
tensor<T> result_tensor(const Y& y) {
    if constexpr (sequence<Y>) {
        shape dims{static_cast<std::int64_t>(length(y))};
        if constexpr (requires { y.shape(); }) dims = y.shape();
        auto t = tensor<T>::uninitialized(dims);
        T* const to = t.mutable_data();
        for (std::size_t i = 0; i < length(y); ++i) to[i] = static_cast<T>(element(y, i));
        return t;
    } else {
        return tensor<T>(static_cast<T>(y));
    }
}
/// All numbers in a structure, as one tensor of rank 1.
template <class T, class... Y>
tensor<T> flat_tensor(const Y&... y) {
    std::vector<T> all;
    (for_each_number([&](const auto& number) { all.push_back(static_cast<T>(number)); }, y), ...);
    return tensor<T>(all);
}
/// Parts of the elements of a tensor of rank 1, with the shapes of others: an operation on the tape.
template <class T, class... Like>
auto parted(const tensor<T>& flat, const Like&... like) {
    std::int64_t next = 0;
    const auto take = [&](const any_tensor& x) {
        const std::int64_t first = next;
        next += x.size();
        const tensor<T> part = slice(flat, {{first, next}});
        return tensor<T>(reshape(part, x.shape()));
    };
    return std::tuple<std::conditional_t<true, tensor<T>, Like>...>{take(like)...}; // braces: in order
}

// The derivatives of f, whose Jacobian at x is J, with D[v] the derivative by x along v. Backward functions of custom_gradient
// take the adjoint, the value, and the arguments; flat tensors hold derivatives by several arguments, one after the other.

/// J'u by all arguments.
template <class F>
struct first_pull {
    F f;
    template <class T, class... X>
    auto operator()(const tensor<T>& u, const X&... x) const {
        return flat_tensor<T>(vjp_of<F>{f}(number_tensor<T>(u), number_tensor<T>(x)...).gradient);
    }
};
/// Of w'J'u: J w by u, and D[w] J'u by x, because second derivatives are symmetric.
template <class F>
struct second_pull {
    F f;
    template <class T, class... X>
    auto operator()(const tensor<T>& w, const tensor<T>& u, const X&... x) const {
        const std::tuple points{number_tensor<T>(x)...};
        const auto along = numbers_of(parted(w, x...));
        return flat_tensor<T>(jvp_of<F>{f}(points, along).tangent, push_of_pull(f, u, points, along));
    }
    template <class T, class... X>
    static auto numbers_of(const std::tuple<tensor<T>, X...>& parts) {
        return std::apply([](const auto&... each) { return std::tuple{number_tensor<T>(each)...}; }, parts);
    }
    /// D[along] J'u
    template <class T, class Points, class Along>
    static auto push_of_pull(const F& f, const tensor<T>& u, const Points& points, const Along& along) {
        const number_tensor<T> weights(u);
        const auto pull = [&](const auto&... at) { return vjp_of<F>{f}(weights, at...).gradient; };
        return jvp_of<decltype(pull)>{pull}(points, along).tangent;
    }
};
/// Of z0'J w + z'D[w] J'u: J'z0 + D[z] J'u by w, D[z] D[w] f by u, and D[w] J'z0 + D[z] D[w] J'u by x. The second
/// derivatives in forward mode need it, which is the transpose of the transpose.
template <class F>
struct third_pull {
    F f;
    template <class T, class... X>
    auto operator()(const tensor<T>& adjoint, const tensor<T>& w, const tensor<T>& u, const X&... x) const {
        using second = second_pull<F>;
        const std::tuple points{number_tensor<T>(x)...};
        const auto parts = parted(adjoint, u, x...);
        const tensor<T> z0 = std::get<0>(parts);
        const auto z =
            std::apply([](const auto&, const auto&... each) { return std::tuple{number_tensor<T>(each)...}; }, parts);
        const auto along = second::numbers_of(parted(w, x...));
        const auto pushed = [&](const auto&... at) { return jvp_of<F>{f}(std::tuple{at...}, along).tangent; };
        const number_tensor<T> weights(u);
        const auto pull = [&](const auto&... at) { return vjp_of<F>{f}(weights, at...).gradient; };
        const auto both = [&](const auto&... at) {
            return jvp_of<decltype(pull)>{pull}(std::tuple{at...}, along).tangent;
        };
        const tensor<T> by_w = first_pull<F>{f}(z0, x...) + flat_tensor<T>(second::push_of_pull(f, u, points, z));
        const tensor<T> by_x = flat_tensor<T>(second::push_of_pull(f, z0, points, along)) +
                               flat_tensor<T>(jvp_of<decltype(both)>{both}(points, z).tangent);
        return flat_tensor<T>(number_tensor(by_w), jvp_of<decltype(pushed)>{pushed}(points, z).tangent,
                              number_tensor(by_x));
    }
};
struct no_further_derivative {
    template <class T, class... X>
    auto operator()(const tensor<T>&, const tensor<T>&, const X&...) const {
        throw argument_error("with_numbers: third derivatives are not taken; write the function with tensors");
        return std::tuple<X...>{};
    }
};

template <class F>
struct third_backward {
    F f;
    template <class T, class... X>
    auto operator()(const tensor<T>& adjoint, const tensor<T>&, const tensor<T>& w, const X&... u_and_x) const {
        return parted(custom_gradient(third_pull<F>{f}, no_further_derivative{})(adjoint, w, u_and_x...), w,
                      u_and_x...);
    }
};
template <class F>
struct second_backward {
    F f;
    template <class T, class... X>
    auto operator()(const tensor<T>& w, const tensor<T>&, const tensor<T>& u, const X&... x) const {
        return parted(custom_gradient(second_pull<F>{f}, third_backward<F>{f})(w, u, x...), u, x...);
    }
};
template <class F>
struct first_backward {
    F f;
    template <class T, class... X>
    auto operator()(const tensor<T>& u, const tensor<T>&, const X&... x) const {
        return parted(custom_gradient(first_pull<F>{f}, second_backward<F>{f})(u, x...), x...);
    }
};

template <class F>
struct values_of_numbers {
    F f;
    template <class T, class... X>
    auto operator()(const tensor<T>& first, const X&... x) const {
        return result_tensor<T>(f(number_tensor<T>(first), number_tensor<T>(x)...));
    }
};
template <class First, class... X>
concept eager_numbers = std::is_same_v<mode_of_t<First, X...>, eager> && requires(const First& first, const X&... x) {
    requires std::floating_point<typename decltype(eval(first))::element_type>;
    requires(std::is_same_v<typename decltype(eval(x))::element_type, typename decltype(eval(first))::element_type> &&
             ...);
};
template <class Y>
inline constexpr bool returns_numbers = arithmetic<std::remove_cvref_t<Y>> || number_sequence<std::remove_cvref_t<Y>>;
} // namespace scalars

/// with_numbers(f) as a function object.
template <class F>
struct with_numbers_of {
    F f;

    /// Calls the function of numbers on the tensors' elements; tapes and transforms see its derivatives.
    template <tensor_like First, tensor_like... X>
        requires scalars::eager_numbers<First, X...>
    auto operator()(const First& first, const X&... x) const {
        using T = typename decltype(eval(first))::element_type;
        using result = decltype(f(number_tensor<T>(eval(first)), number_tensor<T>(eval(x))...));
        if constexpr (scalars::returns_numbers<result>) {
            return custom_gradient(scalars::values_of_numbers<F>{f}, scalars::first_backward<F>{f})(first, x...);
        } else {
            static_assert(always_false<F>, "with_numbers: the function returns a number, or a sequence of numbers");
            return tensor<T>{}; // one error is enough
        }
    }
#ifdef TG_REFUSED
    /// Has a result, so that nothing more is said of the call.
    template <tensor_like First, tensor_like... X>
        requires(!scalars::eager_numbers<First, X...>)
    TG_REFUSED("with_numbers: arguments are tensors of double, or of float, in eager mode; in graph mode write the "
               "function with tensors")
    constexpr auto operator()(const First& first, const X&...) const { return eval(first); }
#endif
};

/// with_numbers(f)(x...): a function of numbers, called with tensors in eager mode. f is a template of its arguments
/// (`const auto& a`): each is a number_tensor of plain numbers, and when derivatives are taken, of tg::real or jets. It
/// returns a number (a tensor of rank 0) or a sequence of numbers (its shape, or rank 1). The call is one record of a
/// gradient_tape, whose first and second derivatives, forward and reverse, are those of gradient, jvp and vjp of numbers.
/// f must do the same whenever it is called, and is kept with the tape.
template <class F>
constexpr auto with_numbers(F f) {
    return with_numbers_of<F>{std::move(f)};
}

} // namespace tapegraph
