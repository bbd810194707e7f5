#pragma once

#include <tapegraph/tapegraph.hpp>

namespace models {

/// A multilayer perceptron of any depth, to show how the cost of compiling grows with the number of
/// nodes.
struct layers {
    int count = 10;

    constexpr auto operator()(auto scope, auto x) const {
        namespace tg = tapegraph;
        auto h = x;
        for (int i = 0; i < count; ++i) h = relu(tg::dense(scope / i, h, {.units = 32}));
        return tg::dense(scope / "score", h, {.units = 1});
    }
};

} // namespace models
