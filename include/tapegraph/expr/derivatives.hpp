#pragma once

#include <tapegraph/expr/differentiate.hpp>

/// Derivatives beyond the gradient, for scalars, eager tensors and graph nodes alike: vjp, jvp,
/// hvp, jacobian, hessian. Each returns a function object that is empty when f is, so it can be
/// compiled like f. A function's result may be a tensor, a tuple of results, or the result of
/// value_and_gradient.

namespace tapegraph {

/// The result of jvp; `tangent` has the structure of `value`.
template <class Value, class Tangent>
struct value_with_tangent {
    Value value;
    Tangent tangent;

    /// Both as a tuple, for structured bindings.
    constexpr auto parts() const { return std::tuple<Value, Tangent>{value, tangent}; }
};

/// The result of hvp. `gradient` and `product` are single values for a function of one argument.
template <class Value, class Gradient, class Product>
struct hessian_product {
    Value value;
    Gradient gradient;
    Product product;

    /// All three as a tuple, for structured bindings.
    constexpr auto parts() const { return std::tuple<Value, Gradient, Product>{value, gradient, product}; }
};

namespace detail {

/// A structure with named members that is decomposed and rebuilt by the position of its members.
template <class R>
concept result_record = requires(const R& r) {
    r.parts();
};

/// Applies g to every tensor or scalar of a result, in order, and keeps the structure.
template <class G, class R>
    requires(tensor_like<R> || scalar<R>)
constexpr auto map_results(const G& g, const R& r) { return g(r); }
template <class G, class T, std::size_t N>
constexpr auto map_results(const G& g, const std::array<T, N>& r);
template <class G, template <class...> class R, class... P>
    requires result_record<R<P...>>
constexpr auto map_results(const G& g, const R<P...>& r);
template <class G, class... R>
constexpr auto map_results(const G& g, const std::tuple<R...>& r) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) { // braces: in order
        return std::tuple<decltype(map_results(g, std::get<I>(r)))...>{map_results(g, std::get<I>(r))...};
    }
    (std::index_sequence_for<R...>{});
}
template <class G, class T, std::size_t N>
constexpr auto map_results(const G& g, const std::array<T, N>& r) {
    std::array<decltype(map_results(g, r[0])), N> result{};
    for (std::size_t i = 0; i < N; ++i) result[i] = map_results(g, r[i]);
    return result;
}
template <class G, template <class...> class R, class... P>
    requires result_record<R<P...>>
constexpr auto map_results(const G& g, const R<P...>& r) {
    return std::apply([](const auto&... part) { return R<std::remove_cvref_t<decltype(part)>...>{part...}; },
                      map_results(g, r.parts()));
}

/// The arguments [First, First + sizeof...(I)) of a list.
template <std::size_t First, class Tuple, std::size_t... I>
constexpr auto part_of(const Tuple& all, std::index_sequence<I...>) {
    return std::tuple<std::tuple_element_t<First + I, Tuple>...>{std::get<First + I>(all)...};
}

/// Error texts of both modes for directions and cotangents that do not match their values.
struct like_words {
    const char *role, *number, *shape;
};
inline constexpr like_words direction_words{"direction", "jvp: as many directions as arguments",
                                            "jvp: shape or element type of a direction differs"};
inline constexpr like_words cotangent_words{"cotangent", "vjp: as many cotangents as results",
                                            "vjp: shape or element type of a cotangent differs"};

/// Separates arguments and directions: two tuples, or all arguments and then all directions.
template <class G, class... Args>
constexpr auto with_directions(const G& g, const Args&... args) {
    static_assert(sizeof...(Args) > 0 && sizeof...(Args) % 2 == 0,
                  "one direction for each argument: f(x..., directions...) or f(tuple of x, tuple of directions)");
    if constexpr (sizeof...(Args) == 2 && ((!scalar<Args> && of_mode<Args, no_mode>)&&...)) {
        static_assert((std::tuple_size_v<Args> + ...) % 2 == 0, "one direction for each argument");
        return g(args...);
    } else {
        constexpr auto half = std::make_index_sequence<sizeof...(Args) / 2>{};
        const std::tuple<Args...> all{args...};
        return g(part_of<0>(all, half), part_of<sizeof...(Args) / 2>(all, half));
    }
}

