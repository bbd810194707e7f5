#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/eager/checkpointed_run.hpp>
#include <tapegraph/eager/derivatives.hpp>
#include <tapegraph/scalar/jet.hpp>
#include <tapegraph/scalar/tape.hpp>
#include <tapegraph/scalar/tensors/bound_function.hpp>
#include <tapegraph/scalar/tensors/number_tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// Functions of tensors in code of numbers that record: one external function on the tape of numbers.

namespace tapegraph {
namespace scalars {

/// The elements as a tensor.
template <class T>
tensor<T> as_tensor(const number_tensor<T>& x) {
    return x.values();
}
template <class T, class It>
tensor<T> tensor_at(It& from, const shape& dims) {
    auto t = tensor<T>::uninitialized(dims);
    T* const to = t.mutable_data();
    std::copy_n(from, t.size(), to);
    from += t.size();
    return t;
}
template <std::size_t, class T>
using tensor_numbered = tensor<T>;

/// jvp and vjp with flat arguments and results, for derivatives of derivatives.
template <class F>
struct pushed_function {
    F f;
    template <class... H>
    auto operator()(const H&... values_and_directions) const {
        const auto y = jvp_of<F>{f}(values_and_directions...);
        return std::tuple_cat(y.value, y.tangent);
    }
};
template <class F, std::size_t Results>
struct pulled_function {
    F f;
    template <class... H>
    auto operator()(const H&... cotangents_and_values) const {
        const std::tuple<H...> all{cotangents_and_values...};
        return [&]<std::size_t... U, std::size_t... I>(std::index_sequence<U...>, std::index_sequence<I...>) {
            const auto y = vjp_of<F>{f}(std::tuple{std::get<U>(all)...}, std::get<Results + I>(all)...);
            if constexpr (sizeof...(I) == 1)
                return std::tuple{y.gradient};
            else
                return y.gradient;
        }
        (std::make_index_sequence<Results>{}, std::make_index_sequence<sizeof...(H) - Results>{});
    }
};

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_tensor_argument(std::size_t argument, const char* what) {
    throw argument_error("with_tensors: a number of argument " + std::to_string(argument) + " was recorded by " + what +
                         "; a constant is x.value()");
}
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_followed_tensor(const shape& dims) {
    throw argument_error("with_tensors: a gradient_tape follows a result of shape " + to_string(dims) +
                         ", and numbers are not on that tape; pass x.detach(), or use with_numbers");
}

/// Runs f, a function of tensors that returns a tuple, with numbers of type N.
template <class N>
struct tensor_call;

template <std::floating_point T>
struct tensor_call<T> {
    template <class F>
    static auto run(const F& f, const auto&... x) {
        return std::apply(
            [](const auto&... y) {
                (refuse_followed(y), ...);
                return std::tuple{number_tensor<T>(y)...};
            },
            f(as_tensor(x)...));
    }
    static void refuse_followed(const any_tensor& y) {
        if (detail::tape_storage::instance().tracks(y)) refuse_followed_tensor(y.shape());
    }
};

template <class V, int Directions>
struct tensor_call<jet<V, Directions>> {
    using number = jet<V, Directions>;

