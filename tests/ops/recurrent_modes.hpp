#pragma once

#include <support/compiled_modes.hpp>

#include <doctest/doctest.h>

#include <string>
#include <tuple>

/// What the tests of recurrent operations in both modes have in common.

namespace tapegraph::testing {

/// Value of f and the squares of its first derivatives, whose gradient has second ones.
template <class F>
constexpr auto with_curvature(const F& f, const auto&... x) {
    const auto [value, gradient] = value_and_gradient(f)(x...);
    auto total = value;
    std::apply([&](const auto&... g) { ((total = eval(total + sum(square(g)))), ...); }, gradient);
    return total;
}

template <class Modes>
void check_bits(Modes& modes, const auto&... x) {
    const std::string text = modes.compare(x...);
    CHECK_MESSAGE(text.empty(), text);
}

/// That f throws a shape_error with such a text.
template <class F>
void check_says(const F& f, const char* text) {
    try {
        f();
        FAIL_CHECK("no error where there should be: " << std::string(text));
    } catch (const shape_error& e) {
        CHECK_MESSAGE(std::string(e.what()).find(text) != std::string::npos, std::string(e.what()));
    }
}

/// That the third derivative of f by x is refused with such a text.
template <class F>
void check_third_refused(const F& f, tensor<double> x, const char* text) {
    const auto gradient = [](const auto& y, auto& tape, const auto& at) {
        const auto g = tape.gradient(y, at);
        return tensor<double>(sum(square(g)));
    };
    gradient_tape third;
    third.watch(x);
    const auto second_norm = [&] {
        gradient_tape second;
        second.watch(x);
        gradient_tape first;
        first.watch(x);
        return gradient(gradient(tensor<double>(f(x)), first, x), second, x);
    };
    CHECK_THROWS_WITH_AS(third.gradient(second_norm(), x), doctest::Contains(text), shape_error);
}

} // namespace tapegraph::testing
