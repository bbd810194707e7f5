#pragma once

#include <tapegraph/tapegraph.hpp>

#include <cstdint>

namespace models {

/// ResNet-50 (He et al. 2016) for images [batch, 224, 224, 3], with the stride in a block's 3 x 3
/// convolution as in torchvision, to a thousand logits. 25,557,032 trainable parameters.
struct resnet50 {
    static constexpr std::int64_t blocks[4] = {3, 4, 6, 3};

    constexpr auto operator()(auto scope, auto image) const {
        namespace tg = tapegraph;
        const auto convolved = [](const auto& at, const auto& x, std::int64_t filters, std::int64_t taps,
                                  std::int64_t stride) {
            const std::int64_t edge = taps / 2;
            const auto y = tg::conv2d(at / "conv", x,
                                      {.filters = filters,
                                       .kernel_size = taps,
                                       .stride = stride,
                                       .padding = tg::padding::amounts(edge, edge, edge, edge),
                                       .use_bias = false});
            return tg::batch_normalization(at / "norm", y);
        };
        const auto entered = relu(convolved(scope / "entry", image, 64, 7, 2));
        auto h = tg::eval(
            max_pooling2d(entered, {.pool_size = 3, .stride = 2, .padding = tg::padding::amounts(1, 1, 1, 1)}));
        std::int64_t number = 0;
        for (std::int64_t stage = 0; stage < 4; ++stage)
            for (std::int64_t i = 0; i < blocks[stage]; ++i, ++number) {
                const auto block = scope / "block" / number;
                const std::int64_t filters = std::int64_t{64} << stage, stride = i == 0 && stage > 0 ? 2 : 1;
                const auto narrow = relu(convolved(block / 0, h, filters, 1, 1));
                const auto seen = relu(convolved(block / 1, narrow, filters, 3, stride));
                const auto wide = convolved(block / 2, seen, 4 * filters, 1, 1);
                h = relu(wide + (i > 0 ? h : convolved(block / "shortcut", h, 4 * filters, 1, stride)));
            }
        return tg::dense(scope / "score", mean(h, {1, 2}), {.units = 1000});
    }
};

} // namespace models