/// A tensor function linearized at a point: `value`, push(tangents) and pull(cotangents). Modes
/// specialise it, in graph/derivatives.hpp and eager/derivatives.hpp.
template <class Mode, class F, class... X>
struct linearization;

template <class... X>
inline constexpr bool all_scalars = (scalar<X> && ...);

template <class... X>
struct floating_scalar {
    using type = std::common_type_t<std::conditional_t<arithmetic<X>, std::common_type_t<X, float>, X>...>;
};

template <class F, class... X, class... T, std::size_t... I>
constexpr auto push_scalars(const F& f, const std::tuple<X...>& x, const std::tuple<T...>& t,
                            std::index_sequence<I...>) {
    using number_type = typename floating_scalar<X..., T...>::type;
    using variable = dual<number_type, 1>;
    const auto seeded = [](const auto& at, const auto& along) {
        return variable::along(static_cast<number_type>(at), static_cast<number_type>(along));
    };
    const auto y = f(seeded(std::get<I>(x), std::get<I>(t))...);
    const auto value = map_results([](const auto& v) { return variable(v).value; }, y);
    const auto tangent = map_results([](const auto& v) { return variable(v).derivative(0); }, y);
    return value_with_tangent<std::remove_cv_t<decltype(value)>, std::remove_cv_t<decltype(tangent)>>{value, tangent};
}

/// For each scalar of f's result, the array of its derivatives (a single derivative for one
/// argument).
template <class F, class... X>
constexpr auto differentiate_each(const F& f, const X&... x) {
    using number_type = typename floating_scalar<X...>::type;
    constexpr int count = sizeof...(X);
    using variable = dual<number_type, count>;
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        unsigned origins = count;
        const auto y = f(variable::variable(static_cast<number_type>(x), static_cast<int>(I), &origins)...);
        const auto value = map_results([](const auto& v) { return variable(v).value; }, y);
        const auto rows = map_results(
            [](const auto& v) {
                const variable each(v);
                return unwrapped(std::array<number_type, sizeof...(I)>{each.derivative(static_cast<int>(I))...});
            },
            y);
        return value_with_gradient<std::remove_cv_t<decltype(value)>, std::remove_cv_t<decltype(rows)>>{value, rows};
    }
    (std::index_sequence_for<X...>{});
}

// sum over the results of cotangent times row
template <class Row, class C>
    requires scalar<C>
constexpr void add_rows(Row& sum, const C& cotangent, const Row& row) {
    if constexpr (scalar<Row>)
        sum = sum + cotangent * row;
    else
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i] + cotangent * row[i];
}
template <class Row, class C, class Rows>
    requires(!scalar<C>)
constexpr void add_rows(Row& sum, const C& cotangents, const Rows& rows) {
    static_assert(std::tuple_size_v<C> == std::tuple_size_v<Rows>, "vjp: one cotangent for each result");
    [&]<std::size_t... I>(std::index_sequence<I...>) {
        (add_rows(sum, std::get<I>(cotangents), std::get<I>(rows)), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<C>>{});
}

} // namespace detail

/// vjp(f)(cotangent, x...): f's value, and as `gradient` the cotangent times f's Jacobian by every
/// argument. The cotangent has the structure of f's result, and each part the shape of its tensor.
template <class F>
struct vjp_of {
    [[no_unique_address]] F f;

    /// The derivatives of the cotangent's product with f(x...), by each argument.
    constexpr auto operator()(const auto& cotangent, const auto&... x) const {
        if constexpr (detail::all_scalars<std::remove_cvref_t<decltype(x)>...>) {
            const auto each = detail::differentiate_each(f, x...);
            using number_type = typename detail::floating_scalar<std::remove_cvref_t<decltype(x)>...>::type;
            decltype(detail::unwrapped(std::array<number_type, sizeof...(x)>{})) sum{};
            detail::add_rows(sum, cotangent, each.gradient);
            return value_with_gradient<decltype(each.value), decltype(sum)>{each.value, sum};
        } else {
            using mode = mode_of_t<std::remove_cvref_t<decltype(x)>...>;
            detail::linearization<mode, F, std::remove_cvref_t<decltype(x)>...> at(f, x...);
            auto gradient = detail::unwrapped(at.pull(cotangent, "vjp"));
            return value_with_gradient<decltype(at.value), decltype(gradient)>{at.value, gradient};
        }
    }
};

