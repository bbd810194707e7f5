#pragma once

#include <tapegraph/tapegraph.hpp>

namespace models {

namespace tg = tapegraph;

/// The CNN of the batch-size study: images [batch, 50, 50, 3] to one logit, 1,674,701 parameters.
/// `Drops` is false for comparisons with other libraries, whose random numbers differ.
template <bool Drops = true>
struct cats_and_dogs {
    constexpr auto operator()(auto scope, auto image) const {
        auto h = tg::conv2d(scope / "conv1", image, {.filters = 150, .kernel_size = {3, 3}});
        h = tg::max_pooling2d(tg::batch_normalization(scope / "norm1", relu(h)), {.pool_size = {2, 2}});
        h = tg::conv2d(scope / "conv2", h, {.filters = 300, .kernel_size = {5, 5}});
        h = tg::max_pooling2d(tg::batch_normalization(scope / "norm2", relu(h)), {.pool_size = {2, 2}});
        h = tg::dropout(scope / "drop2", h, {.rate = Drops ? 0.25 : 0});
        h = tg::conv2d(scope / "conv3", h, {.filters = 200, .kernel_size = {3, 3}});
        h = tg::max_pooling2d(relu(h), {.pool_size = {2, 2}});
        h = tg::dropout(scope / "drop3", tg::flatten(h), {.rate = Drops ? 0.25 : 0});
        return tg::dense(scope / "score", h, {.units = 1});
    }
};

} // namespace models
