#include <tapegraph/io/weights.hpp>

#include <tapegraph/nn/constraint.hpp>

#include <doctest/doctest.h>

/// Headers of models in an order that the umbrella header does not have, and then one that compiles
/// derivatives of formulas where it is included: clang evaluates these only if the functions that
/// trace derivatives are defined before anything names them (ir/node.hpp).

namespace include_order_test {

namespace tg = tapegraph;

TEST_CASE("constraints compile after the headers of files") {
    const tg::tensor<float> w{{3, 0}, {4, 1}};
    const tg::any_tensor projected = tg::constraints::detail::project(tg::constraints::max_norm{1}, w);
    const tg::tensor<float> result(projected);
    const auto values = result.values();
    REQUIRE(values.size() == 4);
    CHECK(values[0] == doctest::Approx(0.6));
    CHECK(values[2] == doctest::Approx(0.8));
    CHECK(values[1] == 0);
    CHECK(values[3] == doctest::Approx(1));
}

} // namespace include_order_test
