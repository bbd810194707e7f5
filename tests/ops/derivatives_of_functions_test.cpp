#include <support/graph_runner.hpp>

#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

namespace derivatives_of_functions_test {

/// vjp, hvp, jacobian, hessian and derivatives in each other in graph mode: the same bits as in eager mode.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

constexpr auto potential = [](auto x, auto w) { // [3, 4], [4, 2]: a number
    const auto h = tg::eval(tanh(matmul(x, w)));
    return sum(h * square(h)) + 0.5 * sum(softmax(x) * x);
};
constexpr auto layers = [](auto x, auto w) { return softmax(matmul(tanh(x), w)); };

// Nested in every order; a function that captures its argument from outside.
constexpr auto nested = [](auto x, auto v) {
    const auto f = [](auto a) { return tg::eval(a * sin(a)); };
    const auto slope = [=](auto a) { return tg::jvp(f)(a, v).tangent; };
    const auto captured = [=](auto a) { return tg::eval(a * square(x)); };
    return std::tuple{tg::jvp(tg::jvp(f))(x, v, v, square(v)),
                      tg::gradient(slope)(x),
                      tg::jvp(tg::gradient(slope))(x, v),
                      tg::vjp(captured)(v, x),
                      tg::jvp(captured)(x, v),
                      tg::value_and_gradient(captured)(x)};
};

} // namespace

#define TG_SAME(text) CHECK_MESSAGE((text).empty(), text)

TEST_CASE("both modes: hvp, vjp, nested derivatives") {
    const auto x = drawn<double>({3, 4}, 1), v = drawn<double>({3, 4}, 3);
    const auto w = drawn<double>({4, 2}, 2), u = drawn<double>({4, 2}, 4);
    using first = tg::spec<double, 3, 4>;
    using second = tg::spec<double, 4, 2>;
    both_modes product(tg::hvp(potential), first{}, second{}, first{}, second{});
    TG_SAME(product.compare(x, w, v, u));
    both_modes pulled(tg::vjp(layers), tg::spec<double, 3, 2>{}, first{}, second{});
    TG_SAME(pulled.compare(drawn<double>({3, 2}, 5), x, w));
    both_modes deeper(nested, first{}, first{});
    TG_SAME(deeper.compare(x, v));
}

TEST_CASE("both modes: jacobian and hessian") {
    const auto x = drawn<double>({3, 4}, 1);
    const auto w = drawn<double>({4, 2}, 2);
    using first = tg::spec<double, 3, 4>;
    using second = tg::spec<double, 4, 2>;
    const auto several = [](auto a, auto b) { // a structure of results, a scalar among them
        const auto y = layers(a, b);
        return std::tuple{y, sum(y * y), argmax(a)};
    };
    both_modes automatic(tg::jacobian(several), first{}, second{});
    TG_SAME(automatic.compare(x, w));
    both_modes forward(tg::jacobian_forward(layers), first{}, second{});
    TG_SAME(forward.compare(x, w));
    both_modes reverse(tg::jacobian_reverse(layers), first{}, second{});
    TG_SAME(reverse.compare(x, w));
    CHECK(reverse.results()[1].shape() == tg::shape{3, 2, 4, 2});
    for (std::size_t k = 0; k < 2; ++k) {
        const tg::tensor<double> a(forward.results()[k]), b(reverse.results()[k]);
        REQUIRE(a.shape() == b.shape());
        for (std::int64_t i = 0; i < a.size(); ++i) CHECK(std::abs(a.data()[i] - b.data()[i]) <= 1e-15);
    }
    both_modes blocks(tg::hessian(potential), first{}, second{});
    TG_SAME(blocks.compare(x, w));
    CHECK(blocks.results()[1].shape() == tg::shape{3, 4, 4, 2});
}

} // namespace derivatives_of_functions_test

#undef TG_SAME
