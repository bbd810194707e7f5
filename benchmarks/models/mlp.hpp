#pragma once

#include <tapegraph/tapegraph.hpp>

namespace models {

/// A multilayer perceptron: maps images of 784 numbers through two layers of 512 units to ten
/// logits. 669,706 parameters.
struct mlp {
    constexpr auto operator()(auto scope, auto x) const {
        namespace tg = tapegraph;
        const auto h = relu(tg::dense(scope / "hidden" / 0, x, {.units = 512}));
        return tg::dense(scope / "score", relu(tg::dense(scope / "hidden" / 1, h, {.units = 512})), {.units = 10});
    }
};

} // namespace models
