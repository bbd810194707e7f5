#pragma once

#include <tapegraph/expr/derivatives.hpp>
#include <tapegraph/scalar/lanes.hpp>
#include <tapegraph/scalar/structures.hpp>
#include <tapegraph/scalar/tape.hpp>

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

/// gradient, jacobian, hessian, vjp, jvp and hvp of functions of vectors, arrays, spans and structures of numbers. The function
/// objects are those of expr/derivatives.hpp; sequences of numbers have a mode of their own here, whose derivatives are
/// taken by jets and by the tape.

namespace tapegraph {

/// The mode of functions of sequences of numbers.
struct number_mode;

template <scalars::number_argument R>
struct detail::mode_of<R> {
    using type = number_mode;
};

namespace scalars {

/// The numbers of all arguments have one type, that of the first sequence or structure.
template <class... X>
struct common_number;
template <class First, class... Rest>
struct common_number<First, Rest...> : common_number<Rest...> {};
template <number_argument First, class... Rest>
struct common_number<First, Rest...> {
    using type = typename number_type_of<First>::type;
};

/// f's arguments as numbers that make(number, index) gives.
template <class T, class Make, class... X>
auto converted(const Make& make, const X&... x) {
    std::size_t index = 0;
    const auto each = [&](const auto& argument) {
        return mapped_structure([&](const auto& number) { return make(T(number), index++); }, argument);
    };
    return std::tuple<decltype(each(x))...>{each(x)...}; // braces: in order
}

/// The arguments' derivatives, numbered as the arguments' numbers are.
template <class T, class Get, class... X>
auto gradient_like(const Get& get, const X&... x) {
    auto parts = converted<T>([&](const T&, std::size_t index) { return T(get(index)); }, x...);
    return detail::unwrapped(std::move(parts));
}

/// f recorded at x: its result, and the tape's places of all arguments' numbers.
template <class T, class F, class... X>
struct recording_of {
    real_tape<T> tape;
    std::vector<real<T>> inputs;
    decltype(std::apply(std::declval<const F&>(), converted<T>([](const T& v, std::size_t) { return real<T>(v); },
                                                               std::declval<const X&>()...))) result;

    recording_of(const F& f, const X&... x)
        : result(std::apply(f, converted<T>(
                                   [this](const T& value, std::size_t) {
                                       real<T> number(value);
                                       tape.watch(number);
                                       inputs.push_back(number);
                                       return number;
                                   },
                                   x...))) {}
};

template <class F>
inline constexpr bool is_gradient = false;
template <class F>
inline constexpr bool is_gradient<gradient_of<F>> = true;
template <class F>
inline constexpr bool is_gradient<value_and_gradient_of<F>> = true;

template <class T, class Y>
const T& value_of_result(const Y& y) {
    if constexpr (recording<Y>)
        return y.number;
    else
        return y;
}

} // namespace scalars

/// The mode of functions of numbers that record.
struct number_mode {
    /// f's value and its derivative by each argument, by one recording and one sweep.
    template <class F, class... X>
    static auto value_and_gradient(const F& f, const X&... x) {
        using T = typename scalars::common_number<X...>::type;
        scalars::recording_of<T, F, X...> at(f, x...);
        const real<T> y(at.result);
        at.tape.backward(y);
        auto gradient = scalars::gradient_like<T>([&](std::size_t i) { return at.tape.adjoint(at.inputs[i]); }, x...);
        return value_with_gradient<T, decltype(gradient)>{y.value(), std::move(gradient)};
    }
};

namespace detail {

template <class F, class... X>
struct linearization<number_mode, F, X...> {
    using T = typename scalars::common_number<X...>::type;
    using first_order = jet<T, 1>;
    static constexpr auto value_of_jet = [](const auto& y) { return first_order(y).value; };
    using result = std::remove_cvref_t<decltype(std::apply(
        std::declval<const F&>(),
        scalars::converted<T>([](const T& v, std::size_t) { return first_order(v); }, std::declval<const X&>()...)))>;

    const F& f;
    std::tuple<const X&...> x;
    decltype(scalars::mapped_structure(value_of_jet, std::declval<const result&>())) value{};

    linearization(const F& function, const X&... at) : f(function), x(at...) {}