    template <class F, class... X>
    static auto run(const F& f, const X&... x) {
        std::vector<std::int64_t> drawn; // all runs draw the same random numbers
        if constexpr (std::floating_point<V>) {
            using whole = detail::linearization<eager, F, std::conditional_t<true, tensor<V>, X>...>;
            whole at(f, as_tensor(part(x, [](const number& v) { return v.value; }))...);
            auto y =
                std::apply([](const auto&... each) { return std::tuple{number_tensor<number>(each)...}; }, at.value);
            for (int k = 0; k < Directions; ++k) {
                const auto along = [k](const number& v) { return v.derivative[k]; };
                const auto directions = std::tuple{as_tensor(part(x, along))...};
                const auto tangents = at.push(directions, "with_tensors");
                add_direction(y, tangents, k);
            }
            return y;
        } else {
            const auto once = [&](int k) {
                const detail::checkpointed_run run_with(drawn, k > 0);
                return tensor_call<V>::run(pushed_function<F>{f}, part(x, [](const number& v) { return v.value; })...,
                                           part(x, [k](const number& v) { return v.derivative[k]; })...);
            };
            const auto first = once(0);
            constexpr std::size_t results = std::tuple_size_v<std::remove_cvref_t<decltype(first)>> / 2;
            auto y = [&]<std::size_t... I>(std::index_sequence<I...>) {
                return std::tuple{with_zeros(std::get<I>(first))...};
            }
            (std::make_index_sequence<results>{});
            for (int k = 0; k < Directions; ++k) {
                const auto both = k == 0 ? first : once(k);
                [&]<std::size_t... I>(std::index_sequence<I...>) {
                    add_direction(y, std::tie(std::get<results + I>(both)...), k);
                }
                (std::make_index_sequence<results>{});
            }
            return y;
        }
    }

private:
    template <class Get>
    static number_tensor<V> part(const number_tensor<number>& x, const Get& get) {
        std::vector<V> numbers;
        numbers.reserve(x.size());
        for (const number& each : x) numbers.push_back(get(each));
        return {x.shape(), std::move(numbers)};
    }
    static number_tensor<number> with_zeros(const number_tensor<V>& values) {
        return {values.shape(), std::vector<number>(values.begin(), values.end())};
    }
    template <class Y, class Tangents>
    static void add_direction(Y& y, const Tangents& tangents, int k) {
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            (set_direction(std::get<I>(y), std::get<I>(tangents), k), ...);
        }
        (std::make_index_sequence<std::tuple_size_v<Y>>{});
    }
    static void set_direction(number_tensor<number>& y, const tensor<V>& tangent,
                              int k) requires(std::floating_point<V>) {
        const V* from = tangent.data();
        for (number& each : y) each.derivative[k] = *from++;
    }
    static void set_direction(number_tensor<number>& y, const number_tensor<V>& tangent, int k) {
        for (std::size_t i = 0; i < y.size(); ++i) y[i].derivative[k] = tangent[i];
    }
};

template <class V>
struct tensor_call<real<V>> {
    using number = real<V>;

    template <class F, class... X>
    static auto run(const F& f, const X&... x) {
        real_tape<V>* const tape = tape_of(x...);
        if (tape == nullptr) return constants(tensor_call<V>::run(f, values(x)...));
        std::vector<number> inputs;
        (inputs.insert(inputs.end(), x.begin(), x.end()), ...);
        auto drawn = std::make_shared<std::vector<std::int64_t>>();
        const auto y = [&] {
            const detail::checkpointed_run first(*drawn, false);
            return tensor_call<V>::run(f, values(x)...);
        }();
        std::vector<V> flat;
        std::apply([&](const auto&... each) { (flat.insert(flat.end(), each.begin(), each.end()), ...); }, y);
        const std::vector<shape> shapes =
            std::apply([](const auto&... each) { return std::vector<shape>{each.shape()...}; }, y);
        using results = std::make_index_sequence<std::tuple_size_v<std::remove_cvref_t<decltype(y)>>>;
        const std::vector<number> on_tape = tape->external(
            std::span<const number>(inputs), std::span<const V>(flat),
            [f, at = std::tuple{values(x)...}, shapes, drawn](std::span<const V> of_results, std::span<V> of_inputs) {
                const detail::checkpointed_run second(*drawn, true);
                std::apply([&](const auto&... each) { pull(results{}, f, shapes, of_results, of_inputs, each...); },
                           at);
            });
        std::size_t next = 0;
        return std::apply(
            [&](const auto&... each) {
                const auto take = [&](const auto& like) {
                    const auto first = on_tape.begin() + static_cast<std::ptrdiff_t>(next);
                    next += like.size();
                    return number_tensor<number>(
                        like.shape(), std::vector<number>(first, first + static_cast<std::ptrdiff_t>(like.size())));
                };
                return std::tuple<decltype(take(each))...>{take(each)...}; // braces: in order
            },
            y);
    }

private:
    static number_tensor<V> values(const number_tensor<number>& x) {
        std::vector<V> numbers;
        numbers.reserve(x.size());
        for (const number& each : x) numbers.push_back(each.value());
        return {x.shape(), std::move(numbers)};
    }
    template <class Y>
    static auto constants(const Y& y) {
        return std::apply(
            [](const auto&... each) {
                return std::tuple{
                    number_tensor<number>(each.shape(), std::vector<number>(each.begin(), each.end()))...};
            },
            y);
    }
    // The tape on which the call belongs, if a number is on one and it records.
    template <class... X>
    static real_tape<V>* tape_of(const X&... x) {
        const auto* const end = &recorder_of<V>;
        auto* const tape = static_cast<real_tape<V>*>(end->owner);
        std::size_t argument = 0;
        bool depends = false;
        const auto check = [&](const number_tensor<number>& numbers) {
            ++argument;
            for (const number& each : numbers) {
                if (!each.on_a_tape()) continue;
                if (tape == nullptr) refuse_tensor_argument(argument, "a tape that has ended");
                if (each.place.tape != end->tape)
                    refuse_tensor_argument(argument,
                                           "another tape than the active one, or before this one was cleared");
                depends = true;
            }
        };
        (check(x), ...);
        return depends && !tape->paused() ? tape : nullptr;
    }
    template <std::size_t... U, class F, class... X>
    static void pull(std::index_sequence<U...>, const F& f, const std::vector<shape>& shapes,
                     std::span<const V> of_results, std::span<V> of_inputs, const X&... x) {
        auto from = of_results.begin();
        auto to = of_inputs.begin();
        if constexpr (std::floating_point<V>) {
            detail::linearization<eager, F, std::conditional_t<true, tensor<V>, X>...> at(f, as_tensor(x)...);
            const std::tuple<tensor_numbered<U, V>...> cotangents{tensor_at<V>(from, shapes[U])...};
            std::apply([&](const auto&... flow) { ((to = std::copy_n(flow.data(), flow.size(), to)), ...); },
                       at.pull(cotangents, "with_tensors"));
        } else {
            const auto take = [&](const shape& dims) {
                const auto first = from;
                from += dims.elements();
                return number_tensor<V>(dims, std::vector<V>(first, from));
            };
            const std::tuple<decltype(take(shapes[U]))...> cotangents{take(shapes[U])...};
            std::apply([&](const auto&... flow) { ((to = std::copy(flow.begin(), flow.end(), to)), ...); },
                       tensor_call<V>::run(pulled_function<F, sizeof...(U)>{f}, std::get<U>(cotangents)..., x...));
        }
    }
};

} // namespace scalars

