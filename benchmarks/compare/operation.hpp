#pragma once

#include "contestant.hpp"

#include <tapegraph/tapegraph.hpp>

#include <memory>
#include <tuple>
#include <utility>
#include <vector>

/// Single operations as work of a contestant, each a function in the mode that the compiler's command
/// line names (-DCOMPARE_MODE=eager).

#ifndef COMPARE_MODE
#define COMPARE_MODE graph
#endif

namespace compare {

using tg::dyn;
using vector = tg::spec<float, dyn>;
using matrix = tg::spec<float, dyn, dyn>;

template <class F>
auto shared(F f) {
    return std::make_shared<F>(std::move(f));
}

/// A function of tensors of these specs, whose value is timed and compared.
template <class... Specs>
prepared forward(auto f, const auto&... x) {
    const auto compiled = shared(tg::function<tg::COMPARE_MODE>(f, Specs{}...));
    prepared p;
    p.step = [=] { [[maybe_unused]] const tg::tensor<float> y = (*compiled)(x...); };
    p.numbers = [=](std::int64_t) { return digest((*compiled)(x...)); };
    return p;
}

/// The derivatives of the mean of f's squares with respect to every operand, without the mean itself.
template <class... Specs>
prepared gradient(auto f, const auto&... x) {
    const auto loss = [](const auto&... operands) { return mean(square(decltype(f){}(operands...))); };
    const auto compiled = shared(tg::function<tg::COMPARE_MODE>(tg::gradient(loss), Specs{}...));
    prepared p;
    p.step = [=] { [[maybe_unused]] const auto all = (*compiled)(x...); };
    p.numbers = [=](std::int64_t) {
        const auto result = (*compiled)(x...);
        if constexpr (sizeof...(x) == 1) {
            return digest(result);
        } else {
            std::vector<double> numbers;
            std::apply(
                [&](const auto&... each) {
                    for (const auto& one : {digest(each)...}) numbers.insert(numbers.end(), one.begin(), one.end());
                },
                result);
            return numbers;
        }
    };
    return p;
}

/// A function of a matrix with rows of 1,000 numbers, `size` in all.
prepared of_matrix(auto f, const row& r) {
    const auto x = noise({r.size / 1000, 1000}, 1);
    return r.kind == "gradient" ? gradient<matrix>(f, x) : forward<matrix>(f, x);
}

} // namespace compare