    /// The derivative along directions, built like the arguments.
    template <class Directions>
    auto push(const Directions& directions, const char* what) {
        std::vector<T> along;
        scalars::for_each_number([&](const auto& t) { along.push_back(T(t)); }, directions);
        std::size_t count = 0;
        std::apply([&](const X&... each) { ((count += scalars::count_numbers(each)), ...); }, x);
        scalars::require_as_many(along.size(), count, (std::string(what) + ": directions").c_str());
        const auto y = std::apply(f, arguments<first_order>([&](const T& v, std::size_t i) {
                                      first_order number(v);
                                      number.derivative[0] = along[i];
                                      return number;
                                  }));
        value = scalars::mapped_structure(value_of_jet, y);
        return scalars::mapped_structure([](const auto& v) { return first_order(v).derivative[0]; }, y);
    }
    /// The derivative of the results, weighted with a cotangent that is built like them.
    template <class Cotangent>
    auto pull(const Cotangent& cotangent, const char* what) {
        return std::apply(
            [&](const X&... each) {
                scalars::recording_of<T, F, X...> at(f, each...);
                value = scalars::mapped_structure([](const auto& y) { return T(scalars::value_of_result<T>(y)); },
                                                  at.result);
                std::vector<T> weights;
                scalars::for_each_number([&](const auto& u) { weights.push_back(T(u)); }, cotangent);
                scalars::require_as_many(weights.size(), scalars::count_numbers(at.result),
                                         (std::string(what) + ": a cotangent").c_str());
                at.tape.clear_adjoints();
                std::size_t i = 0;
                scalars::for_each_number([&](const auto& y) { at.tape.add_adjoint(real<T>(y), weights[i++]); },
                                         at.result);
                at.tape.sweep();
                return scalars::converted<T>(
                    [&](const T&, std::size_t index) { return at.tape.adjoint(at.inputs[index]); }, each...);
            },
            x);
    }
    /// The Jacobian: the structure of the results, with the derivatives by the arguments in the place of each number.
    template <sweep_direction Direction>
    auto jacobian(std::integral_constant<sweep_direction, Direction>) const {
        std::vector<T> rows;
        return rows_with<Direction>(rows, [&](const auto& y) { return rows_of(y, rows, count()); });
    }
    /// The same as numbers: a row for each number of the result, in order, with the derivatives by all arguments' numbers.
    template <sweep_direction Direction>
    void rows(std::vector<T>& rows) const {
        rows_with<Direction>(rows, [](const auto&) {});
    }

private:
    std::size_t count() const {
        std::size_t numbers = 0;
        std::apply([&](const X&... each) { ((numbers += scalars::count_numbers(each)), ...); }, x);
        return numbers;
    }
    // Returns use(y), where y has the structure of the results.
    template <sweep_direction Direction, class Use>
    auto rows_with(std::vector<T>& rows, const Use& use) const {
        // The inside of a gradient is recorded by a tape of its own, so only jets pass through it.
        if constexpr (Direction == sweep_direction::forward || !std::floating_point<T> || scalars::is_gradient<F>)
            return forward_rows<false>(rows, use);
        else if constexpr (Direction == sweep_direction::reverse)
            return reverse_rows(rows, use);
        else
            return forward_rows<true>(rows, use);
    }
    template <class N, class Make>
    auto arguments(const Make& make) const {
        return std::apply([&](const X&... each) { return scalars::converted<T>(make, each...); }, x);
    }
    auto rows_of(const auto& structure, const std::vector<T>& rows, std::size_t count) const {
        std::size_t row = 0;
        return scalars::mapped_structure(
            [&](const auto&) {
                const T* const derivatives = rows.data() + count * row++;
                return std::apply(
                    [&](const X&... each) {
                        return scalars::gradient_like<T>([&](std::size_t i) { return derivatives[i]; }, each...);
                    },
                    x);
            },
            structure);
    }
    // By runs of jets. If the tape may be chosen, the first run tells how many results there are: a sweep of lanes takes
    // about as long as three runs, and so does recording.
    template <bool Choose, class Use>
    auto forward_rows(std::vector<T>& rows, const Use& use) const {
        const std::size_t count = this->count();
        constexpr int width = 8;
        using jets = jet<T, width>;
        const auto run = [&](std::size_t first) {
            return std::apply(f, arguments<jets>([&](const T& v, std::size_t i) {
                                  return i >= first && i - first < width ? jets(v, static_cast<int>(i - first))
                                                                         : jets(v);
                              }));
        };
        std::size_t first = 0;
        auto y = run(0);
        const std::size_t results = scalars::count_numbers(y);
        if constexpr (Choose)
            if ((count - 1) / width > 3 + 3 * ((results + width - 1) / width)) return reverse_rows(rows, use);
        rows.resize(results * count);
        for (;;) {
            std::size_t row = 0;
            scalars::for_each_number(
                [&](const auto& v) {
                    const jets number(v);
                    for (std::size_t k = 0; k < width && first + k < count; ++k)
                        rows[row * count + first + k] = number.derivative[k];
                    ++row;
                },
                y);
            first += width;
            if (first >= count) break;
            y = run(first);
        }
        return use(y);
    }
    template <class Use>
    auto reverse_rows(std::vector<T>& rows, const Use& use) const {
        return std::apply(
            [&](const X&... each) {
                scalars::recording_of<T, F, X...> at(f, each...);
                const std::size_t count = at.inputs.size();
                std::vector<real<T>> results;
                scalars::for_each_number([&](const auto& y) { results.push_back(real<T>(y)); }, at.result);
                rows.resize(results.size() * count);
                constexpr std::size_t width = 8;
                adjoint_lanes<T, width> lanes(at.tape);
                for (std::size_t first = 0; first < results.size(); first += width) {
                    const std::size_t used = std::min(width, results.size() - first);
                    lanes.clear();
                    for (std::size_t k = 0; k < used; ++k) lanes.add(results[first + k], static_cast<int>(k));
                    lanes.sweep();
                    for (std::size_t i = 0; i < count; ++i)
                        for (std::size_t k = 0; k < used; ++k)
                            rows[(first + k) * count + i] = lanes(at.inputs[i], static_cast<int>(k));
                }
                return use(at.result);
            },
            x);
    }
};

} // namespace detail
} // namespace tapegraph