/// with_tensors(f) as a function object.
template <class F>
struct with_tensors_of {
    F f;

    /// Calls the function of tensors on numbers that record; their tape sees its derivatives.
    template <scalars::tensor_call_argument... X>
    auto operator()(const X&... x) const {
        using N = typename scalars::call_number<void, scalars::argument_number_t<X>...>::type;
        if constexpr (std::is_void_v<N>) {
            return f(x...);
        } else if constexpr (!scalars::returns_tensors<F, scalars::plain_number_in_t<N>, X...>) {
            static_assert(always_false<F>,
                          "with_tensors: the function returns a tensor of the numbers' element type (use "
                          "cast), or a std::tuple of such tensors");
            return number_tensor<N>{}; // one error is enough
        } else {
            using T = scalars::plain_number_in_t<N>;
            const scalars::bound_function<T, F, decltype(kept(x))...> bound{f, {kept(x)...}};
            auto y = std::apply([&](const auto&... numbers) { return scalars::tensor_call<N>::run(bound, numbers...); },
                                std::tuple_cat(numbers_of<N>(x)...));
            return detail::unwrapped(std::move(y));
        }
    }
    template <class... X>
        requires(!(scalars::tensor_call_argument<X> && ...))
    void operator()(const X&...) const TG_REFUSES(
        "with_tensors: arguments are tensors, numbers, and vectors, arrays and number_tensors of numbers of a "
        "floating-point type, which may be tg::real or tg::jet");

private:
    template <class X>
    static auto kept(const X& x) {
        if constexpr (scalars::tensor_argument<X>)
            return eval(x);
        else
            return 0;
    }
    template <class N, class X>
    static auto numbers_of(const X& x) {
        if constexpr (scalars::tensor_argument<X>)
            return std::tuple<>{};
        else
            return std::tuple{scalars::shaped<N>(x)};
    }
};

/// with_tensors(f)(x...): a function of tensors, called with numbers: a number is a tensor of rank 0, a vector, array or span
/// of rank 1, a number_tensor has a shape; tensors are constants. Numbers may be tg::real (the call is one external
/// function on their tape), tg::jet, either of the other, or plain. Of a tensor the result is a number_tensor, of a tuple of
/// tensors a tuple of these.
///
/// f is a template of its arguments (`const auto& a`), must do the same whenever it is called, and is kept with the
/// values of the arguments until the tape is cleared. It runs again for each sweep. Random numbers are the same in each run.
template <class F>
constexpr auto with_tensors(F f) {
    return with_tensors_of<F>{std::move(f)};
}

} // namespace tapegraph
