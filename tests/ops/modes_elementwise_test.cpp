#include <support/graph_runner.hpp>

#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

namespace modes_elementwise_test {

/// Elementwise operations in graph mode: the same bits as in eager mode, values and gradients, at batches from none to
/// more than a tile. What the numbers should be is the table's business.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

constexpr auto formulas = [](auto x, auto y, auto z) { // [n, 5], [5], [n, 1]
    const auto positive = tg::eval(square(x) + 1.5);
    return std::tuple{tg::eval(tanh(x * y + z) - 0.25 * x),
                      tg::eval(sigmoid(x) * softplus(z)),
                      tg::eval(exp(-square(x)) + expm1(y)),
                      tg::eval(log(positive) * log1p(positive)),
                      tg::eval(sqrt(positive) / rsqrt(positive + 1)),
                      tg::eval(pow(positive, 1.5) + pow(positive, y)),
                      tg::eval(sin(x) * cos(z) + erf(y)),
                      tg::eval(relu(x) + abs(y) * sign(z)),
                      tg::eval(maximum(x, y) - minimum(z, y)),
                      tg::eval(where(x > y, x, 2 * z)),
                      tg::eval(where(logical_and(x > 0, logical_not(z >= y)), 1, -x)),
                      tg::eval(tg::stop_gradient(x) * y),
                      tg::eval(z * y), // no operand of full shape
                      tg::eval(x * x + x)};
};

constexpr auto answers = [](auto x, auto y, auto z) {
    return std::tuple{tg::eval(x < y),
                      tg::eval(x <= z),
                      tg::eval(x > 0),
                      tg::eval(x >= y),
                      tg::eval(x == x),
                      tg::eval(x != z),
                      tg::eval(logical_or(x > y, x < z)),
                      tg::eval(tg::cast<std::int32_t>(4 * x)),
                      tg::eval(tg::cast<bool>(relu(x)))};
};
// One number of all formulas: every one's adjoint differs from 1, and x, y, z receive many.
constexpr auto loss = [](auto x, auto y, auto z) {
    return std::apply(
        [](auto first, auto... rest) {
            auto total = tg::eval(sum(first));
            ((total = tg::eval(total + sum(square(rest)))), ...);
            return total;
        },
        formulas(x, y, z));
};

constexpr auto second = [](auto x, auto y) {
    const auto f = [](auto a, auto b) { return sum(tanh(a * b) * a + exp(-square(b))); };
    return tg::value_and_gradient([=](auto a, auto b) {
        const auto [da, db] = tg::gradient(f)(a, b);
        const auto first = sum(square(da)); // one after another: C++ does not order the operands of +
        const auto rest = sum(db * b);
        return tg::eval(first + rest);
    })(x, y);
};

template <class T, class Modes>
void at_batches(Modes& modes) {
    for (std::int64_t n : {7, 1, 0, 131, 2, 7001}) { // up, down and up: one arena serves all
        const std::string text = modes.compare(drawn<T>({n, 5}, 1), drawn<T>({5}, 2), drawn<T>({n, 1}, 3));
        CHECK_MESSAGE(text.empty(), "batch " << n << ": " << text);
    }
}

} // namespace

TEST_CASE("both modes: elementwise values, double") {
    both_modes modes(formulas, tg::spec<double, tg::dyn, 5>{}, tg::spec<double, 5>{}, tg::spec<double, tg::dyn, 1>{});
    at_batches<double>(modes);
    CHECK(modes.results().size() == 14);
    CHECK(modes.results()[12].shape() == tg::shape{7001, 5});
}

TEST_CASE("both modes: elementwise values, float") {
    both_modes modes(formulas, tg::spec<float, tg::dyn, 5>{}, tg::spec<float, 5>{}, tg::spec<float, tg::dyn, 1>{});
    at_batches<float>(modes);
}

TEST_CASE("both modes: comparisons, logic, casts") {
    both_modes modes(answers, tg::spec<float, tg::dyn, 5>{}, tg::spec<float, 5>{}, tg::spec<float, tg::dyn, 1>{});
    at_batches<float>(modes);
}

TEST_CASE("both modes: elementwise gradients, double") {
    both_modes modes(tg::value_and_gradient(loss), tg::spec<double, tg::dyn, 5>{}, tg::spec<double, 5>{},
                     tg::spec<double, tg::dyn, 1>{});
    at_batches<double>(modes);
}

TEST_CASE("both modes: elementwise gradients, float") {
    both_modes modes(tg::value_and_gradient(loss), tg::spec<float, tg::dyn, 5>{}, tg::spec<float, 5>{},
                     tg::spec<float, tg::dyn, 1>{});
    at_batches<float>(modes);
}

TEST_CASE("both modes: gradient of a gradient") {
    both_modes modes(second, tg::spec<double, tg::dyn, 5>{}, tg::spec<double, 5>{});
    // Eager mode replays a recorded gradient operation by operation, the graph differentiates formula by formula: adjoints
    // are added in another order, so some bits of 53 may differ, times the few thousand terms of the sums: 1e-16 each.
    for (std::int64_t n : {3, 1, 400}) CHECK(modes.distance(drawn<double>({n, 5}, 1), drawn<double>({5}, 2)) < 1e-13);
}

} // namespace modes_elementwise_test