/// jvp(f)(x..., directions...) or jvp(f)(tuple of x, tuple of directions): f's value and its derivative along the directions.
template <class F>
struct jvp_of {
    [[no_unique_address]] F f;

    /// f(x...) and its derivative in a direction: arguments first, then a direction for each.
    constexpr auto operator()(const auto&... args) const {
        return detail::with_directions(
            [this]<class... X, class... T>(const std::tuple<X...>& x, const std::tuple<T...>& t) {
                static_assert(sizeof...(X) == sizeof...(T), "jvp: one direction for each argument");
                if constexpr (detail::all_scalars<X...>) {
                    return detail::push_scalars(f, x, t, std::index_sequence_for<X...>{});
                } else {
                    return std::apply(
                        [&](const X&... each) {
                            detail::linearization<mode_of_t<X...>, F, X...> at(f, each...);
                            auto tangent = at.push(t, "jvp");
                            return value_with_tangent<decltype(at.value), decltype(tangent)>{at.value, tangent};
                        },
                        x);
                }
            },
            args...);
    }
};

/// hvp(f)(x..., directions...) or with two tuples: f's value, gradient, and the Hessian times the directions, by forward mode
/// over the gradient. A tensor-valued f counts as the sum of its elements.
template <class F>
struct hvp_of {
    [[no_unique_address]] F f;

    /// f(x...), its gradient and the Hessian's product with a direction: arguments first, then a direction for each.
    constexpr auto operator()(const auto&... args) const {
        const auto r = jvp_of<value_and_gradient_of<F>>{{f}}(args...);
        return hessian_product<decltype(r.value.value), decltype(r.value.gradient), decltype(r.tangent.gradient)>{
            r.value.value, r.value.gradient, r.tangent.gradient};
    }
};

/// How a Jacobian is computed: one sweep per element of the arguments (forward) or of the results
/// (reverse); automatic picks the fewer.
enum class sweep_direction { automatic, forward, reverse };

/// jacobian(f)(x...): d(result)/d(argument), of shape [result..., argument...]. Several arguments
/// give a tuple of these, several results a structure like the result's.
template <class F, sweep_direction Direction = sweep_direction::automatic>
struct jacobian_of {
    [[no_unique_address]] F f;

    /// df[i]/dx[k] by each argument: the result's axes, then the argument's.
    constexpr auto operator()(const auto&... x) const {
        if constexpr (detail::all_scalars<std::remove_cvref_t<decltype(x)>...>) {
            return detail::differentiate_each(f, x...).gradient;
        } else {
            using mode = mode_of_t<std::remove_cvref_t<decltype(x)>...>;
            detail::linearization<mode, F, std::remove_cvref_t<decltype(x)>...> at(f, x...);
            return at.jacobian(std::integral_constant<sweep_direction, Direction>{});
        }
    }
};

/// The function that takes a cotangent and f's arguments and returns the cotangent's product with f's Jacobian.
template <class F>
constexpr auto vjp(F f) {
    return vjp_of<F>{f};
}
/// The function that takes f's arguments and a direction for each and returns value and derivative in that direction.
template <class F>
constexpr auto jvp(F f) {
    return jvp_of<F>{f};
}
/// The function that takes f's arguments and a direction for each and returns value, gradient and Hessian times
/// direction.
template <class F>
constexpr auto hvp(F f) {
    return hvp_of<F>{f};
}
/// The function that returns f's Jacobian, [result's axes..., argument's axes...], by one sweep for each element of f's
/// arguments or of its results, whichever are fewer.
template <class F>
constexpr auto jacobian(F f) {
    return jacobian_of<F>{f};
}
/// `jacobian` by forward sweeps, one for each element of the argument: jax.jacfwd.
template <class F>
constexpr auto jacobian_forward(F f) {
    return jacobian_of<F, sweep_direction::forward>{f};
}
/// `jacobian` by backward sweeps, one for each element of the result: jax.jacrev.
template <class F>
constexpr auto jacobian_reverse(F f) {
    return jacobian_of<F, sweep_direction::reverse>{f};
}
/// hessian(f)(x...): the second derivatives of f (of the sum of its elements), of shape [x...,
/// x...]. Several arguments give a tuple of tuples, with the block of arguments i and j at [i][j].
template <class F>
constexpr auto hessian(F f) {
    return jacobian_forward(gradient(f));
}

} // namespace tapegraph
