#pragma once

#include <tapegraph/tapegraph.hpp>

#include <cstdint>

namespace image_pipeline {

/// Height and width of the model's input, and the most classes that it distinguishes.
inline constexpr std::int64_t side = 64;
inline constexpr int most_classes = 10;

/// Three convolutions: maps images [batch, 64, 64, 3] to a score for each class.
struct classifier {
    constexpr auto operator()(auto scope, auto image) const {
        namespace tg = tapegraph;
        auto h = tg::max_pooling2d(relu(tg::conv2d(scope / "conv1", image, {.filters = 16, .kernel_size = {3, 3}})),
                                   {.pool_size = {2, 2}});
        h = tg::max_pooling2d(relu(tg::conv2d(scope / "conv2", h, {.filters = 32, .kernel_size = {3, 3}})),
                              {.pool_size = {2, 2}});
        h = tg::max_pooling2d(relu(tg::conv2d(scope / "conv3", h, {.filters = 32, .kernel_size = {3, 3}})),
                              {.pool_size = {2, 2}});
        return tg::dense(scope / "score", mean(h, {1, 2}), {.units = most_classes});
    }
};

} // namespace image_pipeline
