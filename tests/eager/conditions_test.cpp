#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <type_traits>

/// Tensors and formulas as conditions, and the signs of logic, which are of elements in both modes.

namespace conditions_test {

namespace tg = tapegraph;
using tg::tensor;

TEST_CASE("conditions: a formula of one element, and no other") {
    const tensor<float> x{1, 2, 3};
    int seen = 0;
    if (sum(x) > 5) ++seen;
    if (sum(x) > 6) seen += 10;
    if (sum(x) > 5 && !(sum(x) > 6)) ++seen;
    if (tg::any(x > 2) || tg::all(x > 2)) ++seen;
    while (sum(x) == 6 && seen < 5) ++seen;
    CHECK(seen == 5);
    const bool positive = tg::all(x > 0) && true, none = !tg::any(x > 0);
    CHECK(positive);
    CHECK(!none);
    CHECK((sum(x) > 5 ? 1 : 2) == 1);
    CHECK_THROWS_AS(static_cast<void>(static_cast<bool>(x > 1)), tg::shape_error);
    // A condition is no number, and a tensor of numbers no condition.
    using formula = decltype(x > 1);
    static_assert(std::is_convertible_v<formula, bool> && !std::is_convertible_v<formula, int>);
    static_assert(!std::is_convertible_v<formula, double> && !std::is_convertible_v<tensor<float>, bool>);
}

constexpr auto logic = [](auto x, auto y) {
    return where(x > 1 && !(y > 1), 1, 0) + where(x > 1 || y > 1, 10, 0) + where(x > 0 && true, 100, 0);
};

TEST_CASE("conditions: &&, || and ! are logical_and and its like, in both modes") {
    const tensor<float> x{0, 2, 0, 2}, y{0, 0, 2, 2};
    const tensor<float> expected{0, 111, 10, 110};
    CHECK(tg::array_equal(tg::function<tg::graph>(logic, tg::spec<float, 4>{}, tg::spec<float, 4>{})(x, y), expected));
    CHECK(tg::array_equal(tg::function<tg::eager>(logic, tg::spec<float, 4>{}, tg::spec<float, 4>{})(x, y), expected));
    const tensor<bool> a{true, true, false}, b{true, false, false};
    CHECK(tg::array_equal(tensor<bool>(a && b), tensor<bool>{true, false, false}));
    CHECK(tg::array_equal(tensor<bool>(a || b), tensor<bool>{true, true, false}));
    CHECK(tg::array_equal(tensor<bool>(!b), tensor<bool>{false, true, true}));
    CHECK(tg::array_equal(tensor<bool>(a && tg::logical_xor(a, b)), tensor<bool>{false, true, false}));
}

} // namespace conditions_test
